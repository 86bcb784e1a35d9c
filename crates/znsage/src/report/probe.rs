// SPDX-License-Identifier: GPL-2.0-only
//! Results of `znsage probe`.

use znsage_sim::chart::{Axis, Look, Series, Variant};
use znsage_sim::html::{Block, Section};

use super::parts::{bars, line, lines, machines, section, table, Key};
use super::Named;
use crate::probe::record::{Neighbours, Operation, Point, Probe, Varies};
use crate::units;

const OPERATIONS: [Operation; 3] = [Operation::Append, Operation::Write, Operation::Read];

pub fn sections(all: &[Named<Probe>]) -> Vec<Section> {
    all.iter().flat_map(|p| one(p, all.len() > 1)).collect()
}

fn one(probe: &Named<Probe>, several: bool) -> Vec<Section> {
    let p = &probe.result;
    let name = |what: &str| match several {
        true => format!("{}: {what}", probe.name),
        false => what.to_string(),
    };
    vec![
        section(&name("Recommended settings"), recommended(p)),
        section(&name("Parallelism"), parallelism(p)),
        section(&name("Isolation"), isolation(p)),
        section(&name("Predictability"), predictability(p)),
        section(&name("Reset and finish"), zone_times(p)),
        section(&name("Device and machine"), about(p)),
    ]
}

fn recommended(p: &Probe) -> Vec<Block> {
    let rows = p.recommended.iter();
    let rows = rows.map(|s| vec![s.key.clone(), s.value.clone(), s.reason.clone()]).collect();
    let mut blocks = vec![table(&["Setting", "Value", "Why"], 3, rows)];
    if !p.notes.is_empty() {
        blocks.push(Block::List(p.notes.clone()));
    }
    blocks
}

fn look(operation: Operation) -> Look {
    Look::other(OPERATIONS.iter().position(|o| *o == operation).unwrap_or(0))
}

/// An axis with the sizes as evenly spaced ticks.
fn request_axis(points: &[Point]) -> Axis {
    let mut sizes: Vec<u64> =
        points.iter().filter(|p| p.varies == Varies::Request).map(|p| p.request_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ticks = sizes.iter().map(|&n| (n as f64, units::size(n))).collect();
    Axis { ticks, ..Axis::log("size of a request") }
}

fn count_axis(label: &str, points: &[Point], varies: Varies, of: fn(&Point) -> u64) -> Axis {
    let mut counts: Vec<u64> = points.iter().filter(|p| p.varies == varies).map(of).collect();
    counts.sort_unstable();
    counts.dedup();
    Axis::log(label).with_ticks(counts.into_iter().map(|n| n as f64))
}

type Count = fn(&Point) -> u64;

fn parallelism(p: &Probe) -> Vec<Block> {
    let all = &p.parallelism;
    let charts: [(Varies, &str, &str, Axis, Count); 3] = [
        (Varies::Request, "size of a request", "one at a time", request_axis(all), |p| {
            p.request_bytes
        }),
        (
            Varies::Depth,
            "requests at once",
            "reads at random places, appends to one zone",
            count_axis("requests at once", all, Varies::Depth, |p| p.depth),
            |p| p.depth,
        ),
        (
            Varies::Zones,
            "zones written at once",
            "one request at a time to each",
            count_axis("zones", all, Varies::Zones, |p| p.zones),
            |p| p.zones,
        ),
    ];
    let mut blocks = Vec::new();
    for (varies, by, how, x, of) in charts {
        let series = |y: fn(&Point) -> f64| -> Vec<Series> {
            let one = |operation: Operation| {
                let points: Vec<&Point> = p.series(varies, operation).collect();
                let label = label(varies, operation, &points);
                line(&label, look(operation), points.iter().map(|p| (of(p) as f64, y(p))).collect())
            };
            OPERATIONS.into_iter().map(one).collect()
        };
        let bandwidth = series(|p| p.speed.mib_per_s);
        let latency = series(|p| p.speed.latency_us.p99);
        let y = Axis::from_zero("MiB/s");
        blocks.extend(lines(&format!("Bandwidth by {by}"), how, x.clone(), y, bandwidth));
        let title = format!("Latency by {by}");
        let known = |s: Series| Series {
            points: s.points.into_iter().filter(|p| p.1 > 0.0).collect(),
            ..s
        };
        let latency = latency.into_iter().map(known).collect();
        blocks.extend(lines(&title, "99th percentile", x, Axis::log("us"), latency));
    }
    blocks.push(Block::Folded("All values".into(), vec![values(all)]));
    blocks
}

/// Includes the size if all points have the same.
fn label(varies: Varies, operation: Operation, points: &[&Point]) -> String {
    match (varies, points.first()) {
        (Varies::Depth | Varies::Zones, Some(p)) => {
            format!("{} of {}", operation.name(), units::size(p.request_bytes))
        }
        _ => operation.name().to_string(),
    }
}

fn values(points: &[Point]) -> Block {
    let head = [
        "Operation",
        "Request",
        "At once",
        "Zones",
        "MiB/s",
        "1/s",
        "Mean",
        "p50",
        "p99",
        "p99.9",
        "Longest",
    ];
    let row = |p: &Point| {
        let l = &p.speed.latency_us;
        let mut row = vec![
            p.operation.name().to_string(),
            units::size(p.request_bytes),
            p.depth.to_string(),
            p.zones.to_string(),
            format!("{:.1}", p.speed.mib_per_s),
            format!("{:.0}", p.speed.ops_per_s),
        ];
        row.extend([l.mean, l.p50, l.p99, l.p99_9, l.max].map(units::micros));
        row
    };
    table(&head, 1, points.iter().map(row).collect())
}

/// The operation of the worker, that of the others, and whether they share a zone.
type Company = (Operation, Operation, bool);

fn companies(p: &Probe) -> Vec<Company> {
    let mut companies = Vec::new();
    for n in &p.isolation {
        let (Some(what), Some(same)) = (n.others_do, n.same_zone) else { continue };
        if !companies.contains(&(n.worker, what, same)) {
            companies.push((n.worker, what, same));
        }
    }
    companies
}

fn beside<'a>(p: &'a Probe, company: &Company, others: u64) -> Option<&'a Neighbours> {
    let (worker, what, same) = *company;
    let fits = |n: &&Neighbours| {
        let with = (n.others_do, n.same_zone) == (Some(what), Some(same));
        n.worker == worker && n.others == others && (others == 0 || with)
    };
    p.isolation.iter().find(fits)
}

/// A group of bars for each company, a bar for each number of others.
fn isolation(p: &Probe) -> Vec<Block> {
    let keys: Vec<Key> = ["alone", "beside one", "beside two"]
        .iter()
        .enumerate()
        .map(|(i, label)| Key { label: label.to_string(), look: Look::other(i) })
        .collect();
    let mut blocks =
        vec![Block::Text("Performance of a worker while others do as much as they can.".into())];
    type Value = fn(&Neighbours) -> f64;
    let values: [(&str, &str, Value); 2] = [
        ("Bandwidth of", "MiB/s", |n| n.speed.mib_per_s),
        ("Latency of", "us", |n| n.speed.latency_us.p99),
    ];
    let workers = [
        ("a writer", &[Operation::Write, Operation::Append][..]),
        ("a reader", &[Operation::Read]),
    ];
    for (who, operations) in workers {
        for (title, axis, value) in values {
            let of = companies(p).into_iter().filter(|company| operations.contains(&company.0));
            let group = |company: Company| {
                let zone = if company.2 { "same zone" } else { "other zones" };
                let bars = (0..=2).map(|others| beside(p, &company, others).map(value)).collect();
                (format!("{}s, {zone}", company.1.name()), bars)
            };
            let how = if axis == "us" { "99th percentile" } else { "by what the others do" };
            blocks.extend(bars(
                (&format!("{title} {who}"), how, axis),
                &keys,
                of.map(group).collect(),
            ));
        }
    }
    let row = |n: &Neighbours| {
        vec![
            n.worker.name().to_string(),
            n.company(),
            units::size(n.request_bytes),
            format!("{:.1}", n.speed.mib_per_s),
            units::micros(n.speed.latency_us.p50),
            units::micros(n.speed.latency_us.p99),
        ]
    };
    let head = ["Worker", "", "Request", "MiB/s", "p50", "p99"];
    blocks.push(table(&head, 2, p.isolation.iter().map(row).collect()));
    blocks
}

fn predictability(p: &Probe) -> Vec<Block> {
    let series = p.predictability.iter().enumerate().map(|(i, fill)| {
        let points = fill.samples.iter().map(|s| (s.seconds, s.mib_per_s)).collect();
        line(&format!("{} % of the zones", fill.percent), Look::other(i), points)
    });
    let how = "per half second, while zones are reset and written in turn";
    let mut blocks: Vec<Block> = lines(
        "Bandwidth over time",
        how,
        Axis::new("seconds"),
        Axis::from_zero("MiB/s"),
        series.collect(),
    )
    .into_iter()
    .collect();
    let row = |fill: &crate::probe::record::Fill| {
        vec![
            format!("{} %", fill.percent),
            fill.zones.to_string(),
            units::size(fill.request_bytes),
            format!("{:.1}", fill.mean_mib_per_s),
            format!("{:.1}", fill.lowest_mib_per_s),
            format!("{:.1} %", fill.deviation_percent),
            format!("{:.2}", fill.passes),
        ]
    };
    let head = ["Part", "Zones", "Request", "Mean, MiB/s", "Lowest", "Deviation", "Times written"];
    blocks.push(table(&head, 1, p.predictability.iter().map(row).collect()));
    blocks
}

fn zone_times(p: &Probe) -> Vec<Block> {
    let points = |of: fn(&crate::probe::record::ZoneTimes) -> Option<f64>| {
        p.zone_times.iter().filter_map(|t| Some((t.full_percent as f64, of(t)?))).collect()
    };
    let series = vec![
        line("reset", Look::other(0), points(|t| t.reset_us.as_ref().map(|t| t.mean))),
        line(
            "reset, longest",
            Look::other(0).variant(Variant::Setting),
            points(|t| t.reset_us.as_ref().map(|t| t.max)),
        ),
        line("finish", Look::other(2), points(|t| t.finish_us.as_ref().map(|t| t.mean))),
        line(
            "finish, longest",
            Look::other(2).variant(Variant::Setting),
            points(|t| t.finish_us.as_ref().map(|t| t.max)),
        ),
    ];
    let x = Axis::new("written of the zone, %").range(0.0, 100.0);
    lines("Commands to zones", "by how full they are", x, Axis::from_zero("us"), series)
        .into_iter()
        .collect()
}

fn about(p: &Probe) -> Vec<Block> {
    let d = &p.device;
    let bytes = |n: Option<u64>| n.map_or("-".to_string(), units::size);
    let most = |n: Option<u64>| n.map_or("no limit".to_string(), |n| n.to_string());
    let rows = [
        ("Device", d.path.clone()),
        ("Model", d.model.clone().unwrap_or("-".into())),
        ("Size", units::size(d.size_bytes)),
        ("Zones", d.zones.to_string()),
        ("Capacity of a zone", units::size(d.zone_capacity_bytes)),
        ("Write unit", bytes(d.write_unit_bytes)),
        ("Longest append", units::size(d.append_max_bytes)),
        ("Open zones at most", most(d.max_open_zones)),
        ("Active zones at most", most(d.max_active_zones)),
        ("Measured with", format!("{}, {}, {} plan", p.fio, p.engine, p.plan)),
        ("Measured for", units::duration(p.seconds)),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    let of = [(d.name.clone(), Some(&p.machine), p.kernel.clone())];
    vec![table(&["Device", ""], 2, rows), machines(of.into_iter())]
}
