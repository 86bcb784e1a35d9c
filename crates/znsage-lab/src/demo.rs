// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab demo`: one virtual machine, the same work on stock swap and
//! on znsage; a table, result.json and the picture.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::load::warning;
use crate::model::{Phase, Run, Runs, System};
use crate::table::{micros, thousands, Table};
use crate::vm::{self, Clock, Vm};
use crate::{picture, Result};

/// Phases of the demo, in order, as result.json and as people call them.
pub const PHASES: [(&str, &str); 3] = [
    ("fill", "Fill the memory"),
    ("random40", "Random access, device 40 % full"),
    ("random80", "Random access, 80 % full, GC at work"),
];

/// Both devices. Zones of 512 KiB make this a device of 1024 zones, as real
/// ones have, and small enough for an emulated CPU to fill it in seconds.
const SIZE: &str = "size=512M";
const ZONES: &str = "size=512M,zone=512K";

/// Far above what it takes: a machine that hangs shall not stay for ever.
const TIMEOUT: u32 = 1200;

/// result.json
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    pub kernel: String,
    pub machine: String,
    /// Of the machine's CPU time, what other programs took meanwhile.
    #[serde(default)]
    pub others_cpu_share: Option<f64>,
    pub device_bytes: u64,
    pub runs: Vec<Run>,
}

pub fn run() -> Result<bool> {
    let out = Path::new("build/demo");
    let harvest = vm::collect::<Runs>(&Vm {
        clock: Clock::Real,
        conventional: vec![SIZE],
        zns: vec![ZONES],
        forward: None,
        job: "demo",
        arguments: Vec::new(),
        out,
        timeout: TIMEOUT,
    })?;
    let runs = harvest.document;
    let document = Document {
        kernel: runs.kernel,
        machine: vm::machine(),
        others_cpu_share: harvest.others,
        device_bytes: runs.device_bytes,
        runs: runs.runs,
    };
    vm::write_json(&out.join("result.json"), &document)?;
    draw(&document, out)?;
    println!("\n{}", to_text(&document));
    if let Some(warning) = warning(document.others_cpu_share) {
        println!("{warning}");
    }
    println!("picture: {0}/demo.png, {0}/demo.svg; numbers: {0}/result.json", out.display());
    Ok(corrupt(&document) == 0)
}

/// Draws the picture of an earlier run again.
pub fn redraw(result: &Path) -> Result<bool> {
    let text = fs::read_to_string(result).map_err(|e| format!("{}: {e}", result.display()))?;
    let document: Document =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", result.display()))?;
    draw(&document, result.parent().unwrap_or(Path::new(".")))?;
    print!("{}", to_text(&document));
    Ok(true)
}

fn draw(document: &Document, out: &Path) -> Result<()> {
    let svg = picture::draw(document);
    let png = picture::png::render(&svg)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    write("demo.svg", svg.as_bytes())?;
    write("demo.png", &png)
}

fn corrupt(document: &Document) -> u64 {
    document.runs.iter().map(|r| r.measured.corrupt_pages).sum()
}

/// What a person is to see at once.
fn to_text(document: &Document) -> String {
    let mut table = Table::new(&["", "stock swap", "znsage", "znsage / stock"]);
    for (phase, title) in PHASES {
        let of = |system| {
            let mut runs = document.runs.iter().filter(|r| r.phase == phase);
            runs.find(|r: &&Run| r.system == system).map(|r| &r.measured)
        };
        phase_rows(&mut table, title, of(System::Stock), of(System::Znsage));
    }
    let [stock, znsage] = System::BOTH.map(|system| {
        let sum = |count: fn(&Run) -> u64| {
            document.runs.iter().filter(|r| r.system == system).map(count).sum::<u64>()
        };
        let verified = sum(|r| r.verified_pages);
        format!("{} of {}", sum(|r| r.measured.corrupt_pages), thousands(verified as f64))
    });
    table.row(["**Corrupt pages**".to_string(), stock, znsage]);
    format!(
        "Linux {} (Debian's, unmodified); {}\n\n{}",
        document.kernel,
        document.machine,
        table.to_text()
    )
}

fn phase_rows(table: &mut Table, title: &str, stock: Option<&Phase>, znsage: Option<&Phase>) {
    let (Some(stock), Some(znsage)) = (stock, znsage) else {
        return;
    };
    let both = |what: &str, cell: &dyn Fn(&Phase) -> String| {
        [what.to_string(), cell(stock), cell(znsage), String::new()]
    };
    let speed: &dyn Fn(&Phase) -> String = match stock.latency_us {
        None => &|p| format!("{} MiB/s", thousands(p.mib_per_s)),
        Some(_) => &|p| format!("{} pages/s", thousands(p.ops_per_s)),
    };
    let mut first = both(&format!("**{title}**"), speed);
    first[3] = format!("{:.2}", znsage.ops_per_s / stock.ops_per_s);
    table.row(first);
    if let (Some(s), Some(z)) = (stock.latency_us, znsage.latency_us) {
        table.row(["- latency, median".into(), micros(s.p50), micros(z.p50), String::new()]);
        table.row(["- latency, 99 %".into(), micros(s.p99), micros(z.p99), String::new()]);
    }
    let waf = |p: &Phase| p.waf.map_or("-".to_string(), |w| format!("{w:.2}"));
    if stock.latency_us.is_some() {
        table.row(both("- WAF", &waf));
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::model::{Config, Latency, Point};

    fn phase(system: System, name: &str, ops_per_s: f64) -> Run {
        let znsage = system == System::Znsage;
        let fill = name == "fill";
        let latency = Latency { mean: 800.0, p50: 419.0, p99: 7930.0, p99_9: 2e4, max: 1.4e6 };
        let course = (0..=20).map(|i| Point {
            t: f64::from(i),
            bytes_in: 5 * i as u64 * (1 << 20),
            bytes_out: 10 * i as u64 * (1 << 20),
            host_blocks: if znsage { 2560 * i as u64 } else { 0 },
            written_blocks: if znsage { 5120 * i as u64 } else { 0 },
        });
        Run {
            system,
            phase: name.to_string(),
            config: Config {
                size_bytes: 440 << 20,
                memory_limit_bytes: Some(64 << 20),
                threads: 4,
                write_ratio: Some(0.5),
            },
            measured: Phase {
                name: String::new(),
                seconds: 20.0,
                ops: 20 * ops_per_s as u64,
                writes: 0,
                ops_per_s,
                mib_per_s: ops_per_s / 256.0,
                latency_us: (!fill).then_some(latency),
                pages_swapped_in: 25600,
                pages_swapped_out: 51200,
                swap_in_mib_per_s: 5.0,
                swap_out_mib_per_s: 10.0,
                corrupt_pages: 0,
                waf: znsage.then_some(2.0),
                utilization: None,
                device: None,
            },
            verified_pages: 100_000,
            course: course.collect(),
        }
    }

    pub fn document() -> Document {
        let mut runs = Vec::new();
        for (system, factor) in [(System::Stock, 1.0), (System::Znsage, 1.5)] {
            runs.push(phase(system, "fill", 20480.0 * factor));
            runs.push(phase(system, "random40", 4000.0 * factor));
            runs.push(phase(system, "random80", 3000.0 * factor));
        }
        Document {
            kernel: "6.12.1-test".to_string(),
            machine: "a test".to_string(),
            others_cpu_share: None,
            device_bytes: 512 << 20,
            runs,
        }
    }

    #[test]
    fn the_table_compares() {
        let text = to_text(&document());
        for cells in [
            "80 MiB/s |     120 MiB/s |           1.50",
            "4,000 pages/s | 6,000 pages/s |           1.50",
            "| - WAF",
            "419 µs",
            "0 of 300,000",
        ] {
            assert!(text.contains(cells), "{cells}\n{text}");
        }
    }

    #[test]
    fn result_json_is_flat_and_can_be_read_again() {
        let json = serde_json::to_value(document()).unwrap();
        let run = &json["runs"][4];
        assert_eq!(run["system"], "znsage");
        assert_eq!(run["phase"], "random40");
        assert_eq!(run["waf"], 2.0);
        assert_eq!(run["threads"], 4);
        let again: Document = serde_json::from_value(json).unwrap();
        assert_eq!(again.runs.len(), 6);
        assert_eq!(again.runs[4].phase, "random40");
    }
}
