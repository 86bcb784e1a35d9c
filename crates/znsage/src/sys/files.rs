// SPDX-License-Identifier: GPL-2.0-only
//! Swap files on the running system.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{fallocate, posix_fadvise, AtFlags, FallocateFlags, PosixFadviseAdvice, AT_FDCWD};
use nix::sys::stat::{major, minor};
use nix::unistd::{linkat, lseek, Whence};

use super::{FileKind, Stat};

// SAFETY (of the function that the macro makes): the caller passes a number.
nix::ioctl_read!(fs_get_flags, b'f', 1, libc::c_long);

pub fn stat(path: &str) -> io::Result<Stat> {
    let meta = std::fs::metadata(path)?;
    let kind = match (meta.is_file(), meta.is_dir()) {
        (true, _) => FileKind::Regular,
        (_, true) => FileKind::Directory,
        // Opening it might do something.
        _ => FileKind::Other,
    };
    let (mut flags, mut data) = (0, true);
    if kind != FileKind::Other {
        let file = File::open(path)?;
        // SAFETY: the ioctl writes to `flags`, which outlives the call. Not all file
        // systems have it.
        let _ = unsafe { fs_get_flags(file.as_raw_fd(), &mut flags) };
        // Extents that were allocated and never written count as holes, unless somebody has
        // read them.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        data = lseek(&file, 0, Whence::SeekData) != Err(Errno::ENXIO);
    }
    Ok(Stat {
        kind,
        device: (major(meta.dev()), minor(meta.dev())),
        owner: meta.uid(),
        mode: meta.mode() & 0o7777,
        bytes: meta.len(),
        allocated: meta.blocks() * 512,
        flags: flags as u32,
        data,
    })
}

/// The file has its name once all of it is there, so nothing is left if this fails or
/// the process is killed.
pub fn make(path: &str, bytes: u64) -> io::Result<()> {
    let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
    let flags = libc::O_TMPFILE | libc::O_CLOEXEC;
    let file = OpenOptions::new().write(true).mode(0o600).custom_flags(flags).open(directory)?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes as i64)?;
    file.sync_all()?;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(AT_FDCWD, unnamed.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?;
    File::open(directory)?.sync_all()
}

/// Afterwards it is as if [`make`] had made it: without data, holes and shared extents.
pub fn clear(path: &str) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let bytes = file.metadata()?.len();
    fallocate(&file, FallocateFlags::FALLOC_FL_ZERO_RANGE, 0, bytes as i64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// On the file system of the build directory, which may lack an operation.
    #[test]
    fn files_are_made_whole_and_cleared() {
        let built = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(built.parent().unwrap()).unwrap();
        let path = dir.path().join("swap").to_string_lossy().into_owned();
        match make(&path, 8 << 20) {
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => return,
            made => made.unwrap(),
        }
        let made = stat(&path).unwrap();
        assert_eq!((made.kind, made.mode, made.data), (FileKind::Regular, 0o600, false));
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
        assert!(!stat(&path).unwrap().data, "what was read is no data");
        assert!(made.bytes == 8 << 20 && made.allocated >= made.bytes, "{made:?}");
        assert_eq!(make(&path, 8 << 20).unwrap_err().raw_os_error(), Some(libc::EEXIST));
        assert!(make(&format!("{path}/x"), 4096).is_err());
        File::options().write(true).open(&path).unwrap().write_all_at(b"data", 5 << 20).unwrap();
        assert!(stat(&path).unwrap().data);
        clear(&path).unwrap();
        let cleared = stat(&path).unwrap();
        assert!(!cleared.data && cleared.allocated >= cleared.bytes, "{cleared:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(stat("/dev/null").unwrap().kind, FileKind::Other);
        assert_eq!(stat("/").unwrap().kind, FileKind::Directory);
    }
}
