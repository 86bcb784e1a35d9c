// SPDX-License-Identifier: GPL-2.0-only
//! One machine's part of a sweep.

use std::fmt;
use std::str::FromStr;

/// Part `part` of `of`, from 1: every `of`-th point, so that slow points
/// spread over the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// The only part.
    pub const WHOLE: Shard = Shard { part: 1, of: 1 };

    /// Is the point in this part?
    pub fn has(self, index: usize) -> bool {
        index % self.of == self.part - 1
    }

    /// The part that a point is in, with the same number of parts.
    pub fn of_index(self, index: usize) -> Shard {
        Shard { part: index % self.of + 1, of: self.of }
    }

    /// The name of its store.
    pub fn file_name(self) -> String {
        match self {
            Shard::WHOLE => "runs.jsonl".into(),
            Shard { part, of } => format!("runs-{part}-of-{of}.jsonl"),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part, of }),
            _ => Err(format!("`{text}` is no part I/N with I from 1 to N, such as 1/3")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_in_one_part() {
        let parts: Vec<Shard> = (1..=3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for index in 0..20 {
            let has: Vec<_> = parts.iter().filter(|p| p.has(index)).collect();
            assert_eq!(has, [&parts[0].of_index(index)]);
        }
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        assert_eq!(parts[2].file_name(), "runs-3-of-3.jsonl");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "0/3", "4/3", "1", "1/0", "-1/3", "a/b", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
