// SPDX-License-Identifier: GPL-2.0-only
//! How systemd writes names and words.

use std::fmt::Write;

/// Escapes %, which systemd expands in units.
pub fn literal(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of a command line in a unit, quoted if necessary.
pub fn word(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c)) {
        return text.to_string();
    }
    let escaped = literal(text).replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// The unit of a device, as `systemd-escape --path --suffix=device` prints it.
pub fn device_unit(path: &str) -> String {
    let mut name = String::new();
    for byte in path.trim_matches('/').bytes() {
        match byte {
            b'/' => name.push('-'),
            b'.' if name.is_empty() => name += "\\x2e",
            b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => name.push(b.into()),
            b => {
                let _ = write!(name, "\\x{b:02x}");
            }
        }
    }
    name + ".device"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_units_are_escaped() {
        for (path, want) in [
            ("/dev/nvme1n1", "dev-nvme1n1.device"),
            ("/dev/disk/by-id/nvme-A_b.c", "dev-disk-by\\x2did-nvme\\x2dA_b.c.device"),
            ("/dev/disk/by-id/a\\x20b", "dev-disk-by\\x2did-a\\x5cx20b.device"),
            ("/dev/ü", "dev-\\xc3\\xbc.device"),
            ("/dev/.x", "dev-.x.device"),
        ] {
            assert_eq!(device_unit(path), want);
        }
    }

    #[test]
    fn words_are_quoted_if_necessary() {
        assert_eq!(word("/usr/sbin/znsage"), "/usr/sbin/znsage");
        assert_eq!(word("/a b/%n\"$x\\"), "\"/a b/%%n\\\"$$x\\\\\"");
    }
}
