// SPDX-License-Identifier: GPL-2.0-only
//! `on`, `off` and `set` exclude one another: each looks first and acts then.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Kind, Result};

const PATH: &str = "/run/znsage.lock";

/// Held until dropped; the kernel drops it if the process dies. None for a
/// user who may not write to /run: the checks that follow refuse him anyway.
pub fn take() -> Result<Option<Flock<File>>> {
    let file = match OpenOptions::new().create(true).truncate(false).write(true).open(PATH) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(e) => return Err(Error::io("open", Path::new(PATH), e)),
    };
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
            Err(Error::new(Kind::Busy, "another `znsage on`, `off` or `set` is at work")
                .hint("wait until it is done"))
        }
        Err((_, e)) => Err(Error::io("lock", Path::new(PATH), e.into())),
    }
}
