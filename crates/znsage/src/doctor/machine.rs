// SPDX-License-Identifier: GPL-2.0-only
//! The requirements of `on`: kernel, module, tools, devices.

use super::{Finding, Level, Scene};
use crate::list::Candidate;
use crate::module::{self, Source, MODULE_ENV};
use crate::{cgroups as groups, units};

/// Kernels that the module is tested on (KERNELS and NEWEST in the Makefile), oldest
/// first.
pub const TESTED: [(u32, u32); 3] = [(6, 1), (6, 12), (7, 3)];

/// Required options of the kernel that leave no other trace.
const OPTIONS: [&str; 3] = ["CONFIG_BLK_DEV_ZONED", "CONFIG_SWAP", "CONFIG_CONFIGFS_FS"];

/// The programs that the command runs, and their packages.
const TOOLS: [(&str, &str); 8] = [
    ("wipefs", "util-linux"),
    ("mkswap", "util-linux"),
    ("swapon", "mount"),
    ("swapoff", "mount"),
    ("modprobe", "kmod"),
    ("modinfo", "kmod"),
    ("insmod", "kmod"),
    ("rmmod", "kmod"),
];

const PLACES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Pages that reclaim writes under one plug (SWAP_CLUSTER_MAX).
const BATCH_PAGES: u64 = 32;

/// Major and minor number of a release such as 6.12.9-amd64.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

pub fn kernel(scene: &Scene) -> Vec<Finding> {
    let release = scene.sys.release();
    let tested = TESTED.map(|(a, b)| format!("{a}.{b}")).join(", ");
    let [oldest, newest] = [TESTED[0], TESTED[TESTED.len() - 1]];
    let found = match version_of(&release) {
        Some(v) if TESTED.contains(&v) => {
            Finding::ok("kernel", format!("{release}: the module is tested on it"))
        }
        Some(v) if v < oldest => {
            Finding::problem("kernel", format!("{release} is older than the module supports"))
                .hint(format!("boot Linux {tested}"))
        }
        v => Finding::note(
            "kernel",
            match v {
                Some(v) if v > newest => {
                    format!("{release} is newer than the kernels that the module is tested on")
                }
                _ => format!("the module is not tested on {release}"),
            },
        )
        .hint(format!(
            "it is tested on {tested}; if it builds and loads, check it with `znsage check`"
        )),
    };
    let config = scene.sys.read(&format!("/boot/config-{release}")).unwrap_or_default();
    let lacks = OPTIONS
        .into_iter()
        .filter(|option| config.lines().any(|line| line == format!("# {option} is not set")));
    let lacks = lacks.map(|option| {
        Finding::problem("kernel", format!("{release} is built without {option}"))
            .hint("boot a kernel with it; Debian's kernels have it")
    });
    let virtual_swap = config.lines().any(|line| line == "CONFIG_VSWAP=y").then(|| {
        Finding::note("kernel", format!("{release} has virtual swap, with which znsage is untested"))
            .hint("znsage does not depend on the numbers in page tables, which differ there; --keep-slots may save nothing")
    });
    [found].into_iter().chain(lacks).chain(virtual_swap).collect()
}

pub fn module(scene: &Scene) -> Vec<Finding> {
    let ours = env!("CARGO_PKG_VERSION");
    let source = match module::find(scene.sys) {
        Ok(source) => source,
        Err(e) => return vec![Finding::of("module", Level::Problem, e)],
    };
    let state = match &source {
        Source::Loaded => "loaded".to_string(),
        Source::File(path) => format!("{path} ({MODULE_ENV})"),
        Source::Installed => "installed, not loaded".to_string(),
    };
    vec![match module::version(scene.sys, &source) {
        Some(version) if version == ours => {
            Finding::ok("module", format!("{state}, version {version} like the command"))
        }
        Some(version) => Finding::problem(
            "module",
            format!("{state}, version {version}; the command has version {ours}"),
        )
        .hint("install the same version of both; to replace a loaded module,\nrun `znsage off` and `znsage on`"),
        None => Finding::note("module", format!("{state}, without a version"))
            .hint(format!("the command has version {ours}")),
    }]
}

/// Will the kernel take the module?
pub fn signature(scene: &Scene) -> Vec<Finding> {
    let sys = scene.sys;
    let Some(why) = module::only_signed(sys) else {
        return vec![Finding::ok("signature", "the kernel takes unsigned modules, too")];
    };
    let source = match module::find(sys) {
        Ok(Source::Loaded) => {
            return vec![Finding::ok("signature", format!("{why}, and the module is loaded"))];
        }
        Ok(source) => source,
        // `module` tells why.
        Err(_) => {
            let message = format!("the kernel will take only a signed module ({why})");
            return vec![Finding::note("signature", message).hint(module::SIGN)];
        }
    };
    let only = format!("the kernel takes only signed modules ({why})");
    let Some(signer) = module::signer(sys, &source) else {
        let message = format!("{only}; znsage is not signed");
        return vec![Finding::problem("signature", message).hint(module::SIGN)];
    };
    vec![match module::has_key(sys, &signer) {
        Some(true) => {
            Finding::ok("signature", format!("{only}; znsage is, by {signer}, whose key it has"))
        }
        Some(false) => Finding::problem(
            "signature",
            format!("{only}; znsage is signed by {signer}, whose key it does not have"),
        )
        .hint(module::SIGN),
        None => Finding::note(
            "signature",
            format!("{only}; znsage is signed by {signer}, and the kernel's keys cannot be seen"),
        )
        .hint("run it with sudo"),
    }]
}

pub fn headers(scene: &Scene) -> Vec<Finding> {
    let release = scene.sys.release();
    let path = format!("/lib/modules/{release}/build");
    if scene.sys.exists(&format!("{path}/Makefile")) {
        return vec![Finding::ok("headers", format!("{path} exists"))];
    }
    // An existing module needs no headers now.
    let level = match module::find(scene.sys) {
        Ok(_) => Level::Note,
        Err(_) => Level::Problem,
    };
    vec![Finding::new("headers", level, format!("no kernel headers for {release}")).hint(format!(
        "to build the module, also with DKMS: apt-get install linux-headers-{release}"
    ))]
}

pub fn tools(scene: &Scene) -> Vec<Finding> {
    let path = scene.sys.env("PATH").unwrap_or_default();
    let places: Vec<&str> = path.split(':').filter(|p| p.starts_with('/')).chain(PLACES).collect();
    let there = |tool: &str| places.iter().any(|p| scene.sys.exists(&format!("{p}/{tool}")));
    let missing: Vec<Finding> = TOOLS
        .iter()
        .filter(|(tool, _)| !there(tool))
        .map(|(tool, package)| {
            Finding::problem("tools", format!("there is no {tool}"))
                .hint(format!("apt-get install {package}"))
        })
        .collect();
    match missing.is_empty() {
        true => vec![Finding::ok("tools", TOOLS.map(|(tool, _)| tool).join(", "))],
        false => missing,
    }
}

pub fn cgroups(scene: &Scene) -> Vec<Finding> {
    const BOOT: &str =
        "boot with systemd.unified_cgroup_hierarchy=1 and without cgroup_disable=memory";
    let needed = scene.on.iter().find(|d| d.policy == "cgroup");
    let level = match needed {
        Some(_) => Level::Problem,
        None => Level::Note,
    };
    let who = match needed {
        Some(device) => format!("{} has the policy cgroup", device.name),
        None => "the policy cgroup and the limit of `znsage bench` need it".to_string(),
    };
    let Some(mount) = groups::mount(scene.sys) else {
        return vec![
            Finding::new("cgroup", level, format!("cgroup v2 is not mounted; {who}")).hint(BOOT)
        ];
    };
    let there = groups::controllers(scene.sys, &mount);
    let lacks: Vec<&str> =
        ["memory", "io"].into_iter().filter(|c| !there.iter().any(|t| t == c)).collect();
    vec![match lacks.as_slice() {
        [] => Finding::ok("cgroup", format!("version 2 on {mount}, with memory and io")),
        some => Finding::new(
            "cgroup",
            level,
            format!("cgroup v2 on {mount} has no controller {}; {who}", some.join(" and ")),
        )
        .hint(BOOT),
    }]
}

pub fn devices(scene: &Scene) -> Vec<Finding> {
    let usable = |d: &Candidate| d.on.is_some() || d.usable != Some(false);
    // One usable device is enough.
    let bad = match scene.zoned.iter().any(usable) {
        true => Level::Note,
        false => Level::Problem,
    };
    let mut found: Vec<Finding> = scene.zoned.iter().map(|d| device(d, bad)).collect();
    if found.is_empty() {
        found.push(Finding::note("device", "this machine has no zoned block device").hint(
            "`znsage on /var/lib/znsage.swap --size SIZE` swaps to a file;\n\
             `znsage list --all` shows disks and partitions that can be used",
        ));
    }
    found
}

fn device(d: &Candidate, bad: Level) -> Finding {
    let size = d.size_bytes.map_or(String::new(), |n| format!(", {}", units::size(n)));
    match (&d.on, &d.problem) {
        (Some(disk), _) => Finding::ok("device", format!("{}{size}: on as {disk}", d.path)),
        (None, None) => Finding::ok("device", format!("{}{size}: can be used", d.path)),
        (None, Some(e)) => {
            let level = if d.usable.is_none() { Level::Note } else { bad };
            let mut finding = Finding::of("device", level, e.clone());
            if !finding.message.contains(&d.path) {
                finding.message = format!("{}: {}", d.path, finding.message);
            }
            finding
        }
    }
}

/// The number of possible CPUs in a list such as "0-3,8", as the module counts them.
fn cpus(list: &str) -> u64 {
    let numbers = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim().split(',').filter_map(numbers).fold(0, u64::saturating_add)
}

/// Effects of the limits of usable devices.
pub fn limits(scene: &Scene) -> Vec<Finding> {
    let possible = scene.sys.read("/sys/devices/system/cpu/possible").unwrap_or_default();
    let cpus = cpus(&possible);
    let good = scene.zoned.iter().filter(|d| d.on.is_some() || d.usable == Some(true));
    good.flat_map(|d| limits_of(d, cpus, scene.page)).collect()
}

fn limits_of(d: &Candidate, cpus: u64, page: u64) -> Vec<Finding> {
    let append = d.append_max_bytes.unwrap_or(0);
    let open = [d.max_open_zones, d.max_active_zones].into_iter().flatten().min();
    let shown = open.map_or("any number of zones".to_string(), |n| format!("{n} zones"));
    let said = format!("{}: {shown} open, appends of {}", d.path, units::size(append));
    let mut found = Vec::new();
    // GC has a zone, and a stream opens its next zone before the last one is full.
    let streams = open.map_or(u64::MAX, |n| n.saturating_sub(2).max(1));
    if streams < cpus {
        found.push(
            Finding::note("limits", format!("{said}: up to {streams} streams for {cpus} CPUs"))
                .hint("no action needed; with the policy cpu, several CPUs share a stream"),
        );
    }
    let batch = page.saturating_mul(BATCH_PAGES);
    if append < batch {
        found.push(
            Finding::note("limits", format!("{said}: less than the kernel swaps out at a time"))
                .hint(format!(
                "{} are best; see max_sectors_kb and zone_append_max_bytes in /sys/block/{}/queue",
                units::size(batch),
                d.name
            )),
        );
    }
    if found.is_empty() {
        found.push(Finding::ok("limits", said));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_parse() {
        for (release, version) in [
            ("6.12.9-amd64", Some((6, 12))),
            ("6.1.0-30-amd64", Some((6, 1))),
            ("7.0-rc1", Some((7, 0))),
            ("6", None),
            ("", None),
            ("6.x", None),
        ] {
            assert_eq!(version_of(release), version, "{release}");
        }
    }

    #[test]
    fn cpus_are_counted() {
        for (list, n) in [("0-3\n", 4), ("0", 1), ("0-1,4,6-7", 5), ("", 0), ("3-1", 0), ("a-b", 0)]
        {
            assert_eq!(cpus(list), n, "{list}");
        }
        assert_eq!(cpus(&format!("0-{},0-{}", u64::MAX - 1, u64::MAX - 1)), u64::MAX);
    }

    #[test]
    fn tested_kernels_match_the_makefile() {
        let makefile = std::fs::read_to_string("../../Makefile").unwrap();
        let line = |name| makefile.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        let kernels = format!("{} {}", line("KERNELS ?= "), line("NEWEST ?= "));
        assert_eq!(kernels, TESTED.map(|(a, b)| format!("{a}.{b}")).join(" "));
    }
}
