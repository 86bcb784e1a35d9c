// SPDX-License-Identifier: GPL-2.0-only
//! Parsing a spec, changing it by key, validating it.

use std::fmt;

use super::schema::{CompressKind, PlacementKind, Spec, SystemKind, WorkloadKind};
use crate::host::cpu::MAX_CPUS;

/// Why a spec is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The key, with its table.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

impl std::error::Error for SpecError {}

/// A size; 0 stands for none.
pub(super) mod size_or_none {
    use serde::{Deserializer, Serializer};

    use crate::device::params::bytes;

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        bytes(d).map(|n| (n > 0).then_some(n))
    }

    pub fn serialize<S: Serializer>(size: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(size.unwrap_or(0))
    }
}

fn refuse<T>(key: &str, what: impl fmt::Display) -> Result<T, SpecError> {
    Err(SpecError { key: key.into(), what: what.to_string() })
}

/// Over 60 times the engine's default.
const MAX_CHUNKS: u32 = 1 << 14;

/// Values of the device's parameter set: `device.zoned.zones=64`.
const DEVICE: &str = "device.";

impl Spec {
    /// Parses a TOML document.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let spec: Spec = toml::from_str(text)?;
        // The parser may accept numbers beyond what TOML can represent.
        match toml::Table::try_from(&spec) {
            Ok(_) => Ok(spec),
            Err(e) => Err(serde::de::Error::custom(e)),
        }
    }

    /// Changes a value by its key: `host.memory=1G`, `device.zoned.zones=64`.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        match key.starts_with(DEVICE) {
            true => self.set_value(key, toml::Value::String(value.into())),
            false => self.set_value(key, literal(value)),
        }
    }

    /// The same with a value of TOML.
    pub fn set_value(&mut self, key: &str, value: toml::Value) -> Result<(), SpecError> {
        if let Some(key) = key.strip_prefix(DEVICE) {
            let text = match value {
                toml::Value::String(text) => text,
                other => other.to_string(),
            };
            self.device_set.push((key.into(), text));
            return Ok(());
        }
        let mut doc = toml::Table::try_from(&*self).expect("a spec is a table");
        let tables: Vec<_> = doc.iter().filter(|(_, v)| v.is_table()).map(|(k, _)| k).collect();
        let tables = format!("no such table; there are {}", join(tables));
        let mut table = &mut doc;
        let mut path: Vec<&str> = key.split('.').collect();
        let last = path.pop().expect("split gives one at least");
        for name in path {
            table = match table.get_mut(name) {
                Some(toml::Value::Table(t)) => t,
                _ => return refuse(key, tables),
            };
        }
        if matches!(table.get(last), Some(toml::Value::Table(_))) {
            return refuse(key, "a table; name a key in it");
        }
        table.insert(last.into(), value);
        match toml::Value::Table(doc).try_into() {
            Ok(spec) => {
                *self = spec;
                Ok(())
            }
            Err(e) => refuse(key, e.message()),
        }
    }

    /// Refuses what cannot run on any device.
    pub fn check(&self) -> Result<(), SpecError> {
        let h = &self.host;
        let among = |key, n: u32, range: std::ops::RangeInclusive<u32>| {
            let (low, high) = (range.start(), range.end());
            if range.contains(&n) {
                Ok(())
            } else {
                refuse(key, format!("{n} is not from {low} to {high}"))
            }
        };
        among("host.cpus", h.cpus, 1..=MAX_CPUS)?;
        let most = if self.workload == WorkloadKind::Tenants { 256 } else { 1000 };
        among("host.threads", h.threads, 1..=most)?;
        among("host.slot-batch", h.slot_batch, 1..=64)?;
        among("host.page-cluster", h.page_cluster, 0..=crate::host::readahead::MAX_CLUSTER)?;
        // The engine allocates them all at the start.
        among("znsage.chunks", self.znsage.chunks, 0..=MAX_CHUNKS)?;
        among("znsage.gc-chunks", self.znsage.gc_chunks, 0..=MAX_CHUNKS)?;
        let halves = [WorkloadKind::TwoTenants, WorkloadKind::Tenants, WorkloadKind::Mixed];
        if halves.contains(&self.workload) && h.threads < 2 {
            let what = format!("{} needs 2 at least", self.workload.name());
            return refuse("host.threads", what);
        }
        // Each thread may have a batch of reclaim in flight.
        let least = 64 * (h.threads + 1);
        if self.frames() < least {
            return refuse("host.memory", format!("{} threads need {} KiB", h.threads, least * 4));
        }
        if u64::from(self.frames()) >= crate::host::page::MAX_FRAMES {
            return refuse("host.memory", "1 TiB is the most");
        }
        let percent = |key, p: f64, most: f64| match (0.0..=most).contains(&p) {
            true => Ok(()),
            false => refuse(key, format!("{p} is not from 0 to {most} percent")),
        };
        let compresses = self.znsage.compress != CompressKind::Off;
        // A swap area may be larger than its device if pages shrink.
        let most = if compresses && self.znsage.size > 0 { 1600.0 } else { 99.0 };
        percent("utilization", self.utilization, most)?;
        if compresses && self.load.contents.is_none() {
            return refuse(
                "znsage.compress",
                "needs load.contents, which says how far pages shrink",
            );
        }
        if self.znsage.size > 0 && !compresses {
            return refuse("znsage.size", "only with znsage.compress");
        }
        if self.load.contents.is_some() && self.system != SystemKind::ZnSage {
            return refuse("load.contents", format!("{} does not look at it", self.system));
        }
        percent("znsage.over-provisioning", self.znsage.over_provisioning, 90.0)?;
        percent("published.over-provisioning", self.published.over_provisioning, 90.0)?;
        if !(0.0..=1.0).contains(&self.load.write_ratio) {
            return refuse("load.write-ratio", "not from 0 to 1");
        }
        if self.load.zipf.is_some_and(|s| !(s > 0.0 && s < 10.0)) {
            return refuse("load.zipf", "not above 0 and below 10");
        }
        if self.load.rate.is_some_and(|rate| !(rate > 0.0 && self.workload.has_requests())) {
            return refuse("load.rate", "above 0, of etc, ycsb-a or ycsb-b");
        }
        use WorkloadKind::{Sequential, Uniform, Zipf};
        let known = matches!(self.workload, Uniform | Sequential | Zipf);
        if self.asks_oracle() && !(known && self.load.write_ratio == 1.0) {
            let policy = self.znsage.policy;
            return refuse(
                "znsage.policy",
                format!(
                    "{policy} knows the future only of writes that are uniform, sequential or zipf"
                ),
            );
        }
        Ok(())
    }

    /// Does the policy know the future?
    pub(crate) fn asks_oracle(&self) -> bool {
        use PlacementKind::{DeathOracle, RateOracle};
        self.system == SystemKind::ZnSage
            && self.znsage.policy_source.is_none()
            && matches!(self.znsage.policy, RateOracle | DeathOracle)
    }
}

fn join(names: Vec<&String>) -> String {
    names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ")
}

/// Reads text as a TOML number or boolean, else as a string.
pub(crate) fn literal(text: &str) -> toml::Value {
    if let Ok(n) = text.parse::<i64>() {
        toml::Value::Integer(n)
    } else if let Ok(x) = text.parse::<f64>() {
        toml::Value::Float(x)
    } else if let Ok(b) = text.parse::<bool>() {
        toml::Value::Boolean(b)
    } else {
        toml::Value::String(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_by_key() {
        let mut spec = Spec::default();
        for (key, value) in [
            ("system", "stock-trim"),
            ("size", "1 GiB"),
            ("utilization", "80"),
            ("host.memory", "96M"),
            ("costs.touch", "77"),
            ("load.zipf", "1.1"),
            ("run.shadow", "true"),
            ("device.zoned.zones", "64"),
        ] {
            spec.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(spec.system, SystemKind::StockTrim);
        assert_eq!((spec.size, spec.host.memory), (Some(1 << 30), 96 << 20));
        assert_eq!((spec.utilization, spec.load.zipf), (80.0, Some(1.1)));
        assert_eq!((spec.costs.touch, spec.run.shadow), (77, true));
        assert_eq!(spec.device_set, [("zoned.zones".into(), "64".into())]);
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(Spec::parse(&text).unwrap(), spec, "what is written can be read");
    }

    #[test]
    fn the_device_s_own_size_stays_when_another_key_is_set() {
        let mut spec = Spec::parse("size = 0").unwrap();
        spec.set("seed", "2").unwrap();
        assert_eq!((spec.size, spec.seed), (None, 2));
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(Spec::parse(&text).unwrap(), spec, "what is written can be read");
    }

    #[test]
    fn unknown_keys_and_names_list_the_known() {
        let mut spec = Spec::default();
        let e = spec.set("host.cpu", "3").unwrap_err();
        assert!(e.what.contains("`cpus`"), "{e}");
        let e = spec.set("system", "znfast").unwrap_err();
        assert!(e.what.contains("`znsage-2025`"), "{e}");
        let e = spec.set("hosts.cpus", "3").unwrap_err();
        assert!(e.what.contains("there are costs, host, "), "{e}");
        let e = spec.set("host", "3").unwrap_err();
        assert!(e.what.contains("a table"), "{e}");
        assert_eq!(spec, Spec::default(), "nothing was changed");
    }

    #[test]
    fn numbers_beyond_toml_are_refused() {
        for text in ["seed = 18446744073709551615", "[load]\nthink = 9223372036854775808"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
        let mut spec = Spec::parse("seed = 9223372036854775807").unwrap();
        spec.set("host.cpus", "2").unwrap();
        let value = toml::from_str::<toml::Table>("a = 18446744073709551615");
        if let Some(value) = value.ok().and_then(|mut t| t.remove("a")) {
            spec.set_value("seed", value).unwrap_err();
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let cases = [
            ("host.cpus", "0"),
            ("host.cpus", "65"),
            ("host.threads", "0"),
            ("host.memory", "64K"),
            ("utilization", "120"),
            ("load.write-ratio", "1.5"),
            ("load.zipf", "0"),
            ("load.rate", "1000"),
            ("znsage.compress", "lz4"),
            ("znsage.size", "1G"),
            ("znsage.chunks", "4000000000"),
            ("znsage.gc-chunks", "4000000000"),
        ];
        assert_eq!(Spec::default().check(), Ok(()));
        for (key, value) in cases {
            let mut spec = Spec::default();
            spec.set(key, value).unwrap();
            assert_eq!(spec.check().unwrap_err().key, key);
        }
    }
}
