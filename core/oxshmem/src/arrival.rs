//! The dissemination itself: who tells whom what in which round, and what is known at its end.
//!
//! How a word is written and waited for is a [`Post`]'s business: [`crate::sync`] does it in symmetric
//! memory; the model check in `tests/loom_park.rs` compiles this same file over loom's atomics.

use crate::primitive::{Ordering, fence};

/// Two PEs are in different collective calls.
pub(crate) const MISMATCH: u64 = 1 << 31;
/// The call failed on some PE.
pub(crate) const FAILED: u64 = 1 << 30;
/// The sender gave the call up midway and takes part in none any more.
pub(crate) const BROKEN: u64 = 1 << 29;
/// The bits that tell one call from another.
pub(crate) const DIGEST: u64 = BROKEN - 1;

/// Who takes part, and in how many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub me: usize,
    pub pes: usize,
    pub radix: usize,
    pub rounds: usize,
}

/// How words get from one PE to another. A word's place is its round and its sender's digit.
pub(crate) trait Post {
    type Error;
    /// Writes a word of PE `to`, after (Release) all stores made before.
    fn tell(&self, round: usize, digit: usize, word: u64, to: usize) -> Result<(), Self::Error>;
    /// All words of a round are written, and a full fence made.
    fn fenced(&self);
    /// Wakes PE `to` if it sleeps. The fence came before.
    fn ring(&self, to: usize);
    /// Waits for PE `from`'s word, until [`accepts`] does; reads it with Acquire.
    fn hear(&self, round: usize, digit: usize, from: usize) -> Result<u64, Self::Error>;
}

/// A word as it travels.
pub(crate) fn word(epoch: u32, known: u64) -> u64 {
    u64::from(epoch) << 32 | known
}

/// Whether a word is what a PE in `epoch` waits for: one of that epoch, or a later one that says that
/// its sender gave up. Epochs wrap; two PEs are never more than one apart, two with the latter.
#[inline(always)]
pub(crate) fn accepts(word: u64, epoch: u32) -> bool {
    let ahead = ((word >> 32) as u32).wrapping_sub(epoch) as i32;
    ahead == 0 || (ahead > 0 && word & BROKEN != 0)
}

impl Shape {
    /// The digits with which this PE tells others in the round of this distance.
    #[inline(always)]
    pub(crate) fn digits(self, distance: usize) -> impl Iterator<Item = usize> {
        (1..self.radix).take_while(move |k| k * distance < self.pes)
    }
}

/// All rounds of one epoch. `known` is this PE's digest and flags; gives the flags of all, and this
/// PE's digest.
#[inline]
pub(crate) fn disseminate<P: Post>(
    post: &P,
    shape: Shape,
    epoch: u32,
    mut known: u64,
) -> Result<u64, P::Error> {
    let mine = known & DIGEST;
    let mut distance = 1;
    for round in 0..shape.rounds {
        for k in shape.digits(distance) {
            let to = (shape.me + k * distance) % shape.pes;
            post.tell(round, k, word(epoch, known), to)?;
        }
        // Makes this PE's earlier stores visible, and orders the words before the look at the
        // sleepers (park::ring).
        fence(Ordering::SeqCst);
        post.fenced();
        for k in shape.digits(distance) {
            post.ring((shape.me + k * distance) % shape.pes);
        }
        for k in shape.digits(distance) {
            let from = (shape.me + shape.pes - k * distance) % shape.pes;
            let theirs = post.hear(round, k, from)?;
            if (theirs ^ mine) & DIGEST != 0 {
                known |= MISMATCH;
            }
            known |= theirs & (MISMATCH | FAILED | BROKEN);
        }
        distance *= shape.radix;
    }
    Ok(known)
}
