// SPDX-License-Identifier: GPL-2.0-only
//! The actions on a machine under torture, one at a time.

use super::{Torture, PRIORITY};
use crate::device::{self, Device};
use crate::devices::TIGHT;
use crate::ensure;
use crate::guest;
use crate::outcome::{Context, Outcome};
use crate::pattern::Random;
use crate::sleep;

pub type Act = fn(&mut Torture) -> Outcome;

/// Weight, name in the summary, function.
const ACTS: [(usize, &str, Act); 18] = [
    (8, "policy", policy),
    (6, "victim", victim),
    (6, "watermarks", watermarks),
    (4, "pace", pace),
    (4, "deadline", deadline),
    (4, "look", look),
    (4, "check", check),
    (6, "reclaim", reclaim),
    (6, "kill", kill),
    (3, "swapoff", swapoff),
    (3, "off and on", off_and_on),
    (3, "second device", second_device),
    (3, "CPU", cpu),
    (2, "unload", unload),
    (2, "compact", compact),
    (2, "suspend", suspend),
    (1, "bench", bench),
    (1, "memory block", memory_block),
];

const CPU: &str = "/sys/devices/system/cpu/cpu1/online";
const BLOCKS: &str = "/sys/devices/system/memory";

/// Options to turn the device on with.
const OPTIONS: [&[&str]; 7] = [
    &[],
    &["--policy", "cgroup"],
    &["--policy", "heat", "--victim", "cost-benefit"],
    &["--chunk", "64K", "--stripe", "2"],
    &["--encrypt", "aes-xts"],
    &["--reserve", "3", "--over-provisioning", "20"],
    &["--size", "64M"],
];

pub fn choose(random: &mut Random) -> (&'static str, Act) {
    let all = ACTS.iter().map(|act| act.0).sum();
    let mut at = random.below(all);
    for &(weight, name, act) in &ACTS {
        if at < weight {
            return (name, act);
        }
        at -= weight;
    }
    unreachable!("the weights have a sum")
}

pub fn main_on(main: &str, options: &[&str]) -> Outcome<Device> {
    Device::on(main, &[&["--priority", PRIORITY], options].concat())
}

/// The watermarks of a device that was just turned on.
pub fn usual_watermarks(device: &Device) -> Outcome<(u64, u64)> {
    Ok((device.counter("gc_low")?, device.counter("gc_high")?))
}

pub fn all_cpus() -> Outcome {
    match guest::exists(CPU) {
        true => guest::write(CPU, "1").context(CPU),
        false => Ok(()),
    }
}

fn device(torture: &Torture) -> Outcome<&Device> {
    torture.device.as_ref().ok_or_else(|| "the device is off".to_string())
}

fn set(torture: &Torture, file: &str, value: &str) -> Outcome {
    let path = device(torture)?.attribute(file);
    guest::write(&path, value).context(format!("{path} := {value}"))
}

fn one_of<'a>(torture: &mut Torture, values: &[&'a str]) -> &'a str {
    values[torture.random.below(values.len())]
}

fn policy(torture: &mut Torture) -> Outcome {
    let value = one_of(torture, &["single", "cpu", "cgroup", "heat"]);
    set(torture, "policy", value)
}

fn victim(torture: &mut Torture) -> Outcome {
    let value = one_of(torture, &["greedy", "cost-benefit", "age"]);
    set(torture, "victim", value)
}

/// GC cleans all it can, half of it, or its usual amount.
fn watermarks(torture: &mut Torture) -> Outcome {
    let device = device(torture)?;
    let (zones, before) = (device.counter("zones_total")?, device.counter("gc_low")?);
    let (low, high) = match torture.random.below(3) {
        0 => (zones - 2, zones - 1),
        1 => (zones / 2, zones / 2 + 1),
        _ => torture.watermarks,
    };
    // The low one stays below the high one at all times.
    let mut settings = [("gc_low", low), ("gc_high", high)];
    if low > before {
        settings.reverse();
    }
    settings.iter().try_for_each(|(file, value)| set(torture, file, &value.to_string()))
}

fn pace(torture: &mut Torture) -> Outcome {
    let value = one_of(torture, &["0", "1", "30", "100"]);
    set(torture, "pace", value)
}

fn deadline(torture: &mut Torture) -> Outcome {
    let value = one_of(torture, &["100", "1000", "20000"]);
    set(torture, "deadline_us", value)
}

/// Reads every attribute.
fn look(torture: &mut Torture) -> Outcome {
    let device = device(torture)?;
    for file in guest::list(&device.attribute("")) {
        guest::read(&device.attribute(&file))?;
    }
    guest::ok(&["znsage", "status", "--json"]).map(drop)
}

fn check(torture: &mut Torture) -> Outcome {
    device(torture)?.check()
}

/// Reclaims a group's memory from outside, as a memory manager does.
fn reclaim(torture: &mut Torture) -> Outcome {
    let chosen = torture.random.below(torture.subjects.len());
    // It may reclaim less, or the group may be gone.
    let _ = torture.subjects[chosen].groups[0].set("memory.reclaim", "8M");
    Ok(())
}

fn kill(torture: &mut Torture) -> Outcome {
    let chosen = torture.random.below(torture.subjects.len());
    let subject = torture.subjects.swap_remove(chosen);
    torture.killed += 1;
    subject.child.kill()
}

/// The swap area is turned off: its pages go to other areas. It is formatted and turned on again.
fn swapoff(torture: &mut Torture) -> Outcome {
    let device = device(torture)?;
    torture.without_limits(|| device.swapoff())?;
    device.nothing_lives()?;
    device.check()?;
    guest::ok(&["mkswap", &device.node()])?;
    guest::ok(&["swapon", "--priority", PRIORITY, &device.node()]).map(drop)
}

fn off_and_on(torture: &mut Torture) -> Outcome {
    if let Some(device) = torture.device.take() {
        torture.without_limits(|| device.finish_sound())?;
    }
    let options = OPTIONS[torture.random.below(OPTIONS.len())];
    let device = main_on(&torture.main, options).context(options.join(" "))?;
    torture.watermarks = usual_watermarks(&device)?;
    torture.device = Some(device);
    Ok(())
}

/// The second device has the same priority: the kernel uses both areas in turn.
fn second_device(torture: &mut Torture) -> Outcome {
    match torture.beside.take() {
        Some(device) => torture.without_limits(|| device.finish_sound()),
        None => {
            let device = Device::on(&guest::device(TIGHT)?, &["--priority", PRIORITY])?;
            torture.beside = Some(device);
            Ok(())
        }
    }
}

fn cpu(_: &mut Torture) -> Outcome {
    if !guest::exists(CPU) {
        return Ok(());
    }
    let turned = if guest::read(CPU)? == "1" { "0" } else { "1" };
    guest::write(CPU, turned).context(CPU)
}

fn unload(_: &mut Torture) -> Outcome {
    let ran = guest::run(&["rmmod", "znsage"])?;
    ensure!(ran.status != 0, "the module could be unloaded while in use");
    Ok(())
}

fn compact(_: &mut Torture) -> Outcome {
    guest::write("/proc/sys/vm/drop_caches", "3").context("drop_caches")?;
    guest::compact()
}

/// Freezes all tasks, wherever they are.
fn suspend(_: &mut Torture) -> Outcome {
    sleep::to_idle()
}

/// One more process, which takes the remaining swap.
fn bench(torture: &mut Torture) -> Outcome {
    let pattern = one_of(torture, &["random", "sequential", "zipf", "etc"]);
    let arguments = ["--size", "32M", "--seconds", "2", "--pattern", pattern];
    device::bench(&arguments).context(pattern).map(drop)
}

/// The kernel moves all pages of the block, or gives up.
fn memory_block(torture: &mut Torture) -> Outcome {
    let blocks: Vec<String> = guest::list(BLOCKS)
        .into_iter()
        .filter(|n| n.strip_prefix("memory").is_some_and(|n| n.parse::<u32>().is_ok()))
        .collect();
    if blocks.is_empty() {
        return Ok(());
    }
    let path = format!("{BLOCKS}/{}/state", blocks[torture.random.below(blocks.len())]);
    let _ =
        guest::run(&["timeout", "-s", "INT", "5", "sh", "-c", &format!("echo offline > {path}")])?;
    match guest::read(&path)?.as_str() {
        "online" => Ok(()),
        _ => guest::write(&path, "online").context(path),
    }
}
