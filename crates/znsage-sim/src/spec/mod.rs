// SPDX-License-Identifier: GPL-2.0-only
//! The spec of a run: a TOML document, or single options.
//!
//! Every key has a default, and [`Spec::set`] changes one by name. The default
//! run ends in less than a minute.

mod describe;
mod keys;
mod schema;

pub use describe::describe;
pub(crate) use keys::literal;
pub use keys::SpecError;
pub use schema::{
    CompressKind, HostSpec, Load, PlacementKind, PolicyKind, PublishedSpec, RunSpec, Spec,
    SystemKind, VictimKind, WorkloadKind, ZnsageSpec,
};
