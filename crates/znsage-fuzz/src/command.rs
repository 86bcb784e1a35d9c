// SPDX-License-Identifier: GPL-2.0-only
//! The command on a machine with arbitrary files, and other parsers of kernel output.

use std::path::Path;

use znsage::parsers::{log_record, lookup, read_rest, recorded, run_line, scheduler};
use znsage_sim::trace::Reader;

use crate::machine::Machine;
use crate::text;

const PAGE: u64 = 4096;

/// The first line is the command line, the rest the machine: see `machine.rs`.
pub fn command(data: &[u8]) {
    let (line, machine) = Machine::parse(data);
    let Some(line) = text(line) else { return };
    read_rest(&machine);
    let words: Vec<&str> = line.split_whitespace().collect();
    match run_line(&machine, &words, PAGE) {
        Ok((text, json)) | Err((text, json)) => {
            let json = json.to_string();
            let again: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
            assert_eq!(again.to_string(), json);
            assert!(text.is_empty() || text.ends_with('\n') || !text.ends_with(' '));
        }
    }
}

/// Lines of trace_pipe, log records, tables. A recorded trace is readable up to its
/// first invalid line.
pub fn kernel(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(trace) = recorded(text, 100) {
        let reader = Reader::new(Path::new("t"), std::io::Cursor::new(trace));
        let _ = reader.expect("it has a head").take_while(Result::is_ok).count();
    }
    for line in text.lines() {
        let _ = scheduler(line);
        if let Some(found) = log_record(line) {
            assert!(found.text.contains("znsage"));
        }
        if let Some(key) = line.split(' ').next() {
            let _ = lookup(text, key);
        }
    }
}
