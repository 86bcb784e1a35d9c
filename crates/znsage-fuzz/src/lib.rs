// SPDX-License-Identifier: GPL-2.0-only
//! What is fuzzed: for each parser a function of any bytes, which panics if a
//! promise is broken. `fuzz/` hands them what libFuzzer makes up; the tests of
//! this crate, the seeds in `fuzz/seeds`.
//!
//! What holds everywhere: no panic, no endless loop, and no more memory than
//! the input is worth.

mod command;
mod machine;
mod results;
mod settings;
mod simulator;
mod stores;
mod traces;
mod units;

/// A function of bytes that panics if something is wrong.
pub type Target = fn(&[u8]);

/// All targets by their names, which are those of the directories of seeds.
pub const TARGETS: [(&str, Target); 10] = [
    ("command", command::command),
    ("device", simulator::device),
    ("kernel", command::kernel),
    ("result", results::result),
    ("settings", settings::settings),
    ("spec", simulator::spec),
    ("store", stores::store),
    ("sweep", simulator::sweep),
    ("trace", traces::trace),
    ("units", units::units),
];

/// Gives `data` to a target.
///
/// # Panics
/// If a promise is broken, or there is no such target.
pub fn run(target: &str, data: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    found.unwrap_or_else(|| panic!("there is no target {target}")).1(data);
}

/// As text, if it is.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
