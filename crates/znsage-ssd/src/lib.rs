// SPDX-License-Identifier: GPL-2.0-only
//! A disk that behaves as one of the simulator's SSDs does, in real time: a plugin of
//! nbdkit, whose NBD export QEMU's NVMe device uses as its medium. So a real kernel meets
//! a drive that collects garbage, on any computer.
//!
//! Each request waits until the model's completion time. The model's clock runs `slowdown`
//! times as slowly as the computer's, so that an emulated CPU is fast beside the drive.

mod ssd;

use std::collections::HashMap;
use std::fs::{rename, write, File};
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nbdkit::{Error, Flags, Result, Server, ThreadModel};
use serde::Serialize;
use znsage_sim::device::params::parse_size;
use znsage_sim::device::Params;
use znsage_sim::time::{Ns, BLOCK};

use ssd::{Done, Ssd};

/// In real time, commands vary by what the host does meanwhile; the model adds nothing.
const QUIET: [(&str, &str); 3] = [
    ("media.read_jitter_us", "[]"),
    ("media.program_jitter_us", "[]"),
    ("controller.write_jitter_us", "[]"),
];

/// How often the file of counters is written anew.
const INTERVAL: Duration = Duration::from_millis(250);

const HELP: &str = "\
device=NAME       a device of `znsage-sim devices`, or the path of a file
size=SIZE         bytes for the host
set=KEY=VALUE     a key of the device; any number of times
slowdown=FACTOR   real time for each unit of the drive's              [1]
hurry=FILE        while this file exists, the factor is 1
worn=true         write a conventional drive over before              [true]
counters=FILE     write its counters there, four times a second";

static SETTINGS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());
static DISK: OnceLock<Disk> = OnceLock::new();

/// What is exported.
struct Disk {
    size: u64,
    slowdown: f64,
    /// In memory.
    data: File,
    counters: Option<PathBuf>,
    hurry: Option<PathBuf>,
    model: Mutex<Model>,
}

struct Model {
    ssd: Ssd,
    clock: Clock,
}

/// The model's time.
#[derive(Clone, Copy)]
struct Clock {
    /// Real time and the model's at which the factor began to hold.
    real: Instant,
    model: Ns,
    slowdown: f64,
}

impl Clock {
    fn new(model: Ns, slowdown: f64) -> Clock {
        Clock { real: Instant::now(), model, slowdown }
    }

    fn now(&self) -> Ns {
        self.model + (self.real.elapsed().as_nanos() as f64 / self.slowdown) as Ns
    }

    /// Real time from now until then.
    fn until(&self, model: Ns) -> Duration {
        let at = ((model - self.model) as f64 * self.slowdown) as u64;
        Duration::from_nanos(at).saturating_sub(self.real.elapsed())
    }
}

/// The file of counters, in blocks of 4 KiB since the drive was made.
#[derive(Serialize)]
struct Counters {
    written: u64,
    copied: u64,
    padding: u64,
    programmed: u64,
    read: u64,
    trimmed: u64,
    resets: u64,
}

fn wrong(what: String) -> Error {
    Error::new(libc::EINVAL, what)
}

impl Disk {
    fn new(settings: &[(String, String)]) -> Result<Disk> {
        let set: Vec<(String, String)> = settings
            .iter()
            .filter(|(key, _)| key == "set")
            .map(|(_, pair)| {
                let (key, value) =
                    pair.split_once('=').ok_or_else(|| wrong(format!("set={pair}: no value")))?;
                Ok((key.to_string(), value.to_string()))
            })
            .collect::<Result<_>>()?;
        let once: HashMap<&str, &str> =
            settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let needed = |key: &str| {
            once.get(key).copied().ok_or_else(|| wrong(format!("{key}=... is missing")))
        };
        let size = needed("size")?;
        let size = parse_size(size)
            .filter(|size| *size > 0 && size % BLOCK == 0)
            .ok_or_else(|| wrong(format!("size={size} is no number of blocks of 4 KiB")))?;
        let slowdown = once.get("slowdown").copied().unwrap_or("1");
        let slowdown = slowdown
            .parse()
            .ok()
            .filter(|factor| (1e-3..1e6).contains(factor))
            .ok_or_else(|| wrong(format!("slowdown={slowdown} is no factor")))?;
        let set = [QUIET.map(|(key, none)| (key.into(), none.into())).to_vec(), set].concat();
        let params = Params::load(needed("device")?, &set).map_err(|e| wrong(e.to_string()))?;
        let mut ssd = Ssd::new(&params, size).map_err(|e| wrong(e.to_string()))?;
        let epoch = match once.get("worn").copied().unwrap_or("true") {
            "true" => ssd.wear(1),
            "false" => 0,
            other => return Err(wrong(format!("worn={other} is neither true nor false"))),
        };
        Ok(Disk {
            size,
            slowdown,
            data: memory(size)?,
            counters: once.get("counters").map(PathBuf::from),
            hurry: once.get("hurry").map(PathBuf::from),
            model: Mutex::new(Model { ssd, clock: Clock::new(epoch, slowdown) }),
        })
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a command now, and waits until it completes.
    fn submit(&self, command: impl FnOnce(&mut Ssd, Ns) -> Done) -> Result<()> {
        let mut model = self.model();
        // The clock is read under the lock: the model wants commands in order of time.
        let clock = model.clock;
        let done = command(&mut model.ssd, clock.now());
        drop(model);
        thread::sleep(clock.until(done.map_err(|e| Error::new(libc::EIO, e))?));
        Ok(())
    }

    /// The clock runs at another speed from now on. Commands in flight do not notice.
    fn set_speed(&self) {
        let hurries = self.hurry.as_ref().is_some_and(|file| file.exists());
        let slowdown = if hurries { 1.0 } else { self.slowdown };
        let clock = &mut self.model().clock;
        if clock.slowdown != slowdown {
            *clock = Clock::new(clock.now(), slowdown);
        }
    }

    fn counters(&self) -> Counters {
        let model = self.model();
        let c = model.ssd.counters();
        Counters {
            written: c.written_blocks,
            copied: c.copied_blocks,
            padding: c.padding_blocks,
            programmed: c.programmed_blocks,
            read: c.read_blocks,
            trimmed: c.trimmed_blocks,
            resets: c.resets,
        }
    }

    /// Readers see the old file or the new one.
    fn write_counters(&self, file: &PathBuf) -> std::io::Result<()> {
        let new = file.with_extension("new");
        write(&new, serde_json::to_string(&self.counters())?)?;
        rename(new, file)
    }
}

/// A file of this size in memory.
fn memory(size: u64) -> Result<File> {
    // SAFETY: the name is a string, and the descriptor belongs to nobody else.
    let file = unsafe {
        let fd = libc::memfd_create(c"znsage-ssd".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        File::from_raw_fd(fd)
    };
    file.set_len(size)?;
    Ok(file)
}

fn disk() -> Result<&'static Disk> {
    DISK.get().ok_or_else(|| Error::new(libc::ENXIO, "there is no disk"))
}

struct Plugin(&'static Disk);

impl Server for Plugin {
    fn name() -> &'static str {
        "znsage-ssd"
    }

    fn description() -> Option<&'static str> {
        Some("An SSD of znsage's simulator, in real time")
    }

    fn config_help() -> Option<&'static str> {
        Some(HELP)
    }

    fn config(key: &str, value: &str) -> Result<()> {
        if !HELP.lines().any(|line| line.split('=').next() == Some(key)) {
            return Err(wrong(format!("there is no setting {key}")));
        }
        let mut settings = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
        settings.push((key.to_string(), value.to_string()));
        Ok(())
    }

    fn get_ready() -> Result<()> {
        let settings = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = Disk::new(&settings)?;
        DISK.set(disk).map_err(|_| Error::new(libc::EBUSY, "there is a disk already"))
    }

    /// Before that, no thread would survive.
    fn after_fork() -> Result<()> {
        let disk = disk()?;
        let look = || -> std::io::Result<()> {
            disk.set_speed();
            disk.counters.as_ref().map_or(Ok(()), |file| disk.write_counters(file))
        };
        look()?;
        thread::spawn(move || {
            while look().is_ok() {
                thread::sleep(INTERVAL);
            }
        });
        Ok(())
    }

    fn thread_model() -> Result<ThreadModel> {
        Ok(ThreadModel::Parallel)
    }

    fn open(_readonly: bool) -> Result<Box<dyn Server>> {
        Ok(Box::new(Plugin(disk()?)))
    }

    fn get_size(&self) -> Result<i64> {
        Ok(self.0.size as i64)
    }

    fn can_write(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_trim(&self) -> Result<bool> {
        Ok(true)
    }

    fn can_flush(&self) -> Result<bool> {
        Ok(true)
    }

    /// Data in the drive's buffer survives a loss of power, as in drives for servers.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.0.submit(|ssd, now| ssd.read(now, offset, buffer.len() as u64))?;
        Ok(self.0.data.read_exact_at(buffer, offset)?)
    }

    fn write_at(&self, buffer: &[u8], offset: u64, _: Flags) -> Result<()> {
        self.0.data.write_all_at(buffer, offset)?;
        self.0.submit(|ssd, now| ssd.write(now, offset, buffer.len() as u64))
    }

    /// The data stays: nobody may rely on what trimmed blocks hold.
    fn trim(&self, count: u32, offset: u64, _: Flags) -> Result<()> {
        self.0.submit(|ssd, now| ssd.trim(now, offset, count.into()))
    }

    fn zero(&self, count: u32, offset: u64, _: Flags) -> Result<()> {
        static ZEROES: [u8; 1 << 16] = [0; 1 << 16];
        let (mut at, end) = (offset, offset + u64::from(count));
        while at < end {
            let part = ZEROES.len().min((end - at) as usize);
            self.0.data.write_all_at(&ZEROES[..part], at)?;
            at += part as u64;
        }
        self.0.submit(|ssd, now| ssd.zero(now, offset, count.into()))
    }
}

nbdkit::plugin!(Plugin {
    after_fork,
    can_flush,
    can_trim,
    can_write,
    config,
    config_help,
    flush,
    get_ready,
    thread_model,
    trim,
    write_at,
    zero
});
