// SPDX-License-Identifier: GPL-2.0-only
//! Policies in BPF, from `make bpf`: loaded, used, unloaded while in use, ejected.

use std::fs;

use super::devices::MAIN;
use super::policy::{force_gc, known, set, under_load};
use crate::child::spawn;
use crate::cleanup::MOUNT;
use crate::device::{bench, load_module, module_path, Device, CONFIG};
use crate::ensure;
use crate::guest::{self, Setting};
use crate::kmsg::Log;
use crate::outcome::{Context, Outcome};

crate::cases![bpf:
    samples, refused_at_load, ejected (more), unloaded_while_off, holds_the_module, without_btf (full)];

/// The object file of a program.
fn object(name: &str) -> String {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../build/bpf");
    format!("{build}/{name}.bpf.o")
}

/// Why this kernel cannot have such policies. Debug kernels are built without BTF.
fn reason() -> Outcome<&'static str> {
    let release = guest::read("/proc/sys/kernel/osrelease")?;
    match ["-kasan", "-kcsan", "-lockdep"].iter().any(|flavour| release.contains(flavour)) {
        true => Ok("built without BTF of modules"),
        false => Ok("older than 6.12"),
    }
}

/// Whether this kernel has such policies. If not, the module says why, and so does the command.
fn supported() -> Outcome<bool> {
    let reason = reason()?;
    load_module()?;
    let answer = guest::read(&format!("{CONFIG}/bpf"))?;
    if answer == "yes" {
        return Ok(true);
    }
    print!("{answer} ... ");
    ensure!(answer.contains(reason), "the module has no policies in BPF: {answer}");
    let ran = guest::run(&["znsage", "policy", "load", &object("cpu")])?;
    ensure!(ran.status == 13, "exit status {}", ran.status);
    ensure!(ran.said().contains(reason), "it says {}", ran.said());
    guest::ok(&["rmmod", "znsage"])?;
    Ok(false)
}

fn policy_of(device: &Device) -> Outcome<String> {
    guest::read(&device.attribute("policy"))
}

/// A sample is loaded, used, and unloaded while in use.
fn takes_over(device: &Device, name: &str) -> Outcome {
    let policy = format!("bpf-{name}");
    guest::ok(&["znsage", "policy", "load", &object(name)])?;
    ensure!(known()?.contains(&policy), "{policy} is not known");
    let again = guest::run(&["znsage", "policy", "load", &object(name)])?;
    ensure!(again.status != 0, "{policy} could be loaded twice");
    set(device, "policy", &policy)?;
    let before = device.counter("host_blocks")?;
    guest::eventually(20.0, || device.counter("host_blocks").is_ok_and(|now| now > before + 100));
    let written = device.counter("host_blocks")? - before;
    ensure!(written > 100, "{policy}: only {written} blocks were swapped out");
    ensure!(policy_of(device)? == policy, "{policy} is no longer in use");
    guest::ok(&["znsage", "policy", "unload", &policy])?;
    guest::eventually(10.0, || policy_of(device).is_ok_and(|p| p == "heat"));
    ensure!(policy_of(device)? == "heat", "{policy} is used after it was unloaded");
    ensure!(!known()?.contains(&policy), "{policy} is still known");
    Ok(())
}

/// Each sample is loaded, takes over under load, and is unloaded while in use.
fn samples(_: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    force_gc(&device)?;
    under_load(|| {
        ["greedy", "cpu", "cgroup", "hotcold"].iter().try_for_each(|name| takes_over(&device, name))
    })?;
    let refused = device.counter("policy_refused")?;
    ensure!(refused == 0, "{refused} answers were refused");
    device.finish_sound()
}

fn is_ejected(device: &Device, program: &str, why: &str) -> Outcome {
    guest::ok(&["znsage", "policy", "load", &object(program)])?;
    set(device, "policy", "bpf-wrong")?;
    guest::eventually(60.0, || policy_of(device).is_ok_and(|p| p == "heat"));
    ensure!(policy_of(device)? == "heat", "{program} is still in use");
    let status = guest::ok(&["znsage", "status"])?;
    ensure!(status.contains(why), "status does not say why: {status}");
    guest::refuses(&device.attribute("policy"), "bpf-wrong", libc::EINVAL)?;
    guest::ok(&["znsage", "policy", "unload", "bpf-wrong"]).map(drop)
}

/// A policy that gives one wrong answer a second stays, however many these are in the end.
fn is_forgiven(device: &Device) -> Outcome {
    guest::ok(&["znsage", "policy", "load", &object("wrong-rarely")])?;
    let before = device.counter("policy_refused")?;
    set(device, "policy", "bpf-rare")?;
    let wrong = || device.counter("policy_refused").map(|now| now - before);
    guest::eventually(60.0, || wrong().is_ok_and(|n| n > 102));
    ensure!(policy_of(device)? == "bpf-rare", "ejected after {} wrong answers", wrong()?);
    ensure!(wrong()? > 102, "only {} wrong answers", wrong()?);
    guest::ok(&["znsage", "policy", "unload", "bpf-rare"]).map(drop)
}

/// Nothing that sleeps can be loaded, and nothing in place() or survivor() that repeats a part of the
/// program as often as it wants.
fn refused_at_load(_: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    const MEMBER: &str = "attach to unsupported member";
    for (program, why) in [
        ("sleeps", MEMBER),
        ("iterator", MEMBER),
        ("may-goto", MEMBER),
        ("global", MEMBER),
        ("loop", "bpf_loop#181"),
        ("loop-survivor", "bpf_loop#181"),
        ("map-walk", "bpf_for_each_map_elem#164"),
    ] {
        let ran = guest::run(&["znsage", "policy", "load", &object(program)])?;
        ensure!(ran.status != 0, "{program} is loaded");
        ensure!(ran.said().contains(why), "{program}: it says {}", ran.said());
    }
    guest::ok(&["rmmod", "znsage"]).map(drop)
}

/// A policy ends while a device that uses it is turned off. The module holds the end until `off` waits for
/// it; had `off` already freed the device's workqueue, the policy's last kick would find it.
fn unloaded_while_off(_: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    guest::ok(&["znsage", "policy", "load", &object("cpu")])?;
    set(&device, "policy", "bpf-cpu")?;
    device.swapoff()?;
    let hold = Setting::set("/sys/module/znsage/parameters/hold_end", "Y")?;
    guest::ok(&["znsage", "policy", "unload", "bpf-cpu"])?;
    // The kernel ends it later.
    let ends = guest::eventually(10.0, || known().is_ok_and(|k| !k.contains(&"bpf-cpu".into())));
    let item = format!("{CONFIG}/{}", guest::read(&device.attribute("config"))?);
    let off = spawn(None, |_| guest::write(&format!("{item}/power"), "0").context("power"))?;
    let stack = format!("/proc/{}/stack", off.pid());
    let waits = guest::eventually(30.0, || {
        guest::read(&stack).is_ok_and(|stack| stack.contains("znsage_policy_end"))
    });
    drop(hold);
    off.join()?;
    ensure!(ends && waits, "the policy ends {ends}, the device waits {waits}");
    fs::remove_dir(&item).context("remove the item")?;
    guest::ok(&["rmmod", "znsage"])?;
    guest::ok(&["blkzone", "reset", &device.backing]).map(drop)
}

/// A policy whose answers are wrong, or late, is ejected, and `status` says why. Its link stays until it
/// is unloaded, when it can be loaded again.
fn ejected(log: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    log.allow("BPF policy ejected for");
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    force_gc(&device)?;
    under_load(|| {
        for (program, why) in [
            ("slow-victim", "calls that take too long, the last a victim() of "),
            ("slow-place", "calls that take too long, the last a place() of "),
            ("wrong-victim", "100 wrong answers, the last zone 1000000 of victim()"),
            ("wrong-survivor", "100 wrong answers, the last 1000 of survivor()"),
            ("wrong", "100 wrong answers, the last 1000 of place(), which must be below"),
        ] {
            is_ejected(&device, program, why)?;
        }
        is_forgiven(&device)
    })?;
    set(&device, "policy", "single")?;
    let status = guest::ok(&["znsage", "status"])?;
    ensure!(!status.contains("ejected"), "another policy was set, and status says: {status}");
    device.finish_sound()
}

/// The module cannot go while a policy is loaded, used or not: its functions are what the program fills in.
fn holds_the_module(_: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    guest::ok(&["znsage", "policy", "load", &object("cpu")])?;
    let refused = guest::run(&["rmmod", "znsage"])?;
    ensure!(refused.status != 0, "the module went with a policy loaded");
    ensure!(refused.said().contains("in use"), "rmmod says {}", refused.said());
    ensure!(known()?.iter().any(|p| p == "bpf-cpu"), "the policy went with the attempt");
    guest::ok(&["znsage", "policy", "unload", "bpf-cpu"])?;
    // The kernel drops the program's last reference after a grace period.
    let went = guest::eventually(10.0, || guest::ok(&["rmmod", "znsage"]).is_ok());
    ensure!(went, "the module stays after its last policy went");
    Ok(())
}

/// A module without type information of its own, as on a machine that builds it without pahole, swaps all
/// the same.
fn without_btf(log: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    guest::ok(&["rmmod", "znsage"])?;
    log.allow("no policies in BPF: the module is built without BTF");
    std::fs::create_dir_all(MOUNT).context(MOUNT)?;
    let bare = format!("{MOUNT}/znsage.ko");
    guest::ok(&["objcopy", "--remove-section=.BTF", &module_path()?, &bare])?;
    let loaded = guest::ok(&["insmod", &bare]);
    std::fs::remove_file(&bare).context(&bare)?;
    loaded?;
    let answer = guest::read(&format!("{CONFIG}/bpf"))?;
    ensure!(answer.contains("built without BTF"), "the module says {answer}");
    let ran = guest::run(&["znsage", "policy", "load", &object("cpu")])?;
    ensure!(ran.status == 13, "exit status {}", ran.status);
    ensure!(ran.said().contains("built without BTF"), "it says {}", ran.said());
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    bench(&["--fill-only", "--size", "24M"])?;
    let written = device.counter("host_blocks")?;
    ensure!(written > 1000, "only {written} blocks were swapped out");
    device.finish_sound()
}
