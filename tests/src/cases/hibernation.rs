// SPDX-License-Identifier: GPL-2.0-only
//! Suspend and hibernation while a device is on, as far as they get here; and no image is read back
//! then, since attach has reset what it points to.

use std::fs::{File, OpenOptions};
use std::io;

use super::devices::{MAIN, MEDIUM};
use crate::child::{spawn, Group};
use crate::device::{Device, CONFIG};
use crate::ensure;
use crate::guest;
use crate::kmsg::Log;
use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::sleep::{NoFurther, STATE};

crate::cases![hibernation: sleeps_while_on (each), resume_is_refused_while_on (more)];

/// To the kernel, a process that has this file open for writing is about to read an image back.
const SNAPSHOT: &str = "/dev/snapshot";

/// The module's message.
const REFUSED: &str = "znsage: hibernation: an image is not read back";

fn resume() -> io::Result<File> {
    OpenOptions::new().write(true).open(SNAPSHOT)
}

fn no_resume(device: &Device) -> Outcome {
    let name = &device.name;
    match resume() {
        Ok(_) => Err(format!("{name} is on and {SNAPSHOT} can be opened")),
        Err(e) if e.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        Err(e) => Err(format!("{name} is on and {SNAPSHOT} is refused with `{e}`")),
    }
}

/// As far as the machine gets (`sleep.rs`), in the middle of swap. `make test-hibernation` does
/// all of it.
fn sleeps_while_on(_log: &mut Log) -> Outcome {
    const SIZE: usize = 16 << 20;
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
    for state in ["disk", "freeze"] {
        guest::write(STATE, state).context(state)?;
    }
    child.go_on()?;
    child.join()?;
    let written = device.counter("host_blocks")? - before;
    ensure!(written > 1024, "only {written} pages were swapped out afterwards");
    device.finish_sound()
}

/// No image is read back until the last device is detached; while one is, attaching is refused.
fn resume_is_refused_while_on(log: &mut Log) -> Outcome {
    log.allow(REFUSED);
    let first = Device::attach(&guest::device(MAIN)?, &[])?;
    let second = Device::on(&guest::device(MEDIUM)?, &[])?;
    let power = format!("{CONFIG}/suite/power");
    guest::write(&power, "0").context("detach")?;
    no_resume(&second)?;
    ensure!(log.has(REFUSED), "the log does not say who refused");
    // A failed attach does not count.
    let backing = format!("{CONFIG}/suite/backing");
    guest::write(&backing, &second.backing).context("change the backing device")?;
    guest::refuses(&power, "1", libc::EBUSY)?;
    guest::write(&backing, &first.backing).context("change it back")?;
    second.finish_sound()?;

    let resuming = resume().context("nothing is on any more")?;
    guest::refuses(&power, "1", libc::EAGAIN)?;
    ensure!(log.has("the system is about to resume"), "the log does not say why");
    drop(resuming);
    guest::write(&power, "1").context("attach when it is over")?;
    no_resume(&first)?;
    first.finish_sound()
}
