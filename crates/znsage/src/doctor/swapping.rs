// SPDX-License-Identifier: GPL-2.0-only
//! How the machine swaps, and the health of devices that are on.

use super::{Finding, Level, Scene};
use crate::counters::Device;
use crate::scheduler::{self as schedulers, Need};
use crate::swaps::Area;
use crate::{guard, queue, resume, swaps};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const ZSWAP: &str = "/sys/module/zswap/parameters";

pub fn swappiness(scene: &Scene) -> Vec<Finding> {
    let Ok(text) = scene.sys.read(SWAPPINESS) else {
        return vec![Finding::problem("swappiness", "the kernel does not swap")
            .hint(format!("{SWAPPINESS} does not exist: boot a kernel with CONFIG_SWAP"))];
    };
    let value = text.trim();
    vec![match value {
        "0" => Finding::note(
            "swappiness",
            "vm.swappiness is 0: the kernel does not swap until memory is nearly full",
        )
        .hint(
            "`sysctl vm.swappiness=60` sets the kernel's default; to keep it, use /etc/sysctl.d/",
        ),
        _ => Finding::ok("swappiness", format!("vm.swappiness is {value}")),
    }]
}

pub fn zswap(scene: &Scene) -> Vec<Finding> {
    let parameter = |name: &str| {
        let text = scene.sys.read(&format!("{ZSWAP}/{name}")).ok()?;
        Some(text.trim().to_string())
    };
    if parameter("enabled").as_deref() != Some("Y") {
        return vec![Finding::ok("zswap", "off: pages go straight to the device")];
    }
    let percent = parameter("max_pool_percent").unwrap_or("?".to_string());
    vec![Finding::note(
        "zswap",
        format!(
            "on: compressed pages fill up to {percent} % of memory before any reaches the device"
        ),
    )
    .hint(format!("`echo N > {ZSWAP}/enabled` turns it off, if you do not want that"))]
}

/// Areas fill by priority, those of equal priority in turn.
pub fn areas(scene: &Scene) -> Vec<Finding> {
    let is_ours = |area: &Area| scene.on.iter().any(|d| d.name == area.name());
    let (ours, others): (Vec<Area>, Vec<Area>) =
        swaps::areas(scene.sys).into_iter().partition(is_ours);
    let mut found: Vec<Finding> = scene
        .on
        .iter()
        .filter(|d| !ours.iter().any(|a| a.name() == d.name))
        .map(|d| {
            Finding::problem("swap", format!("/dev/{} is on but not used as swap", d.name))
                .hint(format!("run `swapon /dev/{}`, or `znsage off {}`", d.name, d.name))
        })
        .collect();
    let removed = ours.iter().filter_map(|our| swaps::no_node(scene.sys, &our.path));
    found.extend(removed.map(|e| Finding::of("swap", Level::Problem, e)));
    if ours.is_empty() && others.is_empty() && found.is_empty() {
        found.push(Finding::ok("swap", "no swap area is in use"));
    } else if ours.is_empty() {
        found.extend(others.iter().map(before_all));
    }
    found.extend(ours.iter().map(|our| {
        let tier = swaps::tier(scene.sys, our.priority);
        let tier = tier.map_or(String::new(), |t| format!(", swap tier {t}"));
        Finding::ok("swap", format!("{} has priority {}{tier}", our.path, our.priority))
    }));
    found.extend(ours.iter().flat_map(|our| others.iter().map(|other| compare(our, other))));
    found.extend(swaps::fillers(scene.sys).iter().flat_map(|filler| {
        others.iter().filter(|other| other.priority <= filler.priority).map(|o| below(filler, o))
    }));
    found
}

/// Another area, while no znsage device is on.
fn before_all(other: &Area) -> Finding {
    Finding::note("swap", format!("{} has priority {}", other.path, other.priority)).hint(format!(
        "without --priority, `znsage on` gets a lower one: {} fills first",
        other.path
    ))
}

fn compare(our: &Area, other: &Area) -> Finding {
    let said = format!("{} has priority {}", other.path, other.priority);
    let first =
        "to fill znsage first, run `znsage off`, then `znsage on --priority N` with a higher N";
    match other.priority.cmp(&our.priority) {
        std::cmp::Ordering::Less => {
            Finding::ok("swap", format!("{said}: used when {} is full", our.path))
        }
        std::cmp::Ordering::Equal => {
            Finding::note("swap", format!("{said}: pages go to it and {} in turn", our.path))
                .hint(first)
        }
        std::cmp::Ordering::Greater => {
            Finding::note("swap", format!("{said}: fills before {}", our.path)).hint(first)
        }
    }
}

/// The kernel tries the filler before it or, as 7.3 does, in turn with it, and can
/// write nothing there.
fn below(filler: &Area, other: &Area) -> Finding {
    Finding::problem(
        "swap",
        format!("{} does not come before {}, which holds nothing", other.path, filler.path),
    )
    .hint(format!(
        "run `swapoff {}`, then `swapon --priority 0 {}`, so that only {} is below all others",
        other.path, other.path, filler.path
    ))
}

/// The image goes to another swap area.
pub fn hibernation(scene: &Scene) -> Vec<Finding> {
    let refused: Vec<Finding> = scene
        .zoned
        .iter()
        .filter_map(|d| resume::check(scene.sys, &d.path, &d.name).err())
        .map(|e| Finding::of("hibernation", Level::Problem, e))
        .collect();
    if !refused.is_empty() {
        return refused;
    }
    let Some(resume) = resume::devices(scene.sys).next() else {
        return vec![Finding::ok("hibernation", "not set up: no device to resume from")];
    };
    vec![Finding::ok(
        "hibernation",
        format!("the image goes to {} ({})", resume.name, resume.setting),
    )]
}

pub fn scheduler(scene: &Scene) -> Vec<Finding> {
    if scene.on.is_empty() {
        return vec![Finding::ok(
            "scheduler",
            "`znsage on` sets the one that suits the device, `off` restores it",
        )];
    }
    scene.on.iter().map(|d| scheduler_of(scene, d)).collect()
}

fn scheduler_of(scene: &Scene, d: &Device) -> Finding {
    if queue::is_gone(scene.sys, &d.backing) {
        return Finding::ok("scheduler", format!("{} is gone", d.backing));
    }
    let path = format!("/sys/block/{}/queue/scheduler", d.backing);
    let list = scene.sys.read(&path).unwrap_or_default();
    if !queue::is_zoned(scene.sys, &queue::disk_of(scene.sys, &d.backing)) {
        let message = format!("{} has no zones, so its scheduler is left alone", d.backing);
        return Finding::ok("scheduler", message);
    }
    let chosen = schedulers::chosen(&list).filter(|name| name != "none");
    match (schedulers::need(scene.sys, &d.backing), chosen) {
        (Need::Nothing, Some(name)) => Finding::note(
            "scheduler",
            format!("{} has {name}, which costs time and gains nothing", d.backing),
        )
        .hint(format!("`echo none > {path}` turns it off")),
        (Need::Scheduler, None) => Finding::note(
            "scheduler",
            format!("{} has none, so writes to a zone that is busy must be repeated", d.backing),
        )
        .hint(format!("`echo mq-deadline > {path}` turns one on")),
        (_, name) => Finding::ok(
            "scheduler",
            format!("{} has {}", d.backing, name.as_deref().unwrap_or("none")),
        ),
    }
}

/// Errors since the device was turned on.
pub fn health(scene: &Scene) -> Vec<Finding> {
    let unguarded = scene.on.iter().filter_map(|d| guard::missing(scene.sys, &d.name));
    let unguarded = unguarded.map(|(what, hint)| Finding::problem("guard", what).hint(hint));
    let healths = scene.on.iter().map(|d| gone(scene, d).unwrap_or_else(|| health_of(scene, d)));
    unguarded.chain(healths).collect()
}

fn gone(scene: &Scene, d: &Device) -> Option<Finding> {
    let message = format!("{}: its disk {} is gone, so all reads fail", d.name, d.backing);
    queue::is_gone(scene.sys, &d.backing).then(|| {
        Finding::problem("health", message).hint(format!(
            "programs that need a page on it get SIGBUS; `znsage off {}` turns it off",
            d.name
        ))
    })
}

fn health_of(scene: &Scene, d: &Device) -> Finding {
    let troubles = d.troubles();
    if troubles.is_empty() {
        return Finding::ok("health", format!("{}: no errors, no zone retired", d.name));
    }
    Finding::problem("health", format!("{}: {}", d.name, troubles.join(", "))).hint(format!(
        "see `dmesg | grep znsage` and `smartctl -a /dev/{}`;\n\
         `znsage off {}` reads the pages back while it can",
        queue::below(scene.sys, &d.backing),
        d.name
    ))
}
