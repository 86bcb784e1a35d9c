// SPDX-License-Identifier: GPL-2.0-only
//! Two machines: one exports its zoned device by NVMe over TCP, the other has
//! its swap there, and the cable between them is pulled. docs/remote.md.

use std::thread::sleep;
use std::time::{Duration, Instant};

use znsage_tests::ensure;
use znsage_tests::outcome::Outcome;

use crate::machine::{Machine, Parts, Plan, Zoned};
use crate::story::Story;

const DEVICE: Zoned = Zoned { serial: "ZNS0", mib: 256, zone_mib: 4, movable: false };
const CARD: &str = "card";

/// The target, as docs/remote.md has it.
const EXPORT: &str = "set -e; modprobe nvmet-tcp; cd /sys/kernel/config/nvmet; \
    mkdir subsystems/swap; echo 1 > subsystems/swap/attr_allow_any_host; \
    echo REMOTE0 > subsystems/swap/attr_serial; mkdir subsystems/swap/namespaces/1; \
    echo /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_ZNS0 > subsystems/swap/namespaces/1/device_path; \
    echo 1 > subsystems/swap/namespaces/1/enable; mkdir ports/1; cd ports/1; \
    echo tcp > addr_trtype; echo ipv4 > addr_adrfam; echo 10.0.0.1 > addr_traddr; \
    echo 4420 > addr_trsvcid; ln -s ../../subsystems/swap subsystems/swap";

const BY_ID: &str = "/dev/disk/by-id/nvme-Linux_REMOTE0";
const CONNECT: &str = "nvme connect -t tcp -a 10.0.0.1 -s 4420 -n swap";

/// In MiB: what lies on swap untouched, and what is asked for while the cable is out.
const KEPT: u32 = 48;
const ASKED: u32 = 16;

const LOAD: &str = "systemd-run --quiet --unit=load -p StandardOutput=file:/run/load.json \
    znsage bench --size 96M --memory-limit 48M --seconds 40 --write-ratio 0.5 --seed 2 --json";
/// For the load to end, which has to fill its memory first.
const LOAD_TIME: u64 = 240;

pub fn run(parts: &Parts) -> Outcome<bool> {
    let mut story = Story::new();
    let cable = parts.file("cable");
    let card = |server| {
        format!("stream,id=net,server={server},addr.type=unix,addr.path={}", cable.display())
    };
    let plan = |name, server| {
        Plan::new(parts, name)
            .kernel("net.ifnames=0 systemd.mask=znsage@swap.service")
            .add(&["-netdev", &card(server)])
            .add(&["-device", &format!("virtio-net-pci,netdev=net,id={CARD}")])
    };
    let _ = std::fs::remove_file(&cable);
    let mut target = plan("target", "on").zoned(&DEVICE)?.start()?;
    let mut host = plan("host", "off").start()?;
    if let Err(why) = tell(&mut story, &mut target, &mut host) {
        story.check("to the end", Err::<(), _>(why));
        Story::console(&target);
        Story::console(&host);
    }
    Ok(story.end("remote"))
}

fn tell(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.check("the target starts", target.up());
    story.check("the host starts", host.up());
    for (machine, address) in [(&mut *target, "10.0.0.1"), (&mut *host, "10.0.0.2")] {
        machine.comes("ip link set eth0 up", 60)?;
        machine.ok(&format!("ip address add {address}/24 dev eth0; modprobe nvme-tcp"))?;
    }
    target.ok(EXPORT)?;
    waiting(story, target, host)?;
    failing(story, target, host)?;
    lost(story, target, host)?;
    story.check("the device is empty in the end", empty(target));
    Ok(())
}

/// The kernel's own settings: all waits until the cable is back.
fn waiting(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("the kernel's own settings: 20 s without a cable");
    on(host, "")?;
    story.check("swap in use", host.hold("kept", KEPT));
    begin_load(host)?;
    target.link(CARD, false)?;
    sleep(Duration::from_secs(20));
    target.link(CARD, true)?;
    story.check("swap goes on", goes_on(host));
    story.check("the load ends without a corrupt page", end_load(host));
    story.check("what lay there is read back", host.read_held("kept"));
    story.check("counters", counters(host));
    story.check("maps", host.ok("znsage check"));
    off(host)
}

/// With fast_io_fail_tmo: what is read meanwhile fails.
fn failing(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("fast_io_fail_tmo = 3 s: 20 s without a cable");
    on(host, "--keep-alive-tmo=2 --reconnect-delay=2 --fast_io_fail_tmo=3")?;
    story.check("swap in use", host.hold("kept", KEPT));
    story.check("swap in use", host.hold("asked", ASKED));
    begin_load(host)?;
    target.link(CARD, false)?;
    story.check("who reads gets SIGBUS", sigbus(host, "asked"));
    sleep(Duration::from_secs(15));
    story.check("counters meanwhile", counters(host));
    target.link(CARD, true)?;
    story.check("the path is back", host.comes("grep -q live /sys/class/nvme/nvme*/state", 60));
    story.check("load", end_load(host));
    story.check("counters", counters(host));
    story.check("what lay there is read back", host.read_held("kept"));
    story.check("nobody else has died", host.ok("systemctl --failed --plain --no-legend"));
    story.check("swap again", host.hold("again", KEPT));
    story.check("and back", host.read_held("again"));
    story.check("counters", counters(host));
    story.check("maps", host.ok("znsage check"));
    println!("{}", host.ok("dmesg | tail -60")?);
    off(host)
}

/// With ctrl_loss_tmo: the device goes.
fn lost(story: &mut Story, target: &mut Machine, host: &mut Machine) -> Outcome {
    story.tell("ctrl_loss_tmo = 5 s: 20 s without a cable");
    on(host, "--keep-alive-tmo=2 --reconnect-delay=2 --ctrl-loss-tmo=5")?;
    story.check("swap in use", host.hold("asked", ASKED));
    target.link(CARD, false)?;
    story.check("the device goes", host.comes(&format!("! test -e {BY_ID}"), 60));
    story.check("who reads gets SIGBUS", sigbus(host, "asked"));
    println!("{}", host.run("znsage off; dmesg | tail -30")?.out);
    target.link(CARD, true)?;
    story.check("it is back", on_again(host));
    story.check("swap again", host.hold("again", KEPT));
    story.check("and back", host.read_held("again"));
    off(host)
}

fn on_again(host: &mut Machine) -> Outcome {
    host.comes("ping -c 1 10.0.0.1 || ip neigh flush dev eth0", 20)?;
    on(host, "")
}

fn on(host: &mut Machine, settings: &str) -> Outcome {
    host.ok(&format!("{CONNECT} {settings}"))?;
    host.comes(&format!("test -b {BY_ID}"), 30)?;
    // What was there before is not emptied if the path was down.
    host.ok(&format!("znsage on --force {BY_ID}")).map(drop)
}

fn off(host: &mut Machine) -> Outcome {
    host.ok("znsage off && nvme disconnect -n swap").map(drop)
}

fn counter(host: &mut Machine, name: &str) -> Outcome<u64> {
    let text = host.ok(&format!("cat /sys/block/znsage0/znsage/{name}"))?;
    text.parse().map_err(|e| format!("{name} is `{text}`: {e}"))
}

fn begin_load(host: &mut Machine) -> Outcome {
    host.ok(LOAD)?;
    let blocks = counter(host, "host_blocks")? + 5000;
    host.comes(&format!("test $(cat /sys/block/znsage0/znsage/host_blocks) -gt {blocks}"), 120)?;
    Ok(())
}

/// How long after the cable was plugged in.
fn goes_on(host: &mut Machine) -> Outcome<Duration> {
    let before = counter(host, "host_blocks")? + 100;
    host.comes(&format!("test $(cat /sys/block/znsage0/znsage/host_blocks) -gt {before}"), 60)
}

fn end_load(host: &mut Machine) -> Outcome<String> {
    host.comes("! systemctl is-active load.service", LOAD_TIME)?;
    let said = host.ok("journalctl -o cat -u load.service -n 5; tail -n 8 /run/load.json")?;
    let state = host.ok("systemctl show -P ExecMainStatus load.service; systemctl reset-failed load.service || true")?;
    ensure!(state.lines().next() == Some("0"), "it ended with {state}: {said}");
    Ok(said.replace('\n', " "))
}

/// Asks for what is on swap, which ends the process by this signal.
fn sigbus(host: &mut Machine, name: &str) -> Outcome<Duration> {
    let start = Instant::now();
    host.ask_for(name)?;
    host.comes(&format!("! systemctl is-active {name}.service"), 120)?;
    let said = host.ok(&format!("journalctl -o cat -u {name}.service -n 5"))?;
    ensure!(said.contains("status=7/BUS"), "{said}");
    Ok(start.elapsed())
}

fn counters(host: &mut Machine) -> Outcome<String> {
    let mut text = String::new();
    for name in ["read_errors", "write_errors", "zones_retired", "zones_total", "blocks_total"] {
        text += &format!("{name} {} ", host.ok(&format!("cat /sys/block/znsage0/znsage/{name}"))?);
    }
    Ok(text)
}

fn empty(target: &mut Machine) -> Outcome {
    let zones = target.ok("blkzone report /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_ZNS0")?;
    let full: Vec<&str> = zones.lines().filter(|zone| !zone.contains("(em)")).collect();
    ensure!(zones.lines().count() == 64 && full.is_empty(), "{full:?}");
    Ok(())
}
