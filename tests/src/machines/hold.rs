// SPDX-License-Identifier: GPL-2.0-only
//! A program in a machine that holds memory on swap until a test has it read.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use znsage_guest::memory::Memory;
use znsage_guest::outcome::{Context, Outcome};

const KEY: u64 = 20_261;
const LOOK: Duration = Duration::from_millis(100);

/// Created when all memory is swapped out.
pub const OUT: &str = "out";
/// The test creates it to have the memory read.
pub const READ: &str = "read";
/// Created when all pages were right.
pub const RIGHT: &str = "right";

/// Must run as a service, as it reclaims the memory of its whole cgroup. A page that cannot
/// be read kills it by SIGBUS.
pub fn run(directory: &Path, mib: usize) -> Outcome {
    fs::create_dir_all(directory).context(directory.display())?;
    let tell = |name: &str| fs::write(directory.join(name), "").context(name);
    let mut memory = Memory::new(mib << 20)?;
    memory.huge_pages(false)?;
    memory.fill(0..memory.pages(), KEY);
    memory.page_out()?;
    tell(OUT)?;
    while !directory.join(READ).exists() {
        sleep(LOOK);
    }
    memory.verify(0..memory.pages(), KEY)?;
    tell(RIGHT)
}
