// SPDX-License-Identifier: GPL-2.0-only
//! ZNSage (Electronics 2025): figures 7, 8 and 9.

use super::model::{Across, Better, Claim, Figure};
use super::party::{Field, Party};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Axis, Variant};
use crate::spec::{SystemKind, WorkloadKind};
use crate::time::BLOCK;
use crate::{RunResult, Spec};

pub(super) const FIGURES: &[Definition] = &[
    Definition { id: "znsage-2025-fig7", jobs: vm_jobs, make: fig7 },
    Definition { id: "znsage-2025-fig8", jobs: vm_jobs, make: fig8 },
    Definition { id: "znsage-2025-fig9", jobs: ycsb_jobs, make: fig9 },
];

const UTILIZATIONS: [f64; 4] = [20.0, 40.0, 60.0, 80.0];
const ZNSWAP: Party = Party::new("ZNSwap, large zones", SystemKind::ZnSwap, "zn540");
/// On it a zone is on one die.
const FITTED: &str = "hynix-fitted";
/// The same flash with zones over many dies.
const WIDE: &[(&str, &str)] = &[("device.zoned.dies_per_zone", "16")];
const THEIRS: Party = Party::new("ZNSage (2025)", SystemKind::ZnSage2025, FITTED);
const ZNSAGE: Party = Party::new("znsage", SystemKind::ZnSage, FITTED);
const THEIRS_WIDE: Party =
    Party::new("ZNSage (2025), zones over 16 dies", SystemKind::ZnSage2025, FITTED)
        .with(WIDE)
        .variant(Variant::Device)
        .field(1);
const ZNSAGE_WIDE: Party = Party::new("znsage, zones over 16 dies", SystemKind::ZnSage, FITTED)
    .with(WIDE)
    .variant(Variant::Device)
    .field(1);
const LARGE: Party =
    Party::new("znsage, large zones", SystemKind::ZnSage, "zn540").variant(Variant::OtherDevice);
/// The first pages after the fill.
const FRESH: &[(&str, &str)] = &[("run.warmup", "0"), ("run.measure", "0.04")];
const FRESH_ZNSWAP: Party = Party::new("ZNSwap, at first", SystemKind::ZnSwap, "zn540")
    .with(FRESH)
    .variant(Variant::AtFirst);
const FRESH_THEIRS: Party = Party::new("ZNSage (2025), at first", SystemKind::ZnSage2025, FITTED)
    .with(FRESH)
    .variant(Variant::AtFirst);
const PARTIES: [Party; 8] =
    [ZNSWAP, FRESH_ZNSWAP, THEIRS, THEIRS_WIDE, FRESH_THEIRS, ZNSAGE, ZNSAGE_WIDE, LARGE];

fn vm() -> Field<'static> {
    let workload = WorkloadKind::Uniform;
    Field { parties: &PARTIES, workload, utilizations: &UTILIZATIONS, set: &[] }
}

fn vm_jobs(scale: &Scale) -> Vec<Job> {
    vm().jobs(scale)
}

fn published() -> Publication {
    Publication::load("znsage-2025")
}

fn at_first(party: &Party) -> bool {
    party.variant == Some(Variant::AtFirst)
}

fn swap_out(r: &RunResult) -> Option<f64> {
    Some(r.swap_out_mb_s)
}

const ONE_ZONE: &str = "In the model, garbage collection writes to one zone, that is, to one die \
    of 91 MB/s: the article's and the thesis' one has one thread and one victim. The thesis says \
    that this cannot keep up for long, so that the published runs may have ended before much was \
    collected: see the bars and lines \"at first\".";
const AT_FIRST: &str =
    "\"At first\": measured while the first 4 % of the device are swapped out after \
    it was filled, without a warm-up. At 80 % the padding of short chunks has filled the zones by \
    then, so that garbage collection runs even so.";
const FLASH: &str = "The small-zone device is modelled after an emulator of such a drive, and fitted \
    to the largest bandwidth of the thesis (devices/hynix-fitted.toml), not after the authors' one. \
    Over how many dies that one lays a zone is not known: one and 16 are the ends of a range.";

fn fig7(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let mut series = vm.series(scale, o, swap_out);
    // Ours is measured while zones are collected.
    for (s, party) in series.iter_mut().zip(&PARTIES) {
        s.rival &= !at_first(party);
    }
    let level = |party: &Party, high| {
        let at = |u| vm.result(scale, o, party, u).map(|r| r.swap_out_mb_s);
        Some(at(high)? / at(20.0)?)
    };
    let reason = format!(
        "At 80 % with 12 % held back, zones that are emptied are still mostly full. {ONE_ZONE}"
    );
    let mut wide = Claim::new(p.value("level"), level(&THEIRS_WIDE, 80.0), &reason);
    wide.published.what.push_str("; here with zones over 16 dies");
    let mut at_first = Claim::new(p.value("level"), level(&FRESH_THEIRS, 60.0), &reason);
    at_first.published.what = "swap bandwidth at 60 % over that at 20 %, at first".into();
    Figure {
        id: "znsage-2025-fig7",
        title: "ZNSage (2025), figure 7: swap bandwidth over utilization".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![vm.about()],
        x: Across::Numbers(Axis::new("device utilization, %").with_ticks(UTILIZATIONS)),
        y: Axis::from_zero("swap-out, MB/s"),
        better: Some(Better::More),
        series,
        claims: vec![Claim::new(p.value("level"), level(&THEIRS, 80.0), &reason), wide, at_first],
        notes: vec![
            "The text at hand has no absolute bandwidth.".into(),
            FLASH.into(),
            AT_FIRST.into(),
        ],
    }
}

const OTHERS: &str = "ratio-others";

fn fig8(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let names = UTILIZATIONS.iter().map(|u| format!("{u} %")).collect();
    let base = |party: &Party| if at_first(party) { FRESH_ZNSWAP } else { ZNSWAP };
    let ratio = |party: &Party, u: f64| vm.ratio(scale, o, (party, &base(party)), u, swap_out);
    let series = [THEIRS, THEIRS_WIDE, FRESH_THEIRS, ZNSAGE, ZNSAGE_WIDE, LARGE].map(|party| {
        let points = UTILIZATIONS.iter().enumerate().map(|(i, u)| (i as f64, ratio(&party, *u)));
        let mut s = party.series().points(points);
        s.rival &= !at_first(&party);
        if party.name == THEIRS.name {
            let others = [0.0, 1.0, 3.0].map(|x| (x, p.value("ratio-others").is));
            s.published.extend(others);
            s.published.push((2.0, p.value("ratio-60").is));
        }
        s
    });
    let mut at_first = Claim::new(p.value("ratio-60"), ratio(&FRESH_THEIRS, 60.0), FLASH);
    at_first.published.what.push_str(", at first");
    let mut claims = vec![at_first];
    for (party, zones) in [(THEIRS, "on one die"), (THEIRS_WIDE, "over 16 dies")] {
        for (u, id) in [(60.0, "ratio-60"), (20.0, OTHERS), (40.0, OTHERS), (80.0, OTHERS)] {
            let mut claim = Claim::new(p.value(id), ratio(&party, u), ONE_ZONE);
            let so = if id == OTHERS { ": similar improvements" } else { "" };
            claim.published.what = format!(
                "swap-out bandwidth over that of ZNSwap at {u} %{so}; here a zone is {zones}"
            );
            claims.push(claim);
        }
    }
    Figure {
        id: "znsage-2025-fig8",
        title: "ZNSage (2025), figure 8: bandwidth relative to ZNSwap".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![vm.about()],
        x: Across::Names("device utilization", names),
        y: Axis::from_zero("swap-out over that of ZNSwap, times"),
        better: Some(Better::More),
        series: series.into(),
        claims,
        notes: vec![FLASH.into(), AT_FIRST.into()],
    }
}

/// Sized so that the host's 8 CPUs answer no more requests (1 kB plus header)
/// than the article's network of 2.5 Gbit/s carries. [derived]
const SERVICE: &str = "28000";
const MIXES: [(&str, WorkloadKind, &str); 2] = [
    ("95 % reads", WorkloadKind::YcsbB, "drop-95"),
    ("50 % reads", WorkloadKind::YcsbA, "drop-50"),
];
const STORES: [Party; 3] = [THEIRS, ZNSWAP, ZNSAGE];

/// A run with all data in memory, or with half of them on the device.
fn ycsb(scale: &Scale, party: &Party, workload: WorkloadKind, half: bool) -> Spec {
    let mut spec = scale.spec(party.system, party.device, workload, 0.0);
    spec.set("load.service", SERVICE).expect("a known key");
    // Large enough to keep the shares of hot items.
    spec.host.memory = (4 * scale.memory_mib) << 20;
    match half {
        true => {
            let blocks = scale.bytes() / BLOCK;
            spec.utilization = 100.0 * f64::from(spec.frames()) / blocks as f64;
            // Zipf's law is level after a few times its data.
            (spec.run.warmup, spec.run.measure) = (0.5, 0.25);
        }
        // Nothing is swapped out, so time ends the run.
        false => spec.run.seconds = 1.0,
    }
    spec
}

fn ycsb_jobs(scale: &Scale) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (_, workload, _) in MIXES {
        for party in &STORES {
            for half in [false, true] {
                jobs.push(Job::Swap(Box::new(ycsb(scale, party, workload, half))));
            }
        }
    }
    jobs
}

fn fig9(scale: &Scale, o: &Outcomes) -> Figure {
    let p = published();
    let drop = |party: &Party, workload| {
        let rate = |half| Some(o.swap(&ycsb(scale, party, workload, half))?.operations_s);
        Some(100.0 * (1.0 - rate(true)? / rate(false)?))
    };
    let series = STORES.map(|party| {
        let mut s = party.series();
        for (i, (_, workload, id)) in MIXES.iter().enumerate() {
            s = s.point(i as f64, drop(&party, *workload));
            if party.name == THEIRS.name {
                s = s.publish(i as f64, p.value(id));
            }
        }
        s
    });
    let reason = "The article's drop depends on what else bounds the throughput: its clients on \
        a second machine, its network, memcached's threads. Only the network's rate is known. \
        Here each of 16 threads waits for its page and does nothing else meanwhile.";
    let claims =
        MIXES.map(|(_, workload, id)| Claim::new(p.value(id), drop(&THEIRS, workload), reason));
    Figure {
        id: "znsage-2025-fig9",
        title: "ZNSage (2025), figure 9: memcached, half of its data in swap".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![format!(
            "YCSB workloads B and A, Zipf 0.99, records of 1 kB; 16 threads on 8 CPUs. Once all \
                 data are in memory, once half of them are on the device. A request takes {} us of \
                 CPU time, so that 8 CPUs answer what a network of 2.5 Gbit/s carries.",
            SERVICE.parse::<f64>().unwrap_or_default() / 1e3
        )],
        x: Across::Names("mix of requests", MIXES.map(|m| m.0.to_string()).into()),
        y: Axis::from_zero("throughput lost, %"),
        better: Some(Better::Less),
        series: series.into(),
        claims: claims.into(),
        notes: vec![
            "The article has the smaller drop where more is written, and does not say why. Here it \
             is the other way round: a SET touches more pages than a GET."
                .into(),
        ],
    }
}
