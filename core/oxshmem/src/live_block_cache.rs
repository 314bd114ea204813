//! A cache of live blocks: a seqlock per entry, so that a call that names a recently used block takes no lock.
//!
//! An entry is valid only while the heap has not changed since its insertion: frees and resizes of blocks are changes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// A live block of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Bytes from the heap's beginning.
    pub start: u64,
    pub bytes: u64,
    pub generation: u32,
}

impl Live {
    /// Whether `bytes` from `offset` on lie in it.
    #[inline(always)]
    pub(crate) fn has(&self, offset: u64, bytes: u64) -> bool {
        let within = offset.wrapping_sub(self.start);
        within < self.bytes && bytes <= self.bytes - within
    }
}

/// Number of entries: as many as the blocks that one call names, and some more.
const ENTRIES: usize = 4;

/// The blocks that threads of one PE have found live.
#[derive(Debug, Default)]
pub(crate) struct LiveBlockCache {
    entries: [SeqlockEntry; ENTRIES],
    next: AtomicUsize,
}

/// A block, with the number of the heap's changes when it was found.
///
/// A seqlock: a read is valid if `version` is even, and the same before and after it.
#[derive(Debug, Default)]
struct SeqlockEntry {
    version: AtomicU64,
    changes: AtomicU64,
    start: AtomicU64,
    bytes: AtomicU64,
    generation: AtomicU64,
}

impl SeqlockEntry {
    #[inline(always)]
    fn get(&self, changes: u64) -> Option<Live> {
        let version = self.version.load(Ordering::Acquire);
        let live = Live {
            start: self.start.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed) as u32,
        };
        let found_at = self.changes.load(Ordering::Relaxed);
        // The reads come before the second load of the version; pairs with the fence in `set`.
        fence(Ordering::Acquire);
        let is_valid = version & 1 == 0 && version == self.version.load(Ordering::Relaxed);
        (is_valid && found_at == changes).then_some(live)
    }

    /// Writes the entry, unless another thread is writing it.
    fn set(&self, changes: u64, live: Live) {
        let version = self.version.load(Ordering::Relaxed);
        if version & 1 != 0 {
            return;
        }
        // The stores below come after those of the last thread; pairs with the store at the end.
        let locked = self.version.compare_exchange(
            version,
            version + 1,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if locked.is_err() {
            return;
        }
        // The odd version comes before the stores below.
        fence(Ordering::Release);
        self.changes.store(changes, Ordering::Relaxed);
        self.start.store(live.start, Ordering::Relaxed);
        self.bytes.store(live.bytes, Ordering::Relaxed);
        let generation = u64::from(live.generation);
        self.generation.store(generation, Ordering::Relaxed);
        // After all of them; pairs with the first load in `get`, and with the exchange above.
        self.version.store(version + 2, Ordering::Release);
    }
}

impl LiveBlockCache {
    /// The block for which `is` holds, if it was found since the heap changed last.
    #[inline(always)]
    pub(crate) fn find(&self, changes: u64, is: impl Fn(&Live) -> bool) -> Option<Live> {
        let mut live = self.entries.iter().filter_map(|entry| entry.get(changes));
        live.find(is)
    }

    /// Inserts a block that was found live, in place of the oldest entry.
    pub(crate) fn insert(&self, changes: u64, live: Live) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(entry) = self.entries.get(next % ENTRIES) {
            entry.set(changes, live);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ordering;
    use crate::live_block_cache::{ENTRIES, Live, LiveBlockCache, SeqlockEntry};

    fn live(start: u64) -> Live {
        Live {
            start,
            bytes: 64,
            generation: 7,
        }
    }

    #[test]
    fn a_block_has_what_lies_in_it_whole() {
        let live = live(128);
        assert!(live.has(128, 64) && live.has(128, 0) && live.has(191, 1));
        assert!(!live.has(127, 1) && !live.has(192, 0) && !live.has(160, 33));
        assert!(!live.has(0, u64::MAX) && !live.has(u64::MAX, 1));
    }

    #[test]
    fn m35_what_was_found_before_a_change_is_not_known_after_it() {
        let cache = LiveBlockCache::default();
        cache.insert(1, live(0));
        assert_eq!(cache.find(1, |l| l.has(8, 8)), Some(live(0)));
        assert_eq!(cache.find(2, |l| l.has(8, 8)), None);
        for block in 0..ENTRIES as u64 {
            cache.insert(2, live(64 * block));
        }
        for block in 0..ENTRIES as u64 {
            let found = cache.find(2, |l| l.has(64 * block, 64));
            assert_eq!(found, Some(live(64 * block)));
        }
        assert_eq!(cache.find(1, |_| true), None);
    }

    #[test]
    fn what_one_thread_writes_no_other_does() {
        let found = SeqlockEntry::default();
        found.version.store(1, Ordering::Relaxed);
        found.set(0, live(64));
        assert_eq!(found.version.load(Ordering::Relaxed), 1);
        assert_eq!(found.start.load(Ordering::Relaxed), 0);
        assert_eq!(found.get(0), None);
    }

    #[test]
    fn what_threads_keep_at_once_is_never_mixed() {
        let cache = LiveBlockCache::default();
        let of = |n: u64| Live {
            start: n,
            bytes: n,
            generation: n as u32,
        };
        std::thread::scope(|scope| {
            for thread in 1..4 {
                let (cache, of) = (&cache, &of);
                scope.spawn(move || {
                    for n in 0..20_000 {
                        cache.insert(0, of(4 * n + thread));
                        let found = cache.find(0, |_| true);
                        assert!(found.is_none_or(|live| live == of(live.start)));
                    }
                });
            }
        });
    }
}
