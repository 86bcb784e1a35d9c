// SPDX-License-Identifier: GPL-2.0-only
//! Traces, compressed or not.

use std::io::Cursor;
use std::path::Path;

use znsage_sim::trace::{survey, Accesses, Line, Op, Reader, TraceError, Writer};

/// The survey may stop above this number of used slots.
const MOST: u32 = 1 << 16;

fn read(data: &[u8]) -> Result<Reader, TraceError> {
    Reader::new(Path::new("t"), Cursor::new(data.to_vec()))
}

/// A trace survives writing and reading; the survey respects its limit and finds a
/// page for every slot.
pub fn trace(data: &[u8]) {
    accesses(data);
    let Ok(reader) = read(data) else { return };
    let slots = reader.slots();
    let lines: Result<Vec<Line>, _> = reader.collect();
    let needs = read(data).and_then(|reader| survey(Path::new("t"), reader, MOST));
    let Ok(lines) = lines else { return };

    let mut writer = Writer::new(Vec::new(), slots, "again").expect("memory can be written");
    lines.iter().for_each(|line| writer.write(line).expect("memory can be written"));
    let again = read(&writer.into_inner()).expect("it has a head");
    assert_eq!(again.slots(), slots);
    assert_eq!(again.collect::<Result<Vec<_>, _>>().expect("it parsed before"), lines);

    let Ok(needs) = needs else { return };
    // A line can exceed the limit by at most one group of slots.
    assert!(needs.most_used <= MOST + 64 && needs.before.len() <= MOST as usize + 64);
    if needs.most_used > MOST {
        return;
    }
    let mut written = 0;
    for line in &lines {
        let Line::Record(r) = line else { continue };
        let there = needs.translate(*r).expect("the survey has seen it");
        assert!(there.first + there.nr <= needs.pages());
        written += u64::from(r.nr) * u64::from(r.op == Op::Out);
    }
    assert_eq!(needs.written, written);
}

/// Accesses of a recorded program are to its pages.
fn accesses(data: &[u8]) {
    let input = std::io::Cursor::new(data.to_vec());
    let Ok(all) = Accesses::read(Path::new("t"), input) else { return };
    assert!(all.len() > 0);
    assert!((0..all.len()).all(|i| all.get(i).0 < all.pages()));
}
