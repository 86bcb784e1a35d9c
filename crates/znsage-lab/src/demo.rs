// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-lab demo`: the same work on stock swap and on znsage in one virtual
//! machine; a table, result.json and the picture.

use std::path::Path;

use crate::load::show;
use crate::model::{Demo, Phase, Run, System, PHASES};
use crate::result::Result;
use crate::table::{micros, thousands, Table};
use crate::vm::{self, Clock, Vm};
use crate::{files, picture};

/// Both devices are small enough for an emulated CPU to fill in seconds. Zones of
/// 512 KiB make 1024 zones of it, as many as real devices have.
const SIZE: &str = "size=512M";
const ZONES: &str = "size=512M,zone=512K";

/// Far longer than a run takes, to end a guest that hangs.
const TIMEOUT: u32 = 1200;

pub fn run() -> Result<bool> {
    let out = Path::new("build/demo");
    let harvest = vm::collect::<Demo>(&Vm {
        kernel: vm::KERNEL,
        cpus: vm::CPUS,
        options: Vec::new(),
        clock: Clock::Real,
        conventional: vec![SIZE],
        zns: vec![ZONES],
        forward: None,
        job: "demo",
        arguments: Vec::new(),
        out,
        timeout: TIMEOUT,
    })?;
    let document =
        Demo { machine: vm::machine(), others_cpu_share: harvest.others, ..harvest.document };
    files::write_json(&out.join("result.json"), &document)?;
    draw(&document, out)?;
    show(&to_text(&document), &[], document.others_cpu_share);
    println!("picture: {0}/demo.png, {0}/demo.svg; numbers: {0}/result.json", out.display());
    Ok(corrupt(&document) == 0)
}

/// Draws the picture and prints the table of an earlier run.
pub fn redraw(result: &Path) -> Result<bool> {
    let document: Demo = files::read_json(result)?;
    draw(&document, result.parent().unwrap_or(Path::new(".")))?;
    print!("{}", to_text(&document));
    Ok(true)
}

fn draw(document: &Demo, out: &Path) -> Result<()> {
    let svg = picture::draw(document);
    let png = picture::png::render(&svg)?;
    files::write(&out.join("demo.svg"), svg)?;
    files::write(&out.join("demo.png"), png)
}

fn corrupt(document: &Demo) -> u64 {
    document.runs.iter().map(|r| r.measured.corrupt_pages).sum()
}

fn to_text(document: &Demo) -> String {
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
mod tests {
    use super::*;
    use crate::model::tests::demo;

    #[test]
    fn table_compares_both_systems() {
        let text = to_text(&demo());
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
}
