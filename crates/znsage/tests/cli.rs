// SPDX-License-Identifier: GPL-2.0-only
//! The command as a shell sees it: help, usage errors, exit statuses.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn znsage(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_znsage")).args(args).output().expect("the command runs")
}

fn split(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_names_every_command_and_exit_status() {
    let out = znsage(&["--help"]);
    assert_eq!(out.status.code(), Some(0));
    let help = text(&out.stdout);
    for command in "list doctor on off status top set check bench".split(' ') {
        assert!(help.contains(&format!("  {command} ")), "{command} in:\n{help}");
    }
    assert!(help.contains("Exit status:") && help.contains("ZNSAGE_MODULE"), "{help}");
    for word in ["worker", "generator"] {
        assert!(!help.contains(word), "{word} must be hidden");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    for line in [
        "",
        "frobnicate",
        "on",
        "on /dev/x --size 12Q",
        "set",
        "set znsage0",
        "set colour=red",
        "set gc-low=few",
        "set deadline=1h",
        "set gc-low=3 gc_low=4",
        "on /dev/x --over-provisioning 91",
        "on /dev/x --reserve 0",
        "on /dev/x --priority 40000",
        "on /dev/x --config fast",
        "on --config fast --size 1G",
        "on --config fast --force",
        "on --config ../x",
        "off /dev/x --config fast",
        "generator /1 /2 /3 /4",
        "bench --write-ratio 1.5",
        "bench --pattern backwards",
        "bench --size 1G --utilization 40",
        "bench --threads 0",
        "status --prometheus --streams",
        "list --all /dev/x",
        "status -o NAME,COLOUR",
        "status --prometheus -b",
        "doctor all",
        "top --interval 0",
        "top --interval soon",
        "on /dev/x --policy 'two words'",
        "on /dev/x --victim ''",
        "on --config 'no name'",
    ] {
        let words = shlex::split(line).unwrap();
        let out = znsage(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(out.status.code(), Some(2), "{line}");
        assert!(out.stdout.is_empty(), "{line}");
        assert!(!out.stderr.is_empty(), "{line}");
    }
}

/// Each command with an argument that is no UTF-8: alone, and as the value of each of
/// its options.
#[test]
fn arguments_that_are_no_utf8_are_usage_errors() {
    fn lines(command: &clap::Command, above: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
        let options = command.get_arguments().filter_map(|arg| arg.get_long());
        found.extend(options.map(|name| (above.clone(), format!("--{name}="))));
        found.push((above.clone(), "/dev/".to_string()));
        for below in command.get_subcommands() {
            lines(below, [&above[..], &[below.get_name().to_string()]].concat(), found);
        }
    }
    let mut all = Vec::new();
    lines(&znsage::parsers::grammar(), Vec::new(), &mut all);
    assert!(all.len() > 60, "{all:?}");
    for (words, start) in all {
        let last = OsString::from_vec([start.as_bytes(), b"\xff\xfe"].concat());
        let run = |json: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_znsage"));
            command.args(json).args(&words).arg(&last).output().unwrap()
        };
        let out = run(&[]);
        let named = format!("`{start}\u{fffd}\u{fffd}` is not valid UTF-8");
        assert_eq!(out.status.code(), Some(2), "{words:?} {last:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(&named), "{words:?} {last:?}: {}", text(&out.stderr));
        let out = run(&["--json"]);
        let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert!(doc["error"]["message"].as_str().unwrap().contains(&named), "{doc}");
    }
}

/// Output that is lost is an error, except on a pipe whose reader has enough.
#[test]
fn lost_output_is_an_error() {
    for line in [
        "--help",
        "--version",
        "policy load --help",
        "list",
        "status",
        "status --json",
        "status --prometheus",
        "doctor",
        "doctor --json",
        "bench --memory-limit none --size 1M --seconds 0.1 --warmup 0 --json",
        "on --size x --json",
    ] {
        let run = |stdout: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_znsage"));
            let out = command.args(split(line)).stdout(stdout).stderr(Stdio::piped()).output();
            let out = out.unwrap();
            (out.status.code().unwrap(), text(&out.stderr))
        };
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let (full, said) = run(full.into());
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let (closed, quiet) = run(closed.into());
        match line {
            // An error of its own, which must not be lost.
            "on --size x --json" => assert!(full == 2 && said.contains("is not a size"), "{said}"),
            // It may find problems.
            line if line.starts_with("doctor") => assert!(full == 17 && closed <= 1, "{line}"),
            _ => assert_eq!((full, closed), (17, 0), "{line}: {said}"),
        }
        assert!(full == 2 || said.contains("standard output: No space left"), "{line}: {said}");
        assert!(full == 2 || quiet.is_empty(), "{line}: {quiet}");
    }
}

/// The service replaces its file only by a whole one.
#[test]
fn metrics_service_keeps_a_good_file() {
    let unit = include_str!("../../../dist/systemd/znsage-metrics.service");
    let script = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [file, new] = ["znsage.prom", "znsage.prom.new"].map(|name| directory.path().join(name));
    let path = Path::new(env!("CARGO_BIN_EXE_znsage")).parent().unwrap().display();
    let run = || {
        let words = shlex::split(script).unwrap();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env("FILE", &file).env("PATH", format!("{path}:/usr/bin:/bin"));
        command.status().unwrap().success()
    };
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    assert!(!run());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    std::fs::remove_file(&new).unwrap();
    assert!(run() && !new.exists());
    assert!(std::fs::read_to_string(&file).unwrap().contains("znsage_devices"));
}

#[test]
fn usage_errors_can_be_json() {
    let out = znsage(&["--json", "on", "/dev/x", "--size", "12Q"]);
    assert_eq!(out.status.code(), Some(2));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(doc["error"]["kind"], "usage");
    assert_eq!(doc["error"]["status"], 2);
    let message = doc["error"]["message"].as_str().unwrap();
    assert!(message.contains("`12Q` is not a size"), "{message}");
}

#[test]
fn refusals_are_one_json_document() {
    let out = znsage(&["--json", "bench", "--memory-limit", "1M"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stderr.is_empty(), "{}", text(&out.stderr));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(doc["error"]["kind"], "usage");
}

#[test]
fn other_formats_and_json_exclude_each_other() {
    for line in ["--json status --prometheus", "--json status -b", "list --json -o DEVICE"] {
        let out = znsage(&split(line));
        assert_eq!(out.status.code(), Some(2), "{line}");
        let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(doc["error"]["kind"], "usage", "{line}");
    }
    let out = znsage(&["status", "--prometheus"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("# TYPE znsage_devices gauge\nznsage_devices "));
}

#[test]
fn list_and_doctor_run_on_any_machine() {
    let out = znsage(&["list", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(doc["devices"].is_array());
    let out = znsage(&["doctor", "--json"]);
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(doc["findings"].as_array().unwrap().len() >= 10, "{doc}");
    let status = i32::from(doc["ok"] == false);
    assert_eq!(out.status.code(), Some(status), "{doc}");
}

#[test]
fn top_needs_a_terminal() {
    let out = znsage(&["top"]);
    assert_eq!(out.status.code(), Some(13));
    assert!(out.stdout.is_empty());
    let said = text(&out.stderr);
    assert!(said.contains("needs a terminal") && said.contains("znsage status"), "{said}");
    let out = znsage(&["--json", "top"]);
    assert_eq!(out.status.code(), Some(2));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(doc["error"]["kind"], "usage");
}

#[test]
fn version_is_printed() {
    let out = znsage(&["--version"]);
    assert_eq!(text(&out.stdout), format!("znsage {}\n", env!("CARGO_PKG_VERSION")));
}

/// Without a limit the benchmark needs neither root nor swap nor a cgroup.
#[test]
fn bench_runs_and_reports() {
    let out = znsage(&split(
        "bench --json --memory-limit none --size 4M --threads 2 --seconds 0.3 --warmup 0.1 \
         --pattern zipf --verify",
    ));
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let doc: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let phases: Vec<_> = doc["phases"].as_array().unwrap().iter().collect();
    let names: Vec<_> = phases.iter().map(|p| p["phase"].as_str().unwrap()).collect();
    assert_eq!(names, ["fill", "zipf", "verify"]);
    assert_eq!(phases[0]["ops"], 1024);
    assert!(phases[1]["latency_us"]["p99"].as_f64().unwrap() > 0.0);
    assert_eq!(doc["corrupt_pages"], 0);
}

#[test]
fn bench_writes_samples() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.jsonl");
    let mut words = split("bench --memory-limit none --size 1M --seconds 1.2 --samples");
    words.push(file.to_str().unwrap());
    let out = znsage(&words);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let samples = std::fs::read_to_string(file).unwrap();
    let last: serde_json::Value = serde_json::from_str(samples.lines().last().unwrap()).unwrap();
    assert_eq!(last["phase"], "random");
    assert!(samples.lines().count() >= 3, "{samples}");
    assert!(last["t"].as_f64().unwrap() > 1.0);
}
