// SPDX-License-Identifier: GPL-2.0-only
//! The names that the attributes `policy` and `victim` accept.

use crate::configfs;
use crate::error::{Error, Kind};
use crate::sys::Sys;

/// Built into every module.
const POLICIES: [&str; 4] = ["single", "cpu", "cgroup", "heat"];
const VICTIMS: [&str; 3] = ["greedy", "cost-benefit", "age"];

/// An error if the module lists its names and `value` is not among them. Without
/// a list the kernel decides.
pub fn check(sys: &dyn Sys, attribute: &str, value: &str) -> Result<(), Error> {
    match listed(sys, attribute) {
        Some(names) if !names.iter().any(|name| name == value) => {
            Err(unknown(attribute, value, &names))
        }
        _ => Ok(()),
    }
}

/// Why the module refused a name; None if the name is not the reason.
pub fn refused(sys: &dyn Sys, attribute: &str, value: &str) -> Option<Error> {
    let built_in: &[&str] = match attribute {
        "policy" => &POLICIES,
        "victim" => &VICTIMS,
        _ => return None,
    };
    let built_in = || built_in.iter().map(ToString::to_string).collect();
    let names: Vec<String> = listed(sys, attribute).unwrap_or_else(built_in);
    (!names.iter().any(|name| name == value)).then(|| unknown(attribute, value, &names))
}

/// The module lists its policies only.
fn listed(sys: &dyn Sys, attribute: &str) -> Option<Vec<String>> {
    let text = (attribute == "policy").then(|| sys.read(&configfs::policies()).ok()).flatten()?;
    Some(text.split_whitespace().map(str::to_string).collect())
}

fn unknown(attribute: &str, value: &str, names: &[String]) -> Error {
    let mut hint = format!("available: {}", names.join(", "));
    if attribute == "policy" {
        hint += "\na BPF policy must be loaded first: znsage policy load FILE";
    }
    Error::new(Kind::Usage, format!("{attribute}: there is no `{value}`")).hint(hint)
}
