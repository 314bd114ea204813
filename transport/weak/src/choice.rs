//! The choices that a simulated machine leaves open, and the steps that it takes by itself.
//!
//! The machine asks a [`Choices`]. It offers the steps that it takes by itself between the PEs' calls (a store
//! buffer drains) as an [`Environment`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use oxshmem_transport::Pe;

/// How free a simulated machine is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Not at all: stores are performed at once, loads see the newest value. Outside a run.
    Tame,
    /// Somebody takes the machine's steps, one at a time.
    Directed,
    /// Nobody does: the machine takes some by itself at each access.
    Free,
}

/// Decides what a simulated machine leaves open. The machine holds no lock of its own in a call.
pub trait Choices: Send + Sync + fmt::Debug {
    /// One of `n` alternatives (at least 2), less than `n`; 0 is the tame one.
    fn choose(&self, n: usize) -> usize;

    /// How free the machine is where it works for this PE.
    fn mode(&self, pe: Pe) -> Mode;
}

/// A source of steps between those of the PEs, which the decider takes. Callers hold no lock that a
/// [`Choices`] takes.
pub trait Environment: Send + Sync + fmt::Debug {
    /// How many steps could be taken now. Without a step in between, and without a call by a PE,
    /// the answer stays the same.
    fn steps(&self) -> usize;

    /// Takes the step of this number, less than [`steps`](Self::steps), and says what it was.
    fn step(&self, number: usize) -> String;

    /// Called when a run has ended: completes all that is in flight, so that all PEs see the same.
    fn quiesce(&self);
}

/// Choices by a seed, for PEs whose threads run freely.
#[derive(Debug)]
pub struct Seeded(AtomicU64);

impl Seeded {
    /// Equal seeds give equal sequences.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Seeded(AtomicU64::new(seed))
    }
}

impl Choices for Seeded {
    fn choose(&self, n: usize) -> usize {
        // A Weyl sequence through a finaliser (SplitMix64). Relaxed: each call takes a number of its
        // own, and nothing else hangs on it.
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % n.max(1) as u64) as usize
    }

    fn mode(&self, _: Pe) -> Mode {
        Mode::Free
    }
}
