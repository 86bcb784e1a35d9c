// SPDX-License-Identifier: GPL-2.0-only
//! What was published: the files of `published/`.

use serde::{Deserialize, Serialize};

/// What a publication says of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stated {
    /// It is this.
    Value(f64),
    /// It is from this to that.
    Range(f64, f64),
    /// It is more, without saying how much.
    Above(f64),
    /// It is less, without saying how much.
    Below(f64),
}

/// Where a value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// It stands in the text or a table.
    Text,
    /// It was read off a plot, as well as one can.
    Plot,
    /// It follows by arithmetic from what stands in the text.
    Derived,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Its name in the code.
    pub id: String,
    /// What it is, with the conditions.
    pub what: String,
    /// How much.
    pub is: Stated,
    /// In which unit.
    #[serde(default)]
    pub unit: String,
    /// The value that would mean that there is no effect; None if it is no
    /// effect but a size.
    pub neutral: Option<f64>,
    /// Figure, table or section.
    pub place: String,
    /// How it was found there.
    pub reading: Reading,
    /// The publication; its file says it once.
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
    /// # Panics
    /// If there is none of this name, or its file is wrong: they are part of
    /// the program, and a test reads them all.
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
    /// # Panics
    /// If there is none of this name, see [`Publication::load`].
    pub fn value(&self, id: &str) -> &Published {
        let found = self.values.iter().find(|v| v.id == id);
        found.unwrap_or_else(|| panic!("{}: no value `{id}`", self.name))
    }
}

impl Stated {
    /// One number for it: a range's middle, a bound.
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
