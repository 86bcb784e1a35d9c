// SPDX-License-Identifier: GPL-2.0-only
//! What a trace needs of the system it is replayed on.

use std::collections::HashMap;
use std::path::Path;

use super::file::{wrong, Line, Op, Reader, Record, TraceError};

/// Slots of a group: the bits of a word.
const GROUP: u32 = 64;

/// What a trace needs of the system it is replayed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Slots of the swap area that was recorded.
    pub slots: u32,
    /// CPUs.
    pub cpus: u32,
    /// Most slots in use at once.
    pub most_used: u32,
    /// Slots in use when the recording began: their first record reads or frees them.
    pub before: Vec<u32>,
    /// Pages swapped out.
    pub written: u64,
    /// Is there a mark `measure`?
    pub measures: bool,
    /// Groups of slots that the trace names, in order.
    groups: Vec<u32>,
}

impl Needs {
    /// Pages that stand for the slots. Their number follows the trace, which may use
    /// little of the swap area.
    pub fn pages(&self) -> u32 {
        match self.groups.last() {
            Some(last) => {
                let unused = (last + 1) * GROUP - self.slots.min((last + 1) * GROUP);
                self.groups.len() as u32 * GROUP - unused
            }
            None => 0,
        }
    }

    /// The page that stands for a slot. Contiguous slots in the trace map to contiguous
    /// pages. None: the trace had no such slot at the survey.
    pub fn page(&self, slot: u32) -> Option<u32> {
        let at = self.groups.binary_search(&(slot / GROUP)).ok()?;
        Some(at as u32 * GROUP + slot % GROUP)
    }

    /// A record with pages in place of slots. None as for [`page`](Self::page), and if
    /// its CPU is unknown.
    pub fn translate(&self, r: Record) -> Option<Record> {
        let (first, last) = (self.page(r.first)?, self.page(r.first + (r.nr - 1))?);
        let fits = last - first == r.nr - 1 && r.cpu < self.cpus;
        fits.then_some(Record { first, ..r })
    }
}

/// A group of slots, a bit for each.
#[derive(Clone, Copy, Default)]
struct Group {
    seen: u64,
    holds: u64,
}

/// State of a survey.
#[derive(Default)]
struct Survey {
    needs: Needs,
    groups: HashMap<u32, Group>,
    /// Slots in use besides those in use before the recording: now, and at most.
    more: i64,
    most: i64,
}

impl Survey {
    /// Counts a record. False: more than `limit` slots are in use at once.
    fn add(&mut self, r: Record, limit: u32) -> bool {
        self.needs.cpus = self.needs.cpus.max(r.cpu + 1);
        let end = r.first + r.nr;
        let mut slot = r.first;
        while slot < end {
            let next = end.min((slot / GROUP + 1) * GROUP);
            let bits = u64::MAX >> (GROUP - (next - slot)) << (slot % GROUP);
            self.add_bits(slot / GROUP, bits, r.op);
            if self.used() > i64::from(limit) {
                return false;
            }
            slot = next;
        }
        true
    }

    fn add_bits(&mut self, index: u32, bits: u64, op: Op) {
        let group = self.groups.entry(index).or_default();
        if op != Op::Out {
            let mut new = bits & !group.seen;
            group.holds |= new;
            while new != 0 {
                self.needs.before.push(index * GROUP + new.trailing_zeros());
                new &= new - 1;
            }
        }
        group.seen |= bits;
        match op {
            Op::Out => {
                self.needs.written += u64::from(bits.count_ones());
                self.more += i64::from((bits & !group.holds).count_ones());
                group.holds |= bits;
            }
            Op::Free => {
                self.more -= i64::from((bits & group.holds).count_ones());
                group.holds &= !bits;
            }
            Op::In => (),
        }
        self.most = self.most.max(self.more);
    }

    fn used(&self) -> i64 {
        self.most + self.needs.before.len() as i64
    }

    fn finish(mut self) -> Needs {
        self.needs.most_used = self.used() as u32;
        self.needs.before.sort_unstable();
        self.needs.groups = self.groups.into_keys().collect();
        self.needs.groups.sort_unstable();
        self.needs
    }
}

/// Reads a whole trace and returns its needs. Stops early once more than
/// `limit` slots are in use, because a line may name 2^31 slots.
///
/// # Errors
/// If a line is broken, or there is no record.
pub fn survey(path: &Path, reader: Reader, limit: u32) -> Result<Needs, TraceError> {
    let mut survey = Survey::default();
    survey.needs.slots = reader.slots();
    for line in reader {
        match line? {
            Line::Record(r) => {
                if !survey.add(r, limit) {
                    return Ok(survey.finish());
                }
            }
            Line::Mark { name, .. } => survey.needs.measures |= name == "measure",
        }
    }
    match survey.needs.cpus {
        0 => Err(wrong(path, 0, "there is no record in it".into())),
        _ => Ok(survey.finish()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &'static str, limit: u32) -> Result<Needs, TraceError> {
        let path = Path::new("t");
        survey(path, Reader::new(path, text.as_bytes())?, limit)
    }

    #[test]
    fn survey_finds_slots_used_before() {
        let text = "znsage-trace 1\nslots 9\n1 0 W 0 4\n2 1 R 7\n3 0 F 1 2\n4 0 W 1\n";
        let found = needs(text, 9).unwrap();
        assert_eq!((found.cpus, found.written, found.before.as_slice()), (2, 5, &[7][..]));
        assert_eq!((found.most_used, found.measures), (5, false));
        assert_eq!((found.pages(), found.page(7)), (9, Some(7)));
        let e = needs("znsage-trace 1\nslots 9\n", 9).unwrap_err();
        assert!(e.what.contains("no record"));
    }

    #[test]
    fn grouped_slots_count_like_single_slots() {
        let text = "znsage-trace 1\nslots 1000\n0 0 W 60 200\n1 0 F 63 66\n2 0 R 0 62\n\
            3 0 W 100 1\n4 0 F 100 1\n5 0 W 999\n";
        let found = needs(text, 1000).unwrap();
        assert_eq!(found.before, Vec::from_iter(0..60));
        assert_eq!((found.most_used, found.written), (60 + 200, 202));
        // Slots 0 to 319, and 960 to 999.
        assert_eq!(found.pages(), 360);
        assert_eq!(
            [0, 319, 960, 999, 320].map(|s| found.page(s)).map(|p| p.map_or(-1, i64::from)),
            [0, 319, 320, 359, -1]
        );
    }

    /// Memory follows the size of the trace, not the slot numbers in it.
    #[test]
    fn memory_follows_the_trace_not_the_area() {
        let text = "znsage-trace 1\nslots 2147483647\n0 0 W 0\n1 0 W 2147483646\n";
        let found = needs(text, 100).unwrap();
        assert_eq!((found.pages(), found.page(2_147_483_646)), (127, Some(126)));
    }

    #[test]
    fn survey_stops_at_the_limit() {
        for op in ["W", "R", "F"] {
            let text = format!("znsage-trace 1\nslots 2147483647\n0 0 {op} 0 2147483647\n");
            let found = needs(text.leak(), 100).unwrap();
            assert_eq!(found.most_used, 128, "{op}");
        }
    }

    #[test]
    fn records_become_those_of_pages() {
        let found = needs("znsage-trace 1\nslots 900\n0 1 W 640 64\n", 900).unwrap();
        let record = |first, nr| Record { at: 0, cpu: 1, op: Op::Out, first, nr };
        assert_eq!(found.translate(record(650, 54)), Some(record(10, 54)));
        assert_eq!(found.translate(record(650, 55)), None);
        assert_eq!(found.translate(record(1, 1)), None);
        assert_eq!(found.translate(Record { cpu: 2, ..record(650, 1) }), None);
    }
}
