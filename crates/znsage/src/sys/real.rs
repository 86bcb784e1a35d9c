// SPDX-License-Identifier: GPL-2.0-only
//! The running system.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

use super::{files, zoned, LogLine, Ran, Stat, Sys};
use crate::interrupt;
use crate::zones::{self, Zone};

/// How often to check a running program.
const TICK: Duration = Duration::from_millis(50);

/// Time between SIGTERM and SIGKILL for a program. fio may hang if SIGTERM arrives
/// while its threads wait (axboe/fio#1934).
const GRACE: Duration = Duration::from_secs(10);

/// Writes of a killed program have ended after this time.
const AFTERMATH: Duration = Duration::from_secs(1);

pub struct Real;

impl Sys for Real {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn is_root(&self) -> bool {
        nix::unistd::geteuid().is_root()
    }

    fn release(&self) -> String {
        nix::sys::utsname::uname()
            .map(|u| u.release().to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn env(&self, name: &str) -> Option<String> {
        // Not ignored if it is no UTF-8: a file that does not exist is an error.
        let value = std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        value.filter(|value| !value.is_empty())
    }

    fn block_device(&self, path: &str) -> io::Result<Option<(u64, u64)>> {
        let meta = fs::metadata(path)?;
        let dev = meta.rdev();
        Ok(meta
            .file_type()
            .is_block_device()
            .then(|| (nix::sys::stat::major(dev), nix::sys::stat::minor(dev))))
    }

    fn stat(&self, path: &str) -> io::Result<Stat> {
        files::stat(path)
    }

    fn room(&self, directory: &str) -> io::Result<(u64, u64)> {
        let fs = nix::sys::statvfs::statvfs(directory)?;
        let bytes = |blocks: u64| blocks.saturating_mul(fs.fragment_size());
        Ok((bytes(fs.blocks()), bytes(fs.blocks_available())))
    }

    fn claim(&self, path: &str) -> io::Result<()> {
        exclusively(path).map(drop)
    }

    fn zones(&self, path: &str) -> io::Result<Vec<Zone>> {
        zones::report(&File::open(path)?)
    }

    fn kernel_log(&self) -> Vec<LogLine> {
        read_kmsg().unwrap_or_default()
    }

    fn interrupted(&self) -> bool {
        interrupt::seen()
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        // One write(2): attributes of configfs and sysfs need the whole value.
        OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
    }

    fn write_at(&self, path: &str, at: u64, bytes: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let flags = libc::O_EXCL | libc::O_CLOEXEC;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
        file.write_all_at(bytes, at)?;
        file.sync_all()
    }

    fn save(&self, path: &str, text: &str) -> io::Result<()> {
        if let Some(directory) = Path::new(path).parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = File::create(path)?;
        file.write_all(text.as_bytes())?;
        // Some must be there after a power failure; a pipe has no sync.
        let _ = file.sync_all();
        Ok(())
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        if let Some(directory) = Path::new(path).parent() {
            fs::create_dir_all(directory)?;
        }
        std::os::unix::fs::symlink(target, path)
    }

    fn make_file(&self, path: &str, bytes: u64) -> io::Result<()> {
        files::make(path, bytes)
    }

    fn clear_file(&self, path: &str) -> io::Result<()> {
        files::clear(path)
    }

    fn forget(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn mkdir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn rmdir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn mount(&self, fstype: &str, path: &str) -> io::Result<()> {
        use nix::mount::{mount, MsFlags};
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        Ok(mount(Some(fstype), path, Some(fstype), flags, None::<&str>)?)
    }

    fn run(&self, argv: &[&str], tick: &mut dyn FnMut()) -> io::Result<Ran> {
        let mut child = Command::new(argv[0])
            .args(&argv[1..])
            .env("PATH", search_path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Read meanwhile: a pipe holds 64 KiB, and fio prints more.
        let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = look_after(&mut child, tick, &interrupt::seen, GRACE)?;
        let text = |reader: JoinHandle<io::Result<Vec<u8>>>| -> io::Result<String> {
            let bytes = reader.join().map_err(|_| io::Error::other("reading failed"))??;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Ran { status: status.code(), stdout: text(stdout)?, stderr: text(stderr)? })
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn start_guard(&self, subcommand: &str, name: &str) -> io::Result<()> {
        // It closes its outputs when it is ready, so this does not wait for its end.
        let guard = Command::new("/proc/self/exe")
            .args([subcommand, name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdout, stderr) = (reader(guard.stdout), reader(guard.stderr));
        let text = |reader: JoinHandle<io::Result<Vec<u8>>>| -> io::Result<String> {
            let bytes = reader.join().map_err(|_| io::Error::other("reading failed"))??;
            Ok(String::from_utf8_lossy(&bytes).trim().to_string())
        };
        match (text(stdout)?.as_str(), text(stderr)?) {
            ("ready", _) => Ok(()),
            (_, why) if why.is_empty() => Err(io::Error::other("it ended at once")),
            (_, why) => Err(io::Error::other(why)),
        }
    }

    fn end(&self, pid: u32) -> io::Result<()> {
        let process = Pid::from_raw(pid as i32);
        let since = Instant::now();
        let mut signal = Signal::SIGTERM;
        // A zombie has no command line.
        while fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty()) {
            match kill(process, signal) {
                Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
                Err(e) => return Err(e.into()),
            }
            if since.elapsed() > GRACE {
                signal = Signal::SIGKILL;
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn hold(&self, path: &str) -> io::Result<Box<dyn std::any::Any>> {
        Ok(Box::new(exclusively(path)?))
    }

    fn reset_zones(&self, path: &str, start: u64, length: u64) -> io::Result<()> {
        zoned::reset(path, start, length)
    }

    fn ask(&self, question: &str) -> io::Result<Option<String>> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        write!(io::stderr(), "{question}")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(Some(answer.trim().to_string()))
    }
}

/// Waits for a program to end. Passes a signal to this process on, once. After an
/// earlier signal the program is an undo step and must finish.
fn look_after(
    child: &mut Child,
    tick: &mut dyn FnMut(),
    interrupted: &dyn Fn() -> bool,
    grace: Duration,
) -> io::Result<ExitStatus> {
    let pass_on = !interrupted();
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(TICK);
        tick();
        match told {
            None if pass_on && interrupted() => {
                told = Some(Instant::now());
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
            }
            Some(when) if when.elapsed() >= grace => {
                child.kill()?;
                let status = child.wait()?;
                std::thread::sleep(AFTERMATH);
                return Ok(status);
            }
            _ => (),
        }
    }
}

/// Opens a block device exclusively (O_EXCL without O_CREAT). Read-only, because
/// udev rescans a device that was open for writing.
fn exclusively(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(path)
}

fn reader(from: Option<impl Read + Send + 'static>) -> JoinHandle<io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.map_or(Ok(0), |mut from| from.read_to_end(&mut bytes))?;
        Ok(bytes)
    })
}

/// Adds directories that PATH lacks after `su` without `-`.
fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/usr/bin:/sbin:/bin")
}

/// Reads the present log. A record is "prefix,number,...;text".
fn read_kmsg() -> io::Result<Vec<LogLine>> {
    let mut log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut lines = Vec::new();
    let mut record = [0u8; 8192];
    loop {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(n) => lines.extend(parse_record(&String::from_utf8_lossy(&record[..n]))),
            // Records were overwritten meanwhile: continue with the next.
            Err(e) if e.raw_os_error() == Some(libc::EPIPE) => continue,
            Err(_) => break,
        }
    }
    Ok(lines)
}

pub fn parse_record(record: &str) -> Option<LogLine> {
    let (head, text) = record.split_once(';')?;
    let number = head.split(',').nth(1)?.parse().ok()?;
    let text = text.lines().next()?.to_string();
    text.contains("znsage").then_some(LogLine { number, text })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn kernel_log_records_parse() {
        let line = parse_record("6,339,5140900,-;znsage: nvme1n1: zone 3 is not empty\n SUB=x\n");
        let line = line.unwrap();
        assert_eq!(line.number, 339);
        assert_eq!(line.text, "znsage: nvme1n1: zone 3 is not empty");
        assert!(parse_record("6,340,1,-;nvme: other").is_none());
        assert!(parse_record("junk").is_none());
    }

    #[test]
    fn programs_run_and_tick() {
        let mut ticks = 0;
        let ran = Real
            .run(&["sh", "-c", "sleep 0.2; echo out; echo bad >&2; exit 3"], &mut || ticks += 1)
            .unwrap();
        assert_eq!(ran.status, Some(3));
        assert_eq!(ran.stdout, "out\n");
        assert_eq!(ran.complaint(), "bad");
        assert!(ticks > 0);
    }

    /// Exit status and run time of a script that gets SIGTERM after 0.3 s.
    fn told(script: &str, grace: Duration) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let interrupted = || begun.elapsed() > Duration::from_millis(300);
        let status = look_after(&mut child, &mut || (), &interrupted, grace).unwrap();
        (status, begun.elapsed())
    }

    #[test]
    fn programs_get_sigterm_and_then_sigkill() {
        let minute = Duration::from_secs(60);
        let (status, took) = told("trap 'exit 7' TERM; while :; do sleep 0.05; done", minute);
        assert!(status.code() == Some(7) && took < minute, "{status} after {took:?}");
        let grace = Duration::from_millis(300);
        let (status, took) = told("trap '' TERM; while :; do sleep 0.05; done", grace);
        assert_eq!(status.signal(), Some(libc::SIGKILL), "after {took:?}");
    }

    #[test]
    fn programs_that_start_after_a_signal_finish() {
        let mut child = Command::new("sh").args(["-c", "sleep 0.5; exit 3"]).spawn().unwrap();
        let status = look_after(&mut child, &mut || (), &|| true, Duration::ZERO).unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn programs_may_print_more_than_a_pipe_holds() {
        let ran = Real.run(&["seq", "100000"], &mut || ()).unwrap();
        assert!(ran.ok() && ran.stdout.ends_with("\n100000\n"));
    }
}
