// SPDX-License-Identifier: GPL-2.0-only
//! `status --prometheus`, also checked by promtool where it is installed;
//! docs/monitor.md, the dashboard and the engine's counters must match the list of
//! metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::machine::*;
use super::printed::compare_text;
use crate::prometheus::{DEVICES, METRICS};
use crate::sys::fake::Fake;

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// All lines of one name, from its HELP line to the next.
#[derive(Debug, Default)]
struct Family {
    name: String,
    help: String,
    kind: String,
    samples: Vec<Sample>,
}

/// Reads the text format. promtool checks its syntax.
fn families_of(text: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(families.iter().all(|f| f.name != name), "{name} is there twice");
            families.push(Family { name: name.into(), help: help.into(), ..Family::default() });
            continue;
        }
        let family = families.last_mut().unwrap();
        if let Some(kind) = line.strip_prefix(&format!("# TYPE {} ", family.name)) {
            family.kind = kind.to_string();
            continue;
        }
        let sample = sample(line);
        assert!(sample.name.starts_with(&family.name), "{line}");
        family.samples.push(sample);
    }
    families
}

/// `name{label="value",...} value`.
fn sample(line: &str) -> Sample {
    let (key, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
    let labels = labels.strip_suffix('}').unwrap().split("\",").filter(|l| !l.is_empty());
    let label = |l: &str| {
        let (label, value) = l.split_once("=\"").unwrap();
        (label.to_string(), value.trim_end_matches('"').replace("\\\"", "\""))
    };
    Sample { name: name.into(), labels: labels.map(label).collect(), value: value.parse().unwrap() }
}

fn metrics(fake: &Fake) -> Vec<Family> {
    families_of(&run(fake, "status --prometheus").unwrap().text)
}

fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let samples = families.iter().flat_map(|f| &f.samples);
    let fits = |s: &&Sample| {
        s.name == name && labels.iter().all(|(l, v)| s.labels.get(*l).is_some_and(|is| is == v))
    };
    samples.filter(fits).map(|s| s.value).next()
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
        (&["check", "metrics"][..], run(&on(), "status --prometheus").unwrap().text),
        (&["check", "metrics"], run(&extreme(), "status --prometheus").unwrap().text),
        (&["check", "metrics"], run(&odd_cgroup(), "status --prometheus").unwrap().text),
        (&["check", "rules", "../../dist/prometheus/znsage.rules.yml"], String::new()),
    ] {
        let Some(said) = promtool(words, &input) else { return };
        assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    }
}

#[test]
fn the_whole_output_is_that_of_the_file() {
    let fake = on();
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    fake.put("/sys/block/znsage0/znsage/encrypt", "aes-xts\n");
    compare_text(&run(&fake, "status --prometheus").unwrap().text, "status-prometheus");
}

#[test]
fn values_are_in_base_units() {
    let families = metrics(&on());
    for (name, labels, want) in [
        ("znsage_devices", &[][..], 1.0),
        ("znsage_device_info", &[("backing", "nvme1n1"), ("victim", "age")], 1.0),
        ("znsage_swapped_out_bytes_total", &[("device", "znsage0")], 20_000.0 * 4096.0),
        ("znsage_swapped_in_bytes_total", &[], 7000.0 * 4096.0),
        ("znsage_deadline_seconds", &[], 0.001),
        ("znsage_gc_pace_ratio", &[], 0.5),
        ("znsage_zones", &[("state", "full")], 21.0),
        ("znsage_full_zones", &[("live_below", "0.1")], 3.0),
        ("znsage_full_zones", &[("live_below", "1")], 14.0),
        ("znsage_stream_stall_seconds_total", &[("stream", "0")], 0.0015),
        ("znsage_stream_written_bytes_total", &[("stream", "1")], 1000.0 * 4096.0),
        ("znsage_latency_seconds_count", &[("operation", "swap_out")], 100.0),
        ("znsage_latency_seconds_sum", &[("operation", "swap_out")], 0.01),
        ("znsage_latency_seconds_bucket", &[("operation", "swap_out"), ("le", "0.000064")], 0.0),
        ("znsage_latency_seconds_bucket", &[("operation", "swap_out"), ("le", "0.000128")], 99.0),
        ("znsage_latency_seconds_bucket", &[("operation", "swap_out"), ("le", "16.777216")], 99.0),
        ("znsage_latency_seconds_bucket", &[("operation", "swap_out"), ("le", "+Inf")], 100.0),
    ] {
        assert_eq!(value(&families, name, labels), Some(want), "{name} {labels:?}");
    }
    let states: f64 = ["empty", "open", "full", "retired", "unused"]
        .iter()
        .filter_map(|state| value(&families, "znsage_zones", &[("state", state)]))
        .sum();
    assert_eq!(states, 64.0);
}

#[test]
fn histograms_rise_to_their_count() {
    let families = metrics(&on());
    let family = families.iter().find(|f| f.kind == "histogram").unwrap();
    for operation in ["swap_out", "swap_in", "gc"] {
        let of = |end: &str| {
            let name = format!("{}{end}", family.name);
            let all = family.samples.iter().filter(move |s| s.name == name);
            all.filter(|s| s.labels["operation"] == operation).collect::<Vec<_>>()
        };
        let bound = |s: &Sample| match s.labels["le"].as_str() {
            "+Inf" => f64::INFINITY,
            le => le.parse().unwrap(),
        };
        let buckets = of("_bucket");
        assert!(buckets.len() > 20, "{operation}");
        for pair in buckets.windows(2) {
            assert!(bound(pair[0]) < bound(pair[1]), "{operation}");
            assert!(pair[0].value <= pair[1].value, "{operation}");
        }
        let last = buckets.last().unwrap();
        assert_eq!((bound(last), last.value), (f64::INFINITY, of("_count")[0].value));
        assert_eq!(of("_sum").len(), 1);
    }
}

/// One stream is of a cgroup with a quote in its name, the other of none that is left.
fn odd_cgroup() -> Fake {
    let fake = on();
    let group = "/sys/fs/cgroup/system.slice/a\"b.service";
    fake.put_dir(group);
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    let number = crate::sys::Sys::inode(&fake, group).unwrap();
    let table = format!("stream host_blocks key\n0 19000 {number:#018x}\n1 5 0xffffffffffffffff\n");
    fake.put("/sys/kernel/debug/znsage/znsage0/stream_table", &table);
    fake
}

#[test]
fn streams_have_a_cgroup_label() {
    assert_eq!(value(&metrics(&on()), "znsage_stream_info", &[("cgroup", "")]), Some(1.0));
    let fake = odd_cgroup();
    let families = metrics(&fake);
    let labels = [("stream", "0"), ("cgroup", "/system.slice/a\"b.service")];
    assert_eq!(value(&families, "znsage_stream_info", &labels), Some(1.0));
    let gone = [("stream", "1"), ("cgroup", "")];
    assert_eq!(value(&families, "znsage_stream_info", &gone), Some(1.0));
    assert_eq!(
        value(&families, "znsage_stream_zones", &[]),
        None,
        "this module has no such column"
    );
}

#[test]
fn without_devices_only_their_number_is_printed() {
    let families = metrics(&machine());
    assert_eq!(families.len(), 1);
    assert_eq!(value(&families, "znsage_devices", &[]), Some(0.0));
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
fn extreme_counters_print_valid_text() {
    assert!(value(&metrics(&extreme()), "znsage_swapped_out_bytes_total", &[]).unwrap() > 1e19);
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

#[test]
fn printed_metrics_match_the_list() {
    let families = metrics(&on());
    assert_eq!(families.len(), 1 + METRICS.len());
    for metric in METRICS {
        let family = families.iter().find(|f| f.name == metric.name).expect(metric.name);
        assert_eq!((family.kind.as_str(), family.help.as_str()), (metric.kind.name(), metric.help));
        assert!(!family.samples.is_empty(), "{}", family.name);
        let want: BTreeSet<&str> = ["device"].iter().chain(metric.labels).copied().collect();
        for sample in &family.samples {
            let has: BTreeSet<&str> =
                sample.labels.keys().map(String::as_str).filter(|l| *l != "le").collect();
            assert_eq!(has, want, "{}", sample.name);
        }
    }
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
