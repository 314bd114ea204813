//! The users of waits on a program's own words.

use oxshmem_engine::progress::wait::Waiter;

use crate::pe_state::PeState;

/// The context of a wait on a user's word: one that this thread uses, or one that threads share.
pub(crate) trait CallWaiter {
    /// The waiter, which no program can name: it leads to the engine.
    type Waiter: Waiter;
    /// The waiter.
    fn waiter(&self) -> &Self::Waiter;
    /// The state of its PE.
    fn pe(&self) -> &PeState;
    /// The tag of its world's handles.
    fn tag(&self) -> u32;
    /// A pseudorandom number.
    fn random(&self) -> u64;
}

/// The next state of a simple random sequence (xorshift), of which none is 0.
pub(crate) fn next_random(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    x
}
