// SPDX-License-Identifier: GPL-2.0-only
//! The thesis on ZNSwap for small zones: swap-out bandwidth against ZNSwap on
//! large zones.

use super::model::{Across, Better, Claim, Figure};
use super::party::{Field, Party};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Axis, Variant};
use crate::spec::{SystemKind, WorkloadKind};
use crate::stats;

pub(super) const FIGURES: &[Definition] =
    &[Definition { id: "thesis-bandwidth", jobs, make: bandwidth }];

const UTILIZATIONS: [f64; 4] = [20.0, 40.0, 60.0, 80.0];
const LARGE: Party = Party::new("ZNSwap, large zones", SystemKind::ZnSwap, "zn540");
/// On it a zone is on one die.
const FITTED: &str = "hynix-fitted";
/// The same flash with zones over many dies.
const WIDE: &[(&str, &str)] = &[("device.zoned.dies_per_zone", "16")];
const SMALL: Party = Party::new("ZNSwap for small zones", SystemKind::SmallZone, FITTED);
const IN_CHUNK: Party =
    Party::new("ZNSwap for small zones, maps in chunks", SystemKind::SmallZone, FITTED)
        .with(&[("published.map-in-chunk", "true")])
        .variant(Variant::Setting);
const HASTY: Party =
    Party::new("ZNSwap for small zones, chunks wait 1 ms", SystemKind::SmallZone, FITTED)
        .with(&[("published.flush-after", "1000000")])
        .variant(Variant::OtherSetting);
const SMALL_WIDE: Party =
    Party::new("ZNSwap for small zones, zones over 16 dies", SystemKind::SmallZone, FITTED)
        .with(WIDE)
        .variant(Variant::Device)
        .field(1);
const ZNSAGE_WIDE: Party =
    Party::new("znsage, small zones over 16 dies", SystemKind::ZnSage, FITTED)
        .with(WIDE)
        .variant(Variant::Device)
        .field(1);
const ZNSAGE: Party = Party::new("znsage, small zones", SystemKind::ZnSage, FITTED);
const PARTIES: [Party; 7] = [LARGE, SMALL, IN_CHUNK, HASTY, SMALL_WIDE, ZNSAGE, ZNSAGE_WIDE];

const ONE: &str = "one die";
const MANY: &str = "16 dies";

fn field() -> Field<'static> {
    let workload = WorkloadKind::Uniform;
    Field { parties: &PARTIES, workload, utilizations: &UTILIZATIONS, set: &[] }
}

fn jobs(scale: &Scale) -> Vec<Job> {
    field().jobs(scale)
}

fn bandwidth(scale: &Scale, o: &Outcomes) -> Figure {
    let (field, p) = (field(), Publication::load("thesis"));
    let of = |party: &Party| -> Vec<Option<f64>> {
        let at = |u: &f64| field.result(scale, o, party, *u).map(|r| r.swap_out_mb_s);
        UTILIZATIONS.iter().map(at).collect()
    };
    let mean = |party: &Party| stats::mean(&of(party).into_iter().collect::<Option<Vec<f64>>>()?);
    let last = UTILIZATIONS.len() as f64;
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let mut names: Vec<String> = UTILIZATIONS.iter().map(|u| format!("{u} %")).collect();
    names.push("mean".into());
    let base = of(&LARGE);
    let series = [SMALL, IN_CHUNK, HASTY, SMALL_WIDE, ZNSAGE, ZNSAGE_WIDE].map(|party| {
        let each = of(&party).into_iter().zip(&base).enumerate();
        let each = each.map(|(i, (a, b))| (i as f64, ratio(a, *b)));
        let s = party.series().points(each).point(last, ratio(mean(&party), mean(&LARGE)));
        if party.name == SMALL.name {
            return s.publish(last, p.value("ratio"));
        }
        s
    });
    let most = |party| of(party).into_iter().flatten().reduce(f64::max);
    let on = |id, dies: &str| {
        let mut p = p.value(id).clone();
        p.what = format!("{}; here a zone is on {dies}", p.what);
        p
    };
    let reason =
        "Over how many dies the thesis' drive lays a zone is not known: the two values are \
        the ends of a range. The flash of either device is modelled after an emulator and public \
        measurements, not after the drives of the thesis; what ZNSwap's software costs is assumed. \
        In the model, garbage collection writes to one zone, that is, to one die of 91 MB/s; the \
        thesis says itself that its collection, one thread with one victim, cannot keep up for \
        long, so that its runs may have ended before much was collected.";
    Figure {
        id: "thesis-bandwidth",
        title: "Thesis: swap-out bandwidth on small zones, relative to ZNSwap on large ones".into(),
        name: p.name.clone(),
        source: p.source.clone(),
        about: vec![field.about()],
        x: Across::Names("device utilization", names),
        y: Axis::from_zero("swap-out over that of ZNSwap, times"),
        better: Some(Better::More),
        series: series.into(),
        claims: vec![
            Claim::new(&on("ratio", ONE), ratio(mean(&SMALL), mean(&LARGE)), reason),
            Claim::new(&on("ratio", MANY), ratio(mean(&SMALL_WIDE), mean(&LARGE)), reason),
            Claim::new(&on("bandwidth", ONE), most(&SMALL), reason),
            Claim::new(&on("bandwidth", MANY), most(&SMALL_WIDE), reason),
        ],
        notes: vec![
            "After how long a partial chunk is flushed is not said in the thesis. 5 ms is assumed, as \
             for znsage; what 1 ms would give is shown: more padding, so less bandwidth."
                .into(),
            "The small-zone drive is fitted to the largest bandwidth, at 20 % with a zone on one die: \
             a program lets reads in once (devices/hynix-fitted.toml)."
                .into(),
            "A zone of the ZN540 is over all dies, one of the small-zone drive on one: what writes \
             to one zone at a time, as garbage collection does, is slow there."
                .into(),
        ],
    }
}
