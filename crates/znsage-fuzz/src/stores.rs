// SPDX-License-Identifier: GPL-2.0-only
//! Stores of finished runs, and the tables made of them.

use std::path::Path;

use znsage_sim::sweep::merge::Merged;
use znsage_sim::sweep::table::Table;
use znsage_sim::sweep::{parquet, report, Store};

/// A store survives writing and reading, and makes tables.
pub fn store(data: &[u8]) {
    let path = Path::new("runs.jsonl");
    let Ok((header, entries)) = Store::parse(path, data) else { return };
    let mut text = serde_json::to_string(&header).expect("plain data") + "\n";
    for entry in entries.values() {
        text += &(serde_json::to_string(entry).expect("plain data") + "\n");
    }
    let (header_again, again) = Store::parse(path, text.as_bytes()).expect("it parsed before");
    assert_eq!(header, header_again);
    assert_eq!(entries, again);

    let table = Table::of(entries.values());
    assert_eq!(table.rows, entries.len());
    assert!(!table.to_csv().is_empty());
    assert!(parquet::file(&table).starts_with(b"PAR1"));
    assert!(report::page(&table).render().ends_with("</html>\n"));

    let files = vec!["runs-1-of-2.jsonl".into(), path.into()];
    let merged = Merged { header, entries, files };
    let missing = merged.missing();
    assert_eq!(missing.len() + merged.entries.len(), merged.header.points);
    assert_eq!(missing.is_empty(), merged.missing_shards().is_empty());
}
