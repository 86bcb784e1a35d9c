// SPDX-License-Identifier: GPL-2.0-only
//! Names on the command line.

use crate::result::Result;

/// Parses lists of names. `named` tells which values a word stands for; no word at all
/// and `all` stand for every value.
pub fn select<T: Copy + Ord>(
    what: &str,
    words: &[String],
    values: &[(T, &str)],
    named: impl Fn(&str, &str) -> bool,
) -> Result<Vec<T>> {
    let mut chosen = Vec::new();
    for word in words.iter().flat_map(|w| w.split([',', ' '])).filter(|w| !w.is_empty()) {
        let before = chosen.len();
        let found = values.iter().filter(|(_, name)| word == "all" || named(name, word));
        chosen.extend(found.map(|(value, _)| *value));
        if chosen.len() == before {
            let names: Vec<&str> = values.iter().map(|(_, name)| *name).collect();
            let names = names.join(", ");
            return Err(format!("no {what} is called `{word}`; there are {names} and all"));
        }
    }
    if chosen.is_empty() {
        chosen.extend(values.iter().map(|(value, _)| *value));
    }
    chosen.sort();
    chosen.dedup();
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_values() {
        let values = [(1, "one"), (2, "two"), (3, "twelve")];
        let select = |text: &str| {
            select("number", &[text.to_string()], &values, |name, word| name.starts_with(word))
        };
        assert_eq!(select(""), Ok(vec![1, 2, 3]));
        assert_eq!(select("all"), Ok(vec![1, 2, 3]));
        assert_eq!(select("tw,one two"), Ok(vec![1, 2, 3]));
        assert_eq!(select("tw"), Ok(vec![2, 3]));
        assert!(select("three").unwrap_err().contains("`three`; there are one, two, twelve"));
    }
}
