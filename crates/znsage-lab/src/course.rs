// SPDX-License-Identifier: GPL-2.0-only
//! The course of a rate, from counters that were noted twice a second.

use znsage::parsers::Phase;

use crate::model::{Point, Sample, MIB, PAGE};

/// The last phase of a name in a file of samples, with counters since it began. It
/// begins at the sample before its first, or, without one, where the phase's totals put
/// it.
pub fn points(samples: &[Sample], name: &str, totals: &Phase) -> Vec<Point> {
    let Some(last) = samples.iter().rposition(|s| s.phase == name) else {
        return Vec::new();
    };
    let first = samples[..=last].iter().rposition(|s| s.phase != name).map_or(0, |i| i + 1);
    let base = match first {
        0 => begin(&samples[last], totals),
        n => absolute(&samples[n - 1]),
    };
    let since = |s: &Sample| {
        let p = absolute(s);
        Point {
            t: p.t - base.t,
            bytes_in: p.bytes_in.saturating_sub(base.bytes_in),
            bytes_out: p.bytes_out.saturating_sub(base.bytes_out),
            host_blocks: p.host_blocks.saturating_sub(base.host_blocks),
            written_blocks: p.written_blocks.saturating_sub(base.written_blocks),
        }
    };
    std::iter::once(Point::default())
        .chain(samples[first..=last].iter().map(since).filter(|p| p.t > 0.0))
        .collect()
}

fn absolute(s: &Sample) -> Point {
    let host = s.host_blocks.unwrap_or(0);
    Point {
        t: s.t,
        bytes_in: s.bytes_in,
        bytes_out: s.bytes_out,
        host_blocks: host,
        written_blocks: host + s.gc_blocks.unwrap_or(0) + s.padding_blocks.unwrap_or(0),
    }
}

/// The counters at the beginning of a phase that ended with `last`.
fn begin(last: &Sample, totals: &Phase) -> Point {
    let end = absolute(last);
    let device = totals.device.unwrap_or_default();
    let written = device.host_blocks + device.gc_blocks + device.padding_blocks;
    Point {
        t: (end.t - totals.seconds).max(0.0),
        bytes_in: end.bytes_in.saturating_sub(totals.pages_swapped_in * PAGE),
        bytes_out: end.bytes_out.saturating_sub(totals.pages_swapped_out * PAGE),
        host_blocks: end.host_blocks.saturating_sub(device.host_blocks),
        written_blocks: end.written_blocks.saturating_sub(written),
    }
}

/// MiB/s that the device acknowledged while it was always busy: between the first and
/// the last point at which blocks were written.
pub fn steady_written(points: &[Point]) -> Option<f64> {
    let first = points.iter().find(|p| p.written_blocks > 0)?;
    let last = points.windows(2).rfind(|w| w[1].written_blocks > w[0].written_blocks)?[0];
    let seconds = last.t - first.t;
    let blocks = last.written_blocks.checked_sub(first.written_blocks)?;
    (seconds > 0.0).then(|| (blocks * PAGE) as f64 / MIB / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t: f64, phase: &str, mib_out: u64, gc: u64) -> Sample {
        Sample {
            t,
            phase: phase.to_string(),
            bytes_in: 0,
            bytes_out: mib_out << 20,
            host_blocks: Some(mib_out * 256),
            gc_blocks: Some(gc),
            padding_blocks: Some(0),
        }
    }

    fn totals(seconds: f64, mib_out: u64) -> Phase {
        serde_json::from_value(serde_json::json!({
            "phase": "fill", "seconds": seconds, "ops": 0, "writes": 0, "ops_per_s": 0.0,
            "mib_per_s": 0.0, "latency_us": null, "pages_swapped_in": 0,
            "pages_swapped_out": mib_out * 256, "swap_in_mib_per_s": 0.0,
            "swap_out_mib_per_s": 0.0, "corrupt_pages": 0, "waf": null,
            "utilization": null, "device": null,
        }))
        .unwrap()
    }

    fn point(t: f64, mib: u64, written: u64) -> Point {
        Point {
            t,
            bytes_in: 0,
            bytes_out: mib << 20,
            host_blocks: mib * 256,
            written_blocks: written,
        }
    }

    #[test]
    fn totals_place_the_first_phase() {
        let samples = [sample(0.7, "fill", 105, 0), sample(1.2, "fill", 120, 0)];
        let got = points(&samples, "fill", &totals(1.0, 20));
        let times: Vec<f64> = got.iter().map(|p| (p.t * 10.0).round() / 10.0).collect();
        assert_eq!(times, [0.0, 0.5, 1.0]);
        assert_eq!(got[2].bytes_out, 20 << 20);
    }

    #[test]
    fn later_phase_begins_where_the_previous_ended() {
        let samples = [
            sample(1.0, "fill", 10, 0),
            sample(2.0, "warmup", 20, 100),
            sample(3.0, "random", 24, 356),
            sample(4.0, "random", 28, 612),
            sample(5.0, "verify", 28, 612),
        ];
        let got = points(&samples, "random", &totals(99.0, 99));
        assert_eq!(got.len(), 3);
        assert_eq!(got[0], Point::default());
        assert_eq!((got[2].t, got[2].bytes_out), (2.0, 8 << 20));
        assert_eq!(got[2].written_blocks, 2048 + 512);
        assert!(points(&samples, "other", &totals(1.0, 1)).is_empty());
    }

    #[test]
    fn nothing_written_has_no_rate() {
        let points = [Point::default(), Point { t: 1.0, bytes_out: 9, ..Point::default() }];
        assert!(steady_written(&points).is_none());
    }

    #[test]
    fn steady_rate_omits_beginning_and_end() {
        let points = [
            point(0.0, 0, 0),
            point(0.5, 0, 0),
            point(1.0, 1, 256),
            point(2.0, 11, 11 * 256),
            point(3.0, 21, 21 * 256),
            point(4.0, 22, 22 * 256),
        ];
        assert_eq!(steady_written(&points), Some(10.0));
    }
}
