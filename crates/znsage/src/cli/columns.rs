// SPDX-License-Identifier: GPL-2.0-only
//! Columns of tables, and the options that choose them, as util-linux names them.

use clap::{Args, ValueEnum};

use crate::error::{Error, Kind, Result};
use crate::units;

/// A column of a command.
pub trait Column: ValueEnum + Copy + Send + Sync + PartialEq + 'static {
    /// The columns that are printed without -o.
    const DEFAULT: &'static [Self];
    /// Columns of words, which are aligned to the left.
    const WORDS: &'static [Self];

    fn name(&self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
    }
}

#[derive(Debug, Args)]
pub struct TableArgs<C: Column> {
    /// Print only a table of these columns, separated by commas
    #[arg(short, long, value_name = "COLUMNS", value_delimiter = ',', ignore_case = true)]
    pub output: Vec<C>,

    /// Print only the table, without headings
    #[arg(short, long)]
    pub noheadings: bool,

    /// Print sizes in bytes
    #[arg(short, long)]
    pub bytes: bool,
}

/// The content of a cell.
pub enum Cell {
    Text(String),
    Bytes(u64),
}

impl Cell {
    pub fn text(value: impl ToString) -> Cell {
        Cell::Text(value.to_string())
    }

    /// `-` is unknown, or none.
    pub fn maybe<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
        value.map_or(Cell::text("-"), cell)
    }
}

impl<C: Column> TableArgs<C> {
    /// True if only the table is to be printed.
    pub fn only(&self) -> bool {
        self.noheadings || !self.output.is_empty()
    }

    /// JSON has all columns, in bytes.
    pub fn check(&self, json: bool) -> Result<()> {
        match json && (self.only() || self.bytes) {
            true => Err(Error::new(Kind::Usage, "--json prints all columns, in bytes")
                .hint("leave out --output, --noheadings and --bytes")),
            false => Ok(()),
        }
    }

    /// Chosen columns of `rows`, aligned.
    pub fn text<R>(&self, rows: &[R], cell: impl Fn(C, &R) -> Cell) -> String {
        let columns = if self.output.is_empty() { C::DEFAULT } else { &self.output };
        let shown = |cell| match cell {
            Cell::Text(text) => text,
            Cell::Bytes(bytes) if self.bytes => bytes.to_string(),
            Cell::Bytes(bytes) => units::size(bytes),
        };
        let mut lines: Vec<Vec<String>> = Vec::new();
        if !self.noheadings {
            lines.push(columns.iter().map(C::name).collect());
        }
        lines.extend(
            rows.iter().map(|row| columns.iter().map(|&column| shown(cell(column, row))).collect()),
        );
        units::aligned(&lines, |i| C::WORDS.contains(&columns[i]))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum StatusColumn {
    /// The disk
    Name,
    /// The device below it
    Backing,
    /// Which pages are written together
    Policy,
    /// How garbage collection chooses its victim zone if the policy does not
    Victim,
    /// How pages are compressed
    Compress,
    /// How pages are encrypted
    Encrypt,
    /// Swap space
    Size,
    /// Swap space in use
    Used,
    /// Share of the device below that holds data, in percent
    #[value(name = "LIVE%")]
    Live,
    /// Zones of the device below
    Zones,
    /// Zones without data
    Empty,
    /// Pages swapped out, as programs see them
    Swapped,
    /// What swap-out wrote to the device for them
    Written,
    /// What garbage collection wrote to the device
    Copied,
    /// Write amplification: all that was written to the device / WRITTEN
    Waf,
    /// Pages swapped in
    In,
    /// Pages that swap-out refused: the device is full, as pages compress less than assumed
    Refused,
    /// Appends of swap-out that found no zone and waited
    Stalls,
    /// Memory of the map
    Map,
}

impl Column for StatusColumn {
    const DEFAULT: &'static [Self] = {
        use StatusColumn::*;
        &[
            Name, Backing, Policy, Compress, Size, Used, Live, Zones, Empty, Swapped, Written,
            Copied, Waf, Map,
        ]
    };
    const WORDS: &'static [Self] = {
        use StatusColumn::*;
        &[Name, Backing, Policy, Victim, Compress, Encrypt]
    };
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum ListColumn {
    /// Path of the device
    Device,
    /// Whether `znsage on` takes it: yes, no, ? (unknown); or its disk, if it is on
    Use,
    /// The name that the device reports
    Model,
    /// Size of the device
    Size,
    /// Number of zones
    Zones,
    /// Distance between two zones
    Zone,
    /// Capacity of the largest usable zone
    Capacity,
    /// Zones that are not empty
    Written,
    /// Writes to a zone are multiples of this
    Unit,
    /// Longest append
    Append,
    /// Zones that may be open at a time; - is no limit
    Open,
    /// Zones that may be active at a time; - is no limit
    Active,
    /// host-managed, host-aware or none
    Kind,
}

impl Column for ListColumn {
    const DEFAULT: &'static [Self] = {
        use ListColumn::*;
        &[Device, Use, Model, Size, Zones, Zone, Capacity, Written, Unit, Append, Open, Active]
    };
    const WORDS: &'static [Self] = {
        use ListColumn::*;
        &[Device, Use, Model, Kind]
    };
}
