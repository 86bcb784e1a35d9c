// SPDX-License-Identifier: GPL-2.0-only
//! Tables that are Markdown and fit a terminal, and numbers as people write them.

/// A table: the first column is aligned to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Table { rows: vec![head.iter().map(|s| s.to_string()).collect()] }
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn to_text(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(column));
            cells.map(|c| c.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (i, row) in self.rows.iter().enumerate() {
            text += &line(row, &widths);
            if i == 0 {
                text += &ruler(&widths);
            }
        }
        text
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (i, &width) in widths.iter().enumerate() {
        let cell = row.get(i).map_or("", String::as_str);
        text += &match i {
            0 => format!("| {cell:<width$} "),
            _ => format!("| {cell:>width$} "),
        };
    }
    text + "|\n"
}

fn ruler(widths: &[usize]) -> String {
    let mut text = String::new();
    for (i, &width) in widths.iter().enumerate() {
        let dashes = "-".repeat(width - usize::from(i > 0));
        text += &format!("| {dashes}{} ", if i > 0 { ":" } else { "" });
    }
    text + "|\n"
}

/// 12345.6 -> 12,346
pub fn thousands(n: f64) -> String {
    let digits = format!("{:.0}", n.abs());
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(c);
    }
    if n <= -0.5 {
        text.insert(0, '-');
    }
    text
}

/// Microseconds in the unit that keeps the number short.
pub fn micros(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e4 => format!("{:.1} ms", us / 1e3),
        us if us < 1e6 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

pub fn size(bytes: u64) -> String {
    let mib = bytes as f64 / crate::model::MIB;
    if mib >= 1024.0 && (mib / 1024.0).fract() == 0.0 {
        return format!("{:.0} GiB", mib / 1024.0);
    }
    format!("{mib:.0} MiB")
}

/// minutes:seconds
pub fn clock(seconds: u64) -> String {
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_aligned_markdown() {
        let mut table = Table::new(&["what", "stock swap", "znsage"]);
        table.row(["fill", "80 MiB/s", "97 MiB/s"]);
        table.row(["latency", "419 µs"]);
        let want = "\
| what    | stock swap |   znsage |
| ------- | ---------: | -------: |
| fill    |   80 MiB/s | 97 MiB/s |
| latency |     419 µs |          |
";
        assert_eq!(table.to_text(), want);
    }

    #[test]
    fn numbers_have_separators_and_units() {
        let cases = [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (1234567.0, "1,234,567"),
            (-0.4, "0"),
            (-1500.0, "-1,500"),
        ];
        for (n, text) in cases {
            assert_eq!(thousands(n), text);
        }
        assert_eq!(micros(419.3), "419 µs");
        assert_eq!(micros(6222.0), "6.2 ms");
        assert_eq!(micros(23_300.0), "23 ms");
        assert_eq!(micros(1.4e6), "1.4 s");
        assert_eq!(size(512 << 20), "512 MiB");
        assert_eq!(size(2 << 30), "2 GiB");
        assert_eq!(clock(125), "2:05");
    }
}
