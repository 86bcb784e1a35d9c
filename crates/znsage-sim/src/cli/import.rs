// SPDX-License-Identifier: GPL-2.0-only
//! `znsage-sim import`: a trace of another tool's recording.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::write::GzEncoder;
use serde_json::json;

use crate::time::to_secs;
use crate::trace::{self, Choice, Import, Op, Record};

use super::args::ImportArgs;
use super::{usage, Error, Outcome, Result, Status};

pub fn import(args: &ImportArgs) -> Result<Outcome> {
    let choice = Choice { device: args.device.clone(), action: args.action };
    let import = trace::import(&args.file, &choice).map_err(usage)?;
    write(&import, &args.trace).map_err(|e| Error {
        status: Status::Io,
        message: format!("{}: {e}", args.trace.display()),
    })?;
    let pages = |op| import.records().filter(|r| r.op == op).map(|r| u64::from(r.nr)).sum::<u64>();
    let (written, read, freed) = (pages(Op::Out), pages(Op::In), pages(Op::Free));
    let last = import.records().last();
    let seconds = last.map_or(0.0, |Record { at, .. }| to_secs(at));
    let threads = import.records().map(|r| r.cpu + 1).max().unwrap_or(0);
    let slots = import.slots();
    let text = format!(
        "{}: {written} pages written, {read} read, {freed} freed, in {slots} slots; {threads} \
         threads, {seconds:.3} s\n",
        args.trace.display()
    );
    let json = json!({
        "trace": args.trace, "slots": slots, "threads": threads, "seconds": seconds,
        "written_pages": written, "read_pages": read, "freed_pages": freed,
    });
    Ok(Outcome::fine(text, json))
}

/// Writes the file, compressed if its name says so.
fn write(import: &Import, path: &Path) -> io::Result<()> {
    let out = BufWriter::new(File::create(path)?);
    match path.extension().is_some_and(|e| e == "gz") {
        true => {
            let gz = GzEncoder::new(out, flate2::Compression::default());
            import.write(gz)?.finish()?.flush()
        }
        false => import.write(out)?.flush(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sim;

    /// What fio writes with requests of 1 MiB, some of them discards.
    #[test]
    fn an_imported_recording_can_be_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let (log, trace) = (dir.path().join("log"), dir.path().join("own.trace.gz"));
        let mut text = String::from("fio version 3 iolog\n0 /dev/s add\n0 /dev/s open\n");
        for i in 0..400u64 {
            let action = ["write", "write", "read", "trim"][i as usize % 4];
            text += &format!("{} /dev/s {action} {} {}\n", i * 300, (i % 50) << 20, 1 << 20);
        }
        std::fs::write(&log, text).unwrap();
        let (log, trace) = (log.to_str().unwrap(), trace.to_str().unwrap());
        let done = sim(&["import", log, trace]).unwrap();
        let numbers =
            "51200 pages written, 25600 read, 25600 freed, in 12800 slots; 1 threads, 0.120 s";
        assert_eq!(done.text, format!("{trace}: {numbers}\n"));
        for system in ["znsage", "stock"] {
            let report = sim(&["run", "--system", system, "--trace", trace]).unwrap();
            assert!(report.status == super::Status::Fine, "{}", report.text);
        }
        let e = sim(&["import", log, "/no/such/trace"]).err().unwrap();
        assert_eq!(
            (e.status, e.message.contains("/no/such/trace: No such file")),
            (super::Status::Io, true)
        );
    }
}
