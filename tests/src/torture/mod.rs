// SPDX-License-Identifier: GPL-2.0-only
//! Random actions of every kind at once: processes start, fork, share, page out and are killed,
//! in cgroups that come and go, while the device is turned off and on, settings change, CPUs go
//! offline, memory is compacted. The seed determines the actions, but not their timing.

mod acts;
mod process;

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::child::{spawn, Child, Group};
use crate::device::Device;
use crate::guest;
use crate::outcome::{Context, Outcome};
use crate::pattern::{Random, PAGE};
use crate::runner;
use process::{live, Life};

const MIB: usize = 1 << 20;
const PROCESSES: usize = 4;
/// The priority of the znsage devices.
const PRIORITY: &str = "10";

/// Runs for `time`, then prints what was done. znsage is on `main`; the swap area `rest` takes
/// what does not fit.
pub fn torture(main: &str, rest: &str, seed: u64, time: Duration) -> Outcome {
    let mut torture = Torture::new(main, rest, seed)?;
    let outcome = torture.run(time).and_then(|()| torture.finish());
    print!("{} ", torture.story());
    outcome.map_err(|e| format!("seed {seed}: {e}; after {}", torture.last))
}

struct Torture {
    seed: u64,
    random: Random,
    main: String,
    /// None while it is off.
    device: Option<Device>,
    /// The device's own low and high watermark.
    watermarks: (u64, u64),
    /// A second device, from time to time.
    beside: Option<Device>,
    rest: String,
    subjects: Vec<Subject>,
    born: u64,
    pages_verified: u64,
    killed: u64,
    done: BTreeMap<&'static str, u64>,
    last: &'static str,
}

/// A process under torture, and its groups, innermost first. The outermost has the limit.
struct Subject {
    child: Child,
    groups: Vec<Group>,
    limit: u64,
}

impl Subject {
    fn outer(&self) -> &Group {
        self.groups.last().expect("it has a group")
    }
}

impl Torture {
    fn new(main: &str, rest: &str, seed: u64) -> Outcome<Torture> {
        guest::ok(&["mkswap", rest])?;
        guest::ok(&["swapon", "--priority", "1", rest])?;
        let device = acts::main_on(main, &[])?;
        Ok(Torture {
            seed,
            random: Random::new(seed),
            watermarks: acts::usual_watermarks(&device)?,
            device: Some(device),
            beside: None,
            main: main.to_string(),
            rest: rest.to_string(),
            subjects: Vec::new(),
            born: 0,
            pages_verified: 0,
            killed: 0,
            done: BTreeMap::new(),
            last: "the begin",
        })
    }

    fn run(&mut self, time: Duration) -> Outcome {
        let begin = Instant::now();
        while begin.elapsed() < time {
            runner::still_alive();
            self.look_after_subjects()?;
            let (name, act) = acts::choose(&mut self.random);
            self.last = name;
            act(self).context(name)?;
            *self.done.entry(name).or_default() += 1;
            sleep(Duration::from_millis(self.random.below(200) as u64));
        }
        Ok(())
    }

    /// Collects the results of processes that have ended, and starts new ones.
    fn look_after_subjects(&mut self) -> Outcome {
        let (ended, going): (Vec<_>, Vec<_>) =
            self.subjects.drain(..).partition(|s| s.child.has_spoken());
        self.subjects = going;
        for subject in ended {
            self.take_in(subject)?;
        }
        while self.subjects.len() < PROCESSES {
            let subject = self.new_subject()?;
            self.subjects.push(subject);
        }
        Ok(())
    }

    fn take_in(&mut self, mut subject: Subject) -> Outcome {
        let [pages] = subject.child.numbers()?;
        self.pages_verified += pages;
        subject.child.join()
    }

    fn new_subject(&mut self) -> Outcome<Subject> {
        self.born += 1;
        let limit = ((12 + self.random.below(12)) * MIB) as u64;
        let life = Life {
            seed: self.random.next(),
            bytes: limit as usize / 2 + self.random.below(28 * MIB) / PAGE * PAGE,
            shared: self.random.below(4) == 0,
            steps: 20 + self.random.below(150) as u32,
        };
        let outer = Group::new(&format!("torture{}", self.born), limit)?;
        let groups = match self.random.below(3) {
            0 => vec![Group::within(&outer, "inner")?, outer],
            _ => vec![outer],
        };
        let child = spawn(Some(&groups[0]), move |link| live(link, &life))?;
        Ok(Subject { child, groups, limit })
    }

    /// Lifts the limits during swapoff, which brings pages back into full groups: where the
    /// kernel cannot write others out fast enough, it kills.
    fn without_limits(&self, body: impl FnOnce() -> Outcome) -> Outcome {
        for subject in &self.subjects {
            subject.outer().set("memory.max", "max")?;
        }
        body()?;
        self.subjects.iter().try_for_each(|subject| subject.outer().shrink(subject.limit))
    }

    /// Ends all processes, restores the machine and checks the devices.
    fn finish(&mut self) -> Outcome {
        self.last = "the end";
        acts::all_cpus()?;
        let subjects = std::mem::take(&mut self.subjects);
        for mut subject in subjects {
            runner::still_alive();
            // It may have ended by itself.
            let _ = subject.child.go_on();
            self.take_in(subject)?;
        }
        runner::still_alive();
        for device in self.beside.take().into_iter().chain(self.device.take()) {
            device.finish_sound()?;
        }
        guest::ok(&["swapoff", &self.rest]).map(drop)
    }

    fn story(&self) -> String {
        let done: Vec<String> = self.done.iter().map(|(name, n)| format!("{n} {name}")).collect();
        format!(
            "seed {}: {} processes ({} killed), {:.2} GiB verified; {} ...",
            self.seed,
            self.born,
            self.killed,
            (self.pages_verified * PAGE as u64) as f64 / (1u64 << 30) as f64,
            done.join(", ")
        )
    }
}
