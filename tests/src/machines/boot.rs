// SPDX-License-Identifier: GPL-2.0-only
//! One machine started four times: first, after a clean stop with swap in use, after a power
//! failure with swap in use, also in a file (`file.rs`), and with mistakes in the configuration.

use znsage_guest::ensure;
use znsage_guest::outcome::Outcome;
use znsage_tests::document::Document;

use crate::file;
use crate::machine::{Machine, Parts, Plan, Zoned};
use crate::story::Story;

const SWAP: Zoned = Zoned { serial: "ZNS0", mib: 256, zone_mib: 4, movable: false };
const LATE: Zoned = Zoned { serial: "LATE", mib: 64, zone_mib: 4, movable: true };

/// The links that udev makes, up to the serial number.
const BY_ID: &str = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_";
/// The document whose commands this test runs.
const BOOT: &str = "docs/guide.md";
const FILE: &str = "/etc/znsage.conf";
const METRICS: &str = "/var/lib/prometheus/node-exporter/znsage.prom";

/// Uses twice its memory limit, and verifies each page that it touches.
const BENCH: &str = "znsage bench --size 96M --memory-limit 48M --seconds 3 --seed 1 --json";
const BENCH_TIME: u64 = 180;
/// Swapped out when the machine stops.
const HELD_MIB: u32 = 64;

pub fn run(parts: &Parts) -> Outcome<bool> {
    let mut story = Story::new();
    let plan = Plan::new(parts, "boot").zoned(&SWAP)?.zoned(&LATE)?;
    let mut machine = plan.disk(file::DISK, file::DISK_MIB)?.start()?;
    if let Err(why) = run_all(&mut story, &mut machine) {
        story.check("the test ends", Err::<(), _>(why));
        Story::console(&machine);
    }
    Ok(story.end("boot"))
}

fn run_all(story: &mut Story, machine: &mut Machine) -> Outcome {
    good_start(story, machine)?;
    story.check("swap in use", machine.hold("hold", HELD_MIB));
    story.check("it stops to start again", machine.reboot());
    start_after_stop(story, machine)?;
    file::power_failure(story, machine)?;
    story.check("swap in use", machine.hold("hold", HELD_MIB));
    prepare_mistakes(machine)?;
    story.tell("power failure");
    machine.reset()?;
    start_with_mistakes(story, machine)?;
    story.check("the late device is unplugged while on", leaves(machine));
    story.check("swap in use", machine.hold("hold", HELD_MIB));
    story.check("it stops to stay off", machine.power_off());
    story.check("the kernel has not complained", no_complaints(machine));
    Ok(())
}

fn good_start(story: &mut Story, machine: &mut Machine) -> Outcome {
    story.check("first start", machine.up());
    story.check("no unit has failed", none_failed(machine));
    story.check("swap is on", is_swap(machine, "swap", 10));
    story.check("it was on before swap.target", before_target(machine));
    story.check("pages go out and come back", bench(machine, "znsage0"));
    services(story, machine)?;
    story.check("`off` by hand stops the service", off_by_hand(machine));
    story.check("without systemd", without_systemd(machine));
    story.check("metrics are written", metrics(machine));
    Ok(())
}

fn start_after_stop(story: &mut Story, machine: &mut Machine) -> Outcome {
    story.check("second start", machine.up());
    story.check("no unit has failed", none_failed(machine));
    // Without `force`, `on` refuses a device that is not empty.
    story.check("swap is on again", is_swap(machine, "swap", 10));
    story
        .check("the stop ended the holder of memory, then emptied the device", clean_stop(machine));
    story.check("metrics again", metrics(machine));
    Ok(())
}

/// Adds a section with a mistake, one whose device is missing, and one with an invalid
/// name. The first section's device still holds the swap of the run before, and there is no
/// record of that, as on another machine.
fn prepare_mistakes(machine: &mut Machine) -> Outcome {
    machine.ok(&format!(
        "printf '[broken]\\ndevice = {BY_ID}ZNS0\\nprio = 5\\n[late]\\ndevice = {BY_ID}LATE\\n[a b]\\n' >> {FILE}; \
         mkdir -p /etc/systemd/system.conf.d; \
         printf '[Manager]\\nDefaultDeviceTimeoutSec=20\\n' > /etc/systemd/system.conf.d/short.conf; \
         rm -r /var/lib/znsage; sync"
    ))?;
    machine.unplug(LATE.serial)
}

fn start_with_mistakes(story: &mut Story, machine: &mut Machine) -> Outcome {
    story.check("fourth start, though swap fails", machine.up());
    story.check(
        "a device that holds something is refused",
        failed(
            machine,
            "znsage@swap",
            "`force = yes` in section swap takes the device at every boot",
        ),
    );
    story.check(
        "a mistake in the file is told",
        failed(machine, "znsage@broken", "/etc/znsage.conf:6: there is no key `prio`"),
    );
    story.check(
        "a mistake of no section is told",
        failed(machine, "znsage-conf", "/etc/znsage.conf:9: `a b` is not a valid section name"),
    );
    story.check("the machine has started", machine.ok("systemctl is-active multi-user.target"));
    story.check("a device comes late", late(machine));
    story.check("`force = yes` helps", mend(machine));
    story.check("pages go out and come back", bench(machine, "znsage1"));
    Ok(())
}

pub fn none_failed(machine: &mut Machine) -> Outcome<String> {
    // `running`: all jobs of the start are done, and none failed.
    let state = machine.run("systemctl is-system-running --wait")?.out;
    let failed = machine.ok("systemctl --failed --plain --no-legend")?;
    ensure!(state == "running" && failed.is_empty(), "it is {state}: {failed}");
    machine.ok("systemd-analyze time | head -n 1")
}

/// Checks that the service is active and its device is a swap area of this priority.
fn is_swap(machine: &mut Machine, section: &str, priority: i32) -> Outcome {
    machine.ok(&format!("systemctl is-active znsage@{section}.service"))?;
    let areas = machine.ok("cat /proc/swaps")?;
    let there = areas
        .lines()
        .any(|line| line.starts_with("/dev/znsage0 ") && line.ends_with(&format!("\t{priority}")));
    ensure!(there, "{areas}");
    Ok(())
}

fn before_target(machine: &mut Machine) -> Outcome<String> {
    let mut when = |unit: &str| {
        let line = format!("systemctl show -P ActiveEnterTimestampMonotonic {unit}");
        machine.ok(&line)?.parse::<u64>().map_err(|e| format!("{unit}: {e}"))
    };
    let (service, target) = (when("znsage@swap.service")?, when("swap.target")?);
    ensure!(0 < service && service <= target, "on at {service} us, swap.target at {target} us");
    Ok(format!("{} ms before it", (target - service) / 1000))
}

fn bench(machine: &mut Machine, disk: &str) -> Outcome<String> {
    let ran = machine.run_for(BENCH, BENCH_TIME)?;
    ensure!(ran.status == Some(0), "{:?}: {} {}", ran.status, ran.out, ran.err);
    let blocks = machine.ok(&format!("cat /sys/block/{disk}/znsage/host_blocks"))?;
    let blocks: u64 = blocks.parse().map_err(|e| format!("{blocks}: {e}"))?;
    ensure!(blocks > 10_000, "only {blocks} pages were swapped out");
    Ok(format!("{blocks} pages out"))
}

/// Runs the commands of docs/guide.md on services, in order.
fn services(story: &mut Story, machine: &mut Machine) -> Outcome {
    for line in Document::open(BOOT)?.below("The services", &["systemctl"])? {
        story.check(line, run_service(machine, line));
    }
    machine.ok("systemctl unmask znsage@swap.service").map(drop)
}

fn run_service(machine: &mut Machine, line: &str) -> Outcome {
    machine.ok(line)?;
    match line.split(' ').nth(1) {
        Some("stop") => is_off(machine),
        Some("mask") => machine.ok("! systemctl start znsage@swap.service").map(drop),
        _ => is_swap(machine, "swap", 10),
    }
}

fn off_by_hand(machine: &mut Machine) -> Outcome {
    let said = machine.ok("znsage off")?;
    ensure!(said.contains("section swap is off, so znsage@swap.service stops"), "{said}");
    machine.ends("znsage@swap.service", 60)?;
    is_off(machine)?;
    machine.ok("systemctl start znsage@swap.service")?;
    is_swap(machine, "swap", 10)
}

/// Runs the commands for another init system.
fn without_systemd(machine: &mut Machine) -> Outcome {
    machine.ok("systemctl stop znsage@swap.service")?;
    for line in Document::open(BOOT)?.below("Without systemd", &["znsage"])? {
        machine.ok(line)?;
        let on = machine.run("grep -q ^/dev/znsage0 /proc/swaps")?.status == Some(0);
        ensure!(on == line.contains(" on "), "{line}: swap is on: {on}");
    }
    is_off(machine)?;
    machine.ok("systemctl start znsage@swap.service")?;
    is_swap(machine, "swap", 10)
}

/// Checks that there is no swap and the device is empty.
fn is_off(machine: &mut Machine) -> Outcome {
    let areas = machine.ok("tail -n +2 /proc/swaps")?;
    ensure!(areas.is_empty(), "{areas}");
    let zones = machine.ok(&format!("blkzone report {BY_ID}ZNS0"))?;
    let full: Vec<&str> = zones.lines().filter(|zone| !zone.contains("(em)")).collect();
    ensure!(zones.lines().count() == 64 && full.is_empty(), "{full:?}");
    Ok(())
}

/// Checks that the timer writes the metrics of the device.
fn metrics(machine: &mut Machine) -> Outcome<std::time::Duration> {
    machine.ok(&format!("rm -f {METRICS}"))?;
    for line in Document::open("docs/monitor.md")?.below("With node_exporter", &["systemctl"])? {
        machine.ok(line)?;
    }
    machine.comes(&format!("grep -qx 'znsage_devices 1' {METRICS}"), 60)
}

/// Checks the journal of the previous stop.
fn clean_stop(machine: &mut Machine) -> Outcome {
    let said =
        machine.ok("journalctl -b -1 -o cat -u hold.service -u znsage@swap.service -n 12")?;
    let at = |text: &str| said.lines().position(|line| line.contains(text));
    let (ended, emptied) = (at("hold.service: Deactivated"), at("znsage0 is off, "));
    ensure!(ended.is_some() && ended < emptied, "{said}");
    ensure!(said.contains("znsage@swap.service: Deactivated successfully"), "{said}");
    Ok(())
}

/// Waits until the service has failed, and looks for the reason in its log.
fn failed(machine: &mut Machine, unit: &str, why: &str) -> Outcome {
    let unit = format!("{unit}.service");
    machine.comes(&format!("systemctl is-failed {unit}"), 60)?;
    let said = machine.ok(&format!("journalctl -b -o cat -u {unit}"))?;
    ensure!(said.contains(why), "{said}");
    Ok(())
}

/// Plugs in the late device, whose service has waited for it and failed.
fn late(machine: &mut Machine) -> Outcome<std::time::Duration> {
    let state = machine.run("systemctl is-active znsage@late.service")?.out;
    ensure!(state == "failed", "while it is missing, the service is {state}");
    let said = machine.ok("journalctl -b -o cat -u znsage@late.service")?;
    ensure!(said.contains("LATE: No such file or directory"), "{said}");
    machine.plug(LATE.serial)?;
    machine.comes("systemctl is-active znsage@late.service", 60)
}

/// Unplugs the late device while it is on: its service stops, and its log says so.
fn leaves(machine: &mut Machine) -> Outcome<std::time::Duration> {
    machine.unplug(LATE.serial)?;
    let took = machine.ends("znsage@late.service", 60)?;
    let said = machine.ok("journalctl -b -o cat -u znsage@late.service")?;
    ensure!(said.contains("was removed while in use"), "{said}");
    ensure!(said.contains("znsage@late.service: Deactivated successfully"), "{said}");
    machine.ok("! test -e /sys/block/znsage0 && grep -q ^/dev/znsage1 /proc/swaps")?;
    Ok(took)
}

/// Mends the configuration as the messages say.
fn mend(machine: &mut Machine) -> Outcome {
    machine.ok(&format!(
        "sed -i 's/^priority = 10/&\\nforce = yes/; /^.a b.$/d; /^.broken.$/,/^prio = 5/d' {FILE}"
    ))?;
    for line in Document::open(BOOT)?.below("Swap after every start", &["znsage", "systemctl"])? {
        machine.ok(line)?;
    }
    machine.ok("grep -q '^/dev/znsage1 .*10$' /proc/swaps").map(drop)
}

/// Checks the console of all starts.
fn no_complaints(machine: &Machine) -> Outcome {
    let console = std::fs::read(machine.console()).map_err(|e| e.to_string())?;
    let console = String::from_utf8_lossy(&console);
    let lines = complaints(&console);
    ensure!(lines.is_empty(), "{lines:#?}");
    Ok(())
}

/// Lines that tell of a bug. QEMU's emulation now and then kills a starting kernel that
/// patches its own code; the machine restarts, and those lines do not count.
fn complaints(console: &str) -> Vec<&str> {
    const BAD: [&str; 6] =
        ["BUG:", "WARNING:", "Oops", "Call Trace", "blocked for more than", "I/O error"];
    let mut emulated = false;
    let mut found = Vec::new();
    for line in console.lines() {
        emulated = (emulated || line.contains("Oops: int3")) && !line.contains("Welcome to");
        if !emulated && BAD.iter().any(|word| line.contains(word)) {
            found.push(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crashes_of_the_emulator_do_not_count() {
        let console = "Oops: int3: 0000\nCall Trace:\nKernel panic\nWelcome to Debian\nfine\n";
        assert!(complaints(console).is_empty());
        let console = format!("{console}WARNING: CPU: 0\nOops: general protection\nCall Trace:\n");
        assert_eq!(complaints(&console).len(), 3);
    }
}
