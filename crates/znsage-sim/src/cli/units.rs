// SPDX-License-Identifier: GPL-2.0-only
//! Sizes and times for people.

/// A size in binary units: `128 KiB`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut value) = (0, bytes as f64);
    // 1023.95 would print as 1024.0, so the next unit starts there.
    while value >= 1023.95 && unit < UNITS.len() - 1 {
        (unit, value) = (unit + 1, value / 1024.0);
    }
    let digits = usize::from(unit > 0 && value < 99.95);
    let text = format!("{value:.digits$}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

/// A time in microseconds.
pub fn micros(us: f64) -> String {
    match us {
        us if us < 10.0 => format!("{us:.1} us"),
        us if us < 1e4 => format!("{us:.0} us"),
        us if us < 1e7 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

/// Seconds: `45 s`, `12 min`, `3 h 5 min`.
pub fn duration(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..=99 => format!("{s} s"),
        s if s < 6000 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit() {
        assert_eq!(
            [0, 1023, 128 << 10, (1 << 20) - 1, 3 << 29].map(size),
            ["0 B", "1023 B", "128 KiB", "1 MiB", "1.5 GiB"]
        );
        assert_eq!([1.26, 850.4, 12_345.0].map(micros), ["1.3 us", "850 us", "12.3 ms"]);
        assert_eq!([42.4, 600.0, 7500.0].map(duration), ["42 s", "10 min", "2 h 5 min"]);
    }
}
