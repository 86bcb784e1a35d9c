// SPDX-License-Identifier: GPL-2.0-only
//! The format: reading and writing its lines.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::time::{Ns, US};

/// The first line.
pub const HEADER: &str = "znsage-trace 1";
/// CPUs that a trace may name.
pub const MAX_CPUS: u32 = crate::host::cpu::MAX_CPUS;
/// Magic of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Maximum bytes of a line. Only marks exceed a few dozen.
const MAX_LINE: u64 = 1 << 16;
/// Latest time in a trace; leaves room below the end of virtual time, as a
/// replay runs beyond it.
pub const MAX_TIME: Ns = u64::MAX / 4;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Pages were swapped out.
    Out,
    /// Pages were swapped in; the caller waited.
    In,
    /// Slots were freed.
    Free,
}

impl Op {
    fn letter(self) -> char {
        match self {
            Op::Out => 'W',
            Op::In => 'R',
            Op::Free => 'F',
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A request to the swap area.
    Record(Record),
    /// A named moment, such as `measure`.
    Mark {
        /// Since the recording began.
        at: Ns,
        /// Its name.
        name: String,
        /// Facts from the recorder, `key=value`.
        facts: Vec<(String, String)>,
    },
}

/// A request for the slots `first .. first + nr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Since the recording began; in whole microseconds in the file.
    pub at: Ns,
    /// By which CPU.
    pub cpu: u32,
    /// What.
    pub op: Op,
    /// The first slot.
    pub first: u32,
    /// How many.
    pub nr: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Line::Record(r) => {
                write!(f, "{} {} {} {}", r.at / US, r.cpu, r.op.letter(), r.first)?;
                if r.nr != 1 {
                    write!(f, " {}", r.nr)?;
                }
                Ok(())
            }
            Line::Mark { at, name, facts } => {
                write!(f, "{} mark {name}", at / US)?;
                facts.iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
            }
        }
    }
}

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1; 0: the file as a whole.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.what),
        }
    }
}

impl std::error::Error for TraceError {}

/// The lines of a file, compressed with gzip or not, but for empty ones and comments.
/// Keeps only one line in memory.
pub(super) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead>,
    text: String,
    line: u64,
}

impl Lines {
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|e| wrong(path, 0, e.to_string()))?;
        Self::new(path, file)
    }

    /// The lines of any source; `path` is for messages.
    pub fn new(path: &Path, mut input: impl Read + 'static) -> Result<Self, TraceError> {
        let mut magic = Vec::new();
        let begun = input.by_ref().take(2).read_to_end(&mut magic);
        begun.map_err(|e| wrong(path, 0, e.to_string()))?;
        let is_gzip = magic == GZIP;
        let whole = std::io::Cursor::new(magic).chain(input);
        let input: Box<dyn BufRead> = match is_gzip {
            true => Box::new(BufReader::new(MultiGzDecoder::new(whole))),
            false => Box::new(BufReader::new(whole)),
        };
        Ok(Lines { path: path.into(), input, text: String::new(), line: 0 })
    }

    /// An error in the last line.
    pub fn wrong(&self, what: String) -> TraceError {
        wrong(&self.path, self.line, what)
    }

    /// The next line; None at the end.
    pub fn next(&mut self) -> Result<Option<&str>, TraceError> {
        loop {
            self.text.clear();
            self.line += 1;
            // A few bytes of gzip may expand to gigabytes without a newline.
            match self.input.by_ref().take(MAX_LINE).read_line(&mut self.text) {
                Err(e) => return Err(self.wrong(e.to_string())),
                Ok(0) => return Ok(None),
                Ok(n) if n as u64 == MAX_LINE && !self.text.ends_with('\n') => {
                    return Err(self.wrong(format!("longer than {MAX_LINE} bytes")));
                }
                Ok(_) => (),
            }
            let text = self.text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                break;
            }
        }
        Ok(Some(self.text.trim()))
    }
}

/// Reads a trace line by line.
pub struct Reader {
    lines: Lines,
    last: Ns,
    slots: u32,
}

impl Reader {
    /// Opens a trace, compressed with gzip or not.
    ///
    /// # Errors If it cannot be read, or lacks the header lines of a trace.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::of(Lines::open(path)?)
    }

    /// Reads from any source, compressed with gzip or not; `path` is for messages.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(path: &Path, input: impl Read + 'static) -> Result<Self, TraceError> {
        Self::of(Lines::new(path, input)?)
    }

    fn of(mut lines: Lines) -> Result<Self, TraceError> {
        if lines.next()? != Some(HEADER) {
            return Err(lines.wrong(format!("the first line should be `{HEADER}`")));
        }
        let slots = lines.next()?.and_then(|line| line.strip_prefix("slots ")?.parse().ok());
        match slots {
            Some(slots @ 1..=0x7fff_ffff) => Ok(Reader { lines, last: 0, slots }),
            _ => Err(lines.wrong("the second line should be `slots NUMBER`".into())),
        }
    }

    /// Slots that the swap area had.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    pub(crate) fn wrong(&self, what: String) -> TraceError {
        self.lines.wrong(what)
    }
}

/// A line of a trace with `slots`, not before the time `last`.
fn parse(text: &str, slots: u32, last: Ns) -> Result<Line, String> {
    let mut words = text.split_ascii_whitespace();
    let at = number(words.next(), "the time, in microseconds", MAX_TIME / US)? * US;
    if at < last {
        return Err(format!("goes back in time, from {} us", last / US));
    }
    let cpu = match words.next() {
        Some("mark") => return mark(at, words),
        cpu => number(cpu, "the CPU", u64::from(MAX_CPUS) - 1)? as u32,
    };
    let op = match words.next() {
        Some("W") => Op::Out,
        Some("R") => Op::In,
        Some("F") => Op::Free,
        Some(other) => return Err(format!("`{other}` is none of W, R and F")),
        None => return Err("W, R or F is missing".into()),
    };
    let slots = u64::from(slots);
    let first = number(words.next(), "the slot", slots - 1)?;
    let nr = match words.next() {
        None => 1,
        nr => number(nr, "the number of slots", slots - first)?,
    };
    if nr == 0 {
        return Err("the number of slots is 0".into());
    }
    if let Some(more) = words.next() {
        return Err(format!("`{more}` after the end of the record"));
    }
    Ok(Line::Record(Record { at, cpu, op, first: first as u32, nr: nr as u32 }))
}

pub(super) fn wrong(path: &Path, line: u64, what: String) -> TraceError {
    TraceError { path: path.into(), line, what }
}

pub(super) fn number(word: Option<&str>, what: &str, most: u64) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    match word.parse::<u64>() {
        Ok(n) if n <= most => Ok(n),
        Ok(n) => Err(format!("{what} is {n}, the most is {most}")),
        Err(_) => Err(format!("{what} is `{word}`, which is no number")),
    }
}

fn mark<'a>(at: Ns, mut words: impl Iterator<Item = &'a str>) -> Result<Line, String> {
    let name = words.next().ok_or("the mark has no name")?.to_string();
    let facts = words.map(|w| match w.split_once('=') {
        Some((key, value)) => Ok((key.into(), value.into())),
        None => Err(format!("`{w}` in a mark is not KEY=VALUE")),
    });
    Ok(Line::Mark { at, name, facts: facts.collect::<Result<_, _>>()? })
}

impl Iterator for Reader {
    type Item = Result<Line, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.lines.next() {
            Err(e) => return Some(Err(e)),
            Ok(None) => return None,
            Ok(Some(text)) => parse(text, self.slots, self.last),
        };
        if let Ok(Line::Record(Record { at, .. }) | Line::Mark { at, .. }) = &line {
            self.last = *at;
        }
        Some(line.map_err(|what| self.wrong(what)))
    }
}

/// Writes a trace.
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a trace of a swap area; `about` is a comment.
    pub fn new(mut out: W, slots: u32, about: &str) -> std::io::Result<Self> {
        writeln!(out, "{HEADER}\nslots {slots}")?;
        for line in about.lines() {
            writeln!(out, "# {line}")?;
        }
        Ok(Writer { out })
    }

    /// Adds a line; lines must be in order of time.
    pub fn write(&mut self, line: &Line) -> std::io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Line>, TraceError> {
        let input = std::io::Cursor::new(text.to_string());
        Reader::new(Path::new("t"), input)?.collect()
    }

    #[test]
    fn what_is_written_can_be_read() {
        let record =
            |at, op, first, nr| Line::Record(Record { at: at * US, cpu: 1, op, first, nr });
        let facts = vec![("gc_blocks".to_string(), "17".to_string())];
        let lines = vec![
            record(5, Op::Out, 0, 32),
            Line::Mark { at: 7 * US, name: "measure".into(), facts },
            record(7, Op::In, 31, 1),
            record(9, Op::Free, 31, 1),
        ];
        let mut w = Writer::new(Vec::new(), 100, "of a test\nin two lines").unwrap();
        lines.iter().for_each(|l| w.write(l).unwrap());
        let text = String::from_utf8(w.into_inner()).unwrap();
        assert!(text
            .starts_with("znsage-trace 1\nslots 100\n# of a test\n# in two lines\n5 1 W 0 32\n"));
        assert_eq!(read(&text).unwrap(), lines);
    }

    #[test]
    fn a_broken_line_is_named() {
        for (line, what) in [
            ("x 0 W 1", "the time, in microseconds is `x`"),
            ("3 0 W 1", "goes back in time"),
            ("18446744073709551 0 W 1", "the most is 4611686018427387"),
            ("9 W 1", "the CPU is `W`"),
            ("9 900 W 1", "the CPU is 900"),
            ("9 0 X 1", "`X` is none of"),
            ("9 0", "W, R or F is missing"),
            ("9 0 W", "the slot is missing"),
            ("9 0 W 50", "the slot is 50, the most is 49"),
            ("9 0 W 48 3", "the number of slots is 3, the most is 2"),
            ("9 0 W 48 0", "is 0"),
            ("9 0 W 48 1 1", "`1` after the end"),
            ("9 mark", "no name"),
            ("9 mark m x", "not KEY=VALUE"),
        ] {
            let e = read(&format!("{HEADER}\nslots 50\n\n# c\n5 0 W 1\n{line}\n")).unwrap_err();
            assert_eq!(e.line, 6, "{line}");
            assert!(e.what.contains(what), "{line}: {e}");
            assert!(e.to_string().starts_with("t:6: "));
        }
    }

    /// 64 MiB without a newline compress to 64 KiB.
    #[test]
    fn an_endless_line_is_refused() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(format!("{HEADER}\nslots 50\n#").as_bytes()).unwrap();
        for _ in 0..64 {
            gz.write_all(&vec![b'x'; 1 << 20]).unwrap();
        }
        let input = std::io::Cursor::new(gz.finish().unwrap());
        let e = Reader::new(Path::new("t"), input).unwrap().next().unwrap().unwrap_err();
        assert_eq!((e.line, e.what.as_str()), (3, "longer than 65536 bytes"));
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit() {
        let comment = "x".repeat(MAX_LINE as usize - 2);
        let text = format!("{HEADER}\nslots 50\n#{comment}\n0 0 W 1\n");
        assert_eq!(read(&text).unwrap().len(), 1);
    }

    #[test]
    fn a_wrong_head_is_named() {
        for (text, line) in [
            ("", 1),
            ("znsage-trace 2\n", 1),
            ("znsage-trace 1\n", 2),
            ("znsage-trace 1\nslots 0", 2),
        ] {
            assert_eq!(read(text).unwrap_err().line, line, "{text:?}");
        }
    }
}
