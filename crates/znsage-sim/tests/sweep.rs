// SPDX-License-Identifier: GPL-2.0-only
//! Sweeps: the file format; results are kept by content, whoever runs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use znsage_sim::sweep::{drive, Driven, Point, Runs, Sweep, SweepError};

/// Twelve short runs.
const SMALL: &str = r#"
    device = "zn540"
    size = "192M"
    host.memory = "8M"
    host.threads = 4
    host.cpus = 2
    run.warmup = 0.1
    run.measure = 0.2
    "device.zoned.zone_capacity" = "3 MiB"
    [sweep]
    system = ["znsage", "znsage-2025"]
    utilization = [40, 70]
    seed = [1, 2, 3]
"#;

fn parse(text: &str) -> Result<Sweep, SweepError> {
    Sweep::parse("file.toml", text, &[])
}

fn whole(sweep: &Sweep, directory: &Path) -> Driven {
    let points: Vec<&Point> = sweep.points.iter().collect();
    let driven = drive(&Runs::new(directory), &points, 2, |_| {}).unwrap();
    assert!(driven.done() == points.len() && driven.panicked.is_empty(), "{driven:?}");
    driven
}

fn json_files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
}

/// The files of a directory, without the command lines that made them.
fn results(directory: &Path) -> BTreeMap<PathBuf, Value> {
    let one = |path: PathBuf| {
        let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(!json.as_object_mut().unwrap().remove("command").unwrap().is_null());
        (path.file_name().unwrap().into(), json)
    };
    json_files(directory).into_iter().map(one).collect()
}

/// A short file that would take for ever: all combinations are the same point.
#[test]
fn too_many_combinations_are_refused_before_expansion() {
    let lists = |n: usize, list: &str| {
        let key = |i| format!("\"device.k{i}\" = {list}\n");
        format!("[sweep]\n{}", (0..n).map(key).collect::<String>())
    };
    let singles: String = (0..10).map(|i| format!("device.s{i} = 1\n")).collect();
    for (text, what) in [
        (lists(64, "[1, 1]"), "more than 20000 points"),
        (lists(14, "[1, 1]") + &singles, "more than 300000 settings"),
        (lists(5000, "1"), "more than 200 lists"),
    ] {
        let is = parse(&text).unwrap_err().to_string();
        assert!(is.contains(what), "{is}");
    }
}

#[test]
fn lists_are_multiplied_in_the_order_of_the_file() {
    let sweep = parse(SMALL).unwrap();
    assert_eq!(sweep.points.len(), 12);
    let words: Vec<_> = sweep.points.iter().map(|p| sweep.describe(p)).collect();
    assert_eq!(words[0], "system=znsage, utilization=40.0, seed=1");
    assert_eq!(words[1], "system=znsage, utilization=40.0, seed=2");
    assert_eq!(words[11], "system=znsage-2025, utilization=70.0, seed=3");
    let spec = &sweep.points[4].spec;
    assert_eq!((spec.utilization, spec.seed, spec.host.cpus), (70.0, 2, 2));
    assert_eq!(spec.device_set, [("zoned.zone_capacity".into(), "3 MiB".into())]);
}

#[test]
fn several_tables_are_one_after_the_other() {
    let sweep = parse(
        r#"
        [[sweep]]
        name = "with chunks"
        znsage.chunk = ["64K", "128K", "128K"]
        [[sweep]]
        "device.zoned.max_append" = "192 KiB"
        [sweep.znsage]
        chunk = ["192K"]
        [[sweep]]
        znsage = { chunk = ["128K"], reserve = [1, 2] }
        "#,
    )
    .unwrap();
    let values = |i: usize| serde_json::to_string(&sweep.values(&sweep.points[i])).unwrap();
    assert_eq!(sweep.points.len(), 5, "the same twice in a table is one");
    assert_eq!(sweep.describe(&sweep.points[0]), "with chunks: znsage.chunk=65536");
    assert_eq!(values(2), r#"{"device.zoned.max_append":"192 KiB","znsage.chunk":196608}"#);
    assert_eq!(sweep.points[1].spec, sweep.points[4].spec, "a reserve of 2 is the default");
    let runs = Runs::new(Path::new("runs"));
    let files: Vec<_> = sweep.points.iter().map(|point| runs.file(&point.spec)).collect();
    assert_eq!(files[1], files[4], "a name is not part of the spec");
    assert_ne!(files[3], files[4]);
}

#[test]
fn values_are_replaced_in_lists_and_outside() {
    let set = [("utilization", "50"), ("size", "2G"), ("device.zoned.max_open", "4")];
    let set = set.map(|(key, value)| (key.to_string(), value.to_string()));
    let sweep = Sweep::parse("file.toml", SMALL, &set).unwrap();
    assert_eq!(sweep.points.len(), 6);
    let words = "system=znsage, utilization=50.0, seed=1";
    assert_eq!(sweep.describe(&sweep.points[0]), words, "a key of a list stays one");
    let spec = &sweep.points[5].spec;
    assert_eq!((spec.size, spec.device_set.len()), (Some(2 << 30), 2));
    let wrong = [("utilization".to_string(), "120".to_string())];
    let e = Sweep::parse("file.toml", SMALL, &wrong).unwrap_err().to_string();
    assert!(e.starts_with("file.toml: utilization: 120 is not from 0 to 99"), "{e}");
}

#[test]
fn errors_name_key_and_line() {
    let cases = [
        ("[sweep", "file.toml:1: "),
        ("size = 1\n", "file.toml: there is no table [sweep]"),
        ("[sweep]\n", "file.toml:1: sweep: there are no lists"),
        ("[sweep]\nseed = []", "file.toml:2: seed: the list is empty"),
        ("sweep = 3", "file.toml:1: sweep: a table of lists is expected"),
        ("[sweep]\nname = 1", "file.toml:2: name: a text is expected"),
        (
            "host.cpu = 2\n[sweep]\nseed = [1]",
            "file.toml:1: host.cpu: unknown field `cpu`, expected one of `cpus`",
        ),
        (
            "[sweep]\nsystem = ['stock',\n 'znfast']",
            "file.toml:3: system: unknown variant `znfast`, expected one of `stock`",
        ),
        (
            "[sweep]\nhosts.cpus = [1]",
            "file.toml:2: hosts.cpus: no such table; there are costs, host",
        ),
        (
            "[sweep]\nhost.cpus = [1, 2,\n 65]",
            "file.toml:3: host.cpus: 65 is not from 1 to 64 (host.cpus=65)",
        ),
        (
            "[sweep]\ndevice = ['zn540', 'floppy']",
            "file.toml:2: device: floppy: no such device; there are zn540",
        ),
        (
            "[sweep]\n'device.zoned.zoned' = [1]",
            "file.toml:2: device.zoned.zoned: unknown field `zoned`, expected one of `zones`",
        ),
        (
            "[sweep]\n'device.zoned.zone_capacity' = [\n'1G',\n'3 GiB']",
            "file.toml:4: device.zoned.zone_capacity: 3 GiB is more than the zone size, 2 GiB",
        ),
        (
            "'device.zoned.zone_capacity' = '3 GiB'\n[sweep]\nseed = [1]",
            "file.toml:1: device.zoned.zone_capacity: 3 GiB is more than the zone size, 2 GiB",
        ),
    ];
    for (text, want) in cases {
        let is = parse(text).unwrap_err().to_string();
        assert!(is.starts_with(want), "{text}\n  is     {is}\n  should {want}");
    }
}

#[test]
fn too_many_points_are_refused() {
    let list: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let list = list.join(", ");
    let text = format!("[sweep]\nseed = [{list}]\nhost.memory = ['64M']\nload.think = [{list}]");
    assert!(parse(&text).unwrap_err().to_string().contains("more than 20000 points"));
}

#[test]
fn runs_that_fail_have_a_file_too() {
    let text = SMALL.replace("seed = [1, 2, 3]", "znsage.over-provisioning = [12, 40]");
    let sweep = parse(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(whole(&sweep, directory.path()).ran, 8);
    let runs = Runs::new(directory.path());
    let read = |point: &Point| runs.read(&runs.file(&point.spec)).unwrap();
    let failed: Vec<_> = sweep.points.iter().filter(|p| read(p).error.is_some()).collect();
    let [point] = failed[..] else { panic!("{failed:?}") };
    let why = read(point).error.unwrap();
    assert!(why.starts_with("utilization: ") && why.contains("after over-provisioning"), "{why}");
    assert_eq!(read(point).result, None);
    assert_eq!(whole(&sweep, directory.path()).ran, 0);
    // A value that is wrong in every point is an error before anything runs.
    let is = parse(&text.replace("[12, 40]", "[12,\n91]")).unwrap_err().to_string();
    assert!(is.contains("znsage.over-provisioning: 91 is not from 0 to 90"), "{is}");
}

#[test]
fn files_say_everything_and_run_once() {
    let sweep = parse(&SMALL.replace("[1, 2, 3]", "[1]")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(whole(&sweep, directory.path()).ran, 4);
    let runs = Runs::new(directory.path());
    let file = runs.file(&sweep.points[0].spec);
    let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (key, value) in [
        ("/version", Value::from(env!("CARGO_PKG_VERSION"))),
        ("/spec/system", "znsage".into()),
        ("/spec/znsage/pace", 50.into()),
        ("/spec/parameters/zoned/zone_capacity", (3 << 20).into()),
        ("/spec/parameters/media/program_us", 2400.into()),
        ("/result/seed", 1.into()),
    ] {
        let is = json.pointer(key).unwrap_or(&Value::Null);
        assert!(
            *is == value || is.as_f64().is_some_and(|x| Some(x) == value.as_f64()),
            "{key}: {is}"
        );
    }
    assert!(json["course"]["faults"].as_array().unwrap().len() > 50);

    // Another version, and what a crash of the machine left.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"version\":\"", "\"version\":\"9.")).unwrap();
    fs::write(runs.file(&sweep.points[1].spec), &text[..text.len() / 2]).unwrap();
    let before = fs::metadata(runs.file(&sweep.points[2].spec)).unwrap().modified().unwrap();
    assert_eq!(whole(&sweep, directory.path()).ran, 2);
    assert_eq!(fs::metadata(runs.file(&sweep.points[2].spec)).unwrap().modified().unwrap(), before);
    let again: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&again["spec"], &again["result"]), (&json["spec"], &json["result"]));
}

/// The name of a file stands for the contents of the files that a spec names.
#[test]
fn another_trace_or_device_is_another_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (trace, device) = (path("a.trace"), path("a.toml"));
    let file = || {
        let text =
            format!("workload = 'trace'\nload.trace = '{trace}'\n[sweep]\ndevice = ['{device}']");
        Runs::new(Path::new("runs")).file(&parse(&text).unwrap().points[0].spec)
    };
    fs::write(&trace, "one").unwrap();
    fs::write(&device, "base = 'hynix'\nname = 'mine'").unwrap();
    let first = file();
    assert_eq!(first, file());
    fs::write(&trace, "two").unwrap();
    let second = file();
    assert_ne!(first, second);
    fs::write(&device, "base = 'hynix'\nname = 'mine'\n[zoned]\nzones = 9").unwrap();
    assert_ne!(second, file());
}

fn command(file: &Path, runs: &Path, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_znsage-sim"))
        .args(["sweep", "--json"])
        .arg(file)
        .arg("--runs")
        .arg(runs)
        .args(["--threads", "1"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How many runs a process did.
fn ran(child: Child) -> u64 {
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{out:?}");
    serde_json::from_slice::<Value>(&out.stdout).unwrap()["ran"].as_u64().unwrap()
}

#[test]
fn processes_share_a_directory_and_one_may_be_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let file = path("a.toml");
    fs::write(&file, SMALL).unwrap();
    let together = [(); 3].map(|()| command(&file, &path("together"), &[]));
    assert_eq!(together.map(ran).iter().sum::<u64>(), 12, "nothing ran twice");

    let mut killed = command(&file, &path("killed"), &[]);
    while !path("killed").is_dir() || json_files(&path("killed")).is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    let other = command(&file, &path("killed"), &["--shard", "2/2"]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ran = ran(other) + ran(command(&file, &path("killed"), &[]));
    assert!(ran < 12, "the killed one left results");
    assert_eq!(results(&path("together")), results(&path("killed")));
    let left = fs::read_dir(path("killed")).unwrap().count();
    assert_eq!(left, 12, "no half-written files");
}

#[test]
fn points_are_listed_as_lines_of_json() {
    let directory = tempfile::tempdir().unwrap();
    let (file, runs) = (directory.path().join("a.toml"), directory.path().join("runs"));
    fs::write(&file, SMALL.replace("[sweep]", "[[sweep]]\nname = 'block SSD'")).unwrap();
    let list = || -> Vec<Value> {
        let out = Command::new(env!("CARGO_BIN_EXE_znsage-sim"))
            .args(["sweep", "--list", "--set", "seed=7", "--shard", "2/3"])
            .args([Path::new("--runs"), &runs, &file])
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let lines = list();
    assert!(!runs.exists() && lines.len() == 1, "{lines:?}");
    let want = serde_json::json!({
        "name": "block SSD",
        "point": {"system": "znsage", "utilization": 70.0, "seed": 7},
        "seed": 7,
        "file": lines[0]["file"],
        "done": false,
    });
    assert_eq!(lines[0], want);
    ran(command(&file, &runs, &["--set", "seed=7"]));
    assert_eq!(list()[0]["done"], true);
}

/// The example documents the format.
#[test]
fn the_example_runs() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sweep.toml");
    let sweep = Sweep::parse("sweep.toml", &fs::read_to_string(&file).unwrap(), &[]).unwrap();
    assert_eq!(sweep.points.len(), 8 + 12 + 8);
    let directory = tempfile::tempdir().unwrap();
    whole(&sweep, directory.path());
    for (file, json) in results(directory.path()) {
        assert!(json.get("error").is_none(), "{}: {json}", file.display());
    }
}
