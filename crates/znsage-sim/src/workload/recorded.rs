// SPDX-License-Identifier: GPL-2.0-only
//! Programs that touch the pages of a recording, one for each thread, each with memory of
//! its own. They begin at different places of it, and again at its beginning when it
//! ends.

use std::sync::Arc;

use super::step::{Access, Step};
use crate::trace::Accesses;

/// A program.
pub struct Program {
    accesses: Arc<Accesses>,
    /// Its first page, and its mapping.
    first: u32,
    vma: u16,
    /// Pages filled; then, the next access.
    filled: u32,
    next: usize,
}

impl Program {
    /// Program `i` of `n`.
    pub fn new(accesses: Arc<Accesses>, i: u32, n: u32) -> Self {
        let next = (accesses.len() as u64 * u64::from(i) / u64::from(n)) as usize;
        let first = accesses.pages() * i;
        Program { accesses, first, vma: i as u16, filled: 0, next }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Step {
        let vma = self.vma;
        if self.filled <= self.accesses.pages() {
            let page = self.first + self.filled;
            self.filled += 1;
            return match self.filled > self.accesses.pages() {
                true => Step::Filled,
                false => Step::Access(Access { page, vma, write: true, last: false, think: 0 }),
            };
        }
        let (page, write, think) = self.accesses.get(self.next);
        self.next += 1;
        if self.next == self.accesses.len() {
            self.next = 0;
        }
        Step::Access(Access { page: self.first + page, vma, write, last: true, think })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_begin_at_different_places_and_again() {
        let text = "znsage-accesses 1\npages 3\n0 w 2\n5 r 0\n7 w 1\n0 r 2\n";
        let input = std::io::Cursor::new(text);
        let all = Arc::new(Accesses::read(std::path::Path::new("a"), input).unwrap());
        let mut second = Program::new(all, 1, 2);
        let filled: Vec<Step> = (0..4).map(|_| second.next()).collect();
        let fill = |page| Step::Access(Access { page, vma: 1, write: true, last: false, think: 0 });
        assert_eq!(filled, [fill(3), fill(4), fill(5), Step::Filled]);
        let then: Vec<_> = (0..5)
            .map(|_| match second.next() {
                Step::Access(a) => (a.page, a.write, a.think),
                Step::Filled => panic!("filled twice"),
            })
            .collect();
        let want =
            [(4, true, 7000), (5, false, 0), (5, true, 0), (3, false, 5000), (4, true, 7000)];
        assert_eq!(then, want);
    }
}
