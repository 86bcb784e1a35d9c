// SPDX-License-Identifier: GPL-2.0-only
//! Recordings of the pages that a program touches, made by `trace/pages`. A trace of a
//! swap area names slots; this names pages, so that a page is the same one all its life.

use std::io::Read;
use std::path::Path;

use super::file::{number, Lines, TraceError};
use crate::time::{Ns, US};

/// The first line.
pub const HEADER: &str = "znsage-accesses 1";
/// Most pages of a program: 256 GiB.
const MAX_PAGES: u64 = 1 << 26;
/// Most accesses; they are kept in memory, 8 bytes each.
const MAX_ACCESSES: usize = 1 << 27;
/// Most time from one access to the next, microseconds.
const MAX_GAP: u64 = u32::MAX as u64;

/// Set in [`Touch::page`] of a write.
const WRITE: u32 = 1 << 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Touch {
    page: u32,
    /// Thousands of instructions since the access before it.
    gap: u32,
}

/// A recording. There is at least one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accesses {
    pages: u32,
    list: Vec<Touch>,
}

impl Accesses {
    /// Does a file say that it is one? A file that is neither this nor a trace, or that
    /// cannot be read, is not.
    pub fn is_one(path: &Path) -> bool {
        let first = Lines::open(path).and_then(|mut lines| Ok(lines.next()?.map(str::to_string)));
        first.is_ok_and(|line| line.as_deref() == Some(HEADER))
    }

    /// Reads a recording, compressed with gzip or not.
    ///
    /// # Errors
    /// If it cannot be read, or a line is not what it should be.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::of(Lines::open(path)?)
    }

    /// Reads it from any source; `path` is for messages.
    ///
    /// # Errors
    /// As [`Accesses::open`].
    pub fn read(path: &Path, input: impl Read + 'static) -> Result<Self, TraceError> {
        Self::of(Lines::new(path, input)?)
    }

    fn of(mut lines: Lines) -> Result<Self, TraceError> {
        if lines.next()? != Some(HEADER) {
            return Err(lines.wrong(format!("the first line should be `{HEADER}`")));
        }
        let pages = lines.next()?.and_then(|line| line.strip_prefix("pages ")?.parse().ok());
        let pages = match pages {
            Some(n @ 1..=MAX_PAGES) => n as u32,
            _ => return Err(lines.wrong("the second line should be `pages NUMBER`".into())),
        };
        let mut list = Vec::new();
        while let Some(line) = lines.next()? {
            let touch = parse(line, pages);
            list.push(touch.map_err(|what| lines.wrong(what))?);
            if list.len() > MAX_ACCESSES {
                return Err(lines.wrong(format!("more than {MAX_ACCESSES} accesses")));
            }
        }
        if list.is_empty() {
            return Err(lines.wrong("there is no access".into()));
        }
        Ok(Accesses { pages, list })
    }

    /// Pages of the program, numbered from 0 in the order of their addresses.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// How many accesses there are.
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// An access: its page, whether it writes, and the time since the access before it,
    /// a nanosecond for each instruction.
    #[inline]
    pub fn get(&self, at: usize) -> (u32, bool, Ns) {
        let Touch { page, gap } = self.list[at];
        (page & !WRITE, page & WRITE != 0, u64::from(gap) * US)
    }
}

fn parse(line: &str, pages: u32) -> Result<Touch, String> {
    let mut words = line.split_ascii_whitespace();
    let gap = number(words.next(), "the time since the last line", MAX_GAP)? as u32;
    let write = match words.next() {
        Some("w") => WRITE,
        Some("r") => 0,
        Some(other) => return Err(format!("`{other}` is neither r nor w")),
        None => return Err("r or w is missing".into()),
    };
    let page = number(words.next(), "the page", u64::from(pages) - 1)? as u32;
    match words.next() {
        Some(more) => Err(format!("`{more}` after the end of the line")),
        None => Ok(Touch { page: page | write, gap }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Accesses, TraceError> {
        Accesses::read(Path::new("a"), std::io::Cursor::new(text.to_string()))
    }

    #[test]
    fn accesses_are_read() {
        let a = read(&format!("{HEADER}\npages 9\n# a comment\n0 w 3\n2 r 8\n\n1 w 0\n")).unwrap();
        let all: Vec<_> = (0..a.len()).map(|i| a.get(i)).collect();
        assert_eq!(a.pages(), 9);
        assert_eq!(all, [(3, true, 0), (8, false, 2000), (0, true, 1000)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, what) in [
            ("", 1, "the first line should be"),
            ("znsage-trace 1\nslots 5\n", 1, "the first line should be"),
            ("znsage-accesses 1\npages 0\n0 r 0\n", 2, "the second line should be"),
            ("znsage-accesses 1\npages 67108865\n", 2, "the second line should be"),
            ("znsage-accesses 1\npages 2\n", 3, "there is no access"),
            ("znsage-accesses 1\npages 2\n0 w 0\n0 r 2\n", 4, "the page is 2, the most is 1"),
            ("znsage-accesses 1\npages 2\n0 x 0\n", 3, "`x` is neither r nor w"),
            ("znsage-accesses 1\npages 2\n0\n", 3, "r or w is missing"),
            ("znsage-accesses 1\npages 2\n-1 w 0\n", 3, "which is no number"),
            ("znsage-accesses 1\npages 2\n0 w 0 1\n", 3, "`1` after the end"),
        ] {
            let e = read(text).unwrap_err();
            assert_eq!(e.line, line, "{text:?}: {e}");
            assert!(e.what.contains(what), "{text:?}: {e}");
        }
    }
}
