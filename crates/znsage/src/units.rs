// SPDX-License-Identifier: GPL-2.0-only
//! Sizes, times and names as users write them.

/// Suffixes as in coreutils: K, M, ... and KiB, MiB, ... count in 1024,
/// KB, MB, ... in 1000.
fn multiplier(suffix: &str) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    let (letter, rest) = match lower.chars().next() {
        None => return Some(1),
        Some('b') if lower.len() == 1 => return Some(1),
        Some(c) => (c, &lower[c.len_utf8()..]),
    };
    let base: u64 = match rest {
        "" | "ib" => 1024,
        "b" => 1000,
        _ => return None,
    };
    let power = "kmgtp".find(letter)? as u32 + 1;
    Some(base.pow(power))
}

/// Parses `4K`, `1M`, `1.5G`, `2GiB`, `500MB`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a size; examples: 4096, 64K, 1.5G, 2TiB");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let mult = multiplier(suffix.trim_start()).ok_or_else(bad)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return Err(bad());
    }
    let whole: u128 = whole.parse().map_err(|_| bad())?;
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = match fraction {
        "" => 0,
        f => f.parse().map_err(|_| bad())?,
    };
    let bytes = (whole.checked_mul(scale).and_then(|w| w.checked_add(fraction)))
        .and_then(|n| n.checked_mul(mult.into()))
        .ok_or_else(bad)?;
    if bytes % scale != 0 {
        return Err(format!("`{text}` is not a whole number of bytes"));
    }
    u64::try_from(bytes / scale).map_err(|_| format!("`{text}` is too large"))
}

/// Parses `500us`, `5ms`, `1s`; a number alone is microseconds.
pub fn parse_micros(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim_start() {
        "" | "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        _ => 0,
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)) {
        Some(us) if factor > 0 => Ok(us),
        _ => Err(format!("`{text}` is not a time; examples: 500us, 5ms, 1s")),
    }
}

/// The longest time that a page may wait for its chunk, in microseconds
/// (kmod/config.c).
pub const DEADLINES: std::ops::RangeInclusive<u64> = 100..=1_000_000;

/// Parses such a time.
pub fn parse_deadline(text: &str) -> Result<u64, String> {
    match parse_micros(text)? {
        us if DEADLINES.contains(&us) => Ok(us),
        _ => Err(format!("`{text}` is out of range: 100 us to 1 s")),
    }
}

/// The name of a policy or victim rule, as the module accepts it.
pub fn parse_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.len() < 16 && text.chars().all(fits) {
        true => Ok(text.to_string()),
        false => Err(format!("`{text}` is not a name: up to 15 letters, digits, - and _")),
    }
}

/// The longest section name; it has to fit into the name of a systemd unit.
const LONGEST_SECTION: usize = 64;

/// True if a name can stand unquoted in a unit's name and on a command line.
pub fn is_section_name(name: &str) -> bool {
    name.len() <= LONGEST_SECTION
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// The name of a section of znsage.conf.
pub fn parse_section(text: &str) -> Result<String, String> {
    match is_section_name(text) {
        true => Ok(text.to_string()),
        false => Err(format!("`{text}` is not a valid section name")),
    }
}

/// A size for people, in binary units: `128 KiB`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    // 1023.95 would print as 1024.0, so the next unit starts there.
    while value >= 1023.95 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    let text = match unit == 0 || value >= 99.95 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    };
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

/// A time in microseconds for people.
pub fn micros(us: f64) -> String {
    if us < 10.0 {
        format!("{us:.1} us")
    } else if us < 1e4 {
        format!("{us:.0} us")
    } else if us < 1e7 {
        format!("{:.1} ms", us / 1e3)
    } else {
        format!("{:.1} s", us / 1e6)
    }
}

/// The median, two percentiles and the longest of some times in microseconds.
pub fn percentiles([p50, p99, p99_9, max]: [f64; 4]) -> String {
    let [p50, p99, p99_9, max] = [p50, p99, p99_9, max].map(micros);
    format!("p50 {p50}, p99 {p99}, p99.9 {p99_9}, max {max}")
}

/// `1 zone`, `2 zones`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Seconds for people: `45 s`, `12 min`, `3 h 5 min`.
pub fn duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..=99 => format!("{s} s"),
        s if s < 6000 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Aligns columns: the first `words` of them to the left, the others to the right.
pub fn table(rows: &[Vec<String>], words: usize) -> String {
    aligned(rows, |column| column < words)
}

/// Aligns columns: those for which `left` is true to the left, the others to the right.
pub fn aligned(rows: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().filter_map(|r| r.get(column)).map(String::len).max();
            let width = width.unwrap_or(0);
            line += &match left(column) {
                true => format!("{cell:<width$}  "),
                false => format!("{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("512b", 512),
            ("4K", 4096),
            ("4k", 4096),
            ("192KiB", 196_608),
            ("1M", 1 << 20),
            ("2G", 2 << 30),
            ("1GiB", 1 << 30),
            ("1 GiB", 1 << 30),
            ("1.5G", 3 << 29),
            ("0.5K", 512),
            ("500MB", 500_000_000),
            ("16T", 16 << 40),
            ("1P", 1 << 50),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "",
            "G",
            "1X",
            "1KK",
            "-1",
            "1..5G",
            "1.5.5G",
            ".5G",
            "1.1",
            "0.3K",
            "20000000P",
            "99999999999999999999999999999999999999999",
            "1é",
            "4Ki",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_with_a_unit() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(128 << 10), "128 KiB");
        assert_eq!(size((1 << 20) - 1), "1 MiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
        assert_eq!(size(u64::MAX), "16 EiB");
    }

    #[test]
    fn times_parse() {
        for (text, us) in [("0", 0), ("700", 700), ("5us", 5), ("5 ms", 5000), ("1s", 1_000_000)] {
            assert_eq!(parse_micros(text), Ok(us), "{text}");
        }
        for text in ["", "ms", "1h", "1.5ms", "-1", "99999999999999999999", "18446744073709551615s"]
        {
            assert!(parse_micros(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_parse() {
        assert_eq!(parse_name("my-policy_2"), Ok("my-policy_2".to_string()));
        for text in ["", "a b", "a/b", "sixteen-letters-", "é"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_print_with_a_unit() {
        assert_eq!(micros(1.26), "1.3 us");
        assert_eq!(micros(850.4), "850 us");
        assert_eq!(micros(12_345.0), "12.3 ms");
        assert_eq!(micros(12_345_678.0), "12.3 s");
        assert_eq!((duration(42.4), duration(600.0)), ("42 s".into(), "10 min".into()));
        assert_eq!(duration(7500.0), "2 h 5 min");
    }
}
