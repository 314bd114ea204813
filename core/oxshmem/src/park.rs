//! Sleeping until another PE's store is seen: the library's own words (barriers, collectives).
//!
//! Each PE has a [`Bell`] in its symmetric memory. Who publishes something for that PE then
//! [rings](ring); who waits [sleeps](sleep) on it. Both sides are Dekker-like: the publisher stores,
//! fences and looks for sleepers; the sleeper announces itself, fences and looks for the store. At
//! least one of the two sees the other, so no wake-up is lost. The model check in
//! `tests/loom_park.rs` compiles this same file over loom's atomics.

use std::time::Duration;

// Whose atomics: the machine's here, loom's in the model check.
use crate::primitive::{AtomicU32, Ordering, fence};

/// Where one PE sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parker<'w> {
    /// Counts rings; the futex word.
    pub epoch: &'w AtomicU32,
    /// How many threads of the PE sleep, or are about to.
    pub waiters: &'w AtomicU32,
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
pub(crate) fn unpark_all(bell: Parker<'_>, futex: &impl Futex) {
    if bell.waiters.load(Ordering::Relaxed) != 0 {
        wake(bell, futex);
    }
}

#[cold]
fn wake(bell: Parker<'_>, futex: &impl Futex) {
    // Changes the futex word first, so that a sleeper between its look and its wait does not sleep.
    bell.epoch.fetch_add(1, Ordering::Release);
    futex.wake(bell.epoch);
}

/// Sleeps until rung or `limit` passes, unless `ready` already holds.
pub(crate) fn sleep(
    bell: Parker<'_>,
    futex: &impl Futex,
    limit: Duration,
    ready: &mut dyn FnMut() -> bool,
) {
    // Read before announcing: a ring after the announcement changes the word from this value.
    let before = bell.epoch.load(Ordering::Acquire);
    bell.waiters.fetch_add(1, Ordering::Relaxed);
    // Orders the announcement before the look; pairs with the fence in `ring`.
    fence(Ordering::SeqCst);
    if !ready() {
        futex.wait(bell.epoch, before, limit);
    }
    bell.waiters.fetch_sub(1, Ordering::Relaxed);
}
