// SPDX-License-Identifier: GPL-2.0-only
//! ZNSwap (ATC 2022): vm-scalability, memcached, two cgroups.

use super::model::{Across, Better, Claim, Figure, Series};
use super::party::{Field, Party};
use super::published::Publication;
use super::runs::{Definition, Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Axis, Variant};
use crate::course::Moment;
use crate::spec::{SystemKind, WorkloadKind};
use crate::stats::mean;
use crate::RunResult;

pub(super) const FIGURES: &[Definition] = &[
    Definition { id: "znswap-throughput", jobs: vm_jobs, make: throughput },
    Definition { id: "znswap-throughput-ratio", jobs: vm_jobs, make: throughput_ratio },
    Definition { id: "znswap-waf", jobs: vm_jobs, make: waf },
    Definition { id: "znswap-waf-ratio", jobs: vm_jobs, make: waf_ratio },
    Definition { id: "znswap-faults", jobs: vm_jobs, make: faults },
    Definition { id: "znswap-course", jobs: vm_jobs, make: course },
    Definition { id: "znswap-course-waf", jobs: vm_jobs, make: course_waf },
    Definition { id: "znswap-cpu", jobs: vm_jobs, make: cpu },
    Definition { id: "znswap-etc-throughput", jobs: etc_jobs, make: etc_throughput },
    Definition { id: "znswap-etc-p99", jobs: etc_jobs, make: etc_p99 },
    Definition { id: "znswap-etc-waf", jobs: etc_jobs, make: etc_waf },
    Definition { id: "znswap-tenants", jobs: tenant_jobs, make: tenants },
];

const UTILIZATIONS: [f64; 8] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
/// ZNSwap's evaluation ran Linux 5.12.
const OLD: (&str, &str) = ("host.slot-search", "scan");
const NEW: (&str, &str) = ("host.slot-search", "clusters");

const STOCK: Party = Party::new("block SSD", SystemKind::Stock, "conventional").with(&[OLD]);
const NEW_STOCK: Party =
    Party::new("block SSD, Linux 6.12 and later", SystemKind::Stock, "conventional")
        .with(&[NEW])
        .variant(Variant::Setting);
/// What many drives have, and the kernel that is kindest to them: znsage's hardest rival.
const SPARE: Party = Party::new(
    "block SSD with 15 % spare, Linux 6.12 and later",
    SystemKind::Stock,
    "conventional",
)
.with(&[NEW, ("device.conventional.over_provisioning", "0.15")])
.variant(Variant::Device);
const TRIM: Party =
    Party::new("block SSD + TRIM", SystemKind::StockTrim, "conventional").with(&[OLD]);
const FINE_TRIM: Party =
    Party::new("block SSD + TRIM of each page", SystemKind::StockTrim, "conventional")
        .with(&[OLD, ("published.trim-pages", "1")])
        .variant(Variant::Setting);
const ZNSWAP: Party = Party::new("ZNSwap", SystemKind::ZnSwap, "zn540");
const ZNSAGE: Party = Party::new("znsage", SystemKind::ZnSage, "zn540");

/// In zones that znsage makes itself.
const VIRTUAL: Party = Party::new("znsage on the block SSD", SystemKind::ZnSage, "conventional")
    .variant(Variant::Device);
const VIRTUAL_FDP: Party =
    Party::new("znsage on the block SSD, FDP", SystemKind::ZnSage, "conventional")
        .with(&[("device.conventional.write_streams", "2")])
        .variant(Variant::OtherDevice);

const VM: [Party; 9] =
    [STOCK, NEW_STOCK, SPARE, TRIM, FINE_TRIM, ZNSWAP, ZNSAGE, VIRTUAL, VIRTUAL_FDP];
const ETC: [Party; 4] = [STOCK, TRIM, ZNSWAP, ZNSAGE];

fn vm() -> Field<'static> {
    Field { parties: &VM, workload: WorkloadKind::Uniform, utilizations: &UTILIZATIONS, set: &[] }
}

fn etc() -> Field<'static> {
    Field { parties: &ETC, workload: WorkloadKind::Etc, utilizations: &UTILIZATIONS, set: &[] }
}

fn vm_jobs(scale: &Scale) -> Vec<Job> {
    vm().jobs(scale)
}

fn etc_jobs(scale: &Scale) -> Vec<Job> {
    etc().jobs(scale)
}

fn published() -> Publication {
    Publication::load("znswap")
}

fn x_axis() -> Across {
    Across::Numbers(Axis::new("device utilization, %").with_ticks(UTILIZATIONS))
}

fn figure(id: &'static str, title: &str, y: Axis, about: String) -> Figure {
    Figure {
        id,
        title: title.into(),
        name: published().name,
        source: published().source,
        about: vec![about],
        x: x_axis(),
        y,
        better: None,
        series: vec![],
        claims: vec![],
        notes: vec![],
    }
}

fn swap_out(r: &RunResult) -> Option<f64> {
    Some(r.swap_out_mb_s)
}

fn total_waf(r: &RunResult) -> Option<f64> {
    Some(r.waf.total)
}

const APPENDS: &str =
    "ZNSwap's block layer merges the appends of a plug to the same zone, and GC's \
    reads of consecutive blocks; so does the model.";
const MORE_FLASH: &str = "Utilization is that of what the host sees: the conventional SSD has 7 % \
    more flash behind it, so that its WAF is lower where each freed page is trimmed.";
const THREADS: &str = "The paper's thread count and memory limit are not in the texts at hand: 8 \
    CPUs, 16 threads and a limit of less than 1 % of the device are those of ZNSage's evaluation.";

fn throughput(scale: &Scale, o: &Outcomes) -> Figure {
    let axis = Axis::from_zero("swap-out, MB/s");
    let title = "ZNSwap: throughput over utilization, random writes";
    let mut f = figure("znswap-throughput", title, axis, vm().about());
    f.better = Some(Better::More);
    f.series = vm().series(scale, o, swap_out);
    f.notes = vec![
        "The texts at hand have no absolute throughput; the ratios are in the next figure.".into(),
        THREADS.into(),
    ];
    f
}

fn throughput_ratio(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let axis = Axis::from_zero("swap-out over that of the block SSD, times");
    let title = "ZNSwap: throughput relative to the block SSD";
    let mut f = figure("znswap-throughput-ratio", title, axis, vm.about());
    let others = [TRIM, FINE_TRIM, ZNSWAP, ZNSAGE, VIRTUAL, VIRTUAL_FDP];
    f.series = vm.ratios(scale, o, (&others, &STOCK), swap_out);
    let at = |a: &Party, u| vm.ratio(scale, o, (a, &STOCK), u, swap_out);
    for s in &mut f.series {
        match s.name.as_str() {
            "ZNSwap" => {
                let more =
                    [(10.0, p.value("throughput-10").is), (50.0, p.value("throughput-50").is)];
                s.published.extend(more);
            }
            "block SSD + TRIM" => s.published.push((50.0, p.value("trim-50").is)),
            _ => (),
        }
    }
    f.claims = vec![
        Claim::new(p.value("throughput-10"), at(&ZNSWAP, 10.0), APPENDS),
        Claim::new(p.value("throughput-50"), at(&ZNSWAP, 50.0), APPENDS),
        Claim::new(
            p.value("trim-50"),
            at(&TRIM, 50.0),
            "TRIM of whole clusters finds few of them free at random.",
        ),
    ];
    f
}

fn waf(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let axis = Axis::from_zero("WAF");
    let title = "ZNSwap: write amplification over utilization, random writes";
    let mut f = figure("znswap-waf", title, axis, vm.about());
    f.better = Some(Better::Less);
    f.series = vm.series(scale, o, total_waf);
    f.notes = vec![MORE_FLASH.into()];
    for s in &mut f.series {
        if matches!(s.name.as_str(), "ZNSwap" | "block SSD") {
            s.published.push((10.0, p.value("waf-10").is));
        }
    }
    let at = |a: &Party| vm.result(scale, o, a, 10.0).map(|r| r.waf.total);
    f.claims = vec![
        Claim::new(p.value("waf-10"), at(&ZNSWAP), "Zones that are nearly empty cost no copies."),
        Claim::new(
            p.value("waf-10"),
            at(&STOCK),
            "This is the block SSD. It is simulated in its steady state: over time the old search \
             for slots touches all of the swap area, and the SSD believes it full. The authors \
             may have begun with an empty SSD.",
        ),
    ];
    f
}

fn waf_ratio(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let axis = Axis::from_zero("WAF over that of the block SSD, times");
    let title = "ZNSwap: write amplification relative to the block SSD";
    let mut f = figure("znswap-waf-ratio", title, axis, vm.about());
    f.series = vm.ratios(scale, o, (&[TRIM, FINE_TRIM, ZNSWAP, ZNSAGE], &STOCK), total_waf);
    for s in f.series.iter_mut().filter(|s| s.name == "ZNSwap") {
        s.published.push((50.0, p.value("waf-ratio-50").is));
    }
    let ratio = vm.ratio(scale, o, (&ZNSWAP, &STOCK), 50.0, total_waf);
    let reason = "Here the SSD is in its steady state, after five device writes, where it copies \
        most of what the host has freed; and it has 7 % over-provisioning. Kernels from 6.12 on \
        reuse slots in a way that is kinder to it.";
    f.claims = vec![Claim::new(p.value("waf-ratio-50"), ratio, reason)];
    f.notes = vec![MORE_FLASH.into()];
    f
}

/// Those that are shown in full: distribution and course.
const SHOWN: [Party; 6] = [STOCK, NEW_STOCK, SPARE, ZNSWAP, ZNSAGE, VIRTUAL];
/// Where they are.
const FULL: f64 = 80.0;

fn faults(scale: &Scale, o: &Outcomes) -> Figure {
    let title = "Latency of swap-in at 80 %, random writes";
    let axis = Axis::nines("page faults that take no longer, %", 4);
    let mut f = figure("znswap-faults", title, axis, vm().about());
    f.x = Across::Numbers(Axis::log("latency of a page fault that reads from the device, us"));
    f.series = SHOWN
        .map(|party| {
            let course = o.course(&vm().spec(scale, &party, FULL));
            let faults = course.map_or(&[][..], |c| &c.faults);
            // From the first fault on, to the last one.
            let some = faults.iter().filter(|p| p.1 > 0.0 && p.1 < 99.99);
            party.series().points(some.map(|p| (p.0, Some(p.1))))
        })
        .into();
    f.notes = vec![THREADS.into()];
    f
}

/// A quantity while the device is written, with the measured part marked.
fn over_time(
    scale: &Scale,
    o: &Outcomes,
    (id, title, y): (&'static str, &str, Axis),
    of: fn(&Moment) -> f64,
) -> Figure {
    let mut f = figure(id, title, y, vm().about());
    let mut axis = Axis::from_zero("swapped out since memory was full, sizes of the device");
    let (from, to) = (scale.warmup, scale.warmup + scale.measure);
    axis.marked = Some((from, to, "measured".into()));
    f.x = Across::Numbers(axis);
    let mut off = Vec::new();
    for party in &SHOWN {
        let Some(course) = o.course(&vm().spec(scale, party, FULL)) else { continue };
        let points = course.moments.iter().map(|m| (m.written, Some(of(m))));
        f.series.push(party.series().points(points));
        let mean_of = |a: f64, b: f64| {
            let some = course.moments.iter().filter(|m| m.written > a && m.written <= b);
            mean(&some.map(of).collect::<Vec<_>>())
        };
        let before = mean_of(from - scale.measure, from);
        if let (Some(before), Some(now)) = (before, mean_of(from, to)) {
            off.push(format!("{} {:+.1} %", party.name, 100.0 * (now / before - 1.0)));
        }
    }
    f.notes = vec![format!(
        "How much the measured part differs from as much just before it (seed {}): {}. What is \
         still moving there is not in its steady state.",
        scale.seed,
        off.join(", ")
    )];
    f
}

fn course(scale: &Scale, o: &Outcomes) -> Figure {
    let title = "Swap-out over time at 80 %, random writes";
    let what = ("znswap-course", title, Axis::from_zero("swap-out, MB/s"));
    over_time(scale, o, what, |m| m.swap_out_mb_s)
}

fn course_waf(scale: &Scale, o: &Outcomes) -> Figure {
    let title = "Write amplification over time at 80 %, random writes";
    over_time(scale, o, ("znswap-course-waf", title, Axis::from_zero("WAF")), |m| m.waf)
}

fn cpu(scale: &Scale, o: &Outcomes) -> Figure {
    let (vm, p) = (vm(), published());
    let axis = Axis::from_zero("garbage collection and TRIM, % of a CPU");
    let title = "ZNSwap: CPU time of garbage collection and of TRIM";
    let mut f = figure("znswap-cpu", title, axis, vm.about());
    f.better = Some(Better::Less);
    let of = |r: &RunResult| Some(r.cpu.gc);
    let all = Field { parties: &[TRIM, FINE_TRIM, ZNSWAP, ZNSAGE], ..self::vm() };
    f.series = all.series(scale, o, of);
    for s in &mut f.series {
        match s.name.as_str() {
            "ZNSwap" => s.published.push((10.0, p.value("gc-cpu-10").is)),
            // It has no work of its own; the SSD does it.
            "block SSD + TRIM" => s.rival = false,
            _ => (),
        }
    }
    let most = |party: &Party| {
        let at = UTILIZATIONS.iter().map(|u| vm.result(scale, o, party, *u).map(|r| r.cpu.gc));
        at.flatten().reduce(f64::max)
    };
    let reasons = [
        "Collection costs CPU time for commands and for each page that it moves, of which there \
         are few at 10 %. The real one also looks at every slot of a zone.",
        "What a page costs garbage collection (walk to its page table entry, rewrite it) is \
         assumed.",
        "The CPU time of a TRIM is assumed, 2 us. At the rate of TRIMs that the SSD allows here, \
         8 us would give the published value.",
    ];
    let low = vm.result(scale, o, &ZNSWAP, 10.0).map(|r| r.cpu.gc);
    f.claims = vec![
        Claim::new(p.value("gc-cpu-10"), low, reasons[0]),
        Claim::new(p.value("gc-cpu-max"), most(&ZNSWAP), reasons[1]),
        Claim::new(p.value("trim-cpu"), most(&FINE_TRIM), reasons[2]),
    ];
    f
}

const ETC_SETUP: &str = "Keys are uniform, as the load generator mutilate has it; how much memory \
    memcached had is not in the texts at hand. Here it is the same small limit as above.";

fn etc_throughput(scale: &Scale, o: &Outcomes) -> Figure {
    let (etc, p) = (etc(), published());
    let axis = Axis::from_zero("requests, thousands a second");
    let title = "ZNSwap: memcached with Facebook's ETC, throughput";
    let mut f = figure("znswap-etc-throughput", title, axis, etc.about());
    f.better = Some(Better::More);
    f.series = etc.series(scale, o, |r| Some(r.operations_s / 1e3));
    let of = |r: &RunResult| Some(r.operations_s);
    let ratio = |u: &f64| etc.ratio(scale, o, (&ZNSWAP, &STOCK), *u, of);
    let ratios = || UTILIZATIONS.iter().filter_map(ratio);
    let reason = "Threads here are a closed loop that waits for each page, so that the gain is \
        bounded by what reads of the flash take; a load that comes at its own rate gains more.";
    f.claims = vec![
        Claim::new(p.value("etc-throughput"), ratios().reduce(f64::max), reason),
        Claim::new(p.value("etc-always"), ratios().reduce(f64::min), reason),
    ];
    f.notes = vec![ETC_SETUP.into()];
    f
}

fn etc_p99(scale: &Scale, o: &Outcomes) -> Figure {
    let (etc, p) = (etc(), published());
    let axis = Axis::log("99th percentile of a request, us");
    let title = "ZNSwap: memcached with Facebook's ETC, 99th percentile of latency";
    let mut f = figure("znswap-etc-p99", title, axis, etc.about());
    f.better = Some(Better::Less);
    let of = |r: &RunResult| r.request_latency.as_ref().map(|l| l.p99_us);
    f.series = etc.series(scale, o, of);
    let ratio = etc.ratio(scale, o, (&STOCK, &ZNSWAP), 10.0, of);
    let reason = "How long the SSD's garbage collection holds up reads depends on its FTL, which \
        is not known: here it works in bursts, a small superblock at a time.";
    f.claims = vec![Claim::new(p.value("etc-p99-10"), ratio, reason)];
    f.notes = vec![ETC_SETUP.into()];
    f
}

fn etc_waf(scale: &Scale, o: &Outcomes) -> Figure {
    let (etc, p) = (etc(), published());
    let axis = Axis::from_zero("WAF");
    let title = "ZNSwap: memcached with Facebook's ETC, write amplification";
    let mut f = figure("znswap-etc-waf", title, axis, etc.about());
    f.better = Some(Better::Less);
    f.series = etc.series(scale, o, total_waf);
    for s in &mut f.series {
        match s.name.as_str() {
            "ZNSwap" => s.published.push((10.0, p.value("etc-waf-znswap").is)),
            "block SSD" => s.published.push((10.0, p.value("etc-waf-stock").is)),
            _ => (),
        }
    }
    let at = |a: &Party| etc.result(scale, o, a, 10.0).map(|r| r.waf.total);
    let reason = "The SSD is simulated in its steady state, where all of the swap area was \
        written before; how far the authors were from it is not said.";
    f.claims = vec![
        Claim::new(p.value("etc-waf-stock"), at(&STOCK), reason),
        Claim::new(p.value("etc-waf-znswap"), at(&ZNSWAP), reason),
    ];
    f.notes = vec![ETC_SETUP.into()];
    f
}

const BY_GROUP: Party = Party::new("ZNSwap", SystemKind::ZnSwap, "zn540")
    .with(&[("published.policy", "cgroup"), ("published.isolate", "false")]);
const LIMITED: Party = Party::new("ZNSwap, 150 MB/s a cgroup", SystemKind::ZnSwap, "zn540")
    .with(&[
        ("published.policy", "cgroup"),
        ("published.cgroup-mb-s", "150"),
        ("published.isolate", "false"),
    ])
    .variant(Variant::Setting);
const ISOLATED: Party =
    Party::new("ZNSwap, 150 MB/s with its collection", SystemKind::ZnSwap, "zn540")
        .with(&[
            ("published.policy", "cgroup"),
            ("published.cgroup-mb-s", "150"),
            ("published.isolate", "true"),
        ])
        .variant(Variant::OtherSetting);
const TENANTS: [Party; 6] = [STOCK, TRIM, BY_GROUP, LIMITED, ISOLATED, ZNSAGE];
/// Below half of the swap area, so that pages only read keep their slots and
/// are not rewritten.
const TENANTS_AT: [f64; 1] = [40.0];

fn tenant_field() -> Field<'static> {
    let workload = WorkloadKind::TwoTenants;
    Field { parties: &TENANTS, workload, utilizations: &TENANTS_AT, set: &[] }
}

fn tenant_jobs(scale: &Scale) -> Vec<Job> {
    tenant_field().jobs(scale)
}

fn tenants(scale: &Scale, o: &Outcomes) -> Figure {
    let (field, p) = (tenant_field(), published());
    let axis = Axis::from_zero("accesses, thousands a second");
    let title = "ZNSwap: a reading and a writing cgroup";
    let mut f = figure("znswap-tenants", title, axis, field.about());
    f.x = Across::Names("cgroup", vec!["reader".into(), "writer".into()]);
    f.better = Some(Better::More);
    let of = |party: &Party, tenant: usize| {
        let r = field.result(scale, o, party, TENANTS_AT[0])?;
        Some(r.tenants.get(tenant)?.operations_s / 1e3)
    };
    let series = |party: &Party| -> Series {
        let mut s = party.series().points([(0.0, of(party, 0)), (1.0, of(party, 1))]);
        // A limit on one cgroup benefits the other.
        s.rival &= party.variant.is_none();
        s
    };
    f.series = TENANTS.iter().map(series).collect();
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let both = |party: &Party| Some(of(party, 0)? + of(party, 1)?);
    let reason = "The paper's limits and utilization are not in the texts at hand.";
    f.notes = vec![
        "Isolation is modelled as a limit on what a cgroup may write, which garbage collection of \
         its pages counts against, or not. Its effect is small here: at 40 % a cgroup of its own \
         zones has little to collect. Above 50 % the kernel gives up the slot of each page that is \
         swapped in, so that the reader writes, too."
            .into(),
    ];
    f.claims = vec![
        Claim::new(p.value("tenants-stock"), ratio(both(&BY_GROUP), both(&STOCK)), reason),
        Claim::new(p.value("tenants-reader"), ratio(of(&ISOLATED, 0), of(&LIMITED, 0)), reason),
        Claim::new(p.value("tenants-writer"), ratio(of(&ISOLATED, 1), of(&LIMITED, 1)), reason),
    ];
    f
}
