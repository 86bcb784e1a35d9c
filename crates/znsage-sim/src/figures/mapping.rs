// SPDX-License-Identifier: GPL-2.0-only
//! Memory for mappings, per page.

use super::model::{Across, Better, Claim, Figure};
use super::party::{Field, Party};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::Axis;
use crate::spec::{SystemKind, WorkloadKind};

pub(super) const FIGURES: &[Definition] =
    &[Definition { id: "mapping-memory", jobs, make: memory }];

const ZNSWAP: Party = Party::new("ZNSwap", SystemKind::ZnSwap, "zn540");
const SMALL: Party = Party::new("ZNSwap for small zones", SystemKind::SmallZone, "hynix");
const THEIRS: Party = Party::new("ZNSage (2025)", SystemKind::ZnSage2025, "hynix");
const PLUS: Party = Party::new("ZNS+", SystemKind::ZnsPlus, "zns-plus");
const ZNSAGE: Party = Party::new("znsage", SystemKind::ZnSage, "hynix");
const PARTIES: [Party; 5] = [ZNSWAP, SMALL, THEIRS, PLUS, ZNSAGE];
const AT: [f64; 1] = [20.0];

fn field() -> Field<'static> {
    // The maps exist from the start, so a short run suffices.
    let set = &[("run.warmup", "0"), ("run.measure", "0.05")];
    Field { parties: &PARTIES, workload: WorkloadKind::Uniform, utilizations: &AT, set }
}

fn jobs(scale: &Scale) -> Vec<Job> {
    field().jobs(scale)
}

fn memory(scale: &Scale, o: &Outcomes) -> Figure {
    let (field, p) = (field(), Publication::load("mapping"));
    let result = |party: &Party| field.result(scale, o, party, AT[0]);
    let ram = |party: &Party| {
        let r = result(party)?;
        Some(r.mapping.ram_bytes as f64 / r.capacity_blocks as f64)
    };
    let device = |party: &Party| {
        let r = result(party)?;
        Some(r.mapping.device_per_page * r.slots as f64 / r.capacity_blocks as f64)
    };
    let series = PARTIES.map(|party| {
        let s = party.series().point(0.0, ram(&party)).point(1.0, device(&party));
        match party.system {
            SystemKind::ZnSwap => s.publish(1.0, p.value("znswap")),
            SystemKind::SmallZone => s.publish(0.0, p.value("small-zone")),
            SystemKind::ZnSage2025 => s.publish(0.0, p.value("znsage-2025")),
            SystemKind::ZnSage => s.publish(0.0, p.value("znsage")),
            _ => s,
        }
    });
    // 5480 zones of 96 MB, as in the thesis.
    let total = ram(&SMALL).map(|b| b * 5480.0 * 24576.0 / 1e9);
    Figure {
        id: "mapping-memory",
        title: "Memory for mappings, a page".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![
            field.about(),
            "Bytes for each block of the device, whether it is in use or not, in RAM and on the \
             device."
                .into(),
        ],
        x: Across::Names("where the mappings are", vec!["in RAM".into(), "on the device".into()]),
        y: Axis::from_zero("bytes a page"),
        better: Some(Better::Less),
        series: series.into(),
        claims: vec![
            Claim::new(p.value("znswap"), device(&ZNSWAP), ""),
            Claim::new(p.value("small-zone"), ram(&SMALL), ""),
            Claim::new(p.value("thesis-total"), total, ""),
            Claim::new(p.value("znsage-2025"), ram(&THEIRS), ""),
            Claim::new(
                p.value("znsage"),
                ram(&ZNSAGE),
                "The map of slots is shorter than that of blocks by what is held back, 12 %.",
            ),
        ],
        notes: vec![
            "ZNSwap keeps no map in RAM because it rewrites page table entries, and needs a device \
             with 64 B of metadata for each block; it uses 24 of them. The thesis found that ZNSwap takes 1.1 GB of RAM \
             when its swap area is turned on, which is not modelled."
                .into(),
        ],
    }
}
