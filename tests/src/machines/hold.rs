// SPDX-License-Identifier: GPL-2.0-only
//! Runs in a machine: memory that stays on swap until it is asked for.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use znsage_tests::memory::Memory;
use znsage_tests::outcome::{Context, Outcome};

const KEY: u64 = 20_261;
const LOOK: Duration = Duration::from_millis(100);

/// Created when all memory is swapped out.
pub const OUT: &str = "out";
/// Created by the caller to have the memory read.
pub const READ: &str = "read";
/// Created when all pages were right.
pub const RIGHT: &str = "right";

/// Runs as a service, in a cgroup of its own whose memory it reclaims. A page that cannot be
/// read ends it by SIGBUS, like any program.
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
