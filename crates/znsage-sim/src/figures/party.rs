// SPDX-License-Identifier: GPL-2.0-only
//! The systems in a figure, with their settings.

use super::model::Series;
use super::runs::{Job, Outcomes};
use super::scale::Scale;
use crate::chart::{Look, Variant};
use crate::spec::{SystemKind, WorkloadKind};
use crate::{RunResult, Spec};

/// A system with its settings.
#[derive(Clone, Copy)]
pub struct Party {
    /// Its name in the figure.
    pub name: &'static str,
    /// What it is.
    pub system: SystemKind,
    /// Its device.
    pub device: &'static str,
    /// Settings besides the defaults.
    pub set: &'static [(&'static str, &'static str)],
    /// How it differs from another party of its system; None: it is the one that others
    /// differ from.
    pub variant: Option<Variant>,
    /// Parties are compared within a field: those on one kind of device.
    pub field: u8,
}

/// Runs of several parties, under one workload at several utilizations.
pub struct Field<'a> {
    /// The parties.
    pub parties: &'a [Party],
    /// Their workload.
    pub workload: WorkloadKind,
    /// Percent of the device.
    pub utilizations: &'a [f64],
    /// Settings for all.
    pub set: &'a [(&'a str, &'a str)],
}

impl Party {
    /// A system with its default settings.
    pub const fn new(name: &'static str, system: SystemKind, device: &'static str) -> Party {
        Party { name, system, device, set: &[], variant: None, field: 0 }
    }

    /// The same with settings.
    pub const fn with(self, set: &'static [(&'static str, &'static str)]) -> Party {
        Party { set, ..self }
    }

    /// Puts it into another field than the others.
    pub const fn field(self, n: u8) -> Party {
        Party { field: n, ..self }
    }

    /// Makes it a variant of another party.
    pub const fn variant(self, how: Variant) -> Party {
        Party { variant: Some(how), ..self }
    }

    /// Its empty series.
    pub fn series(&self) -> Series {
        let look = Look::system(self.system);
        let look = self.variant.map_or(look, |v| look.variant(v));
        let mut s = Series::new(self.name, look);
        s.field = self.field;
        s.ours = self.system == SystemKind::ZnSage && (self.variant.is_none() || self.field > 0);
        s.rival = self.system != SystemKind::ZnSage;
        s
    }
}

impl Field<'_> {
    /// The run of a party.
    pub fn spec(&self, scale: &Scale, party: &Party, utilization: f64) -> Spec {
        let mut spec = scale.spec(party.system, party.device, self.workload, utilization);
        for (key, value) in self.set.iter().chain(party.set) {
            spec.set(key, value).unwrap_or_else(|e| panic!("{}: {e}", party.name));
        }
        spec
    }

    /// All runs.
    pub fn jobs(&self, scale: &Scale) -> Vec<Job> {
        let of =
            |p| self.utilizations.iter().map(move |u| Job::Swap(Box::new(self.spec(scale, p, *u))));
        self.parties.iter().flat_map(of).collect()
    }

    /// The result of a party's run; None if it failed.
    pub fn result<'a>(
        &self,
        scale: &Scale,
        outcomes: &'a Outcomes,
        party: &Party,
        utilization: f64,
    ) -> Option<&'a RunResult> {
        outcomes.swap(&self.spec(scale, party, utilization))
    }

    /// A series for each party: a quantity over utilization.
    pub fn series(
        &self,
        scale: &Scale,
        outcomes: &Outcomes,
        of: impl Fn(&RunResult) -> Option<f64>,
    ) -> Vec<Series> {
        let of = &of;
        let series = self.parties.iter().map(|p| {
            let point = |u: &f64| (*u, self.result(scale, outcomes, p, *u).and_then(of));
            p.series().points(self.utilizations.iter().map(point))
        });
        series.collect()
    }

    /// A quantity of one party over that of another.
    pub fn ratio(
        &self,
        scale: &Scale,
        outcomes: &Outcomes,
        (a, b): (&Party, &Party),
        utilization: f64,
        of: impl Fn(&RunResult) -> Option<f64>,
    ) -> Option<f64> {
        let one = |p| self.result(scale, outcomes, p, utilization).and_then(&of);
        Some(one(a)? / one(b)?)
    }

    /// A series for each of `parties`: a quantity over that of `base`.
    pub fn ratios(
        &self,
        scale: &Scale,
        outcomes: &Outcomes,
        (parties, base): (&[Party], &Party),
        of: impl Fn(&RunResult) -> Option<f64>,
    ) -> Vec<Series> {
        let of = &of;
        let series = parties.iter().map(|p| {
            let point = |u: &f64| (*u, self.ratio(scale, outcomes, (p, base), *u, of));
            p.series().points(self.utilizations.iter().map(point))
        });
        series.collect()
    }

    /// Description of parties and settings, for the page.
    pub fn about(&self) -> String {
        let parties = self.parties.iter().map(|p| {
            let set: Vec<String> = p.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let set = if set.is_empty() { String::new() } else { format!(" ({})", set.join(", ")) };
            format!("{}: {} on {}{set}", p.name, p.system, p.device)
        });
        let mut text =
            format!("Workload {}. {}.", self.workload, parties.collect::<Vec<_>>().join("; "));
        if !self.set.is_empty() {
            let set: Vec<String> = self.set.iter().map(|(k, v)| format!("{k}={v}")).collect();
            text += &format!(" For all: {}.", set.join(", "));
        }
        text
    }
}
