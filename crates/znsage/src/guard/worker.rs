// SPDX-License-Identifier: GPL-2.0-only
//! The process of the guard.
//!
//! It must run while memory is short: it is locked in memory, the OOM killer leaves it
//! alone, and it allocates little. What it holds is anonymous memory of its own, so
//! whatever ends it frees all of it.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::wait::waitpid;
use nix::unistd::{fork, setsid, ForkResult};

use super::held::Held;
use super::plan::{self, View};
use crate::swaps::{self, Area};
use crate::sys::{Real, Sys};
use crate::{counters, interrupt};

/// The subcommand, which is hidden.
pub const COMMAND: &str = "guard-worker";

/// The file with the guard's process id.
pub fn record(name: &str) -> String {
    format!("/run/znsage/{name}.guard")
}

/// Slots to take before looking again.
const STEP: u64 = 1024;
/// Pages of its own that may come into memory, as code and data do, before the guard
/// concludes that somebody turns the area off.
const STRANGE: u64 = 2048;
/// The filler comes back when this part of an area is free again.
const FREE_AGAIN: u64 = 7;

/// What the guard does to the machine; tests replace it.
trait Hands {
    fn held(&self) -> u64;
    /// Holds up to so many slots more; returns how many.
    fn hold(&mut self, slots: u64) -> u64;
    fn release(&mut self, slots: u64);
    /// Pages of this process that are in memory.
    fn resident(&self) -> u64;
    fn filler(&mut self, on: bool) -> bool;
}

struct Guard<'a, H> {
    sys: &'a dyn Sys,
    name: String,
    page: u64,
    certain: u64,
    hands: H,
    /// Pages in memory when nothing is held.
    usual: u64,
    /// The area is being turned off: no slot is held until it is gone.
    leaving: bool,
    /// The guard has turned the filler off.
    no_filler: bool,
}

impl<H: Hands> Guard<'_, H> {
    /// Acts once. Returns when to act again, or None if the device is gone.
    fn act(&mut self) -> Option<Duration> {
        let Ok(room) = counters::value::<u64>(self.sys, &self.name, "room_bytes") else {
            return self.sys.exists(&counters::directory(&self.name)).then(|| plan::pause(0));
        };
        let areas = swaps::areas(self.sys);
        let Some(area) = areas.iter().find(|a| a.name() == self.name) else {
            self.leaving = false;
            self.hands.release(u64::MAX);
            return Some(plan::pause(u64::MAX));
        };
        self.notice_swapoff();
        let filler = self.mind_filler(area, &areas);
        if self.leaving {
            return Some(filler);
        }
        let slots = self.mind_slots(area, &areas, room);
        Some(filler.min(slots))
    }

    fn notice_swapoff(&mut self) {
        let resident = self.hands.resident();
        if self.hands.held() == 0 {
            self.usual = resident;
        } else if resident > self.usual + STRANGE {
            self.hands.release(u64::MAX);
            self.leaving = true;
        }
    }

    fn mind_slots(&mut self, area: &Area, areas: &[Area], room: u64) -> Duration {
        let above = |other: &&Area| other.priority > area.priority;
        let above = areas.iter().filter(above).map(Area::free_bytes).sum::<u64>();
        let mut view = View {
            size: area.bytes / self.page,
            used: area.used_bytes / self.page,
            held: self.hands.held(),
            room: room / self.page,
            certain: self.certain,
            above: above / self.page,
        };
        self.hands.release(view.surplus());
        let wanted = view.lack().min(STEP);
        let mut got = 0;
        while got < wanted {
            match self.hands.hold(wanted - got) {
                0 => break,
                more => got += more,
            }
        }
        view.held = self.hands.held();
        // Without a pause, if there is more to do.
        match got == STEP {
            true => Duration::ZERO,
            false => view.pause(),
        }
    }

    /// While the filler has free slots, the kernel takes them when no other area has any.
    fn mind_filler(&mut self, area: &Area, areas: &[Area]) -> Duration {
        let node = swaps::filler_node(&self.name);
        if !self.sys.exists(&node) {
            return plan::pause(u64::MAX);
        }
        let free = areas.iter().map(Area::free_bytes).sum::<u64>() / self.page;
        let size = area.bytes / self.page;
        let last = plan::last_slots(size);
        if free <= last && swaps::is_on(self.sys, &node) {
            self.no_filler |= self.hands.filler(false);
        } else if self.no_filler && free > (size / FREE_AGAIN).max(last + last / 2) {
            self.no_filler = !self.hands.filler(true);
        }
        plan::pause(free.saturating_sub(last))
    }
}

struct Machine {
    held: Held,
    statm: File,
    filler: CString,
}

impl Hands for Machine {
    fn held(&self) -> u64 {
        self.held.pages()
    }

    fn hold(&mut self, slots: u64) -> u64 {
        self.held.hold(slots).unwrap_or(0)
    }

    fn release(&mut self, slots: u64) {
        let _ = self.held.release(slots);
    }

    /// Without shared pages, such as code.
    fn resident(&self) -> u64 {
        let mut text = String::new();
        let mut file = &self.statm;
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let number = |nth| text.split(' ').nth(nth).and_then(|word| word.parse::<u64>().ok());
        match (read, number(1), number(2)) {
            (Ok(_), Some(all), Some(shared)) => all.saturating_sub(shared),
            _ => 0,
        }
    }

    /// A child calls swapoff, since the OOM killer prefers the process that does.
    fn filler(&mut self, on: bool) -> bool {
        if on {
            // SAFETY: the path is a string that ends with 0.
            return unsafe { libc::swapon(self.filler.as_ptr(), 0) } == 0;
        }
        // SAFETY: this process has one thread, and the child only calls swapoff.
        match unsafe { fork() } {
            Ok(ForkResult::Child) => {
                // SAFETY: as above; _exit runs nothing of this process.
                unsafe { libc::_exit(libc::swapoff(self.filler.as_ptr())) }
            }
            Ok(ForkResult::Parent { child }) => waitpid(child, None)
                .is_ok_and(|status| matches!(status, nix::sys::wait::WaitStatus::Exited(_, 0))),
            Err(_) => false,
        }
    }
}

/// Says "ready" on standard output and closes it once it guards.
pub fn main(name: &str, page: u64) -> ExitCode {
    match prepare(name, page) {
        Ok((mut guard, record)) => {
            while !interrupt::seen() {
                let Some(pause) = guard.act() else { break };
                // A signal ends the pause.
                let ms = pause.as_millis() as libc::c_int;
                // SAFETY: no descriptors, so none are read.
                unsafe { libc::poll(std::ptr::null_mut(), 0, ms) };
            }
            drop(guard);
            let _ = Real.forget(&self::record(name));
            drop(record);
            ExitCode::SUCCESS
        }
        Err(e) => {
            let _ = writeln!(io::stderr(), "{e}");
            ExitCode::FAILURE
        }
    }
}

fn prepare(name: &str, page: u64) -> io::Result<(Guard<'static, Machine>, Flock<File>)> {
    // SAFETY: nothing has been opened but the standard streams.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let _ = setsid();
    std::env::set_current_dir("/")?;
    let record = own(name)?;
    interrupt::catch();
    leave_cgroup();
    std::fs::write("/proc/self/oom_score_adj", "-1000")?;
    hurry();
    let certain = counters::value::<u64>(&Real, name, "certain_bytes");
    let certain = certain.map_err(|e| io::Error::other(e.message))? / page;
    let hands = Machine {
        held: Held::new(page as usize),
        statm: File::open("/proc/self/statm")?,
        filler: CString::new(swaps::filler_node(name))?,
    };
    let (usual, name) = (hands.resident(), name.to_string());
    let mut guard = Guard {
        sys: &Real,
        no_filler: !swaps::is_on(&Real, &swaps::filler_node(&name)),
        name,
        page,
        certain,
        hands,
        usual,
        leaving: false,
    };
    lock()?;
    // Everything that it needs later has been used once.
    guard.hands.hold(1);
    guard.hands.release(u64::MAX);
    guard.act();
    println!("ready");
    silence()?;
    Ok((guard, record))
}

/// The file with the pid. It is locked, so that there is one guard for each device.
fn own(name: &str) -> io::Result<Flock<File>> {
    let path = record(name);
    if let Some(directory) = Path::new(&path).parent() {
        std::fs::create_dir_all(directory)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    let mut file =
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| io::Error::from(e))?;
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(file)
}

/// A guard that was started by hand must not end with the session, nor be limited by
/// it. In the cgroup of a service of znsage it stays.
fn leave_cgroup() {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if !own.contains("/znsage@") {
        let _ = std::fs::write("/sys/fs/cgroup/cgroup.procs", "0");
    }
}

/// As a real-time task it runs at once and may use memory of the kernel's reserve, which
/// it gives back with each batch: otherwise it would wait in reclaim, behind those who fill
/// the device. Without a budget for such tasks in its cgroup, it only gets more CPU time.
fn hurry() {
    // SAFETY: a structure of numbers, for which zeros are valid.
    let mut how: libc::sched_param = unsafe { std::mem::zeroed() };
    how.sched_priority = 1;
    // SAFETY: both only change how this process is scheduled.
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_RR, &how) != 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, -20);
        }
    }
}

/// Locks all that is in memory and all that will be, except what is mapped later.
fn lock() -> io::Result<()> {
    // SAFETY: the call changes nothing that the program could see.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn silence() -> io::Result<()> {
    io::stdout().flush()?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        // SAFETY: both are open descriptors of this process.
        if unsafe { libc::dup2(null.as_raw_fd(), stream) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    const PAGE: u64 = 4096;
    const SLOTS: u64 = 100_000;
    const CERTAIN: u64 = 40_000;

    /// Slots that are held count as used in /proc/swaps.
    struct Puppet<'a> {
        fake: &'a Fake,
        held: u64,
        resident: u64,
    }

    /// The area, and the filler if it is on.
    fn swaps(fake: &Fake, used: u64, priority: i64, more: &str) {
        let (size, used) = (SLOTS * 4, used * 4);
        let area = format!("/dev/znsage0 partition {size} {used} {priority}\n");
        fake.put("/proc/swaps", &format!("Filename Type Size Used Priority\n{area}{more}"));
    }

    impl Hands for Puppet<'_> {
        fn held(&self) -> u64 {
            self.held
        }
        fn hold(&mut self, slots: u64) -> u64 {
            let got = slots.min(32);
            self.held += got;
            got
        }
        fn release(&mut self, slots: u64) {
            self.held -= slots.min(self.held);
        }
        fn resident(&self) -> u64 {
            self.resident
        }
        fn filler(&mut self, on: bool) -> bool {
            let node = swaps::filler_node("znsage0");
            let others = self.fake.read("/proc/swaps").unwrap();
            let others: String =
                others.split_inclusive('\n').filter(|line| !line.starts_with(&node)).collect();
            let line = format!("{node} partition {} 0 -2\n", SLOTS * 4);
            self.fake.put("/proc/swaps", &if on { others + &line } else { others });
            true
        }
    }

    fn guard(fake: &Fake) -> Guard<'_, Puppet<'_>> {
        Guard {
            sys: fake,
            name: "znsage0".to_string(),
            page: PAGE,
            certain: CERTAIN,
            hands: Puppet { fake, held: 0, resident: 100 },
            usual: 100,
            leaving: false,
            no_filler: false,
        }
    }

    fn room(fake: &Fake, pages: u64) {
        fake.put("/sys/block/znsage0/znsage/room_bytes", &format!("{}\n", pages * PAGE));
    }

    #[test]
    fn slots_are_held_until_none_is_free_without_room() {
        let fake = Fake::new();
        room(&fake, CERTAIN);
        swaps(&fake, 0, 0, "");
        let mut guard = guard(&fake);
        assert!(guard.act().unwrap() >= Duration::from_millis(10));
        assert_eq!(guard.hands.held, 0);
        room(&fake, 4000);
        while {
            swaps(&fake, 36_000 + guard.hands.held, 0, "");
            guard.act().unwrap() == Duration::ZERO
        } {}
        let free = SLOTS - 36_000 - guard.hands.held;
        assert!(free < 4000 && free > 2000, "{free}");
        // A program has ended.
        room(&fake, CERTAIN);
        swaps(&fake, guard.hands.held, 0, "");
        guard.act();
        assert_eq!(guard.hands.held, 0);
    }

    #[test]
    fn an_area_above_is_used_first() {
        let fake = Fake::new();
        room(&fake, 4000);
        let other = |free| format!("/dev/sda2 partition 400000 {} 7\n", 400_000 - free * 4);
        swaps(&fake, 36_000, 5, &other(50_000));
        let mut guard = guard(&fake);
        guard.act();
        assert_eq!(guard.hands.held, 0);
        swaps(&fake, 36_000, 5, &other(10));
        guard.act();
        assert!(guard.hands.held > 0);
    }

    #[test]
    fn swapoff_gets_the_slots_back() {
        let fake = Fake::new();
        room(&fake, 4000);
        swaps(&fake, 36_000, 0, "");
        let mut guard = guard(&fake);
        guard.act();
        assert!(guard.hands.held > 0);
        guard.hands.resident += STRANGE + 1;
        for _ in 0..3 {
            guard.act();
            assert_eq!(guard.hands.held, 0);
        }
        // Turned off, and on again.
        fake.put("/proc/swaps", "Filename Type Size Used Priority\n");
        guard.act();
        swaps(&fake, 36_000, 0, "");
        guard.act();
        assert!(guard.hands.held > 0);
        fake.remove("/sys/block/znsage0");
        assert_eq!(guard.act(), None);
    }

    #[test]
    fn the_filler_goes_before_it_is_used_and_comes_back() {
        let fake = Fake::new();
        fake.put(&swaps::filler_node("znsage0"), "");
        room(&fake, SLOTS);
        let line = format!("{} partition {} 0 -2\n", swaps::filler_node("znsage0"), SLOTS * 4);
        let filler = |fake: &Fake| swaps::is_on(fake, &swaps::filler_node("znsage0"));
        let mut guard = guard(&fake);
        swaps(&fake, SLOTS / 2, 0, &line);
        guard.act();
        assert!(filler(&fake));
        for used in [96, 90] {
            let now = if filler(&fake) { &line[..] } else { "" };
            swaps(&fake, SLOTS * used / 100, 0, now);
            guard.act();
            assert!(!filler(&fake), "{used} %");
        }
        swaps(&fake, SLOTS * 80 / 100, 0, "");
        guard.act();
        assert!(filler(&fake));
    }
}
