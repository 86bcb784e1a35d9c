// SPDX-License-Identifier: GPL-2.0-only
//! `status --prometheus`, also checked by promtool where it is installed;
//! docs/monitor.md, the dashboard and the engine's counters must match the list of
//! metrics.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::machine::*;
use super::printed::compare_text;
use crate::prometheus::{DEVICES, METRICS};
use crate::sys::fake::Fake;
use crate::sys::Sys;

fn metrics(fake: &Fake) -> String {
    run(fake, "status --prometheus").unwrap().text
}

/// What promtool says of `input`; None where it is not installed.
fn promtool(words: &[&str], input: &str) -> Option<Output> {
    let mut command = Command::new("promtool");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        assert!(std::env::var_os("ZNSAGE_PROMTOOL_NEEDED").is_none(), "promtool is missing");
        println!("skipped: no promtool, `make test-metrics` installs it");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

#[test]
fn promtool_accepts_metrics_and_alerts() {
    for (words, input) in [
        (&["check", "metrics"][..], metrics(&machine_with_cgroup().0)),
        (&["check", "metrics"], metrics(&extreme())),
        (&["check", "rules", "../../dist/prometheus/znsage.rules.yml"], String::new()),
    ] {
        let Some(said) = promtool(words, &input) else { return };
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    }
}

/// One stream is of a cgroup with a quote in its name, the other of a cgroup that is gone.
fn machine_with_cgroup() -> (Fake, u64) {
    let fake = on();
    let group = "/sys/fs/cgroup/system.slice/a\"b.service";
    fake.put_dir(group);
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    fake.put("/sys/block/znsage0/znsage/encrypt", "aes-xts\n");
    let number = fake.inode(group).unwrap();
    let table =
        fake.read(STREAMS).unwrap().replacen("0x0000000000000000", &format!("{number:#018x}"), 1);
    fake.put(STREAMS, &table);
    (fake, number)
}

const STREAMS: &str = "/sys/kernel/debug/znsage/znsage0/stream_table";

/// Each value, its unit, its labels and its help: the file has all of them.
#[test]
fn the_whole_output_is_that_of_the_file() {
    let (fake, number) = machine_with_cgroup();
    let text = metrics(&fake).replace(&format!("{number:#018x}"), "INODE");
    compare_text(&text, "status-prometheus");
    assert_eq!(metrics(&machine()).lines().count(), 3, "without devices, only their number");
}

fn extreme() -> Fake {
    let fake = on();
    let most = u64::MAX.to_string();
    for file in ["host_blocks", "host_pages", "blocks_total", "deadline_us", "gc_zones", "pace"] {
        fake.put(&format!("/sys/block/znsage0/znsage/{file}"), &most);
    }
    let table = format!("below_us gc\n{most} {most}\n8 {most}\ninf {most}\ntotal_ns {most}\n");
    fake.put("/sys/kernel/debug/znsage/znsage0/latency", &table);
    fake
}

#[test]
fn every_counter_of_the_engine_is_a_metric() {
    let header = fs::read_to_string("../../engine/stats.h").unwrap();
    let names: Vec<&str> = header
        .lines()
        .filter_map(|l| l.trim().strip_prefix("X(")?.split_once(')'))
        .map(|x| x.0)
        .collect();
    assert!(names.len() > 25, "{names:?}");
    // These are one metric, with a label.
    let states = ["zones_empty", "zones_open", "zones_full", "zones_retired"];
    for name in names.into_iter().filter(|name| !states.contains(name)) {
        assert!(METRICS.iter().any(|m| m.file == name), "{name}");
    }
}

fn documentation() -> String {
    fs::read_to_string("../../docs/monitor.md").unwrap()
}

#[test]
fn documentation_lists_the_metrics() {
    let text = documentation();
    let of_metric = |l: &&str| l.split('|').nth(2).is_some_and(|c| c.starts_with(" `znsage_"));
    let rows: Vec<&str> = text.lines().filter(of_metric).collect();
    let mut want = vec![format!("| | `{}` | {} |", DEVICES.0, DEVICES.1)];
    want.extend(METRICS.iter().map(|m| {
        let labels = match m.labels {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let column = m.column().map_or(String::new(), |c| format!(": `{c}`"));
        format!("| `{}`{column} | `{}{labels}` | {} |", m.file, m.name, m.help)
    }));
    assert_eq!(rows.join("\n"), want.join("\n"));
}

/// Panics if a query has an unknown metric or label.
fn check_query(query: &str, known: &BTreeSet<String>, labels: &BTreeSet<&str>) {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut metrics = words.filter(|w| w.starts_with("znsage_")).peekable();
    assert!(metrics.peek().is_some(), "no metric in {query}");
    for name in metrics {
        assert!(known.contains(name), "{name} in {query}");
    }
    for list in ["by (", "on (", "group_left (", "without ("] {
        for part in query.split(list).skip(1) {
            let inner = part.split(')').next().unwrap();
            for label in inner.split(',').map(str::trim).filter(|l| !l.is_empty()) {
                assert!(labels.contains(label), "{label} in {query}");
            }
        }
    }
    for part in query.split('{').skip(1) {
        for matcher in part.split('}').next().unwrap().split(',') {
            let label = matcher.split(['=', '!']).next().unwrap().trim();
            assert!(labels.contains(label), "{label} in {query}");
        }
    }
}

/// All names and labels that a query may use.
fn vocabulary() -> (BTreeSet<String>, BTreeSet<&'static str>) {
    let mut known: BTreeSet<String> = METRICS.iter().map(|m| m.name.to_string()).collect();
    known.insert(DEVICES.0.to_string());
    for metric in METRICS.iter().filter(|m| m.kind == crate::prometheus::Kind::Histogram) {
        known.remove(metric.name);
        known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", metric.name)));
    }
    let mut labels: BTreeSet<&str> = METRICS.iter().flat_map(|m| m.labels).copied().collect();
    labels.extend(["device", "instance", "job", "le"]);
    (known, labels)
}

#[test]
fn queries_of_the_documentation_use_known_metrics() {
    let (known, labels) = vocabulary();
    let text = documentation();
    let mut queries = 0;
    for block in text.split("```promql\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for query in block.lines().filter(|l| l.contains("znsage_")) {
            check_query(query, &known, &labels);
            queries += 1;
        }
    }
    assert!(queries >= 6, "{queries} queries");
}

/// All values of a key, at any depth.
fn find<'a>(json: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match json {
        Value::Object(map) => {
            found.extend(map.get(key));
            map.values().for_each(|v| find(v, key, found));
        }
        Value::Array(list) => list.iter().for_each(|v| find(v, key, found)),
        _ => {}
    }
}

fn strings(json: &Value, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    find(json, key, &mut found);
    found.into_iter().filter_map(Value::as_str).map(str::to_string).collect()
}

#[test]
fn queries_of_the_dashboard_use_known_metrics() {
    let (known, labels) = vocabulary();
    let text = fs::read_to_string("../../dist/grafana/znsage.json").unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let queries = strings(&dashboard, "expr");
    assert!(queries.len() > 15, "{}", queries.len());
    for query in &queries {
        check_query(query, &known, &labels);
        assert!(query.contains("device=~\"$device\"") || query.contains(DEVICES.0), "{query}");
        // Each host has a znsage0.
        assert!(query.contains("job=~\"$job\",instance=~\"$instance\""), "{query}");
        assert!(!query.contains("sum by (") || query.contains("by (job, instance, "), "{query}");
    }
    for query in strings(&dashboard, "definition") {
        assert!(known.iter().any(|name| query.contains(name.as_str())), "{query}");
    }
}

#[test]
fn alerts_use_known_metrics() {
    let (known, labels) = vocabulary();
    let text = fs::read_to_string("../../dist/prometheus/znsage.rules.yml").unwrap();
    let queries: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert!(queries.len() > 5, "{queries:?}");
    for query in queries.into_iter().filter(|query| !query.contains("node_textfile_mtime")) {
        check_query(query, &known, &labels);
    }
}

#[test]
fn panels_of_the_dashboard_do_not_overlap() {
    let text = fs::read_to_string("../../dist/grafana/znsage.json").unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "an id for each panel");
    let place = |p: &Value| ["x", "y", "w", "h"].map(|k| p["gridPos"][k].as_u64().unwrap());
    for (i, panel) in panels.iter().enumerate() {
        let title = panel["title"].as_str().unwrap();
        let [x, y, w, h] = place(panel);
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for other in &panels[..i] {
            let [ox, oy, ow, oh] = place(other);
            let apart = x >= ox + ow || ox >= x + w || y >= oy + oh || oy >= y + h;
            assert!(apart, "{title} and {} overlap", other["title"]);
        }
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{title}");
            assert!(panel["description"].as_str().is_some_and(|d| !d.is_empty()), "{title}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}");
        }
    }
}

/// The service runs a valid command and replaces the file for node_exporter at once.
#[test]
fn metrics_service_writes_the_output() {
    let unit = fs::read_to_string("../../dist/systemd/znsage-metrics.service").unwrap();
    let value = |key: &str| unit.lines().find_map(|l| l.strip_prefix(key)).expect(key);
    let file = value("Environment=FILE=");
    assert!(file.ends_with(".prom"), "{file}");
    assert!(file.starts_with(value("ReadWritePaths=")), "{file}");
    let script = value("ExecStart=/bin/sh -c '").trim_end_matches('\'');
    let (command, rest) = script.split_once(" > ").unwrap();
    run(&machine(), command.strip_prefix("znsage ").unwrap()).unwrap();
    assert_eq!(rest, "\"$FILE.new\" && mv -f \"$FILE.new\" \"$FILE\"");
    let text = documentation();
    for name in ["znsage-metrics.service", "znsage-metrics.timer"] {
        assert!(text.contains(name) && fs::metadata(format!("../../dist/systemd/{name}")).is_ok());
    }
}
