// SPDX-License-Identifier: GPL-2.0-only
//! A lock for `on`, `off`, `set` and `policy`: each checks first and acts on the result.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Kind, Result};
use crate::interrupt;

const PATH: &str = "/run/znsage.lock";

/// Pause between two attempts of [`wait`].
const PAUSE: Duration = Duration::from_millis(100);

/// As [`take`], but waits.
pub fn wait() -> Result<Option<Flock<File>>> {
    loop {
        match take() {
            Err(e) if e.kind == Kind::Busy && !interrupt::seen() => std::thread::sleep(PAUSE),
            Err(e) if e.kind == Kind::Busy => return Err(Error::interrupted()),
            taken => return taken,
        }
    }
}

/// The lock is held until dropped, or until the process dies. None for a user who
/// may not write to /run: later checks refuse the command.
pub fn take() -> Result<Option<Flock<File>>> {
    let file = match OpenOptions::new().create(true).truncate(false).write(true).open(PATH) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(e) => return Err(Error::io("open", Path::new(PATH), e)),
    };
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
            Err(Error::new(Kind::Busy, "another `znsage on`, `off`, `set` or `policy` is running")
                .hint("wait until it ends"))
        }
        Err((_, e)) => Err(Error::io("lock", Path::new(PATH), e.into())),
    }
}
