// SPDX-License-Identifier: GPL-2.0-only
//! Words, one per line: sizes, times, names.

use znsage::parsers::{micros, parse_micros, parse_name, parse_size, size};
use znsage_sim::device::params::parse_size as simulated_size;

use crate::text;

/// Parses every line as every kind of word.
pub fn units(data: &[u8]) {
    let Some(text) = text(data) else { return };
    for word in text.split('\n') {
        sizes(word);
        if let Ok(us) = parse_micros(word) {
            assert_eq!(parse_micros(&format!("{us}us")), Ok(us), "{word:?}");
            assert!(!micros(us as f64).is_empty());
        }
        if let Ok(name) = parse_name(word) {
            assert_eq!((name.as_str(), name.contains('/')), (word, false));
        }
        if let Ok(number) = word.parse::<f64>() {
            assert!(!micros(number).is_empty());
        }
    }
}

/// The two parsers of sizes accept different suffixes, but agree on the result.
fn sizes(word: &str) {
    if let Ok(bytes) = parse_size(word) {
        assert_eq!(parse_size(&bytes.to_string()), Ok(bytes), "{word:?}");
        assert!(!size(bytes).is_empty());
    }
    if let Some(bytes) = simulated_size(word) {
        assert_eq!(simulated_size(&bytes.to_string()), Some(bytes), "{word:?}");
        if let Ok(other) = parse_size(word.trim()) {
            assert_eq!(bytes, other, "{word:?}");
        }
    }
}
