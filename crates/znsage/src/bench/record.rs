// SPDX-License-Identifier: GPL-2.0-only
//! `bench --trace`: converts the module's tracepoints to the trace format that
//! `znsage-sim` replays (docs/dev/trace-format.md). Uses its own tracefs instance.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flate2::write::GzEncoder;
use flate2::Compression;
use znsage_sim::time::{Ns, US};
use znsage_sim::trace::{Line, Op, Record, Writer};

use super::sampler::Totals;
use crate::counters::Device;
use crate::error::{reason, Error, Kind, Result};
use crate::sys::Sys;

const TRACEFS: &str = "/sys/kernel/tracing";
/// Buffer per CPU: about a second of swap at full speed.
const BUFFER_KB: &str = "16384";
const NAP: Duration = Duration::from_millis(5);
/// Records arrive grouped by CPU, only roughly sorted by time. This many are sorted
/// together.
const WINDOW: usize = 1 << 16;
/// Requests of one CPU for consecutive slots within this time become one record.
const TOGETHER: Ns = 100 * US;
const MOST_TOGETHER: u32 = 32;

/// Records until [`Recorder::finish`]. If dropped before, the file is incomplete.
pub struct Recorder {
    instance: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::result::Result<(), String>>>,
    path: PathBuf,
}

impl Recorder {
    /// Starts recording the requests to the only znsage device.
    pub fn start(sys: &dyn Sys, path: &Path, devices: &[Device], page: u64) -> Result<Self> {
        let [device] = devices else {
            return Err(Error::new(
                Kind::Usage,
                format!("--trace needs exactly one znsage device, there are {}", devices.len()),
            )
            .hint("trace/record records other swap areas"));
        };
        let disk: u32 = device.name.trim_start_matches("znsage").parse().unwrap_or(0);
        let slots = (device.size_bytes / page) as u32;
        let file = File::create(path).map_err(|e| Error::io("create", path, e))?;
        let instance = make_instance(sys)?;
        let mut recorder = Recorder {
            stop: Arc::default(),
            thread: None,
            path: path.into(),
            instance: instance.clone(),
        };
        for (name, value) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", BUFFER_KB),
            ("events/znsage/enable", "1"),
            ("tracing_on", "1"),
        ] {
            let file = instance.join(name);
            fs::write(&file, value).map_err(|e| Error::io("write", &file, e))?;
        }
        let pipe = instance.join("trace_pipe");
        let input = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe)
            .map_err(|e| Error::io("open", &pipe, e))?;
        let about = format!("znsage bench, {}, Linux {}", device.name, sys.release());
        let out = output(file, path);
        let stop = recorder.stop.clone();
        recorder.thread = Some(thread::spawn(move || {
            let writer = Writer::new(out, slots, &about).map_err(|e| reason(&e))?;
            let mut sink = Sink { writer, disk, first: None, window: Vec::new() };
            follow(input, &stop, |line| sink.take(line))?;
            sink.finish()
        }));
        Ok(recorder)
    }

    /// Writes a mark with the counters of the device.
    pub fn mark(&self, name: &str, device: Option<&Totals>) {
        let d = device.copied().unwrap_or_default();
        let text = format!(
            "{MARK}{name} host_blocks={} gc_blocks={} padding_blocks={} live_blocks={}\n",
            d.host_blocks, d.gc_blocks, d.padding_blocks, d.live_blocks
        );
        // The trace is usable without marks.
        let _ = fs::write(self.instance.join("trace_marker"), text);
    }

    /// Ends the recording. The file is complete if this succeeds.
    pub fn finish(mut self) -> Result<()> {
        self.end().map_err(|e| {
            Error::new(Kind::Failure, format!("{}: {e}", self.path.display()))
                .hint("the file has the records until then")
        })
    }

    fn end(&mut self) -> std::result::Result<(), String> {
        let _ = fs::write(self.instance.join("tracing_on"), "0");
        self.stop.store(true, Relaxed);
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or_else(|_| Err("the recorder failed".into())),
            None => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.end();
        let _ = fs::write(self.instance.join("events/enable"), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

fn make_instance(sys: &dyn Sys) -> Result<PathBuf> {
    if !sys.exists(&format!("{TRACEFS}/instances")) {
        return Err(Error::new(Kind::Environment, format!("{TRACEFS} does not exist"))
            .hint(format!("mount it: mount -t tracefs nodev {TRACEFS}")));
    }
    if !sys.exists(&format!("{TRACEFS}/events/znsage")) {
        return Err(Error::new(Kind::Environment, "the module has no tracepoints")
            .hint("check that command and module have the same version"));
    }
    let instance = sys.at(&format!("{TRACEFS}/instances/znsage-bench-{}", std::process::id()));
    fs::create_dir(&instance).map_err(|e| Error::io("create", &instance, e))?;
    Ok(instance)
}

fn output(file: File, path: &Path) -> Box<dyn Write + Send> {
    let file = BufWriter::new(file);
    if path.extension().is_some_and(|x| x == "gz") {
        Box::new(GzEncoder::new(file, Compression::default()))
    } else {
        Box::new(file)
    }
}

/// Passes on the lines of the pipe until told to stop and the pipe is empty.
fn follow(
    mut input: File,
    stop: &AtomicBool,
    mut take: impl FnMut(&str) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    let (mut buffer, mut rest) = (vec![0; 1 << 16], Vec::new());
    loop {
        // Check before the read, so that records before the stop are not lost.
        let last = stop.load(Relaxed);
        match input.read(&mut buffer) {
            Ok(0) if last => return Ok(()),
            Ok(0) => thread::sleep(NAP),
            Ok(n) => {
                rest.extend_from_slice(&buffer[..n]);
                let Some(end) = rest.iter().rposition(|&b| b == b'\n') else { continue };
                for line in String::from_utf8_lossy(&rest[..end]).lines() {
                    take(line)?;
                }
                rest.drain(..=end);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock && last => return Ok(()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(NAP),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(reason(&e)),
        }
    }
}

const MARK: &str = "znsage mark ";

/// A line of trace_pipe: `comm-pid [cpu] flags seconds.micros: event: text`.
/// None for other events. Times are those of the kernel.
fn parse(line: &str, disk: u32) -> std::result::Result<Option<Line>, String> {
    if line.contains("[LOST ") {
        return Err(format!("the kernel's buffer was too small: {}", line.trim()));
    }
    let events = [
        (": znsage_swap_out: ", Some(Op::Out)),
        (": znsage_swap_in: ", Some(Op::In)),
        (": znsage_slot_free: ", Some(Op::Free)),
        (": tracing_mark_write: ", None),
    ];
    let found = events.iter().find_map(|(name, op)| Some((line.split_once(name)?, *op)));
    let Some(((head, text), op)) = found else { return Ok(None) };
    let strange = || format!("trace_pipe has a line of unknown format: {line}");
    let at = head.split_ascii_whitespace().last().and_then(micros).ok_or_else(strange)?;
    let at = at.checked_mul(US).ok_or_else(strange)?;
    let Some(op) = op else {
        return Ok(text.strip_prefix(MARK).map(|text| mark(at, text)));
    };
    let open = head.rfind('[').ok_or_else(strange)?;
    let cpu =
        head[open + 1..].split(']').next().and_then(|n| n.parse().ok()).ok_or_else(strange)?;
    let value = |key: &str| -> Option<u32> {
        text.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('='))?.trim().parse().ok()
    };
    let (on, first, nr) = (value("disk"), value("slot"), value("nr"));
    match (on, first, nr) {
        (Some(on), _, _) if on != disk => Ok(None),
        (_, Some(first), Some(nr)) => Ok(Some(Line::Record(Record { at, cpu, op, first, nr }))),
        _ => Err(strange()),
    }
}

fn mark(at: Ns, text: &str) -> Line {
    let mut words = text.split_ascii_whitespace();
    let name = words.next().unwrap_or("mark").to_string();
    let facts = words.filter_map(|w| w.split_once('='));
    Line::Mark { at, name, facts: facts.map(|(k, v)| (k.into(), v.into())).collect() }
}

/// `12.345678` seconds in microseconds.
fn micros(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    if rest.len() != 6 {
        return None;
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(rest.parse().ok()?)
}

/// Sorts lines by time, merges adjacent records, and writes them.
struct Sink<W: Write> {
    writer: Writer<W>,
    disk: u32,
    /// Start of the recording.
    first: Option<Ns>,
    window: Vec<Line>,
}

fn at(line: &Line) -> Ns {
    match line {
        Line::Record(Record { at, .. }) | Line::Mark { at, .. } => *at,
    }
}

impl<W: Write> Sink<W> {
    fn take(&mut self, text: &str) -> std::result::Result<(), String> {
        self.window.extend(parse(text, self.disk)?);
        if self.window.len() >= 2 * WINDOW {
            self.write(WINDOW)?;
        }
        Ok(())
    }

    fn finish(mut self) -> std::result::Result<(), String> {
        self.write(self.window.len())?;
        self.writer.into_inner().flush().map_err(|e| reason(&e))
    }

    /// Writes the first `nr` lines.
    fn write(&mut self, nr: usize) -> std::result::Result<(), String> {
        self.window.sort_by_key(at);
        let mut lines: Vec<Line> = Vec::new();
        for line in self.window.drain(..nr) {
            match (lines.last_mut(), &line) {
                (Some(Line::Record(last)), Line::Record(next)) if follows(last, next) => {
                    last.nr += next.nr;
                }
                _ => lines.push(line),
            }
        }
        for mut line in lines {
            let first = *self.first.get_or_insert(at(&line));
            match &mut line {
                Line::Record(Record { at, .. }) | Line::Mark { at, .. } => {
                    *at = at.saturating_sub(first);
                }
            }
            self.writer.write(&line).map_err(|e| reason(&e))?;
        }
        Ok(())
    }
}

/// The trace of the first device, from lines of trace_pipe.
///
/// # Errors
/// If a line has an unknown format.
pub fn recorded(lines: &str, slots: u32) -> std::result::Result<Vec<u8>, String> {
    let writer = Writer::new(Vec::new(), slots, "").map_err(|e| reason(&e))?;
    let mut sink = Sink { writer, disk: 0, first: None, window: Vec::new() };
    lines.lines().try_for_each(|line| sink.take(line))?;
    sink.write(sink.window.len())?;
    Ok(sink.writer.into_inner())
}

/// True if `next` continues `last`. A swap-in waits for each bio; other requests are
/// a stream of slots.
fn follows(last: &Record, next: &Record) -> bool {
    last.op == next.op
        && last.op != Op::In
        && last.cpu == next.cpu
        && last.first.checked_add(last.nr) == Some(next.first)
        && next.at - last.at < TOGETHER
        && last.nr.saturating_add(next.nr) <= MOST_TOGETHER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_pipe_parse() {
        let head = "   a [b] c-12  [001] d.h1.   61.000123: ";
        let record = |op, first, nr| {
            Some(Line::Record(Record { at: 61_000_123 * US, cpu: 1, op, first, nr }))
        };
        for (text, want) in [
            ("znsage_swap_out: disk=0 slot=7 nr=32", record(Op::Out, 7, 32)),
            ("znsage_swap_in: disk=0 slot=9 nr=1", record(Op::In, 9, 1)),
            ("znsage_slot_free: disk=0 slot=9 nr=1", record(Op::Free, 9, 1)),
            ("znsage_slot_free: disk=1 slot=9 nr=1", None),
            ("block_bio_queue: 8,0 W", None),
        ] {
            assert_eq!(parse(&format!("{head}{text}"), 0).unwrap(), want, "{text}");
        }
        let facts = vec![("gc_blocks".to_string(), "5".to_string())];
        let mark = Line::Mark { at: 61_000_123 * US, name: "measure".into(), facts };
        let text = format!("{head}tracing_mark_write: znsage mark measure gc_blocks=5");
        assert_eq!(parse(&text, 0).unwrap(), Some(mark));
    }

    #[test]
    fn lost_and_unknown_lines_are_errors() {
        assert!(parse("CPU:0 [LOST 17 EVENTS]", 0).unwrap_err().contains("LOST 17"));
        for line in [
            " x-1 [000] .... 6.1: znsage_swap_in: disk=0 slot=9 nr=1",
            " x-1 000 .... 6.000001: znsage_swap_in: disk=0 slot=9 nr=1",
            " x-1 [000] .... 6.000001: znsage_swap_in: disk=0 slot=x nr=1",
            " x-1 [000] .... 18446744073709551.000001: znsage_swap_in: disk=0 slot=1 nr=1",
            " x-1 [000] .... 18446744073.709552: znsage_swap_in: disk=0 slot=1 nr=1",
        ] {
            assert!(parse(line, 0).unwrap_err().contains("unknown format"), "{line}");
        }
    }

    #[test]
    fn lines_are_sorted_and_merged() {
        let writer = Writer::new(Vec::new(), 100, "").unwrap();
        let mut sink = Sink { writer, disk: 0, first: None, window: Vec::new() };
        for (us, cpu, text) in [
            (20, 0, "swap_out: disk=0 slot=4 nr=1"),
            (25, 0, "swap_out: disk=0 slot=5 nr=1"),
            (10, 1, "swap_in: disk=0 slot=1 nr=1"),
            (11, 1, "swap_in: disk=0 slot=2 nr=1"),
            (30, 1, "swap_out: disk=0 slot=6 nr=1"),
        ] {
            let line = format!("c-1 [{cpu:03}] d.... 1.{us:06}: znsage_{text}");
            sink.take(&line).unwrap();
        }
        sink.window.sort_by_key(at);
        sink.write(5).unwrap();
        let text = String::from_utf8(sink.writer.into_inner()).unwrap();
        let want = "0 1 R 1\n1 1 R 2\n10 0 W 4 2\n20 1 W 6\n";
        assert_eq!(text.split_once("100\n").unwrap().1, want);
    }

    #[test]
    fn last_slots_are_not_merged() {
        let line = |us, slot, nr| {
            format!(" c-1 [0] . 1.{us:06}: znsage_swap_out: disk=0 slot={slot} nr={nr}\n")
        };
        let text = line(1, u32::MAX, u32::MAX) + &line(2, 5, u32::MAX) + &line(3, 4, 1);
        let trace = String::from_utf8(recorded(&text, 100).unwrap()).unwrap();
        assert_eq!(trace.lines().count(), 2 + 3);
    }
}
