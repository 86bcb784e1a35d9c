// SPDX-License-Identifier: GPL-2.0-only
//! What every host of the engine decides as the module does (kmod/worker.c, write.c).

use crate::engine::Engine;
use crate::handed::GcRead;

/// Reading this many stale blocks is cheaper than starting another read.
const READ_OVER: u32 = 8;
/// Blocks of the device in one read of GC.
const READ_MAX: u32 = 256;

/// One command of a GC read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first entry that it reads, and how many. Where pages are packed: the first block
    /// of the device in the span, and how many.
    pub first: u32,
    pub nr: u32,
    /// The blocks that it reads, with stale ones between.
    pub block: u32,
    pub blocks: u32,
}

impl GcRead {
    /// The commands that read it. `single`: a command failed, so each entry, or block of the
    /// device, is read by itself.
    pub fn parts(&self, e: &Engine, single: bool) -> Vec<Part> {
        let most = if single { 1 } else { READ_MAX };
        match e.pack {
            0 => self.runs(e, most),
            pack => self.stretches(self.zone * e.zone_blocks + self.from, pack, most),
        }
    }

    fn stretches(&self, base: u32, pack: u32, most: u32) -> Vec<Part> {
        let pages = self.blocks / pack;
        let part = |first: u32| {
            let nr = most.min(pages - first);
            Part { first, nr, block: base + first * pack, blocks: nr * pack }
        };
        (0..pages).step_by(most as usize).map(part).collect()
    }

    /// Of entries that are close together, up to `most` blocks.
    fn runs(&self, e: &Engine, most: u32) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (first, entry) in (0..).zip(self.entries(e)) {
            let block = entry.expect;
            if let Some(last) = parts.last_mut() {
                let step = block.wrapping_sub(last.block + last.blocks - 1);
                // With a write unit, a chunk may continue into the next victim.
                let near = e.locate(block).0 == e.locate(last.block).0;
                if near && step <= READ_OVER + 1 && last.blocks + step <= most {
                    (last.nr, last.blocks) = (last.nr + 1, last.blocks + step);
                    continue;
                }
            }
            parts.push(Part { first, nr: 1, block, blocks: 1 });
        }
        parts
    }
}

impl Engine {
    /// The birth of the oldest partial chunk, which the deadline is for.
    pub fn oldest(&self) -> Option<u64> {
        (0..self.streams).map(|stream| self.born(stream)).filter(|&born| born != 0).min()
    }
}
