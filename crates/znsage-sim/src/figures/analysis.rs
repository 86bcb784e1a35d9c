// SPDX-License-Identifier: GPL-2.0-only
//! The survey of ZNS SSDs: latency over request size, isolation, bandwidth
//! over time.

use super::device::DeviceJob;
use super::model::{Across, Claim, Figure, Series};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Axis, Look, Mark, Variant};
use crate::stats::mean;

pub(super) const FIGURES: &[Definition] = &[
    Definition { id: "analysis-write-latency", jobs: write_jobs, make: write_latency },
    Definition { id: "analysis-read-latency", jobs: read_jobs, make: read_latency },
    Definition { id: "analysis-isolation", jobs: isolation_jobs, make: isolation },
    Definition { id: "analysis-bandwidth", jobs: bandwidth_jobs, make: bandwidth },
];

/// Blocks: 4 to 128 KiB.
const SIZES: [u32; 6] = [1, 2, 4, 8, 16, 32];
const DEVICES: [(&str, &str); 2] = [("ZNS", "zn540"), ("conventional", "conventional")];
const UNLIKE: &str = "The survey does not name its drives; the models are a ZN540 and a \
    conventional SSD of the same flash.";

fn published() -> Publication {
    Publication::load("analysis")
}

fn look(i: usize) -> Look {
    // As in other figures: teal for zones, grey for the block interface.
    let zns = Look { colour: (0x00, 0x99, 0x88), mark: Mark::Diamond };
    [zns, Look { colour: (0x80, 0x80, 0x80), mark: Mark::Square }][i % 2]
}

fn latency_jobs(reads: bool) -> Vec<Job> {
    let of = |device| SIZES.map(|blocks| Job::Device(DeviceJob::Latency { device, reads, blocks }));
    DEVICES.iter().flat_map(|(_, device)| of(device)).collect()
}

fn write_jobs(_: &Scale) -> Vec<Job> {
    latency_jobs(false)
}

fn read_jobs(_: &Scale) -> Vec<Job> {
    latency_jobs(true)
}

/// Latency per byte, relative to that of 4 KiB.
fn relative(o: &Outcomes, device: &'static str, reads: bool, blocks: u32) -> Option<f64> {
    let of = |blocks| o.device(&DeviceJob::Latency { device, reads, blocks }, 0);
    Some(of(blocks)? / f64::from(blocks) / of(1)?)
}

fn latency(id: &'static str, title: &str, reads: bool, o: &Outcomes) -> Figure {
    let sizes = SIZES.map(|b| f64::from(b * 4));
    let series = DEVICES.iter().enumerate().map(|(i, (name, device))| {
        let point = |b: u32| (f64::from(b * 4), relative(o, device, reads, b));
        Series::new(*name, look(i)).points(SIZES.map(point))
    });
    let what = if reads { "random reads" } else { "writes in sequence" };
    Figure {
        id,
        title: title.into(),
        name: published().name,
        source: published().source,
        about: vec![format!(
            "One request at a time, {what}, half of the device written. As in the survey, relative \
             to requests of 4 KiB, and a byte: otherwise a larger request could not take less."
        )],
        x: Across::Numbers(Axis::log("request size, KiB").with_ticks(sizes)),
        y: Axis::from_zero("latency a byte, relative to 4 KiB"),
        better: None,
        series: series.collect(),
        claims: vec![],
        notes: vec![UNLIKE.into()],
    }
}

fn write_latency(_: &Scale, o: &Outcomes) -> Figure {
    let title = "ZNS analysis: write latency over request size";
    let mut f = latency("analysis-write-latency", title, false, o);
    let p = published();
    let ids = ["write-zns", "write-conventional"];
    for (s, id) in f.series.iter_mut().zip(ids) {
        s.published.push((8.0, p.value(id).is));
    }
    let reason = "The conventional SSD is modelled with the write buffer of the ZN540, where a \
        request of 8 KiB takes no longer than one of 4 KiB. That of the survey is another one.";
    let at = |i: usize| relative(o, DEVICES[i].1, false, 2);
    f.claims = vec![
        Claim::new(p.value(ids[0]), at(0), reason),
        Claim::new(p.value(ids[1]), at(1), reason),
    ];
    f
}

fn read_latency(_: &Scale, o: &Outcomes) -> Figure {
    let title = "ZNS analysis: read latency over request size";
    let mut f = latency("analysis-read-latency", title, true, o);
    f.notes.push("The survey has no number for reads, only that both show a similar trend.".into());
    f
}

fn isolation_jobs(_: &Scale) -> Vec<Job> {
    let of = |device| (0..=2).map(move |others| Job::Device(DeviceJob::Beside { device, others }));
    DEVICES.iter().flat_map(|(_, device)| of(device)).collect()
}

fn isolation(_: &Scale, o: &Outcomes) -> Figure {
    let p = published();
    let lost = |device, others| {
        let rate = |others| o.device(&DeviceJob::Beside { device, others }, 0);
        Some(100.0 * (1.0 - rate(others)? / rate(0)?))
    };
    let ids = ["isolation-zns", "isolation-conventional"];
    let series = DEVICES.iter().zip(ids).enumerate().map(|(i, ((name, device), id))| {
        let points = [(0.0, lost(device, 1)), (1.0, lost(device, 2))];
        Series::new(*name, look(i)).points(points).publish(1.0, p.value(id))
    });
    let reason =
        "The survey does not say what its threads do. Here each writes 4 KiB at a time to \
        its own zone or part; they share the controller, which on the ZN540 takes longer for small \
        writes than the conventional drive's.";
    Figure {
        id: "analysis-isolation",
        title: "ZNS analysis: throughput lost beside other threads".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![
            "A thread writes blocks of 4 KiB, one at a time, beside one and two others that \
            do the same in other zones (or other parts of a conventional SSD)."
                .into(),
        ],
        x: Across::Names("other threads", vec!["one".into(), "two".into()]),
        y: Axis::from_zero("throughput lost, %"),
        better: None,
        series: series.collect(),
        claims: DEVICES
            .iter()
            .zip(ids)
            .map(|((_, device), id)| Claim::new(p.value(id), lost(device, 2), reason))
            .collect(),
        notes: vec![UNLIKE.into()],
    }
}

const FILLS: [u32; 2] = [60, 90];

/// Number of zones or superblocks, of real size.
fn steady(scale: &Scale, device: &'static str, fill: u32) -> DeviceJob {
    // 10 GB need ten zones beyond the 90 %.
    let units = if scale.mib < 4096 { 110 } else { 128 };
    DeviceJob::Steady { device, fill, units }
}

fn bandwidth_jobs(scale: &Scale) -> Vec<Job> {
    let of = |device| FILLS.map(|fill| Job::Device(steady(scale, device, fill)));
    DEVICES.iter().flat_map(|(_, device)| of(device)).collect()
}

fn bandwidth(scale: &Scale, o: &Outcomes) -> Figure {
    let p = published();
    let mut series = Vec::new();
    for (i, (name, device)) in DEVICES.iter().enumerate() {
        for (j, fill) in FILLS.iter().enumerate() {
            let look = if j == 0 { look(i) } else { look(i).variant(Variant::Setting) };
            let values = o.values(&steady(scale, device, *fill));
            let points = values.iter().enumerate().map(|(n, v)| (0.5 * (n + 1) as f64, Some(*v)));
            series.push(Series::new(format!("{name}, {fill} % full"), look).points(points));
        }
    }
    let of = |device, fill| Some(o.values(&steady(scale, device, fill))).filter(|v| !v.is_empty());
    let slowest = |device, fill| {
        let v: &[f64] = of(device, fill)?;
        let least = v.iter().copied().reduce(f64::min)?;
        Some(least / mean(v)?)
    };
    let drops = |fill| {
        let v: &[f64] = of(DEVICES[1].1, fill)?;
        let most = v.iter().copied().reduce(f64::max)?;
        let slow = v.iter().filter(|x| **x < 0.75 * most).count();
        Some(100.0 * slow as f64 / v.len() as f64)
    };
    let level = [60, 90].iter().filter_map(|f| slowest(DEVICES[0].1, *f)).reduce(f64::min);
    let more = match (drops(90), drops(60)) {
        (Some(a), Some(b)) => Some(a - b),
        _ => None,
    };
    let reason = "How a drive divides its time between garbage collection and writes is not \
        known; the model empties one superblock in a burst.";
    Figure {
        id: "analysis-bandwidth",
        title: "ZNS analysis: bandwidth while 10 GB are written".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![
            "Writes of 128 KiB, 16 at a time, counted each half of a second. On the ZNS SSD \
            they go to empty zones; on the conventional one to random places of the part that is \
            full, after its flash was written twice that way, so that its garbage collection is in \
            its steady state."
                .into(),
        ],
        x: Across::Numbers(Axis::from_zero("time, s")),
        y: Axis::from_zero("written, MB/s"),
        better: None,
        series,
        claims: vec![
            Claim::new(p.value("zns-level"), level, reason),
            Claim::new(p.value("conventional-dips"), slowest(DEVICES[1].1, 60), reason),
            Claim::new(p.value("conventional-more"), more, reason),
        ],
        notes: vec![UNLIKE.into()],
    }
}
