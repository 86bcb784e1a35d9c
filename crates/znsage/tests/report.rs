// SPDX-License-Identifier: GPL-2.0-only
//! `znsage report`: its page in a headless Chromium, which `make test-report`
//! installs. Without one, the tests that need it are skipped with a message. Likewise
//! metrics and alerts, which promtool of Prometheus checks.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const ZNSAGE: &str = env!("CARGO_BIN_EXE_znsage");

fn znsage(words: &[&str]) -> Output {
    Command::new(ZNSAGE).args(words).output().expect("the command runs")
}

/// A result of each kind: those of the snapshots, and a simulation.
fn results(dir: &Path) -> Vec<String> {
    let run = znsage(&["--json", "sim", "run", "--size", "2G", "--utilization", "40"]);
    assert!(run.status.success(), "{run:?}");
    let simulated = dir.join("simulated.json");
    fs::write(&simulated, &run.stdout).unwrap();
    let samples = dir.join("samples.jsonl");
    let sample = |t: u64| {
        format!(
            "{{\"t\":{t}.5,\"phase\":\"fill\",\"ops\":1,\"bytes_in\":0,\"bytes_out\":{},\
             \"live_blocks\":{t},\"host_blocks\":{t},\"gc_blocks\":0,\"padding_blocks\":0}}\n",
            t << 20
        )
    };
    fs::write(&samples, (0..9).map(sample).collect::<String>() + "{\"t\":9").unwrap();
    let printed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/printed/json");
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../znsage-lab/tests/workloads.json");
    let all = [printed.join("probe.json"), printed.join("bench.json"), simulated, samples, lab];
    all.map(|path| path.to_str().unwrap().to_string()).to_vec()
}

/// A page of all results.
fn page(dir: &TempDir) -> (PathBuf, Value) {
    let file = dir.path().join("page.html");
    let results = results(dir.path());
    let mut words = vec!["--json", "report", "-o", file.to_str().unwrap()];
    words.extend(results.iter().map(String::as_str));
    let said = znsage(&words);
    assert!(said.status.success(), "{said:?}");
    (file, serde_json::from_slice(&said.stdout).unwrap())
}

#[test]
fn page_is_self_contained() {
    let dir = TempDir::new().unwrap();
    let (file, said) = page(&dir);
    let html = fs::read_to_string(file).unwrap();
    assert_eq!(said["results"], 5);
    assert_eq!(said["charts"], html.matches("<svg ").count());
    // The page loads nothing.
    for attribute in ["src=", "<link", "@import", "url("] {
        assert!(!html.contains(attribute), "{attribute}");
    }
    for text in
        ["Recommended settings", "Test 9000", "1 corrupt pages", "Values of the runs", "A store"]
    {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn invalid_results_are_refused() {
    let dir = TempDir::new().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let error = put("error.json", r#"{"error": {"message": "no root"}}"#);
    for (words, status, part) in [
        (vec![put("a.json", "{")], 2, "is not a result"),
        (vec![put("b.json", r#"{"version": 1, "devices": []}"#)], 2, "not a result with a page"),
        (vec![put("c.json", r#"{"version": 1, "phases": []}"#)], 2, "is not a complete result"),
        (vec![put("d.json", r#"{"version": 2, "phases": []}"#)], 2, "has version 2"),
        (vec![error], 2, "is an error: no root"),
        (vec!["/no/such.json".to_string()], 17, "cannot read /no/such.json"),
        (vec![dir.path().to_str().unwrap().to_string()], 2, "no store of a sweep"),
    ] {
        let words: Vec<&str> = ["report"].into_iter().chain(words.iter().map(|w| &w[..])).collect();
        let said = znsage(&words);
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(status) && text.contains(part), "{words:?}: {text}");
        assert!(text.lines().count() > 1, "{words:?}: {text}");
    }
}

/// Debian's Chromium, or the one in the environment.
fn browser() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ZNSAGE_BROWSER") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all =
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)).to_vec());
    all.find(|path| path.is_file())
}

/// Acts as a reader of the page and records the effects.
const READER: &str = r#"<script>
//<![CDATA[
const charts = [...document.querySelectorAll(".picture svg")];
const found = { charts: charts.length, empty: 0, tips: [], hidden: 0, shown: 0 };
for (const svg of charts) {
  const groups = [...svg.querySelectorAll("g.series")];
  const drawn = groups.filter((g) => g.querySelector("circle, polyline, polygon, rect"));
  if (!drawn.length) { found.empty += 1; continue; }
  svg.scrollIntoView();
  const [x, y, , , value] = JSON.parse(drawn[0].dataset.points)[0];
  const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
  svg.dispatchEvent(new PointerEvent("pointermove", { clientX: at.x, clientY: at.y }));
  const tip = document.querySelector(".tip");
  if (!tip.hidden && svg.querySelector(".ring.on")) found.tips.push([tip.textContent, value]);
  const key = svg.querySelectorAll("g.key")[groups.indexOf(drawn[0])];
  key.dispatchEvent(new MouseEvent("click"));
  if (getComputedStyle(drawn[0]).display === "none") found.hidden += 1;
  key.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  if (getComputedStyle(drawn[0]).display !== "none") found.shown += 1;
}
// A narrow screen: only scrollable elements may be wider.
document.documentElement.style.width = "400px";
const inside = (e) => e.closest(".wide") || e.closest("svg");
const wide = [...document.body.querySelectorAll("*")]
  .filter((e) => !inside(e.parentElement) && e.getBoundingClientRect().right > 400);
found.wide = wide.map((e) => e.tagName + "." + e.className);
found.paper = getComputedStyle(document.body).backgroundColor;
document.body.setAttribute("data-found", JSON.stringify(found));
//]]>
</script>
</body>"#;

/// The record, with these options of the browser.
fn read_page(browser: &Path, page: &Path, options: &[&str]) -> Value {
    let profile = TempDir::new().unwrap();
    let said = Command::new(browser)
        .args(["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        // Required as root; the browser opens only our page.
        .args(["--no-sandbox", "--enable-logging=stderr", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(options)
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser runs");
    let log = String::from_utf8_lossy(&said.stderr);
    let console: Vec<&str> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let dom = String::from_utf8_lossy(&said.stdout);
    let (_, rest) = dom.split_once("data-found=\"").unwrap_or_else(|| panic!("{log}\n{dom}"));
    let found = rest.split('"').next().unwrap_or_default().replace("&quot;", "\"");
    serde_json::from_str(&found).unwrap()
}

#[test]
fn page_works_in_a_browser() {
    let Some(browser) = browser() else {
        assert!(std::env::var_os("ZNSAGE_BROWSER_NEEDED").is_none(), "there is no Chromium");
        // Not eprintln!: the test harness would capture it.
        let what = "skipped: no Chromium; `make test-report` installs one\n";
        std::io::stderr().write_all(what.as_bytes()).unwrap();
        return;
    };
    let dir = TempDir::new().unwrap();
    let (file, said) = page(&dir);
    let html = fs::read_to_string(&file).unwrap();
    fs::write(&file, html.replace("</body>", READER)).unwrap();
    let light = read_page(&browser, &file, &[]);
    let charts = said["charts"].as_u64().unwrap();
    assert!(charts > 20, "{charts}");
    for what in ["charts", "hidden", "shown"] {
        assert_eq!(light[what], charts, "{what}: {light}");
    }
    assert_eq!(light["empty"], 0, "{light}");
    let tips = light["tips"].as_array().unwrap();
    assert_eq!(tips.len() as u64, charts, "{light}");
    for tip in tips {
        let (text, value) = (tip[0].as_str().unwrap(), tip[1].as_str().unwrap());
        assert!(text.lines().count() == 3 && text.contains(value), "{tip}");
    }
    assert_eq!(light["wide"], serde_json::json!([]), "{light}");
    let dark = read_page(&browser, &file, &["--force-dark-mode"]);
    assert!(dark["paper"] != light["paper"], "{} {}", dark["paper"], light["paper"]);
}

/// What promtool says of `input`; None where it is not installed.
fn promtool(words: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("promtool");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        assert!(std::env::var_os("ZNSAGE_BROWSER_NEEDED").is_none(), "promtool is missing");
        println!("skipped: no promtool, `make test-report` installs it");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

#[test]
fn promtool_accepts_metrics_and_alerts() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let metrics = fs::read_to_string(home.join("tests/printed/text/status-prometheus.txt"));
    let rules = home.join("../../dist/prometheus/znsage.rules.yml");
    for (words, input) in [
        (["check", "metrics", "--extended"], metrics.unwrap()),
        (["check", "rules", rules.to_str().unwrap()], String::new()),
    ] {
        let Some(said) = promtool(&words, &input) else { return };
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    }
}
