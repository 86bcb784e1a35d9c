// SPDX-License-Identifier: GPL-2.0-only
//! What runs in a machine: memory that is on swap until somebody asks for it.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use znsage_tests::memory::Memory;
use znsage_tests::outcome::{Context, Outcome};

const KEY: u64 = 20_261;
const LOOK: Duration = Duration::from_millis(100);

/// There when all is swapped out.
pub const OUT: &str = "out";
/// Somebody's wish to have it read.
pub const READ: &str = "read";
/// There when all was right.
pub const RIGHT: &str = "right";

/// As a service: in a group of its own, since it asks that for its memory back.
/// A page that cannot be read ends it by SIGBUS, as it would any program.
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
