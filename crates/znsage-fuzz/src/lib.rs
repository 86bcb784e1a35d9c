// SPDX-License-Identifier: GPL-2.0-only
//! Fuzz targets: a function of bytes for each parser, which panics if a property does
//! not hold. `fuzz/` runs them with libFuzzer, the tests of this crate with the seeds
//! in `fuzz/seeds`.
//!
//! All targets check for panics, endless loops and excessive memory.

mod command;
mod machine;
mod settings;
mod simulator;
mod traces;
mod units;

/// A function of bytes that panics if something is wrong.
pub type Target = fn(&[u8]);

/// All targets by name; the directories of seeds have the same names.
pub const TARGETS: [(&str, Target); 8] = [
    ("command", command::command),
    ("device", simulator::device),
    ("kernel", command::kernel),
    ("settings", settings::settings),
    ("spec", simulator::spec),
    ("sweep", simulator::sweep),
    ("trace", traces::trace),
    ("units", units::units),
];

/// Runs a target.
///
/// # Panics
/// If a property does not hold, or there is no such target.
pub fn run(target: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    found.unwrap_or_else(|| panic!("there is no target {target}")).1(data);
}

/// The data as text, if it is UTF-8.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
