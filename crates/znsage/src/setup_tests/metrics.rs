// SPDX-License-Identifier: GPL-2.0-only
//! `status --prometheus`, checked with a strict parser of the text format and the
//! rules of `promtool check metrics`; docs/monitor.md, the dashboard and the
//! engine's counters must match the list of metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

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
#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    kind: String,
    samples: Vec<Sample>,
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(fits)
}

/// Parses the text format, version 0.0.4, strictly.
fn families_of(text: &str) -> Result<Vec<Family>, String> {
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_string());
    }
    let mut families: Vec<Family> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let bad = |why: &str| format!("{why}: {line}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| bad("no help"))?;
            let kind = lines.next().and_then(|l| l.strip_prefix(&format!("# TYPE {name} ")));
            let kind = kind.ok_or_else(|| bad("no type follows"))?;
            if families.iter().any(|f| f.name == name) {
                return Err(bad("told twice"));
            }
            families.push(Family {
                name: name.to_string(),
                help: help.to_string(),
                kind: kind.to_string(),
                samples: Vec::new(),
            });
            continue;
        }
        let sample = sample(line).ok_or_else(|| bad("no sample"))?;
        let family = families.last_mut().ok_or_else(|| bad("no family"))?;
        let suffixes: &[&str] = match family.kind.as_str() {
            "histogram" => &["_bucket", "_sum", "_count"],
            "counter" | "gauge" => &[""],
            _ => return Err(bad("unknown type")),
        };
        let end = sample.name.strip_prefix(&family.name).ok_or_else(|| bad("of another family"))?;
        if !suffixes.contains(&end) {
            return Err(bad("not of this type"));
        }
        let same = |s: &Sample| s.name == sample.name && s.labels == sample.labels;
        if family.samples.iter().any(same) {
            return Err(bad("told twice"));
        }
        family.samples.push(sample);
    }
    Ok(families)
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || labels.insert(label.to_string(), value).is_some() {
                return None;
            }
            rest = after;
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let number = rest.strip_prefix(' ')?;
    let fits = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let value = number.chars().all(fits).then(|| number.parse().ok()).flatten()?;
    is_name(name).then(|| Sample { name: name.to_string(), labels, value })
}

/// A value up to its closing quote, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

/// The applicable rules of promtool's linter (client_golang, promlint).
fn lint(family: &Family) -> Vec<String> {
    const UNITS: &str = "milliseconds microseconds nanoseconds minutes hours kilobytes kibibytes \
                         megabytes mebibytes gigabytes gibibytes percent bits blocks pages sectors";
    const SHORT: &str = "s ms us ns sec b kb mb gb min msec usec";
    let any_of = |list: &str, words: &[&str]| list.split_whitespace().any(|w| words.contains(&w));
    let mut found = Vec::new();
    let mut wrong = |is: bool, why: &str| {
        if is {
            found.push(format!("{}: {why}", family.name));
        }
    };
    let words: Vec<&str> = family.name.split('_').collect();
    let counter = family.kind == "counter";
    wrong(family.help.is_empty(), "no help");
    wrong(counter != family.name.ends_with("_total"), "_total is for counters, and all of them");
    wrong(any_of(UNITS, &words), "no base unit");
    wrong(any_of(SHORT, &words), "an abbreviated unit");
    wrong(["counter", "gauge", "histogram"].iter().any(|t| words.contains(t)), "names its type");
    wrong(family.name.contains(|c: char| c.is_ascii_uppercase() || c == ':'), "not in lower case");
    let histogram = family.kind == "histogram";
    let ends = ["_bucket", "_count", "_sum"];
    wrong(!histogram && ends.iter().any(|e| family.name.ends_with(e)), "reserved for histograms");
    for s in &family.samples {
        wrong(!histogram && s.labels.contains_key("le"), "le is for histograms");
        wrong(s.labels.contains_key("instance") || s.labels.contains_key("job"), "scrapers' label");
        wrong(counter && s.value < 0.0, "a counter below 0");
    }
    found
}

fn metrics(fake: &Fake) -> Vec<Family> {
    let text = run(fake, "status --prometheus").unwrap().text;
    families_of(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn value(families: &[Family], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let samples = families.iter().flat_map(|f| &f.samples);
    let fits = |s: &&Sample| {
        s.name == name && labels.iter().all(|(l, v)| s.labels.get(*l).is_some_and(|is| is == v))
    };
    samples.filter(fits).map(|s| s.value).next()
}

#[test]
fn parser_refuses_invalid_text() {
    let head = "# HELP a b\n# TYPE a gauge\n";
    families_of(&format!("{head}a{{x=\"1\\\"\",y=\"\"}} 2\na 1e3\n")).unwrap();
    for bad in [
        "a 1",
        "a\n",
        "b 1\n",
        "a{} 1\n",
        "a{x=1} 1\n",
        "a{x=\"1\"}1\n",
        "a 1 \n",
        "a one\n",
        "a{x=\"1\",x=\"2\"} 1\n",
        "a{x=\"\\t\"} 1\n",
        "a 1\na 1\n",
        "a_sum 1\n",
        "\n",
        "# HELP a b\n# TYPE a gauge\n",
        "# HELP c d\n",
        "# HELP c d\n# TYPE e gauge\n",
    ] {
        assert!(families_of(&format!("{head}{bad}")).is_err(), "{bad}");
    }
    assert!(families_of("a 1\n").is_err(), "without a family");
}

#[test]
fn linter_finds_violations() {
    for (name, kind) in [
        ("a_bytes", "counter"),
        ("a_total", "gauge"),
        ("a_us", "gauge"),
        ("a_blocks_total", "counter"),
        ("a_gauge", "gauge"),
        ("aB", "gauge"),
        ("a_count", "gauge"),
    ] {
        let (name, kind) = (name.to_string(), kind.to_string());
        let family = Family { name, help: "x".into(), kind, samples: Vec::new() };
        assert_eq!(lint(&family).len(), 1, "{}", family.name);
    }
}

#[test]
fn metrics_follow_the_conventions() {
    let families = metrics(&on());
    let wrong: Vec<String> = families.iter().flat_map(lint).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for family in &families {
        assert!(family.name.starts_with("znsage_"), "{}", family.name);
        assert!(!family.samples.is_empty(), "{}", family.name);
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

#[test]
fn streams_have_a_cgroup_label() {
    let fake = on();
    assert_eq!(value(&metrics(&fake), "znsage_stream_info", &[("cgroup", "")]), Some(1.0));
    let group = "/sys/fs/cgroup/system.slice/a\"b.service";
    fake.put_dir(group);
    fake.put("/sys/block/znsage0/znsage/policy", "cgroup\n");
    let number = crate::sys::Sys::inode(&fake, group).unwrap();
    let table = format!("stream host_blocks key\n0 19000 {number:#018x}\n1 5 0xffffffffffffffff\n");
    fake.put("/sys/block/znsage0/znsage/stream_table", &table);
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

#[test]
fn extreme_counters_print_valid_text() {
    let fake = on();
    let most = u64::MAX.to_string();
    for file in ["host_blocks", "host_pages", "blocks_total", "deadline_us", "gc_zones", "pace"] {
        fake.put(&format!("/sys/block/znsage0/znsage/{file}"), &most);
    }
    let table = format!("below_us count\n{most} {most}\n8 {most}\ninf {most}\n");
    fake.put("/sys/block/znsage0/znsage/latency_gc", &table);
    assert!(value(&metrics(&fake), "znsage_swapped_out_bytes_total", &[]).unwrap() > 1e19);
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
