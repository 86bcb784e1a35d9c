// SPDX-License-Identifier: GPL-2.0-only
//! The machine of the tests: a kernel with the module and its attributes, and the
//! programs that the command runs.

use std::io;

use clap::Parser;

use crate::cli::Cli;
use crate::error::{Error, Kind, Result};
use crate::outcome::Outcome;
use crate::swaps;
use crate::sys::fake::Fake;
use crate::sys::{Ran, Sys};
use crate::zones::{State, Zone};

pub const PAGE: u64 = 4096;
pub const MIB: u64 = 1 << 20;
pub const CONFIG: &str = "/sys/kernel/config/znsage";
pub const SCHEDULERS: &str = "[mq-deadline] none\n";
pub const NO_SWAP: &str = "Filename\tType\tSize\tUsed\tPriority\n";

/// A machine with the module installed and one zoned device, nvme1n1, with 64
/// zones of 4 MiB.
pub fn machine() -> Fake {
    let fake = Fake::new();
    fake.put("/dev/tty", "");
    add_block(&fake, "/dev/nvme1n1", 1);
    fake.put("/sys/block/nvme1n1/queue/zoned", "host-managed\n");
    fake.put("/sys/block/nvme1n1/queue/zone_append_max_bytes", "131072\n");
    fake.put("/sys/block/nvme1n1/queue/scheduler", SCHEDULERS);
    fake.put_dir("/run/znsage");
    fake.put_dir("/var/lib/znsage");
    fake.put("/sys/block/nvme1n1/wwid", "eui.0025385000000001\n");
    fake.put("/sys/block/nvme1n1/size", "524288\n");
    fake.put("/sys/block/nvme1n1/ro", "0\n");
    fake.put_dir("/sys/block/nvme1n1/holders");
    fake.put("/proc/swaps", NO_SWAP);
    fake.put("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 500000 kB\n");
    fake.put("/proc/mounts", "configfs /sys/kernel/config configfs rw 0 0\n");
    fake.put("/lib/modules/6.12.0-test/modules.dep", "extra/znsage.ko:\n");
    fake.put_dir("/sys/module");
    fake.put_dir("/sys/kernel/config");
    *fake.zones.borrow_mut() = vec![zone(State::Empty); 64];
    fake.on_run(program);
    fake.on_mkdir(|fake, path| {
        for (file, value) in ATTRIBUTES {
            fake.put(&format!("{path}/{file}"), value);
        }
    });
    fake.on_write(attribute);
    fake
}

/// A block device with the numbers 259:MINOR, or another name of one.
pub fn add_block(fake: &Fake, path: &str, minor: u64) {
    fake.put(path, "");
    fake.blocks.borrow_mut().insert(path.into(), (259, minor));
    let link = format!("/sys/dev/block/259:{minor}");
    if !fake.exists(&link) {
        fake.put_dir(&path.replace("/dev/", "/sys/block/"));
        fake.put_link(&link, &path.replace("/dev/", "/sys/block/"));
    }
}

/// A disk with a partition of ext4, which can hold swap files.
pub fn add_files(fake: &Fake) {
    fake.put("/sys/block/sda/queue/zoned", "none\n");
    fake.put("/sys/block/sda/queue/discard_max_bytes", "2147483648\n");
    fake.put("/sys/block/sda/sda1/partition", "1\n");
    fake.put_link("/sys/dev/block/8:1", "/sys/block/sda/sda1");
    fake.put("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
}

pub const ATTRIBUTES: [(&str, &str); 21] = [
    ("backing", "\n"),
    ("size", "0\n"),
    ("zone_size", "0\n"),
    ("over_provisioning", "12\n"),
    ("policy", "cpu\n"),
    ("victim", "greedy\n"),
    ("chunk", "0\n"),
    ("write_unit", "0\n"),
    ("reserve", "1\n"),
    ("stripe", "0\n"),
    ("pace", "50\n"),
    ("gc_low", "0\n"),
    ("gc_high", "0\n"),
    ("deadline_us", "1000\n"),
    ("encrypt", "off\n"),
    ("compress", "off\n"),
    ("force", "0\n"),
    ("keep_slots", "0\n"),
    ("discard", "1\n"),
    ("power", "0\n"),
    ("index", "-1\n"),
];

pub fn zone(state: State) -> Zone {
    Zone { capacity: 4 * MIB, sequential: true, state }
}

pub fn set_zones(fake: &Fake, zones: Vec<Zone>) {
    *fake.zones.borrow_mut() = zones;
}

pub fn ended(status: i32, stderr: &str) -> Ran {
    Ran { status: Some(status), stdout: String::new(), stderr: stderr.to_string() }
}

/// The programs that the command runs.
pub fn program(fake: &Fake, argv: &[&str]) -> Ran {
    match argv {
        ["modprobe", "--dry-run", "znsage"] => {
            let here = fake.exists("/lib/modules/6.12.0-test/modules.dep");
            return ended(i32::from(!here), "");
        }
        ["modinfo", "-F", "signer", _] => {}
        ["systemctl", "is-active", _] => {
            return Ran { status: Some(3), stdout: "inactive\n".into(), stderr: String::new() };
        }
        ["modprobe", "configfs" | "lz4_compress"] | ["mkswap" | "blkdiscard" | "wipefs", ..] => {}
        ["modinfo", "-F", "version", "znsage"] => {
            let stdout = concat!(env!("CARGO_PKG_VERSION"), "\n").to_string();
            return Ran { status: Some(0), stdout, stderr: String::new() };
        }
        ["modprobe", "znsage"] | ["insmod", _] => {
            fake.put("/sys/module/znsage/refcnt", "0\n");
            fake.put_dir(CONFIG);
        }
        ["rmmod", "znsage"] => {
            fake.remove("/sys/module/znsage");
            fake.remove(CONFIG);
        }
        ["swapon", .., node] => {
            let swaps = fake.read("/proc/swaps").unwrap();
            let lowest = format!("-{}", swaps.lines().count() + 1);
            let priority = if argv.len() > 2 { argv[2] } else { &lowest };
            let used = if node.ends_with("-filler") { 0 } else { 1000 };
            let line = format!("{node} partition 230000 {used} {priority}\n");
            fake.put("/proc/swaps", &(swaps + &line));
        }
        ["swapoff", node] => {
            let swaps = fake.read("/proc/swaps").unwrap();
            let others = swaps.lines().filter(|l| !l.starts_with(&format!("{node} ")));
            fake.put("/proc/swaps", &others.map(|l| format!("{l}\n")).collect::<String>());
        }
        other => panic!("unexpected program: {other:?}"),
    }
    ended(0, "")
}

/// What the next check of the maps finds; not a file of a real machine.
pub const CHECK_FINDS: &str = "/check-finds";

/// What the module does when its attributes are written.
pub fn attribute(fake: &Fake, path: &str, text: &str) -> io::Result<()> {
    if path.ends_with("/scheduler") {
        fake.put(path, &SCHEDULERS.replace(['[', ']'], "").replace(text, &format!("[{text}]")));
    }
    if path.ends_with("/check") {
        fake.put(path, &fake.read(CHECK_FINDS).unwrap_or_else(|_| "ok\n".into()));
    }
    let Some(item) = path.strip_suffix("/power") else {
        return Ok(());
    };
    let disk = if item.ends_with("nvme2n1") { "znsage1" } else { "znsage0" };
    let (sysfs, node) = (&*format!("/sys/block/{disk}"), &*format!("/dev/{disk}"));
    if text == "1" {
        for (file, value) in COUNTERS {
            fake.put(&format!("{sysfs}/znsage/{file}"), &format!("{value}\n"));
        }
        let encrypt = fake.read(&format!("{item}/encrypt"))?;
        fake.put(&format!("{sysfs}/znsage/encrypt"), &encrypt);
        let backing = fake.read(&format!("{item}/backing"))?;
        if !backing.starts_with("/dev/") {
            fake.put(&format!("{sysfs}/znsage/backing"), &backing);
            let config = item.rsplit('/').next().unwrap_or_default();
            fake.put(&format!("{sysfs}/znsage/config"), &format!("{config}\n"));
        }
        let discard = fake.read(&format!("{item}/discard"))?;
        fake.put(&format!("{sysfs}/znsage/discard"), &discard);
        fake.put(node, "");
        if fake.read(&format!("{item}/compress"))?.trim() != "off" {
            let size = fake.read(&format!("{item}/size"))?;
            fake.put(&format!("{sysfs}/znsage/size_bytes"), &size);
            fake.put(&format!("{sysfs}/znsage/certain_bytes"), "235929600\n");
        }
        if fake.read(&format!("{item}/keep_slots"))?.trim() == "1" {
            fake.put(&swaps::filler_node(disk), "");
        }
        fake.put(&format!("{item}/index"), "0\n");
    } else if fake.read("/proc/swaps")?.contains(node) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    } else {
        fake.remove(sysfs);
        fake.remove(node);
        let filler = swaps::filler_node(disk);
        if fake.exists(&filler) {
            fake.remove(&filler);
        }
        fake.put(&format!("{item}/index"), "-1\n");
    }
    Ok(())
}

pub const COUNTERS: [(&str, &str); 39] = [
    ("backing", "nvme1n1"),
    ("config", "nvme1n1"),
    ("policy", "heat"),
    ("size_bytes", "235929600"),
    ("chunk_bytes", "131072"),
    ("write_unit_bytes", "4096"),
    ("zone_bytes", "4194304"),
    ("blocks_total", "65536"),
    ("zones_total", "64"),
    ("zones_empty", "40"),
    ("zones_open", "3"),
    ("zones_full", "21"),
    ("zones_retired", "0"),
    ("zones_unused", "0"),
    ("streams", "2"),
    ("stripe", "1"),
    ("gc_stripe", "1"),
    ("gc_shared", "0"),
    ("write_window", "64"),
    ("slots_used", "16384"),
    ("live_blocks", "16384"),
    ("host_blocks", "20000"),
    ("host_pages", "20000"),
    ("refused_pages", "0"),
    ("zones_lost", "0"),
    ("pages_lost", "0"),
    ("gc_blocks", "4000"),
    ("padding_blocks", "1000"),
    ("gc_read_blocks", "4000"),
    ("chunks", "700"),
    ("zone_resets", "5"),
    ("slots_freed", "3616"),
    ("read_errors", "0"),
    ("write_errors", "0"),
    ("stalls", "0"),
    ("map_bytes", "524288"),
    ("gc_low", "2"),
    ("gc_high", "4"),
    ("deadline_us", "1000"),
];

/// Another device that is on, znsage1 on nvme2n1.
pub fn add_second(fake: &Fake) {
    add_block(fake, "/dev/nvme2n1", 2);
    fake.put("/sys/block/nvme2n1/queue/zoned", "host-managed\n");
    for (file, value) in COUNTERS {
        let value = value.replace("nvme1n1", "nvme2n1");
        fake.put(&format!("/sys/block/znsage1/znsage/{file}"), &format!("{value}\n"));
    }
    fake.put("/dev/znsage1", "");
    for (file, value) in ATTRIBUTES {
        fake.put(&format!("{CONFIG}/nvme2n1/{file}"), value);
    }
    fake.put(&format!("{CONFIG}/nvme2n1/power"), "1\n");
    let swaps = fake.read("/proc/swaps").unwrap();
    fake.put("/proc/swaps", &(swaps + "/dev/znsage1 partition 230000 1000 -3\n"));
}

/// Another program has unmounted configfs. Its content is back once it is mounted again.
pub fn unmount_configfs(fake: &Fake) {
    let hidden = fake.at("/hidden");
    std::fs::rename(fake.at(CONFIG), &hidden).unwrap();
    fake.put("/proc/mounts", "");
    fake.on_mount(move |fake, _| std::fs::rename(&hidden, fake.at(CONFIG)).unwrap());
}

/// Runs a command line. Words in quotes are one word.
pub fn run(fake: &Fake, line: &str) -> Result<Outcome> {
    run_with_pages(fake, line, PAGE)
}

/// Such a machine has pages of this size.
pub fn run_with_pages(fake: &Fake, line: &str, page: u64) -> Result<Outcome> {
    let words = shlex::split(line).expect("quotes are paired");
    let cli = Cli::try_parse_from(std::iter::once("znsage".to_string()).chain(words))
        .map_err(|e| Error::new(Kind::Usage, e.to_string()))?;
    crate::run(fake, &cli.command, page, cli.json, || ())
}

pub fn turn_on(fake: &Fake) {
    run(fake, "on /dev/nvme1n1").unwrap();
}

/// A machine on which `doctor` finds nothing wrong.
pub fn well() -> Fake {
    let fake = machine();
    add_well(&fake);
    fake
}

/// Such a machine with one device on.
pub fn on() -> Fake {
    let fake = well();
    run(&fake, "on /dev/nvme1n1 --priority 10 --policy cpu").unwrap();
    add_details(&fake);
    fake
}

/// Adds what `doctor` looks at, without faults.
pub fn add_well(fake: &Fake) {
    fake.put("/boot/config-6.12.0-test", "CONFIG_SWAP=y\nCONFIG_BLK_DEV_ZONED=y\n");
    fake.put("/lib/modules/6.12.0-test/build/Makefile", "");
    for tool in ["wipefs", "mkswap", "swapon", "swapoff", "modprobe", "modinfo", "insmod", "rmmod"]
    {
        fake.put(&format!("/usr/sbin/{tool}"), "");
    }
    let mounts = fake.read("/proc/mounts").unwrap();
    fake.put("/proc/mounts", &(mounts + "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"));
    fake.put("/sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
    fake.put("/sys/devices/system/cpu/possible", "0-3\n");
    fake.put("/proc/sys/vm/swappiness", "60\n");
    fake.put("/sys/module/zswap/parameters/enabled", "N\n");
    let device = "/sys/block/nvme1n1";
    for (file, text) in [
        ("device/model", "ZN540 (made up)                 \n"),
        ("size", "524288\n"),
        ("queue/chunk_sectors", "8192\n"),
        ("queue/zone_write_granularity", "4096\n"),
        ("queue/max_open_zones", "14\n"),
        ("queue/max_active_zones", "14\n"),
    ] {
        fake.put(&format!("{device}/{file}"), text);
    }
}

/// Adds the files of znsage0 that only newer modules have.
pub fn add_details(fake: &Fake) {
    let numbers = [
        ("gc_zones", "4"),
        ("zones_dead", "1"),
        ("read_blocks", "7000"),
        ("policy_refused", "0"),
        ("keys", "2"),
        ("keys_sharing", "0"),
        ("survivors", "3"),
        ("pace", "50"),
        ("certain_bytes", "235929600"),
        ("room_bytes", "235929600"),
        ("time_reads", "1"),
    ];
    let tables = [("victim", "age\n"), ("check", "never\n")];
    let debug = [
        (
            "stream_table",
            "stream host_blocks gc_blocks padding_blocks read_blocks stalls stall_ns zones keys key\n\
             0 19000 3900 900 6000 2 1500000 1 1 0x0000000000000000\n\
             1 1000 100 100 1000 0 0 1 1 0x00000000000000ff\n",
        ),
        (
            "latency",
            "below_us swap_out swap_in gc\n80 0 0 0\n96 98 3 0\n112 1 0 0\n320 0 0 0\n384 0 1 0\n\
             16777216 0 0 0\ninf 1 0 0\ntotal_ns 10000000 400000 0\n",
        ),
    ];
    let mut zones = "index zone state capacity written live failed\n".to_string();
    for i in 0..64 {
        let (state, live) = match i {
            0..40 => ("empty", 0),
            40..42 => ("open", 100),
            42 => ("victim", 100),
            43..46 => ("full", 50),
            46..50 => ("full", 150),
            _ => ("full", 1024),
        };
        zones += &format!("{i} {i} {state} 1024 1024 {live} 0\n");
    }
    fake.put("/sys/kernel/debug/znsage/znsage0/zones", &zones);
    for (file, text) in debug {
        fake.put(&format!("/sys/kernel/debug/znsage/znsage0/{file}"), text);
    }
    let numbers = numbers.map(|(file, text)| (file, format!("{text}\n")));
    let tables = tables.map(|(file, text)| (file, text.to_string()));
    for (file, text) in numbers.into_iter().chain(tables) {
        fake.put(&format!("/sys/block/znsage0/znsage/{file}"), &text);
    }
}
