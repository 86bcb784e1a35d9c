// SPDX-License-Identifier: GPL-2.0-only
//! A table as a Parquet file.
//!
//! Our own writer, because the `parquet` crate is under the Apache License
//! 2.0, which a GPL-2.0-only program cannot link. It needs little of the
//! format (github.com/apache/parquet-format, `parquet.thrift`): one row group,
//! one page of plain uncompressed values per column, then the metadata in
//! Thrift's compact protocol. `tests/sweep.rs` reads the files back with the
//! crate.

use super::table::{Cells, Table};

const MAGIC: &[u8] = b"PAR1";

// enum Type, ConvertedType, Encoding, FieldRepetitionType, PageType,
// CompressionCodec of parquet.thrift.
const BOOLEAN: i64 = 0;
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const UTF8: i64 = 0;
const UINT_64: i64 = 14;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const DATA_PAGE: i64 = 0;
const UNCOMPRESSED: i64 = 0;

/// The file of a table. All columns are optional; whole numbers are unsigned.
pub fn file(table: &Table) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for column in &table.columns {
        let offset = out.len();
        let page = page(&column.cells);
        out.extend(page_header(page.len(), table.rows));
        out.extend(page);
        chunks.push((offset, out.len() - offset));
    }
    let metadata = metadata(table, &chunks);
    out.extend(&metadata);
    out.extend((metadata.len() as u32).to_le_bytes());
    out.extend(MAGIC);
    out
}

/// A page: which rows have a value, and the values.
fn page(cells: &Cells) -> Vec<u8> {
    fn page<T>(all: &[Option<T>], put: impl Fn(&mut Vec<u8>, &T)) -> Vec<u8> {
        let mut out = levels(all.iter().map(Option::is_some));
        for value in all.iter().flatten() {
            put(&mut out, value);
        }
        out
    }
    match cells {
        Cells::Bool(all) => {
            let mut out = levels(all.iter().map(Option::is_some));
            out.extend(bits(all.iter().flatten().copied()));
            out
        }
        Cells::Int(all) => page(all, |out, n| out.extend(n.to_le_bytes())),
        Cells::Float(all) => page(all, |out, x| out.extend(x.to_le_bytes())),
        Cells::Text(all) => page(all, |out, text| {
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        }),
    }
}

/// Definition levels: one run of bits, eight in a byte, behind its length.
fn levels(present: impl Iterator<Item = bool>) -> Vec<u8> {
    let bits = bits(present);
    let mut run = Vec::new();
    varint(&mut run, (bits.len() as u64) << 1 | 1);
    run.extend(bits);
    let mut out = (run.len() as u32).to_le_bytes().to_vec();
    out.extend(run);
    out
}

fn bits(all: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, bit) in all.enumerate() {
        if i % 8 == 0 {
            out.push(0);
        }
        *out.last_mut().expect("a byte was added") |= u8::from(bit) << (i % 8);
    }
    out
}

fn page_header(size: usize, rows: usize) -> Vec<u8> {
    let mut page = Struct::new();
    page.int(1, DATA_PAGE).int(2, size as i64).int(3, size as i64);
    let mut data = Struct::new();
    data.int(1, rows as i64).int(2, PLAIN).int(3, RLE).int(4, RLE);
    page.inner(5, data);
    page.end()
}

/// FileMetaData; `chunks` are the places and sizes of the columns.
fn metadata(table: &Table, chunks: &[(usize, usize)]) -> Vec<u8> {
    let mut schema = vec![Struct::new()];
    schema[0].int(3, REQUIRED).text(4, "results").int(5, table.columns.len() as i64);
    let mut columns = Vec::new();
    for (column, &(offset, size)) in table.columns.iter().zip(chunks) {
        let (kind, converted) = kind(&column.cells);
        let mut element = Struct::new();
        element.int(1, kind).int(3, OPTIONAL).text(4, &column.name);
        if let Some(converted) = converted {
            element.int(6, converted);
        }
        schema.push(element);
        let mut data = Struct::new();
        data.int(1, kind)
            .ints(2, &[PLAIN, RLE])
            .texts(3, &[&column.name])
            .int(4, UNCOMPRESSED)
            .long(5, table.rows as i64)
            .long(6, size as i64)
            .long(7, size as i64)
            .long(9, offset as i64);
        let mut chunk = Struct::new();
        chunk.long(2, offset as i64).inner(3, data);
        columns.push(chunk);
    }
    let bytes: usize = chunks.iter().map(|(_, size)| size).sum();
    let mut group = Struct::new();
    group.structs(1, columns).long(2, bytes as i64).long(3, table.rows as i64);
    let mut file = Struct::new();
    file.int(1, 1)
        .structs(2, schema)
        .long(3, table.rows as i64)
        .structs(4, vec![group])
        .text(6, concat!("znsage version ", env!("CARGO_PKG_VERSION")));
    file.end()
}

/// The physical type of a column, and what it means.
fn kind(cells: &Cells) -> (i64, Option<i64>) {
    match cells {
        Cells::Bool(_) => (BOOLEAN, None),
        Cells::Int(_) => (INT64, Some(UINT_64)),
        Cells::Float(_) => (DOUBLE, None),
        Cells::Text(_) => (BYTE_ARRAY, Some(UTF8)),
    }
}

/// A struct in Thrift's compact protocol; fields are added in ascending order.
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

// Types of fields and elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    fn new() -> Self {
        Struct { bytes: Vec::new(), last: 0 }
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    /// A field's number is written as the distance to the previous one.
    fn field(&mut self, number: u8, kind: u8) -> &mut Vec<u8> {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        &mut self.bytes
    }

    fn int(&mut self, number: u8, value: i64) -> &mut Self {
        zigzag(self.field(number, I32), value);
        self
    }

    fn long(&mut self, number: u8, value: i64) -> &mut Self {
        zigzag(self.field(number, I64), value);
        self
    }

    fn text(&mut self, number: u8, text: &str) -> &mut Self {
        binary(self.field(number, BINARY), text);
        self
    }

    fn inner(&mut self, number: u8, value: Struct) -> &mut Self {
        self.field(number, STRUCT).extend(value.end());
        self
    }

    fn list(&mut self, number: u8, kind: u8, len: usize) -> &mut Vec<u8> {
        let out = self.field(number, LIST);
        match len {
            0..=14 => out.push((len as u8) << 4 | kind),
            _ => {
                out.push(0xf0 | kind);
                varint(out, len as u64);
            }
        }
        out
    }

    fn ints(&mut self, number: u8, all: &[i64]) -> &mut Self {
        let out = self.list(number, I32, all.len());
        all.iter().for_each(|n| zigzag(out, *n));
        self
    }

    fn texts(&mut self, number: u8, all: &[&str]) -> &mut Self {
        let out = self.list(number, BINARY, all.len());
        all.iter().for_each(|text| binary(out, text));
        self
    }

    fn structs(&mut self, number: u8, all: Vec<Struct>) -> &mut Self {
        let out = self.list(number, STRUCT, all.len());
        all.into_iter().for_each(|s| out.extend(s.end()));
        self
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Seven bits per byte, lowest first; the top bit marks all but the last.
fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn zigzag(out: &mut Vec<u8>, n: i64) {
    varint(out, (n << 1 ^ n >> 63) as u64);
}
