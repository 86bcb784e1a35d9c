// SPDX-License-Identifier: GPL-2.0-only
//! Errors of a sweep.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a sweep is refused, or cannot go on.
#[derive(Debug)]
pub enum SweepError {
    /// A key or value of the sweep file.
    File {
        /// The file.
        file: String,
        /// The line, from 1; None if the error has no line.
        line: Option<usize>,
        /// The key, with its table; empty for the file as a whole.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A store that is damaged or of another sweep.
    Store {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Another process writes to this store.
    Busy(PathBuf),
    /// A file could not be read or written.
    Io {
        /// What failed.
        verb: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl SweepError {
    /// For `map_err`.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SweepError {
        let path = path.to_path_buf();
        move |error| SweepError::Io { verb, path, error }
    }

    /// Advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            SweepError::Store { hint, .. } => Some(hint.clone()),
            SweepError::Busy(_) => Some("wait until it is done, or give another --out".into()),
            _ => None,
        }
    }
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SweepError::File { file, line, key, what } => {
                f.write_str(file)?;
                if let Some(line) = line {
                    write!(f, ":{line}")?;
                }
                if !key.is_empty() {
                    write!(f, ": {key}")?;
                }
                write!(f, ": {what}")
            }
            SweepError::Store { path, what, .. } => write!(f, "{}: {what}", path.display()),
            SweepError::Busy(path) => {
                write!(f, "{}: another process is running this sweep", path.display())
            }
            SweepError::Io { verb, path, error } => {
                write!(f, "cannot {verb} {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SweepError {}
