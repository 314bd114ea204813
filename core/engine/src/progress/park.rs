//! Sleeping until another PE's store is seen: the library's own words (barriers, collectives).
//!
//! Each PE has a [`Parker`] in its symmetric memory. A thread that publishes something for that PE then
//! [unparks](unpark_all) all its threads; a thread that waits [sleeps](sleep) on it. Both sides are Dekker-like: the
//! publisher stores, fences and loads the number of waiters; the waiter announces itself, fences and polls for the
//! store. At least one of the two sees the other, so no wake-up is lost. The model check in
//! `tests/loom_park.rs` compiles this same file over loom's atomics.

use std::time::Duration;

// The machine's atomics here, loom's in the model check.
use super::atomics::AtomicU32;
use super::atomics::Ordering;
use super::atomics::fence;

/// The words on which the threads of one PE sleep.
#[derive(Clone, Copy, Debug)]
pub struct Parker<'w> {
    /// The number of wake-ups; the futex word.
    pub epoch: &'w AtomicU32,
    /// The number of threads of the PE that sleep, or are about to.
    pub waiters: &'w AtomicU32,
}

/// The operations of a kernel's futex.
pub trait Futex {
    /// Sleeps while `word` holds `expected`, at most `limit`; may wake for no reason.
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Duration);
    /// Wakes all that sleep on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// Wakes all waiters. To be called after publishing something for the parker's owner and then a `fence(SeqCst)`, which
/// orders the publishing store before the load of `waiters` and pairs with the fence in [`sleep`].
#[inline]
pub fn unpark_all(parker: Parker<'_>, futex: &impl Futex) {
    if parker.waiters.load(Ordering::Relaxed) != 0 {
        wake(parker, futex);
    }
}

#[cold]
fn wake(parker: Parker<'_>, futex: &impl Futex) {
    // Changes the futex word first, so that a waiter between its poll and its wait does not sleep.
    parker.epoch.fetch_add(1, Ordering::Release);
    futex.wake(parker.epoch);
}

/// Sleeps until unparked or `limit` passes, unless `ready` already holds.
pub(crate) fn sleep(
    parker: Parker<'_>,
    futex: &impl Futex,
    limit: Duration,
    ready: &mut dyn FnMut() -> bool,
) {
    // Loaded before the announcement: an unpark after that changes the word from this value.
    let before = parker.epoch.load(Ordering::Acquire);
    parker.waiters.fetch_add(1, Ordering::Relaxed);
    // Orders the announcement before the poll; pairs with the fence before `unpark_all`.
    fence(Ordering::SeqCst);
    if !ready() {
        futex.wait(parker.epoch, before, limit);
    }
    parker.waiters.fetch_sub(1, Ordering::Relaxed);
}
