// SPDX-License-Identifier: GPL-2.0-only
//! While a device is attached the module refuses hibernation, and while the kernel hibernates
//! it refuses to attach. Suspend is not affected.

use std::fs::File;

use super::devices::{MAIN, MEDIUM};
use crate::child::{spawn, Group};
use crate::device::{Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::sleep::{self, NoFurther, STATE};

crate::cases![hibernation: is_refused_while_on (each), holds_attach_back (more),
    suspend_is_not_refused (more)];

/// To the kernel, a process that has this file open is about to hibernate.
const SNAPSHOT: &str = "/dev/snapshot";

/// The module's message.
const REFUSED: &str = "znsage: hibernation: refused";

fn no_snapshot(device: &Device) -> Outcome {
    let name = &device.name;
    match File::open(SNAPSHOT) {
        Ok(_) => Err(format!("{name} is on and {SNAPSHOT} can be opened")),
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        Err(e) => Err(format!("{name} is on and {SNAPSHOT} is refused with `{e}`")),
    }
}

/// Refused by both interfaces, and swapped pages come back.
fn is_refused_while_on(log: &mut Log) -> Outcome {
    const SIZE: usize = 16 << 20;
    log.allow(REFUSED);
    let _awake = NoFurther::than_freezing()?;
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    let group = Group::new("hibernation", 8 << 20)?;
    let mut child = spawn(Some(&group), |link| {
        let mut memory = Memory::new(SIZE)?;
        let all = 0..memory.pages();
        memory.fill(all.clone(), 1);
        memory.page_out()?;
        link.point()?;
        memory.verify(all.clone(), 1)?;
        memory.fill(all.clone(), 2);
        memory.page_out()?;
        memory.verify(all, 2)
    })?;
    child.reach()?;
    let before = device.counter("host_blocks")?;
    guest::refuses(STATE, "disk", libc::EBUSY)?;
    ensure!(log.has(REFUSED), "the log does not say who refused");
    no_snapshot(&device)?;
    child.go_on()?;
    child.join()?;
    let written = device.counter("host_blocks")? - before;
    ensure!(written > 1024, "only {written} pages were swapped out afterwards");
    device.finish_sound()
}

/// Hibernation is allowed once the last device is detached; then attaching is refused.
fn holds_attach_back(log: &mut Log) -> Outcome {
    log.allow(REFUSED);
    let first = Device::attach(&guest::device(MAIN)?, &[])?;
    let second = Device::on(&guest::device(MEDIUM)?, &[])?;
    let power = format!("{CONFIG}/suite/power");
    guest::write(&power, "0").context("detach")?;
    no_snapshot(&second)?;
    // A failed attach does not count.
    let backing = format!("{CONFIG}/suite/backing");
    guest::write(&backing, &second.backing).context("change the backing device")?;
    guest::refuses(&power, "1", libc::EBUSY)?;
    guest::write(&backing, &first.backing).context("change it back")?;
    second.finish_sound()?;

    let hibernating = File::open(SNAPSHOT).context("nothing is on any more")?;
    guest::refuses(&power, "1", libc::EAGAIN)?;
    ensure!(log.has("the system is about to hibernate"), "the log does not say why");
    drop(hibernating);
    guest::write(&power, "1").context("attach when it is over")?;
    no_snapshot(&first)?;
    first.finish_sound()
}

fn suspend_is_not_refused(log: &mut Log) -> Outcome {
    let device = Device::on(&guest::device(MAIN)?, &[])?;
    sleep::to_idle()?;
    ensure!(!log.has(REFUSED), "hibernation was refused, although only suspend was requested");
    device.finish_sound()
}
