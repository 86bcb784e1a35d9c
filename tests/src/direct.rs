// SPDX-License-Identifier: GPL-2.0-only
//! Direct I/O on a disk, so that a verification reads the device and not the page cache.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::memory::Memory;
use crate::outcome::{Context, Outcome};
use crate::pattern::PAGE;

// SAFETY (of the function that the macro defines): the kernel reads two u64 from the pointer.
nix::ioctl_write_ptr_bad!(blk_discard, 0x1277, [u64; 2]);

pub struct Disk {
    file: File,
    bytes: u64,
}

impl Disk {
    pub fn open(path: &str) -> Outcome<Disk> {
        Disk::open_for(path, true)
    }

    /// Works for devices that another driver holds exclusively, too.
    pub fn open_to_read(path: &str) -> Outcome<Disk> {
        Disk::open_for(path, false)
    }

    fn open_for(path: &str, write: bool) -> Outcome<Disk> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(write).custom_flags(libc::O_DIRECT).open(path);
        let mut file = file.context(path)?;
        let bytes = file.seek(SeekFrom::End(0)).context(path)?;
        Ok(Disk { file, bytes })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Slots of a swap area. Its first page is mkswap's header, which is no slot here and
    /// which znsage keeps in RAM.
    pub fn slots(&self) -> usize {
        (self.bytes / PAGE as u64) as usize - 1
    }

    /// A write of any offset and length, for requests that must be refused.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    /// Writes the pages `slots` of `from` to the slots of the same numbers.
    pub fn write_slots(&self, from: &Memory, slots: Range<usize>) -> io::Result<()> {
        let bytes = slots.start * PAGE..slots.end * PAGE;
        self.write_at(&from.bytes()[bytes.clone()], offset(slots.start))
    }

    pub fn read_slots(&self, to: &mut Memory, slots: Range<usize>) -> io::Result<()> {
        let bytes = slots.start * PAGE..slots.end * PAGE;
        self.read_at(&mut to.bytes_mut()[bytes.clone()], offset(slots.start))
    }

    /// Into a page.
    pub fn read_slot(&self, to: &mut Memory, slot: usize) -> io::Result<()> {
        self.read_at(to.bytes_mut(), offset(slot))
    }

    pub fn discard_slots(&self, slots: Range<usize>) -> Outcome {
        self.discard(offset(slots.start), (slots.len() * PAGE) as u64)
    }

    pub fn discard(&self, offset: u64, bytes: u64) -> Outcome {
        let range = [offset, bytes];
        // SAFETY: `range` is two u64, and outlives the call.
        unsafe { blk_discard(self.file.as_raw_fd(), &range) }
            .map(drop)
            .context(format!("discard of {bytes} bytes at {offset}"))
    }
}

fn offset(slot: usize) -> u64 {
    ((1 + slot) * PAGE) as u64
}
