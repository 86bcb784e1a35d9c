// SPDX-License-Identifier: GPL-2.0-only
//! Published values: the files of `published/`.

use serde::{Deserialize, Serialize};

/// A published quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stated {
    /// A value.
    Value(f64),
    /// A range.
    Range(f64, f64),
    /// A lower bound.
    Above(f64),
    /// An upper bound.
    Below(f64),
}

/// How a value was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// From the text or a table.
    Text,
    /// Read off a plot.
    Plot,
    /// Derived by arithmetic from the text.
    Derived,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Its name in the code.
    pub id: String,
    /// The quantity, with its conditions.
    pub what: String,
    /// How much.
    pub is: Stated,
    /// In which unit.
    #[serde(default)]
    pub unit: String,
    /// The value that means no effect; None for a plain size.
    pub neutral: Option<f64>,
    /// Figure, table or section.
    pub place: String,
    /// How it was found there.
    pub reading: Reading,
    /// The publication, from the head of its file.
    #[serde(skip_deserializing)]
    pub source: String,
}

/// A publication and its values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Publication {
    /// Its short name, for pictures.
    pub name: String,
    /// Authors, title, where, when.
    pub source: String,
    /// Its values.
    #[serde(rename = "value")]
    pub values: Vec<Published>,
}

/// The files, by their names.
const FILES: [(&str, &str); 6] = [
    ("znswap", include_str!("../../published/znswap.toml")),
    ("thesis", include_str!("../../published/thesis.toml")),
    ("znsage-2025", include_str!("../../published/znsage-2025.toml")),
    ("analysis", include_str!("../../published/analysis.toml")),
    ("zns-plus", include_str!("../../published/zns-plus.toml")),
    ("mapping", include_str!("../../published/mapping.toml")),
];

impl Publication {
    /// The publications that have a file.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|f| f.0)
    }

    /// A publication.
    ///
    /// # Panics If there is none with this name, or its file is invalid: the files are
    /// part of the program, and a test reads them all.
    pub fn load(name: &str) -> Publication {
        let (_, text) = FILES.iter().find(|f| f.0 == name).expect("a known publication");
        let mut p: Publication =
            toml::from_str(text).unwrap_or_else(|e| panic!("published/{name}.toml: {e}"));
        for v in &mut p.values {
            v.source.clone_from(&p.source);
        }
        p
    }

    /// A value.
    ///
    /// # Panics If there is none with this name, see [`Publication::load`].
    pub fn value(&self, id: &str) -> &Published {
        let found = self.values.iter().find(|v| v.id == id);
        found.unwrap_or_else(|| panic!("{}: no value `{id}`", self.name))
    }
}

impl Stated {
    /// One number for it: for a range its middle, for a bound the bound.
    pub fn number(self) -> f64 {
        match self {
            Stated::Value(v) | Stated::Above(v) | Stated::Below(v) => v,
            Stated::Range(a, b) => (a + b) / 2.0,
        }
    }

    /// For people.
    pub fn text(self) -> String {
        use crate::chart::number;
        match self {
            Stated::Value(v) => number(v),
            Stated::Range(a, b) => format!("{} to {}", number(a), number(b)),
            Stated::Above(v) => format!("above {}", number(v)),
            Stated::Below(v) => format!("below {}", number(v)),
        }
    }
}
