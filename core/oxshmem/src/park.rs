//! Sleeping until another PE's store is seen: the library's own words (barriers, collectives).
//!
//! Each PE has a [`Bell`] in its symmetric memory. Who publishes something for that PE then
//! [rings](ring); who waits [sleeps](sleep) on it. Both sides are Dekker-like: the publisher stores,
//! fences and looks for sleepers; the sleeper announces itself, fences and looks for the store. At
//! least one of the two sees the other, so no wake-up is lost. A model check in `tests` runs the same
//! code under loom.

use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Where one PE sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bell<'w> {
    /// Counts rings; the futex word.
    pub rings: &'w AtomicU32,
    /// How many threads of the PE sleep, or are about to.
    pub sleepers: &'w AtomicU32,
}

/// What a kernel's futex does.
pub(crate) trait Futex {
    /// Sleeps while `word` holds `expected`, at most `limit`; may wake for no reason.
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Duration);
    /// Wakes all that sleep on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// To be called after publishing something for the bell's owner and then a `fence(SeqCst)`, which
/// orders the publishing store before the look at `sleepers` and pairs with the fence in [`sleep`].
#[inline]
pub(crate) fn ring(bell: Bell<'_>, futex: &impl Futex) {
    if bell.sleepers.load(Ordering::Relaxed) != 0 {
        wake(bell, futex);
    }
}

#[cold]
fn wake(bell: Bell<'_>, futex: &impl Futex) {
    // Changes the futex word first, so that a sleeper between its look and its wait does not sleep.
    bell.rings.fetch_add(1, Ordering::Release);
    futex.wake(bell.rings);
}

/// Sleeps until rung or `limit` passes, unless `ready` already holds.
pub(crate) fn sleep(
    bell: Bell<'_>,
    futex: &impl Futex,
    limit: Duration,
    ready: &mut dyn FnMut() -> bool,
) {
    // Read before announcing: a ring after the announcement changes the word from this value.
    let before = bell.rings.load(Ordering::Acquire);
    bell.sleepers.fetch_add(1, Ordering::Relaxed);
    // Orders the announcement before the look; pairs with the fence in `ring`.
    fence(Ordering::SeqCst);
    if !ready() {
        futex.wait(bell.rings, before, limit);
    }
    bell.sleepers.fetch_sub(1, Ordering::Relaxed);
}

/// The kernel's futex, shared between processes.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Kernel;

#[cfg(not(loom))]
impl Futex for Kernel {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        let limit = rustix::thread::Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // A spurious return, a changed word and the limit are all alike to the caller.
        let _ = rustix::thread::futex::wait(
            word,
            rustix::thread::futex::Flags::empty(),
            expected,
            Some(&limit),
        );
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(
            word,
            rustix::thread::futex::Flags::empty(),
            i32::MAX as u32,
        );
    }
}
