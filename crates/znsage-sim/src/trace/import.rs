// SPDX-License-Identifier: GPL-2.0-only
//! Makes a trace of what other tools record: text of blkparse, and iologs of fio.
//!
//! Pages that were read or written become slots, in order of their addresses and without
//! gaps: a recording of a large disk may use little of it.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use super::file::{number, wrong, Line, Lines, Op, Record, TraceError, Writer, MAX_CPUS, MAX_TIME};
use crate::time::{Ns, BLOCK, US};

/// Bytes of a sector, the unit of blkparse.
const SECTOR: u64 = 512;
/// Latest byte of a device that a recording may name.
const MAX_BYTES: u64 = 1 << 56;

/// What to take of a recording.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The device or file, as the recording names it; None: it has only one.
    pub device: Option<String>,
    /// The action of blkparse at which a request counts: `Q` when it is queued, `D` when
    /// the drive gets it, `C` when it is complete.
    pub action: char,
}

/// A request, in pages.
struct Request {
    at: Ns,
    thread: u32,
    op: Op,
    pages: std::ops::Range<u64>,
}

/// What a recording has.
pub struct Import {
    path: std::path::PathBuf,
    requests: Vec<Request>,
    /// Pages that were read or written: first, end, and the slot of the first.
    runs: Vec<(u64, u64, u64)>,
    slots: u32,
}

/// Reads a recording, compressed with gzip or not.
///
/// # Errors
/// If it cannot be read, a line is not what it should be, or nothing is in it.
pub fn import(path: &Path, choice: &Choice) -> Result<Import, TraceError> {
    let mut lines = Lines::open(path)?;
    let mut parser = Parser { choice, device: choice.device.clone(), threads: HashMap::new() };
    let mut requests = Vec::new();
    let mut iolog = None;
    let mut waited = 0;
    while let Some(line) = lines.next()? {
        let parsed = match (line, iolog) {
            ("fio version 2 iolog", None) => {
                iolog = Some(2);
                continue;
            }
            ("fio version 3 iolog", None) => {
                iolog = Some(3);
                continue;
            }
            // The summary of blkparse.
            (_, None) if line.starts_with("CPU") || line.starts_with("Total (") => break,
            (_, None) => parser.blkparse(line),
            (_, Some(version)) => parser.iolog(line, version, &mut waited),
        };
        requests.extend(parsed.map_err(|what| lines.wrong(what))?);
    }
    Import::new(path, requests)
}

struct Parser<'a> {
    choice: &'a Choice,
    device: Option<String>,
    /// Threads by the recording's number, in order of appearance.
    threads: HashMap<u64, u32>,
}

impl Parser<'_> {
    /// A line such as `259,0 2 34 0.000123 1234 Q WS 8192 + 8 [kswapd0]`.
    fn blkparse(&mut self, line: &str) -> Result<Option<Request>, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_event = words[0].split_once(',').is_some_and(|(major, minor)| {
            major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()
        });
        match words[..] {
            ["Input", "file", ..] => Ok(None),
            _ if !is_event => {
                Err("neither an event of blkparse nor the first line of a version 2 \
                or 3 iolog: give the output of blkparse without -f, or what fio --write_iolog \
                wrote"
                    .into())
            }
            // Flushes have no sectors.
            [device, cpu, _, time, pid, action, kind, sector, "+", n, ..]
                if action.len() == 1 && action.starts_with(self.choice.action) =>
            {
                let Some(op) = operation(kind) else { return Ok(None) };
                let at = seconds(time)?;
                // A completion interrupts any process, mostly on the CPU of the request.
                let thread = if action == "C" { cpu } else { pid };
                let thread = number(Some(thread), "the process or CPU", u64::MAX)?;
                let most = MAX_BYTES / SECTOR;
                let first = number(Some(sector), "the sector", most)? * SECTOR;
                let bytes = number(Some(n), "the number of sectors", most)? * SECTOR;
                self.request(device, at, thread, op, first, bytes)
            }
            _ => Ok(None),
        }
    }

    /// A line such as `201 /dev/nvme0n1 read 61440 4096`, the time only in version 3.
    fn iolog(
        &mut self,
        line: &str,
        version: u32,
        waited: &mut Ns,
    ) -> Result<Option<Request>, String> {
        let mut words = line.split_ascii_whitespace();
        let us = |word| number(word, "the time, in microseconds", MAX_TIME / US);
        let at = if version == 3 { us(words.next())? * US } else { *waited };
        let file = words.next().ok_or("the file is missing")?;
        let op = match words.next().ok_or("the action is missing")? {
            "read" => Op::In,
            "write" => Op::Out,
            "trim" => Op::Free,
            "wait" if version == 2 => {
                *waited += us(words.next())? * US;
                return Ok(None);
            }
            "add" | "open" | "close" | "sync" | "datasync" => return Ok(None),
            other => return Err(format!("fio has no action `{other}`: was the file edited?")),
        };
        let first = number(words.next(), "the offset", MAX_BYTES)?;
        let bytes = number(words.next(), "the length", MAX_BYTES)?;
        self.request(file, at, 0, op, first, bytes)
    }

    /// A request, if it is for the device and has pages. Reads and writes have the pages
    /// that they touch, discards those that they cover.
    fn request(
        &mut self,
        device: &str,
        at: Ns,
        thread: u64,
        op: Op,
        first: u64,
        bytes: u64,
    ) -> Result<Option<Request>, String> {
        let own = self.device.get_or_insert_with(|| device.into());
        if own != device && self.choice.device.is_some() {
            return Ok(None);
        }
        if own != device {
            return Err(format!(
                "a request to {device}, after some to {own}: choose one with --device"
            ));
        }
        let next = self.threads.len() as u32 % MAX_CPUS;
        let thread = *self.threads.entry(thread).or_insert(next);
        let end = first + bytes;
        let pages = match op {
            Op::Free => first.div_ceil(BLOCK)..end / BLOCK,
            _ => first / BLOCK..end.div_ceil(BLOCK),
        };
        Ok((bytes > 0 && !pages.is_empty()).then_some(Request { at, thread, op, pages }))
    }
}

/// What the letters of blkparse say. None: neither of these, or a command to a zone.
fn operation(kind: &str) -> Option<Op> {
    let has = |letter| kind.contains(letter);
    match () {
        () if has('Z') => None,
        () if has('D') => Some(Op::Free),
        () if has('W') => Some(Op::Out),
        () if has('R') => Some(Op::In),
        () => None,
    }
}

/// Seconds with nine digits after the point, which no float holds.
fn seconds(word: &str) -> Result<Ns, String> {
    let parts = word.split_once('.').filter(|(_, part)| part.len() == 9);
    let parts = parts.and_then(|(s, ns)| Some((s.parse::<u64>().ok()?, ns.parse::<u64>().ok()?)));
    let time = parts.and_then(|(s, ns)| s.checked_mul(1_000_000_000)?.checked_add(ns));
    time.filter(|at| *at <= MAX_TIME).ok_or_else(|| {
        format!("the time is `{word}`, not SECONDS.NANOSECONDS: do not use blkparse -f")
    })
}

impl Import {
    fn new(path: &Path, mut requests: Vec<Request>) -> Result<Self, TraceError> {
        // blkparse may print events of several CPUs a little out of order.
        requests.sort_by_key(|r| r.at);
        let mut touched: Vec<_> =
            requests.iter().filter(|r| r.op != Op::Free).map(|r| r.pages.clone()).collect();
        touched.sort_unstable_by_key(|pages| pages.start);
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        let mut slots = 0;
        for pages in touched {
            match runs.last_mut() {
                Some((_, end, _)) if pages.start <= *end => {
                    slots += pages.end.saturating_sub(*end);
                    *end = pages.end.max(*end);
                }
                _ => {
                    runs.push((pages.start, pages.end, slots));
                    slots += pages.end - pages.start;
                }
            }
        }
        match slots {
            0 => Err(wrong(path, 0, "no read or write is in it: see --action and --device".into())),
            1..=0x7fff_ffff => {
                Ok(Import { path: path.into(), requests, runs, slots: slots as u32 })
            }
            _ => {
                let what = format!("{slots} pages are read or written, the most is 2^31 - 1");
                Err(wrong(path, 0, what + ": record a smaller device, or for less time"))
            }
        }
    }

    /// Slots of the trace: pages that were read or written.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots before this page.
    fn before(&self, page: u64) -> u32 {
        let runs = self.runs.partition_point(|(first, ..)| *first <= page);
        let slot = runs.checked_sub(1).map_or(0, |at| {
            let (first, end, slot) = self.runs[at];
            slot + page.min(end) - first
        });
        slot as u32
    }

    /// The trace's records; the first begins at 0.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let begin = self.requests[0].at;
        self.requests.iter().filter_map(move |r| {
            let first = self.before(r.pages.start);
            let nr = self.before(r.pages.end) - first;
            (nr > 0).then_some(Record { at: r.at - begin, cpu: r.thread, op: r.op, first, nr })
        })
    }

    /// Writes the trace.
    pub fn write<W: Write>(&self, out: W) -> std::io::Result<W> {
        let about = format!("from {}", self.path.display());
        let mut out = Writer::new(out, self.slots, &about)?;
        self.records().try_for_each(|r| out.write(&Line::Record(r)))?;
        Ok(out.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trace's records, or what is wrong.
    fn imported(text: &str, device: Option<&str>, action: char) -> Result<String, TraceError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let choice = Choice { device: device.map(str::to_string), action };
        let trace = import(file.path(), &choice)?.write(Vec::new()).unwrap();
        let trace = String::from_utf8(trace).unwrap();
        Ok(trace.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"))
    }

    /// Two processes write, one reads; a flush, a merge and a dispatch do not count.
    const BLKPARSE: &str = "\
Input file nvme0n1.blktrace.0 added
259,0    2        1     5.000001000   71  Q  WS 8192 + 16 [kswapd0]
259,0    2        2     5.000001900   71  M  WS 8208 + 8 [kswapd0]
259,0    2        3     5.000030000   71  D  WS 8192 + 16 [kswapd0]
259,0    1        4     5.000250000  912  Q   W 409600 + 8 [python3 -u]
259,0    1        5     5.000200000  912  Q  RA 8200 + 8 [python3 -u]
259,0    2        6     5.000300000    0  C  WS 8192 + 16 [0]
259,0    1        7     5.000400000  912  Q FWS [python3 -u]
259,0    1        8     5.000500000   71  Q   D 8188 + 2048 [kswapd0]
259,0    1        9     5.000600000   71  Q   D 900000 + 2048 [kswapd0]
259,0    1       10     5.000700000   71  Q  ZR 8192 + 8 [kswapd0]
CPU1 (nvme0n1):
 Reads Queued:           1,        4KiB
";

    #[test]
    fn requests_of_blkparse_become_records() {
        let queued = "znsage-trace 1\nslots 3\n0 0 W 0 2\n199 1 R 1\n249 1 W 2\n499 0 F 0 2";
        assert_eq!(imported(BLKPARSE, None, 'Q').unwrap(), queued);
        let ended = "znsage-trace 1\nslots 2\n0 0 W 0 2";
        assert_eq!(imported(BLKPARSE, None, 'D').unwrap(), ended);
        assert_eq!(imported(BLKPARSE, Some("259,0"), 'C').unwrap(), ended);
    }

    /// The first is what fio 3.33 wrote.
    #[test]
    fn requests_of_iologs_become_records() {
        let third = "fio version 3 iolog\n22 /dev/s add\n195 /dev/s open\n201 /dev/s read 61440 \
            4096\n3841 /dev/s write 774144 4096\n4000 /dev/s write 60000 4096\n30435 /dev/s close\n";
        let records = "znsage-trace 1\nslots 3\n0 0 R 1\n3640 0 W 2\n3799 0 W 0 2";
        assert_eq!(imported(third, None, 'Q').unwrap(), records);
        let second = "fio version 2 iolog\n/dev/s add\n/dev/s write 0 8192\n/dev/s wait 50\n\
            /dev/t write 0 4096\n/dev/s wait 25\n/dev/s trim 0 4096\n/dev/s sync\n";
        let records = "znsage-trace 1\nslots 2\n0 0 W 0 2\n75 0 F 0";
        assert_eq!(imported(second, Some("/dev/s"), 'Q').unwrap(), records);
    }

    #[test]
    fn a_broken_line_is_named_with_a_cure() {
        let (v2, v3) = ("fio version 2 iolog\n", "fio version 3 iolog\n");
        for (text, line, what) in [
            (String::from("hello\n"), 1, "give the output of blkparse without -f, or what fio"),
            ("259,0 2 1 5.1 71 Q W 0 + 8 [x]\n".into(), 1, "do not use blkparse -f"),
            ("259,0 2 1 5.000000001 71 Q W x + 8 [x]\n".into(), 1, "the sector is `x`"),
            (
                format!("{BLKPARSE}x")
                    .replace("CPU1", "259,1 1 1 6.000000000 1 Q W 8 + 8 [x]\nCPU1"),
                12,
                "a request to 259,1, after some to 259,0: choose one with --device",
            ),
            (format!("{v2}/dev/s fsync\n"), 2, "fio has no action `fsync`"),
            (format!("{v3}5 /dev/s wait 1\n"), 2, "fio has no action `wait`"),
            (format!("{v3}/dev/s write 0 1\n"), 2, "the time, in microseconds is `/dev/s`"),
            (format!("{v3}5 /dev/s trim 0 4096\n"), 0, "no read or write is in it: see --action"),
        ] {
            let e = imported(&text, None, 'Q').unwrap_err();
            assert_eq!(e.line, line, "{text:?}: {e}");
            assert!(e.what.contains(what), "{text:?}: {e}");
        }
    }
}
