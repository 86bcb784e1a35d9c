// SPDX-License-Identifier: GPL-2.0-only
//! Is there room in memory for what is swapped out? The machine may have it while the
//! memory limit of a cgroup does not: the kernel charges a page that comes back to its
//! group, and kills a program of a group that is over its limit. Files in tmpfs are
//! charged and swapped out like programs' memory.

use crate::cgroups;
use crate::counters::Device;
use crate::error::{Error, Kind, Result};
use crate::swaps::{self, Area};
use crate::sys::Sys;
use crate::units;

/// The swap areas that are to be turned off, and the others.
struct Areas {
    used: u64,
    others_free: u64,
    others_used: bool,
}

/// Refuses devices whose pages do not fit into memory and the other swap areas. Pages of a
/// guard do not count, because they are not read back.
///
/// # Errors
/// [`Kind::Space`], with the numbers.
pub fn check(sys: &dyn Sys, devices: &[Device], guards: u64) -> Result<()> {
    let (ours, others): (Vec<_>, Vec<_>) =
        swaps::areas(sys).into_iter().partition(|a| devices.iter().any(|d| d.name == a.name()));
    let sum = |areas: &[Area], bytes: fn(&Area) -> u64| {
        areas.iter().map(bytes).fold(0, u64::saturating_add)
    };
    let areas = Areas {
        used: sum(&ours, |a| a.used_bytes).saturating_sub(guards),
        others_free: sum(&others, Area::free_bytes),
        others_used: others.iter().any(|a| a.used_bytes > 0),
    };
    check_machine(sys, &areas)?;
    groups(sys).iter().try_for_each(|group| check_group(group, &areas))
}

fn check_machine(sys: &dyn Sys, areas: &Areas) -> Result<()> {
    let memory = swaps::available_memory(sys)?;
    if areas.used <= memory.saturating_add(areas.others_free) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Space,
        format!(
            "{} are swapped out, but only {} of memory and {} of other swap are free",
            units::size(areas.used),
            units::size(memory),
            units::size(areas.others_free)
        ),
    )
    .hint("end programs, add other swap, or try anyway with --force"))
}

/// A group with a memory limit. Its numbers include the groups in it.
#[derive(Clone, Debug)]
struct Group {
    path: String,
    /// The file with the limit.
    file: String,
    limit: u64,
    charged: u64,
    /// File pages, which go if the limit is reached.
    cache: u64,
    swapped: u64,
}

fn check_group(group: &Group, areas: &Areas) -> Result<()> {
    // The kernel does not tell in which area the pages of a group are.
    let out = group.swapped.min(areas.used);
    let free = group.limit.saturating_sub(group.charged).saturating_add(group.cache);
    if out <= free.saturating_add(areas.others_free) {
        return Ok(());
    }
    let where_to = match areas.others_used {
        true => ", some of it perhaps to other swap",
        false => "",
    };
    Err(Error::new(
        Kind::Space,
        format!(
            "cgroup {} has {} swapped out{where_to}, but its limit of {} leaves room for {}, and \
             {} of other swap are free",
            group.path,
            units::size(out),
            units::size(group.limit),
            units::size(free),
            units::size(areas.others_free)
        ),
    )
    .hint(format!(
        "raise {}, end programs of the group, or try anyway with --force:\n\
         the kernel may then kill programs of the group",
        group.file
    )))
}

/// All groups that have a limit and something swapped out, in both hierarchies.
fn groups(sys: &dyn Sys) -> Vec<Group> {
    let of = |mount: Option<String>, read: fn(&dyn Sys, &str, String) -> Option<Group>| {
        let Some(mount) = mount else { return Vec::new() };
        let group = |path: String| read(sys, &cgroups::directory(&mount, &path), path);
        cgroups::all(sys, &mount).into_iter().filter_map(group).collect()
    };
    [of(cgroups::mount(sys), group_v2), of(cgroups::memory_v1(sys), group_v1)].concat()
}

/// None without a limit, or if it was removed meanwhile.
fn group_v2(sys: &dyn Sys, directory: &str, path: String) -> Option<Group> {
    let file = format!("{directory}/memory.max");
    let limit = number(sys, &file)?;
    let text = sys.read(&format!("{directory}/memory.stat")).unwrap_or_default();
    let stat = |name| statistic(&text, name);
    // What is in the swap cache is charged already.
    let swapped = number(sys, &format!("{directory}/memory.swap.current"))?;
    let group = Group {
        limit,
        charged: number(sys, &format!("{directory}/memory.current"))?,
        cache: stat("inactive_file").saturating_add(stat("active_file")),
        swapped: swapped.saturating_sub(stat("swapcached")),
        file,
        path,
    };
    (group.swapped > 0).then_some(group)
}

/// No limit is a number beyond all memory.
fn group_v1(sys: &dyn Sys, directory: &str, path: String) -> Option<Group> {
    let file = format!("{directory}/memory.limit_in_bytes");
    let limit = number(sys, &file)?;
    let text = sys.read(&format!("{directory}/memory.stat")).unwrap_or_default();
    let stat = |name| statistic(&text, name);
    let group = Group {
        limit,
        charged: number(sys, &format!("{directory}/memory.usage_in_bytes"))?,
        cache: stat("total_inactive_file").saturating_add(stat("total_active_file")),
        swapped: stat("total_swap"),
        file,
        path,
    };
    (group.swapped > 0).then_some(group)
}

/// A line of memory.stat; 0 without it.
fn statistic(text: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

/// A number of bytes; None for `max`.
fn number(sys: &dyn Sys, path: &str) -> Option<u64> {
    sys.read(path).ok()?.trim().parse().ok()
}
