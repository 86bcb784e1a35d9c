// SPDX-License-Identifier: GPL-2.0-only
//! The zones of a backing device, as `blkzone report` prints them.

use crate::ensure;
use crate::guest;
use crate::outcome::Outcome;

/// The report itself, to see whether anything changed.
pub fn report(device: &str) -> Outcome<String> {
    guest::ok(&["blkzone", "report", device])
}

/// Zones that are not empty. Conventional zones do not count.
fn written(report: &str) -> Vec<&str> {
    let zones = report.lines().filter(|l| l.contains("zcond:"));
    zones.filter(|l| !l.contains("(em)") && !l.contains("(nw)")).collect()
}

pub fn all_empty(device: &str) -> Outcome {
    let report = report(device)?;
    let written = written(&report);
    ensure!(
        written.is_empty(),
        "{device}: {} zones are not empty, first:{}",
        written.len(),
        written[0]
    );
    Ok(())
}

/// The write pointers of open zones, in sectors of 512 bytes.
pub fn write_pointers(device: &str) -> Outcome<Vec<u64>> {
    report(device)?.lines().filter(|l| l.contains("(oi)")).map(write_pointer).collect()
}

fn write_pointer(line: &str) -> Outcome<u64> {
    let number = |after: &str| {
        let text = line.split_once(after)?.1.split([',', ' ']).next()?;
        u64::from_str_radix(text, 16).ok()
    };
    let at = number("start: 0x").zip(number("wptr 0x"));
    at.map(|(start, written)| start + written).ok_or(format!("what is `{line}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_zones_are_found() {
        let report = "\
  start: 0x000000000, len 0x000800, cap 0x000700, wptr 0x000000 reset:0 non-seq:0, zcond: 0(nw) [type: 1(CONVENTIONAL)]
  start: 0x000000800, len 0x000800, cap 0x000700, wptr 0x000000 reset:0 non-seq:0, zcond: 1(em) [type: 2(SEQ_WRITE_REQUIRED)]
  start: 0x000001000, len 0x000800, cap 0x000700, wptr 0x000008 reset:0 non-seq:0, zcond: 2(oi) [type: 2(SEQ_WRITE_REQUIRED)]
";
        let found = written(report);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("0x000001000"));
        assert_eq!(write_pointer(found[0]), Ok(0x1008));
    }
}
