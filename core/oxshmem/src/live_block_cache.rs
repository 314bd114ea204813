//! The blocks that calls have lately found alive, so that the next call that names one takes no lock.

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
    /// Whether so many bytes from an offset on lie in it.
    #[inline(always)]
    pub(crate) fn has(&self, offset: u64, bytes: u64) -> bool {
        let before = offset.wrapping_sub(self.start);
        before < self.bytes && bytes <= self.bytes - before
    }
}

/// As many as calls name, and some more.
const KEPT: usize = 4;

/// What threads of one PE have found.
#[derive(Debug, Default)]
pub(crate) struct LiveBlockCache {
    found: [SeqlockEntry; KEPT],
    next: AtomicUsize,
}

/// A block with the count of the heap's changes as of when it was found: blocks end by such a change, and change by it.
/// Read without a lock: what was read counts if `version` is even and the same before and after.
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
        let of = self.changes.load(Ordering::Relaxed);
        // The reads come before the second look at the version; pairs with the fence in `set`.
        fence(Ordering::Acquire);
        let same = version & 1 == 0 && version == self.version.load(Ordering::Relaxed);
        (same && of == changes).then_some(live)
    }

    /// Does nothing while another thread does the same.
    fn set(&self, changes: u64, live: Live) {
        let version = self.version.load(Ordering::Relaxed);
        if version & 1 != 0 {
            return;
        }
        // What follows comes after what the last thread wrote; pairs with the store at the end.
        let taken = self.version.compare_exchange(
            version,
            version + 1,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return;
        }
        // The odd version comes before what is written.
        fence(Ordering::Release);
        self.changes.store(changes, Ordering::Relaxed);
        self.start.store(live.start, Ordering::Relaxed);
        self.bytes.store(live.bytes, Ordering::Relaxed);
        let generation = u64::from(live.generation);
        self.generation.store(generation, Ordering::Relaxed);
        // After all of it; pairs with the first look in `get`, and with the exchange above.
        self.version.store(version + 2, Ordering::Release);
    }
}

impl LiveBlockCache {
    /// The block for which this holds, if it was found since the heap changed last.
    #[inline(always)]
    pub(crate) fn find(&self, changes: u64, is: impl Fn(&Live) -> bool) -> Option<Live> {
        let mut found = self.found.iter().filter_map(|found| found.get(changes));
        found.find(is)
    }

    /// Keeps a block that was found alive, instead of the one that was kept first.
    pub(crate) fn keep(&self, changes: u64, live: Live) {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(found) = self.found.get(next % KEPT) {
            found.set(changes, live);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Live, LiveBlockCache, Ordering, SeqlockEntry};

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
        let lately = LiveBlockCache::default();
        lately.keep(1, live(0));
        assert_eq!(lately.find(1, |l| l.has(8, 8)), Some(live(0)));
        assert_eq!(lately.find(2, |l| l.has(8, 8)), None);
        for block in 0..KEPT as u64 {
            lately.keep(2, live(64 * block));
        }
        for block in 0..KEPT as u64 {
            let found = lately.find(2, |l| l.has(64 * block, 64));
            assert_eq!(found, Some(live(64 * block)));
        }
        assert_eq!(lately.find(1, |_| true), None);
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
        let lately = LiveBlockCache::default();
        let of = |n: u64| Live {
            start: n,
            bytes: n,
            generation: n as u32,
        };
        std::thread::scope(|scope| {
            for thread in 1..4 {
                let (lately, of) = (&lately, &of);
                scope.spawn(move || {
                    for n in 0..20_000 {
                        lately.keep(0, of(4 * n + thread));
                        let found = lately.find(0, |_| true);
                        assert!(found.is_none_or(|live| live == of(live.start)));
                    }
                });
            }
        });
    }
}
