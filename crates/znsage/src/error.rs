// SPDX-License-Identifier: GPL-2.0-only
//! The error type of the command: what is wrong and where, what to do about it,
//! and the exit status.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

/// The kind of an error. Its number is the exit status; scripts rely on it. systemd
/// shows 3 to 7, and many numbers from 64 on, as words with another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A check or a benchmark found damage.
    Failure = 1,
    /// Invalid command line or settings.
    Usage = 2,
    /// Not root, no module, a module for another kernel, a missing tool.
    Environment = 13,
    /// The device cannot be used, or not with these settings.
    Device = 14,
    /// The device is in use.
    Busy = 15,
    /// Not enough memory or swap space.
    Space = 16,
    /// The kernel refused, or an I/O error.
    Kernel = 17,
    /// The device holds data, and the user did not agree to lose it.
    Data = 18,
    /// Ctrl-C or SIGTERM.
    Interrupted = 130,
}

#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    pub hint: Option<String>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), hint: None }
    }

    /// What the reader can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a line below the hint.
    pub fn add(self, line: &str) -> Self {
        let hint = match &self.hint {
            Some(hint) => format!("{hint}\n{line}"),
            None => line.to_string(),
        };
        self.hint(hint)
    }

    /// This error, and another one below it.
    pub fn and(self, other: &Error) -> Self {
        let below = other.hint.iter().flat_map(|hint| hint.lines());
        let text: Vec<String> = below.map(|line| format!("  {line}")).collect();
        self.add(&[vec![other.message.clone()], text].concat().join("\n"))
    }

    /// A failed operation on a file.
    pub fn io(verb: &str, path: &Path, e: io::Error) -> Self {
        Error::new(Kind::Kernel, format!("cannot {verb} {}: {}", path.display(), reason(&e)))
    }

    pub fn interrupted() -> Self {
        Error::new(Kind::Interrupted, "interrupted")
    }

    /// As `znsage` prints it on standard error.
    pub fn to_text(&self) -> String {
        let mut text = format!("znsage: {}\n", self.message);
        for line in self.hint.iter().flat_map(|h| h.lines()) {
            text += &format!("  {line}\n");
        }
        text
    }

    /// The document that `--json` prints instead of a result.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({"error": {
            "kind": self.kind,
            "status": self.kind as i32,
            "message": self.message,
            "hint": self.hint,
        }})
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The text of an OS error without Rust's "(os error N)".
pub fn reason(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(n) => nix::errno::Errno::from_raw(n).desc().to_string(),
        None => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_kind_and_status() {
        let e = Error::new(Kind::Busy, "sda is mounted").hint("unmount it");
        let j = e.to_json();
        assert_eq!(j["error"]["kind"], "busy");
        assert_eq!(j["error"]["status"], 15);
        assert_eq!(j["error"]["hint"], "unmount it");
    }

    /// systemd.exec(5), "Process Exit Codes": LSB's words for init scripts, BSD's of
    /// sysexits.h, systemd's own. 1 and 2 mean the same there.
    #[test]
    fn exit_statuses_have_no_other_meaning() {
        use Kind::{Busy, Data, Device, Environment, Failure, Interrupted, Kernel, Space, Usage};
        for kind in [Failure, Usage, Environment, Device, Busy, Space, Kernel, Data, Interrupted] {
            let status = kind as i32;
            assert!(!matches!(status, 3..=7 | 64..=78 | 200..), "{kind:?}: {status}");
        }
    }

    #[test]
    fn os_errors_read_like_text() {
        let e =
            Error::io("write", Path::new("/x/power"), io::Error::from_raw_os_error(libc::EBUSY));
        assert_eq!(e.message, "cannot write /x/power: Device or resource busy");
    }
}
