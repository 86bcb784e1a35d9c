// SPDX-License-Identifier: GPL-2.0-only
//! Swap readahead along a mapping, as Linux does on SSDs
//! (`swap_vma_readahead()` in `mm/swap_state.c`): the window grows with its
//! hits, and is one page for random accesses.

use super::page::NONE;

/// Largest `page-cluster`: `SWAP_RA_ORDER_CEILING`.
pub const MAX_CLUSTER: u32 = 5;
const MAX_HITS: u32 = 63;

/// State of a mapping.
#[derive(Clone, Copy, Debug)]
pub struct Readahead {
    last: u32,
    window: u32,
    hits: u32,
}

impl Default for Readahead {
    fn default() -> Self {
        Readahead { last: NONE - 1, window: 0, hits: 0 }
    }
}

impl Readahead {
    /// A page read ahead was used.
    pub fn hit(&mut self, page: u32) {
        self.last = page;
        self.hits = (self.hits + 1).min(MAX_HITS);
    }

    /// The range of pages to read for a fault on `page`, at most 2^`cluster`: first and
    /// end.
    pub fn window(&mut self, page: u32, cluster: u32) -> (u32, u32) {
        let most = 1 << cluster.min(MAX_CLUSTER);
        let last = self.last;
        let pages = if most == 1 { 1 } else { self.pages(page, most) };
        *self = Readahead { last: page, window: pages, hits: 0 };
        if pages == 1 {
            (page, page + 1)
        } else if page == last + 1 {
            (page, page.saturating_add(pages))
        } else if last == page + 1 {
            ((page + 1).saturating_sub(pages), page + 1)
        } else {
            let left = (pages - 1) / 2;
            (page.saturating_sub(left), page.saturating_add(pages - left))
        }
    }

    /// `__swapin_nr_pages()`.
    fn pages(&self, page: u32, most: u32) -> u32 {
        let adjacent = page == self.last.wrapping_add(1) || page.wrapping_add(1) == self.last;
        let pages = match self.hits {
            0 if adjacent => 2,
            0 => 1,
            hits => (hits + 2).next_power_of_two().max(4),
        };
        // It shrinks at most by half.
        pages.min(most).max(self.window / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_accesses_read_one_page() {
        let mut ra = Readahead::default();
        for page in [10, 500, 3, 77, 1000] {
            assert_eq!(ra.window(page, 3), (page, page + 1));
        }
    }

    #[test]
    fn a_walk_gets_the_whole_window() {
        let mut ra = Readahead::default();
        let (mut page, mut sizes) = (100, Vec::new());
        for _ in 0..6 {
            let (first, end) = ra.window(page, 3);
            assert_eq!(first, page);
            (page + 1..end).for_each(|p| ra.hit(p));
            sizes.push(end - first);
            page = end;
        }
        assert_eq!(sizes, [1, 2, 4, 8, 8, 8]);
    }

    #[test]
    fn a_walk_down_reads_what_is_below() {
        let mut ra = Readahead::default();
        ra.window(100, 3);
        assert_eq!(ra.window(99, 3), (98, 100));
    }

    #[test]
    fn the_window_shrinks_by_half() {
        let mut ra = Readahead { last: 1000, window: 8, hits: 0 };
        let sizes: Vec<u32> = [50, 600, 20, 900]
            .map(|page| {
                let (first, end) = ra.window(page, 3);
                assert!((first..end).contains(&page));
                end - first
            })
            .into();
        assert_eq!(sizes, [4, 2, 1, 1]);
    }

    #[test]
    fn page_cluster_0_reads_no_more_than_asked() {
        let mut ra = Readahead::default();
        for page in 0..10 {
            assert_eq!(ra.window(page, 0), (page, page + 1));
        }
    }
}
