// SPDX-License-Identifier: GPL-2.0-only
//! Two machines, as in docs/dev/remote.md: one exports its zoned device by NVMe over TCP, the
//! other swaps to it, and the test pulls the cable between them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use znsage_guest::ensure;
use znsage_guest::outcome::Outcome;
use znsage_tests::document::Document;

use crate::machine::{Machine, Parts, Plan, Zoned};
use crate::story::Story;

const DEVICE: Zoned = Zoned { serial: "ZNS0", mib: 256, zone_mib: 4, movable: false };
const ZONES: u64 = DEVICE.mib / DEVICE.zone_mib;
const CARD: &str = "card";

/// The document whose commands this test runs.
const DOCUMENT: &str = "docs/dev/remote.md";
/// The device's name in the document, and in the machine.
const DEVICE_IN_DOCUMENT: &str = "nvme-VENDOR_MODEL_SERIAL";
const DEVICE_IN_MACHINE: &str = "nvme-QEMU_NVMe_Ctrl_ZNS0";
const ON_TARGET: &str = "The machine that has the device";
const ON_HOST: &str = "The machine that swaps";

const BY_ID: &str = "/dev/disk/by-id/nvme-Linux_REMOTE0";
const CONNECT: &str = "nvme connect -t tcp -a 10.0.0.1 -s 4420 -n swap";
const EXAMPLE: &str = "/usr/share/doc/znsage/examples/znsage-remote.service";

/// MiB that stay on swap, and MiB that are read while the cable is out.
const KEPT: u32 = 48;
const ASKED: u32 = 16;
/// How long the cable is out.
const OUTAGE: Duration = Duration::from_secs(20);

/// Half of the accesses write; each page is verified. It has one thread because Linux may
/// kill a process of a cgroup whose whole memory is in flight to a slow device.
const LOAD: &str = "systemd-run --quiet --unit=load -p StandardOutput=file:/run/load.json \
    znsage bench --size 112M --memory-limit 64M --threads 1 --seconds 40 --write-ratio 0.5 \
    --seed 2 --json";
/// For the load to fill its memory and end.
const LOAD_TIME: u64 = 240;

pub fn run(parts: &Parts) -> Outcome<bool> {
    let mut story = Story::new();
    let cable = parts.file("cable");
    let card = |server| {
        format!("stream,id=net,server={server},addr.type=unix,addr.path={}", cable.display())
    };
    let plan = |name, server, mac| {
        Plan::new(parts, name)
            .kernel("net.ifnames=0 systemd.mask=znsage@swap.service")
            .add(&["-netdev", &card(server)])
            .add(&["-device", &format!("virtio-net-pci,netdev=net,id={CARD},mac={mac}")])
    };
    let _ = std::fs::remove_file(&cable);
    let mut target = plan("target", "on", "52:54:00:00:00:01").zoned(&DEVICE)?.start()?;
    let mut host = plan("host", "off", "52:54:00:00:00:02").start()?;
    if let Err(why) = run_all(&mut story, &mut target, &mut host) {
        story.check("the test ends", Err::<(), _>(why));
        Story::console(&target);
        Story::console(&host);
    }
    Ok(story.end("remote"))
}

fn run_all(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.check("the target starts", target.up());
    story.check("the host starts", host.up());
    for (machine, address) in [(&mut *target, "10.0.0.1"), (&mut *host, "10.0.0.2")] {
        machine.comes("ip link set eth0 up", 60)?;
        machine.ok(&format!("ip address add {address}/24 dev eth0; modprobe nvme-tcp"))?;
    }
    export(target)?;
    story.check("by hand", by_hand(host));
    waiting(story, target, host)?;
    failing(story, target, host)?;
    removed(story, target, host)?;
    stopping(story, target, host)
}

/// Runs the document's commands for the target in one shell.
fn export(target: &mut Machine) -> Outcome {
    let document = Document::open(DOCUMENT)?;
    let lines = document.below(ON_TARGET, &["modprobe", "cd", "mkdir", "echo", "ln"])?;
    let script = lines.join("\n").replace(DEVICE_IN_DOCUMENT, DEVICE_IN_MACHINE);
    target.ok(&format!("set -e\n{script}")).map(drop)
}

fn by_hand(host: &mut Machine) -> Outcome<String> {
    let document = Document::open(DOCUMENT)?;
    let lines = document.below(ON_HOST, &["modprobe", "nvme", "znsage"])?;
    for line in &lines {
        if line.starts_with("znsage on") {
            host.comes(&format!("test -b {BY_ID}"), 30)?;
        }
        host.ok(line)?;
    }
    ensure!(lines.len() == 5, "{lines:?}");
    host.ok("! test -e /sys/block/znsage0")?;
    Ok(format!("{} commands", lines.len()))
}

/// The service of the examples: I/O waits until the cable is back.
fn waiting(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("nothing expires");
    host.ok(&format!("cp {EXAMPLE} /etc/systemd/system"))?;
    for line in Document::open(DOCUMENT)?.below(ON_HOST, &["systemctl"])? {
        story.check(line, host.ok(line).map(drop));
    }
    story.check("swap in use", host.hold("kept", KEPT));
    begin_load(host)?;
    target.link(CARD, false)?;
    sleep(OUTAGE);
    target.link(CARD, true)?;
    story.check("swap goes on", goes_on(host));
    story.check("the load ends without a corrupt page", load_is_right(host));
    story.check("kept memory is read back", host.read_held("kept"));
    story.check("no read failed", no_read_errors(host));
    story.check("maps", host.ok("znsage check"));
    story.check("the service stops", service(host, "stop"));
    story.check("the device is empty", empty(target));
    Ok(())
}

/// With fast_io_fail_tmo, I/O fails while the cable is out, and zones fail with it.
fn failing(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("fast_io_fail_tmo expires");
    on(host, "--keep-alive-tmo=2 --reconnect-delay=2")?;
    // Debian 12's nvme-cli has no option for it.
    host.ok("echo 3 > /sys/class/nvme/nvme0/fast_io_fail_tmo")?;
    story.check("swap in use", host.hold("kept", KEPT));
    story.check("swap in use", host.hold("asked", ASKED));
    begin_load(host)?;
    target.link(CARD, false)?;
    story.check("a reader gets SIGBUS", dies_of_sigbus(host, "asked"));
    sleep(OUTAGE);
    target.link(CARD, true)?;
    story.check("the path is back", host.comes("grep -q live /sys/class/nvme/nvme*/state", 60));
    story.check("the load is right or has ended", load_not_wrong(host));
    story.check("kept memory is right or SIGBUS", right_or_sigbus(host, "kept"));
    story.check("counters", counters(host));
    story.check("maps", host.ok("znsage check"));
    story.check("nothing else has died", only_those_failed(host));
    host.ok("znsage off")?;
    story.check("longer chunks than the path takes are refused", refuses_chunk(host));
    story.check("after off and on, all zones are there again", all_zones(host));
    swap_again(story, host);
    off(host)
}

/// With ctrl_loss_tmo the kernel removes the device.
fn removed(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("ctrl_loss_tmo expires");
    on(host, "--keep-alive-tmo=2 --reconnect-delay=2 --ctrl-loss-tmo=5")?;
    story.check("swap in use", host.hold("asked", ASKED));
    target.link(CARD, false)?;
    story.check("the kernel removes the device", host.comes(&format!("! test -e {BY_ID}"), 60));
    story.check("a reader gets SIGBUS", dies_of_sigbus(host, "asked"));
    story.check("znsage off", host.ok("znsage off"));
    target.link(CARD, true)?;
    story.check("nothing else has died", only_those_failed(host));
    story.check("it is connected again", on(host, ""));
    swap_again(story, host);
    off(host)
}

/// The machine stops with its swap in use.
fn stopping(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("the end");
    story.check("the service starts", service(host, "enable --now"));
    story.check("swap in use", host.hold("kept", KEPT));
    story.check("the host stops", host.power_off());
    story.check("the device is empty", empty(target));
    Ok(())
}

fn service(host: &mut Machine, what: &str) -> Outcome {
    host.ok(&format!("systemctl {what} znsage-remote.service")).map(drop)
}

fn on(host: &mut Machine, settings: &str) -> Outcome {
    host.comes(&format!("{CONNECT} {settings}"), 30)?;
    host.comes(&format!("test -b {BY_ID}"), 30)?;
    // After a lost path the device is not empty.
    host.ok(&format!("znsage on --force {BY_ID}")).map(drop)
}

fn off(host: &mut Machine) -> Outcome {
    host.ok("znsage off && nvme disconnect -n swap").map(drop)
}

fn swap_again(story: &mut Story, host: &mut Machine) {
    story.check("swap in use again", host.hold("again", KEPT));
    story.check("and read back", host.read_held("again"));
}

fn counter(host: &mut Machine, name: &str) -> Outcome<u64> {
    let text = host.ok(&format!("cat /sys/block/znsage0/znsage/{name}"))?;
    text.parse().map_err(|e| format!("{name} is `{text}`: {e}"))
}

fn counters(host: &mut Machine) -> Outcome<String> {
    let mut text = Vec::new();
    for name in ["read_errors", "write_errors", "zones_retired"] {
        text.push(format!("{name} {}", counter(host, name)?));
    }
    Ok(text.join(", "))
}

fn grows(host: &mut Machine, by: u64, patience: u64) -> Outcome<Duration> {
    let wanted = counter(host, "host_blocks")? + by;
    host.comes(&format!("test $(cat /sys/block/znsage0/znsage/host_blocks) -gt {wanted}"), patience)
}

/// Starts the load, and returns once it swaps.
fn begin_load(host: &mut Machine) -> Outcome {
    host.ok(LOAD)?;
    grows(host, 5000, 120).map(drop)
}

/// How long swap-out takes to resume.
fn goes_on(host: &mut Machine) -> Outcome<Duration> {
    grows(host, 100, 60)
}

/// Waits for the load; its exit status and output.
fn load_ended(host: &mut Machine) -> Outcome<(String, String)> {
    host.ends("load.service", LOAD_TIME)?;
    let status = host.ok("systemctl show -P ExecMainStatus load.service")?;
    let said = host.ok("cat /run/load.json; journalctl -o cat -u load.service")?;
    host.run("systemctl reset-failed load.service")?;
    Ok((status, said))
}

fn load_is_right(host: &mut Machine) -> Outcome {
    let (status, said) = load_ended(host)?;
    ensure!(status == "0" && said.contains("\"corrupt_pages\": 0"), "{status}: {said}");
    Ok(())
}

/// The load may fail, but not with status 1, which is for corrupt pages.
fn load_not_wrong(host: &mut Machine) -> Outcome<String> {
    let (status, said) = load_ended(host)?;
    ensure!(status != "1", "{said}");
    Ok(format!("status {status}"))
}

/// Has a service read its swapped memory, which must kill it.
fn dies_of_sigbus(host: &mut Machine, name: &str) -> Outcome<Duration> {
    let start = Instant::now();
    host.ask_for(name)?;
    ensure!(!survives(host, name)?, "it was read, without a cable");
    Ok(start.elapsed())
}

fn right_or_sigbus(host: &mut Machine, name: &str) -> Outcome<String> {
    host.ask_for(name)?;
    Ok(if survives(host, name)? { "right" } else { "SIGBUS" }.to_string())
}

/// Waits for the end of a service that holds memory; false if SIGBUS killed it.
fn survives(host: &mut Machine, name: &str) -> Outcome<bool> {
    host.ends(&format!("{name}.service"), 120)?;
    let said = host.ok(&format!("journalctl -o cat -u {name}.service | tail -n 3"))?;
    let (right, killed) = (said.contains("Deactivated"), said.contains("status=7/BUS"));
    ensure!(right || killed, "{said}");
    Ok(right)
}

fn no_read_errors(host: &mut Machine) -> Outcome<String> {
    let said = counters(host)?;
    ensure!(said.contains("read_errors 0,") && said.contains("zones_retired 0"), "{said}");
    Ok(said)
}

/// Checks that no other service failed, and that the kernel reports no bug and no lack of
/// memory.
fn only_those_failed(host: &mut Machine) -> Outcome {
    let failed = host.ok("systemctl --failed --plain --no-legend | cut -d ' ' -f 1")?;
    let expected = ["asked.service", "kept.service", "load.service"];
    let others: Vec<&str> = failed.lines().filter(|unit| !expected.contains(unit)).collect();
    ensure!(others.is_empty(), "{others:?}");
    host.ok("! dmesg | grep -E 'BUG:|WARNING:|Oops|Out of memory'").map(drop)
}

/// Such chunks do not fit in a request of the transport.
fn refuses_chunk(host: &mut Machine) -> Outcome {
    let ran = host.run(&format!("znsage on --force --chunk 1M {BY_ID}"))?;
    ensure!(ran.status == Some(14) && ran.err.contains("do not fit in one append"), "{}", ran.err);
    Ok(())
}

/// Retired zones are usable again after `off` and `on`.
fn all_zones(host: &mut Machine) -> Outcome {
    host.ok(&format!("znsage on --force {BY_ID}"))?;
    let (total, retired) = (counter(host, "zones_total")?, counter(host, "zones_retired")?);
    ensure!(total == ZONES && retired == 0, "{retired} of {total} zones are retired");
    Ok(())
}

fn empty(target: &mut Machine) -> Outcome {
    let zones = target.ok(&format!("blkzone report /dev/disk/by-id/{DEVICE_IN_MACHINE}"))?;
    let full: Vec<&str> = zones.lines().filter(|zone| !zone.contains("(em)")).collect();
    ensure!(zones.lines().count() as u64 == ZONES && full.is_empty(), "{full:?}");
    Ok(())
}
