// SPDX-License-Identifier: GPL-2.0-only
//! ZNS+ (OSDI 2021): compaction in the device, copy bandwidth, throughput and
//! write amplification over utilization.

use super::device::{DeviceJob, Mover};
use super::model::{Across, Better, Claim, Figure, Series};
use super::party::{Field, Party};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Axis, Look, Variant};
use crate::spec::{SystemKind, WorkloadKind};
use crate::RunResult;

pub(super) const FIGURES: &[Definition] = &[
    Definition { id: "zns-plus-compaction", jobs: compaction_jobs, make: compaction },
    Definition { id: "zns-plus-copy-bandwidth", jobs: compaction_jobs, make: copy_bandwidth },
    Definition { id: "zns-plus-throughput", jobs: swap_jobs, make: throughput },
    Definition { id: "zns-plus-gain", jobs: swap_jobs, make: gain },
    Definition { id: "zns-plus-waf", jobs: swap_jobs, make: waf },
];

const FLASH: [(&str, &str, &str); 3] = [
    ("TLC", "zns-plus-tlc", "tlc"),
    ("MLC", "zns-plus-mlc", "mlc"),
    ("Z-NAND", "zns-plus-znand", "znand"),
];
const EMULATED: &str = "zns-plus";

fn published() -> Publication {
    Publication::load("zns-plus")
}

fn job(device: &'static str, by: Mover) -> DeviceJob {
    DeviceJob::Compaction { device, by }
}

fn compaction_jobs(_: &Scale) -> Vec<Job> {
    let devices = FLASH.iter().map(|f| f.1).chain([EMULATED]);
    devices.flat_map(|d| [Mover::Host, Mover::Device].map(|by| Job::Device(job(d, by)))).collect()
}

const SETUP: &str = "Half of the units of 16 KiB in a zone are live, at random places. The host \
    reads 32 of them at a time, then appends them; the device is asked by zone_compaction for the \
    same, with the order chosen so that source and destination are on one chip. The host's \
    software costs what it does in the other figures.";
const FILES: &str = "The paper compacts segments of F2FS, whose metadata and checkpoints are part \
    of the time, and other requests wait in the same queues. Here it is the copying alone.";

fn compaction(_: &Scale, o: &Outcomes) -> Figure {
    let p = published();
    let less = |device| {
        let ms = |by| o.device(&job(device, by), 0);
        Some(100.0 * (1.0 - ms(Mover::Device)? / ms(Mover::Host)?))
    };
    let mut names: Vec<String> = vec!["emulated SSD".into()];
    names.extend(FLASH.map(|f| f.0.to_string()));
    let devices = [EMULATED, FLASH[0].1, FLASH[1].1, FLASH[2].1];
    let points = devices.iter().enumerate().map(|(i, d)| (i as f64, less(d)));
    let s = Series::new("ZNS+, against the host", Look::system(SystemKind::ZnsPlus));
    Figure {
        id: "zns-plus-compaction",
        title: "ZNS+: time that compaction in the device saves".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![SETUP.into()],
        x: Across::Names("device", names),
        y: Axis::from_zero("less time than by the host, %"),
        better: None,
        series: vec![s.points(points).publish(0.0, p.value("compaction"))],
        claims: vec![
            Claim::new(p.value("compaction"), less(EMULATED), FILES),
            Claim::new(
                p.value("copyback"),
                o.device(&job(EMULATED, Mover::Device), 2),
                "Here the order of all live units of a zone is free, and all of them are whole; \
                 the file system's have an order within files, and some are single blocks.",
            ),
        ],
        notes: vec![FILES.into()],
    }
}

fn copy_bandwidth(_: &Scale, o: &Outcomes) -> Figure {
    let p = published();
    let mb_s = |device, by| o.device(&job(device, by), 1);
    let series = [
        ("by the host (ZNS)", Mover::Host, "host", Look::system(SystemKind::Stock)),
        ("in the device (IZC-D)", Mover::Device, "device", Look::system(SystemKind::ZnsPlus)),
    ];
    let mut series: Vec<Series> = series
        .iter()
        .map(|(name, by, id, look)| {
            let mut s = Series::new(*name, *look);
            for (i, (_, device, flash)) in FLASH.iter().enumerate() {
                s = s.point(i as f64, mb_s(device, *by));
                s = s.publish(i as f64, p.value(&format!("{id}-{flash}")));
            }
            s
        })
        .collect();
    let hybrid = Series::new("with host memory (IZC-H)", Look::system(SystemKind::StockTrim));
    let at = |(i, f): (usize, &(&str, &str, &str))| (i as f64, format!("hybrid-{}", f.2));
    let add = |s: Series, (x, id): (f64, String)| s.publish(x, p.value(&id));
    series.push(FLASH.iter().enumerate().map(at).fold(hybrid, add));
    let reason =
        |flash: &str| {
            match flash {
        "znand" => "Published are 39 us (by the host) and 17 us a block, many times what the flash \
            takes: an SSD that is emulated in a virtual machine, and the software around it, seem \
            to set the rate. Here the flash sets it, a program of 75 us on each of 16 chips.",
        _ => "The rate depends on how many copies are under way and on what the file system adds; \
            the model's flash times come from the authors' code and from data sheets of other \
            chips.",
    }
        };
    let mut claims = Vec::new();
    for (_, device, flash) in FLASH {
        for (by, id) in [(Mover::Host, "host"), (Mover::Device, "device")] {
            claims.push(Claim::new(
                p.value(&format!("{id}-{flash}")),
                mb_s(device, by),
                reason(flash),
            ));
        }
        let gain = match (mb_s(device, Mover::Device), mb_s(device, Mover::Host)) {
            (Some(a), Some(b)) => Some(a / b),
            _ => None,
        };
        let why = if flash == "znand" { reason(flash) } else { FILES };
        claims.push(Claim::new(p.value(&format!("gain-{flash}")), gain, why));
    }
    Figure {
        id: "zns-plus-copy-bandwidth",
        title: "ZNS+: copy bandwidth".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![SETUP.into()],
        x: Across::Names("flash", FLASH.map(|f| f.0.to_string()).into()),
        // Values span a factor of thirty.
        y: Axis { from: Some(50.0), ..Axis::log("copied, MB/s") },
        better: None,
        series,
        claims,
        notes: vec![
            FILES.into(),
            "IZC-H leaves to the host what it has in memory anyway. The simulator has no page \
             cache of files, so it is not simulated."
                .into(),
        ],
    }
}

const UTILIZATIONS: [f64; 7] = [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
const HOST: Party = Party::new("compaction by the host (ZNSwap)", SystemKind::ZnSwap, EMULATED);
const PLUS: Party = Party::new("ZNS+", SystemKind::ZnsPlus, EMULATED);
const ZNSAGE: Party =
    Party::new("znsage", SystemKind::ZnSage, EMULATED).with(&[("znsage.stripe", "1")]);
const TWO_ZONES: Party = Party::new("znsage, two zones at a time", SystemKind::ZnSage, EMULATED)
    .variant(Variant::Setting);
const PARTIES: [Party; 4] = [HOST, PLUS, ZNSAGE, TWO_ZONES];
const SWAP: &str = "The paper runs filebench's fileserver on F2FS. Here all systems swap, with \
    random writes: there is no file system whose metadata could be saved, and reads of pages are \
    half of the traffic.";
const STRIPE: &str = "A zone of this device lies across all 16 chips. The device sets no limit on \
    open zones, so that znsage takes them for small ones and by default writes two at a time. Then \
    a program often finds its chip busy with one of the other zone, while other chips are idle, and \
    reads wait for both. One log, as that of ZNS+, visits the chips in turn. So znsage is told to \
    write one zone (`--stripe 1`), which `znsage probe` recommends where one is as fast as \
    several; its default is drawn beside it.";
const FULL: &str = "At 80 % ZNS+ stays 1.16 times as fast as znsage, for two reasons (one seed, warmed up \
    for twice the device). It needs fewer of the 128 zones empty, so that its WAF is 2.92 and znsage's \
    3.17. And what znsage's GC moves goes over channels and link; where these take no time, znsage \
    swaps out 1.06 times as much. The 99th percentile of a fault depends on how much is written at once: \
    with chunks of 64 KiB znsage's is that of ZNS+ (2.6 and 2.4 ms in place of 6.9), and so is its median (0.7 \
    and 0.6 in place of 0.2).";

fn field() -> Field<'static> {
    let workload = WorkloadKind::Uniform;
    Field { parties: &PARTIES, workload, utilizations: &UTILIZATIONS, set: &[] }
}

fn swap_jobs(scale: &Scale) -> Vec<Job> {
    field().jobs(scale)
}

fn swap_out(r: &RunResult) -> Option<f64> {
    Some(r.swap_out_mb_s)
}

fn over_utilization(id: &'static str, title: &str, y: Axis) -> Figure {
    Figure {
        id,
        title: title.into(),
        name: published().name,
        source: published().source,
        about: vec![field().about()],
        x: Across::Numbers(Axis::new("device utilization, %").with_ticks(UTILIZATIONS)),
        y,
        better: Some(Better::More),
        series: vec![],
        claims: vec![],
        notes: vec![SWAP.into(), STRIPE.into(), FULL.into()],
    }
}

fn throughput(scale: &Scale, o: &Outcomes) -> Figure {
    let title = "ZNS+: throughput over utilization";
    let mut f = over_utilization("zns-plus-throughput", title, Axis::from_zero("swap-out, MB/s"));
    f.series = field().series(scale, o, swap_out);
    f
}

fn gain(scale: &Scale, o: &Outcomes) -> Figure {
    let (field, p) = (field(), published());
    let title = "ZNS+: throughput relative to compaction by the host";
    let axis = Axis::from_zero("swap-out over that with compaction by the host, times");
    let mut f = over_utilization("zns-plus-gain", title, axis);
    // As in the previous figure.
    f.better = None;
    f.series = field.ratios(scale, o, (&[PLUS, ZNSAGE, TWO_ZONES], &HOST), swap_out);
    let at = |u| field.ratio(scale, o, (&PLUS, &HOST), u, swap_out);
    let grows = match (at(80.0), at(20.0)) {
        (Some(a), Some(b)) => Some(a / b),
        _ => None,
    };
    let best = UTILIZATIONS.iter().filter_map(|u| at(*u)).reduce(f64::max);
    f.claims = vec![
        Claim::new(p.value("throughput"), best, SWAP),
        Claim::new(p.value("grows"), grows, SWAP),
    ];
    f
}

fn waf(scale: &Scale, o: &Outcomes) -> Figure {
    let (field, p) = (field(), published());
    let title = "ZNS+: write amplification over utilization";
    let mut f = over_utilization("zns-plus-waf", title, Axis::from_zero("WAF"));
    f.better = Some(Better::Less);
    let of = |r: &RunResult| Some(r.waf.total);
    f.series = field.series(scale, o, of);
    let at = |u| field.result(scale, o, &PLUS, u).map(|r| r.waf.total);
    let grows = match (at(80.0), at(20.0)) {
        (Some(a), Some(b)) => Some(a / b),
        _ => None,
    };
    let lower = field.ratio(scale, o, (&PLUS, &HOST), 80.0, of);
    f.claims = vec![
        Claim::new(p.value("waf-grows"), grows, SWAP),
        Claim::new(
            p.value("waf-lower"),
            lower,
            "In the paper threaded logging saves writes of a file system's metadata; swap has \
             none, and plugging programs live blocks again that compaction would leave alone.",
        ),
    ];
    f
}
