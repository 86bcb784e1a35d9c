// SPDX-License-Identifier: GPL-2.0-only
//! A key-value store in memory: memcached, as far as its pages go.
//!
//! The hash table comes first, then the size classes with their chunks. A hash
//! of an item's number gives its place and size, so nothing is stored per
//! item. A GET reads the bucket and the item, and writes the item's header,
//! where memcached counts references (`do_item_get()`). A SET writes the new
//! item into the chunk freed last, then the bucket and the header of the old
//! item, whose chunk is used next.

use rand::Rng as _;
use serde::{Deserialize, Serialize};

use super::dist::{etc, Scatter, Zipf};
use super::step::{Access, Step};
use crate::rng::{self, Rng};
use crate::time::{Ns, BLOCK};

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mix {
    /// The ETC pool of Facebook: sizes by its distributions, 30 GETs to a SET.
    Etc,
    /// YCSB workload A: records of 1 kB, half of the requests are updates.
    YcsbA,
    /// YCSB workload B: 5 % are updates.
    YcsbB,
}

/// Header of an item with CAS, and the terminators of key and flags (memcached
/// 1.6, `sizeof(item)` + 8).
const HEADER: u32 = 56;
/// Smallest chunk, factor from class to class, largest chunk: memcached's
/// defaults.
const FIRST_CHUNK: u32 = 96;
const GROWTH: f64 = 1.25;
const LARGEST_CHUNK: u32 = 512 << 10;
/// Items per bucket: memcached doubles the table at 1.5, which leaves 0.75.
const LOAD: f64 = 1.0;
const BUCKET: u64 = 8;
/// Default sample of items, whose sizes divide memory among the classes.
const SAMPLE: u64 = 1 << 18;
/// YCSB: ten fields of 100 bytes, and a key like `user6284781860667377211`.
const YCSB_ITEM: u32 = HEADER + 23 + 1000;
/// YCSB's `ZIPFIAN_CONSTANT`.
pub const YCSB_ZIPF: f64 = 0.99;

#[derive(Clone, Debug)]
struct Class {
    chunk: u32,
    chunks: u32,
    /// Byte of the first chunk.
    base: u64,
    /// The chunk that a SET takes.
    spare: u32,
}

#[derive(Clone, Debug)]
enum Popularity {
    Uniform,
    Zipf(Zipf, Scatter),
}

#[derive(Clone, Debug)]
struct Client {
    rng: Rng,
    fill: std::ops::Range<u32>,
    filled: bool,
    accesses: Vec<Access>,
    at: usize,
}

/// The store and its threads.
#[derive(Clone, Debug)]
pub struct Store {
    mix: Mix,
    items: u32,
    classes: Vec<Class>,
    popularity: Popularity,
    sets: u64,
    get_writes: bool,
    service: Ns,
    seed: u64,
    clients: Vec<Client>,
}

/// Parameters of a store.
#[derive(Clone, Debug)]
pub struct StoreShape {
    /// What clients ask for.
    pub mix: Mix,
    /// Pages it has.
    pub pages: u32,
    /// Threads that serve requests.
    pub threads: u32,
    /// Exponent of the Zipf distribution of keys; None: all alike.
    pub zipf: Option<f64>,
    /// Does a GET write the item's header?
    pub get_writes: bool,
    /// CPU time of a request besides its accesses.
    pub service: Ns,
    /// Seed.
    pub seed: u64,
}

impl Store {
    /// A store with as many items as fit `shape.pages`.
    pub fn new(shape: &StoreShape) -> Self {
        Self::sampled(shape, SAMPLE)
    }

    /// Faster to make, with a coarser division of memory among the classes.
    pub fn sampled(shape: &StoreShape, sample: u64) -> Self {
        let sizes = class_sizes();
        let mut weight = vec![0u64; sizes.len()];
        for item in 0..sample {
            let size = item_size(shape.mix, rng::mix(shape.seed ^ item));
            weight[class_of(&sizes, size)] += 1;
        }
        let bytes = u64::from(shape.pages) * BLOCK;
        let per_item: f64 = sizes
            .iter()
            .zip(&weight)
            .map(|(&chunk, &w)| f64::from(chunk) * w as f64 / sample as f64)
            .sum::<f64>()
            + BUCKET as f64 / LOAD;
        let items = (bytes as f64 / per_item).min(f64::from(u32::MAX - 1)).max(1.0) as u32;
        let mut s = Store {
            mix: shape.mix,
            items,
            classes: Vec::new(),
            popularity: match shape.zipf {
                None => Popularity::Uniform,
                Some(s) => Popularity::Zipf(
                    Zipf::new(u64::from(items), s),
                    Scatter::new(u64::from(items), shape.seed),
                ),
            },
            sets: super::pattern::threshold(match shape.mix {
                Mix::Etc => etc::SET_RATIO,
                Mix::YcsbA => 0.5,
                Mix::YcsbB => 0.05,
            }),
            get_writes: shape.get_writes,
            service: shape.service,
            seed: shape.seed,
            clients: Vec::new(),
        };
        s.lay_out(&sizes, &weight, bytes, sample);
        s.clients = (0..shape.threads)
            .map(|i| {
                let part =
                    |i| (u64::from(shape.pages) * u64::from(i) / u64::from(shape.threads)) as u32;
                Client {
                    rng: rng::stream(shape.seed, u64::from(i)),
                    fill: part(i)..part(i + 1),
                    filled: false,
                    accesses: Vec::with_capacity(8),
                    at: 0,
                }
            })
            .collect();
        s
    }

    /// Places the classes behind the hash table; the last ones are cut to what is left.
    fn lay_out(&mut self, sizes: &[u32], weight: &[u64], bytes: u64, sample: u64) {
        let mut base = u64::from(self.items) * BUCKET;
        for (&chunk, &w) in sizes.iter().zip(weight) {
            let room = bytes.saturating_sub(base) / u64::from(chunk);
            let want = (f64::from(self.items) * w as f64 / sample as f64).ceil() as u64;
            let chunks = want.min(room).min(u64::from(u32::MAX)) as u32;
            self.classes.push(Class { chunk, chunks, base, spare: 0 });
            base += u64::from(chunks) * u64::from(chunk);
        }
    }

    /// Items that it holds.
    pub fn items(&self) -> u32 {
        self.items
    }

    pub(super) fn next(&mut self, thread: usize) -> Step {
        let c = &mut self.clients[thread];
        if !c.filled {
            return match c.fill.next() {
                Some(page) => {
                    Step::Access(Access { page, vma: 0, write: true, last: false, think: 0 })
                }
                None => {
                    c.filled = true;
                    Step::Filled
                }
            };
        }
        if c.at == c.accesses.len() {
            self.request(thread);
        }
        let c = &mut self.clients[thread];
        c.at += 1;
        Step::Access(c.accesses[c.at - 1])
    }

    fn request(&mut self, thread: usize) {
        let c = &mut self.clients[thread];
        let item = match &self.popularity {
            Popularity::Uniform => u64::from(rng::below(&mut c.rng, self.items)),
            Popularity::Zipf(zipf, scatter) => {
                scatter.item(zipf.rank(|| rng::unit(c.rng.next_u64())) - 1)
            }
        };
        let set = c.rng.next_u64() < self.sets;
        let mut list = std::mem::take(&mut c.accesses);
        list.clear();
        let hash = rng::mix(self.seed ^ item);
        let size = item_size(self.mix, hash);
        let bucket = rng::scale(rng::mix(hash), u64::from(self.items)) * BUCKET;
        touch(&mut list, bucket, 1, set, set);
        if let Some((class, chunk)) = self.find(hash, size) {
            let at = self.address(class, chunk);
            if set {
                let spare = std::mem::replace(&mut self.classes[class].spare, chunk);
                let new = self.address(class, spare);
                touch(&mut list, new, size, true, true);
                touch(&mut list, at, HEADER, true, true);
            } else {
                touch(&mut list, at, size, self.get_writes, false);
            }
        }
        list[0].think = self.service;
        list.last_mut().expect("the bucket").last = true;
        let c = &mut self.clients[thread];
        (c.accesses, c.at) = (list, 0);
    }

    /// Class and chunk of an item; None if its class is empty, as the sample may miss
    /// rare sizes.
    fn find(&self, hash: u64, size: u32) -> Option<(usize, u32)> {
        let class = self.classes.iter().position(|c| c.chunk >= size).unwrap_or(0);
        let chunks = self.classes[class].chunks;
        let chunk = rng::scale(rng::mix(hash ^ self.seed), u64::from(chunks)) as u32;
        (chunks > 0).then_some((class, chunk))
    }

    fn address(&self, class: usize, chunk: u32) -> u64 {
        let c = &self.classes[class];
        c.base + u64::from(chunk) * u64::from(c.chunk)
    }
}

/// The requests of a store's first thread, page by page, without the fill: for
/// callers that fill the pages themselves.
#[derive(Clone, Debug)]
pub struct Requests(Store);

impl Requests {
    /// Requests of this store.
    pub fn new(mut store: Store) -> Self {
        store.clients[0].filled = true;
        Requests(store)
    }

    /// The next access; never ends.
    pub fn access(&mut self) -> Access {
        loop {
            if let Step::Access(access) = self.0.next(0) {
                return access;
            }
        }
    }
}

/// Adds the pages of `bytes` from `at`; `first` and `rest` tell which are
/// written.
fn touch(list: &mut Vec<Access>, at: u64, bytes: u32, first: bool, rest: bool) {
    let pages = (at / BLOCK) as u32..=((at + u64::from(bytes) - 1) / BLOCK) as u32;
    let start = *pages.start();
    list.extend(pages.map(|page| Access {
        page,
        vma: 0,
        write: if page == start { first } else { rest },
        last: false,
        think: 0,
    }));
}

/// Bytes of the item with this hash, including header and key.
fn item_size(mix: Mix, hash: u64) -> u32 {
    match mix {
        Mix::Etc => {
            let key = etc::key_size(rng::unit(rng::mix(hash ^ 1)));
            let value = etc::value_size(rng::unit(rng::mix(hash ^ 2)));
            (HEADER + key + value).min(LARGEST_CHUNK)
        }
        Mix::YcsbA | Mix::YcsbB => YCSB_ITEM,
    }
}

fn class_sizes() -> Vec<u32> {
    let mut sizes = vec![FIRST_CHUNK];
    while let Some(&last) = sizes.last().filter(|&&s| s < LARGEST_CHUNK) {
        let next = ((f64::from(last) * GROWTH) as u32).next_multiple_of(8);
        sizes.push(next.min(LARGEST_CHUNK));
    }
    sizes
}

fn class_of(sizes: &[u32], size: u32) -> usize {
    sizes.partition_point(|&s| s < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(mix: Mix, zipf: Option<f64>) -> Store {
        let shape = StoreShape {
            mix,
            pages: 20_000,
            threads: 2,
            zipf,
            get_writes: false,
            service: 5,
            seed: 9,
        };
        let mut s = Store::new(&shape);
        for t in 0..2 {
            while s.next(t) != Step::Filled {}
        }
        s
    }

    /// The accesses of a request.
    fn request(s: &mut Store, thread: usize) -> Vec<Access> {
        let mut list = Vec::new();
        loop {
            let Step::Access(a) = s.next(thread) else { panic!("filled again") };
            list.push(a);
            if a.last {
                return list;
            }
        }
    }

    #[test]
    fn the_fill_covers_every_page_once() {
        let shape = StoreShape {
            mix: Mix::YcsbA,
            pages: 1001,
            threads: 3,
            zipf: None,
            get_writes: true,
            service: 0,
            seed: 1,
        };
        let mut s = Store::new(&shape);
        let mut pages = Vec::new();
        for t in 0..3 {
            while let Step::Access(a) = s.next(t) {
                pages.push(a.page);
            }
        }
        assert!(pages.into_iter().eq(0..1001));
    }

    #[test]
    fn requests_match_the_store_after_its_fill() {
        let shape = StoreShape {
            mix: Mix::Etc,
            pages: 100,
            threads: 1,
            zipf: None,
            get_writes: true,
            service: 0,
            seed: 3,
        };
        let mut whole = Store::new(&shape);
        while whole.next(0) != Step::Filled {}
        let mut alone = Requests::new(Store::new(&shape));
        for _ in 0..1000 {
            assert_eq!(whole.next(0), Step::Access(alone.access()));
        }
    }

    #[test]
    fn classes_match_memcached() {
        let sizes = class_sizes();
        assert_eq!(sizes[..6], [96, 120, 152, 192, 240, 304]);
        assert_eq!(*sizes.last().unwrap(), LARGEST_CHUNK);
        assert_eq!(sizes[class_of(&sizes, 96)], 96);
        assert_eq!(sizes[class_of(&sizes, 97)], 120);
        assert_eq!(sizes[class_of(&sizes, YCSB_ITEM)], 1184);
    }

    #[test]
    fn requests_stay_inside_and_their_share_of_writes_is_right() {
        for (mix, share) in [(Mix::Etc, 1.0 / 31.0), (Mix::YcsbA, 0.5), (Mix::YcsbB, 0.05)] {
            let mut s = store(mix, (mix != Mix::Etc).then_some(YCSB_ZIPF));
            let (n, mut sets) = (40_000, 0);
            for i in 0..n {
                let list = request(&mut s, i % 2);
                assert!(list.iter().all(|a| a.page < 20_000));
                assert_eq!(list.iter().map(|a| a.think).sum::<Ns>(), 5);
                sets += usize::from(list[0].write);
            }
            let is = sets as f64 / n as f64;
            assert!((is - share).abs() < 0.01, "{mix:?}: {is}");
        }
    }

    #[test]
    fn uniform_keys_spread_over_the_item_pages() {
        let mut s = store(Mix::Etc, None);
        let table = (u64::from(s.items()) * BUCKET / BLOCK) as u32;
        let mut hits = vec![0u32; 20_000];
        for _ in 0..400_000 {
            let list = request(&mut s, 0);
            for a in &list[1..] {
                hits[a.page as usize] += 1;
            }
        }
        let touched = hits[table as usize + 1..].iter().filter(|&&h| h > 0).count();
        assert!(touched as u32 > (20_000 - table) * 9 / 10, "{touched} of {}", 20_000 - table);
    }

    #[test]
    fn zipf_keys_are_concentrated() {
        let mut s = store(Mix::YcsbB, Some(YCSB_ZIPF));
        let mut hits = vec![0u32; 20_000];
        for _ in 0..200_000 {
            for a in &request(&mut s, 1)[1..] {
                hits[a.page as usize] += 1;
            }
        }
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let all: u32 = hits.iter().sum();
        let hot: u32 = hits[..2000].iter().sum();
        assert!(f64::from(hot) > 0.6 * f64::from(all), "{hot} of {all} in a tenth of the pages");
    }

    #[test]
    fn an_item_is_always_at_the_same_place() {
        let mut s = store(Mix::YcsbB, Some(YCSB_ZIPF));
        s.sets = 0;
        let hash = rng::mix(s.seed ^ 77);
        let first = s.find(hash, item_size(s.mix, hash));
        (0..1000).for_each(|_| _ = request(&mut s, 0));
        assert_eq!(s.find(hash, item_size(s.mix, hash)), first);
    }
}
