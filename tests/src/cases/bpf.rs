// SPDX-License-Identifier: GPL-2.0-only
//! Policies in BPF, from `make bpf`: loaded, used, unloaded while in use, ejected.

use super::devices::MAIN;
use super::policy::{force_gc, known, set, under_load};
use crate::device::{load_module, Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::outcome::Outcome;

crate::cases![bpf: samples, ejected];

/// The object file of a program.
fn object(name: &str) -> String {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../build/bpf");
    format!("{build}/{name}.bpf.o")
}

/// Whether this kernel has such policies. If not, the module says why, and so does the command.
fn supported() -> Outcome<bool> {
    load_module()?;
    let answer = guest::read(&format!("{CONFIG}/bpf"))?;
    if answer == "yes" {
        return Ok(true);
    }
    print!("{answer} ... ");
    ensure!(answer.contains("older than 6.12"), "the module has no policies in BPF: {answer}");
    let ran = guest::run(&["znsage", "policy", "load", &object("cpu")])?;
    ensure!(ran.status == 3, "exit status {}", ran.status);
    ensure!(ran.said().contains("older than 6.12"), "it says {}", ran.said());
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
    // A load of its own for each: the first ones may take all of one.
    for name in ["greedy", "cpu", "cgroup", "hotcold"] {
        under_load(|| takes_over(&device, name))?;
    }
    let refused = device.counter("policy_refused")?;
    ensure!(refused == 0, "{refused} answers were refused");
    device.finish_sound()
}

/// A policy whose answers are wrong, or late, is ejected, and `status` says why. Its link stays until it
/// is unloaded, when it can be loaded again.
fn ejected(log: &mut Log) -> Outcome {
    if !supported()? {
        return Ok(());
    }
    log.allow("BPF policy ejected after 100 wrong answers");
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    force_gc(&device)?;
    for (program, why) in [
        ("slow-victim", "the last a victim() of more than 50 ms"),
        ("slow-place", "the last a place() of more than 50 ms"),
        ("wrong-victim", "the last zone 1000000 of victim()"),
        ("wrong", "the last 1000 of place(), which must be below"),
    ] {
        under_load(|| {
            guest::ok(&["znsage", "policy", "load", &object(program)])?;
            set(&device, "policy", "bpf-wrong")?;
            guest::eventually(60.0, || policy_of(&device).is_ok_and(|p| p == "heat"));
            ensure!(policy_of(&device)? == "heat", "{program} is still in use");
            let status = guest::ok(&["znsage", "status"])?;
            ensure!(status.contains(why), "status does not say why: {status}");
            guest::refuses(&device.attribute("policy"), "bpf-wrong", libc::EINVAL)?;
            guest::ok(&["znsage", "policy", "unload", "bpf-wrong"]).map(drop)
        })?;
    }
    set(&device, "policy", "single")?;
    let status = guest::ok(&["znsage", "status"])?;
    ensure!(!status.contains("ejected"), "another policy was set, and status says: {status}");
    device.finish_sound()
}
