// SPDX-License-Identifier: GPL-2.0-only
//! What a run is made from: a TOML document, or options one by one.
//!
//! `Spec::default()` is a run that ends in less than a minute. Every key has a
//! default; [`Spec::set`] changes one by its name.

mod keys;
mod schema;

pub use keys::SpecError;
pub use schema::{
    HostSpec, Load, PlacementKind, PolicyKind, PublishedSpec, RunSpec, Spec, SystemKind,
    VictimKind, WorkloadKind, ZnsageSpec,
};
