//! Scheduling and memory accesses of PEs, for a transport that simulates their machine.
//!
//! Real transports need none of this: their [`Domain`](crate::Domain)s give no schedule, their
//! regions no accessor.

use std::fmt;
use std::sync::atomic::Ordering;

use crate::atomic_request::AtomicRequest;
use crate::op::Width;

/// The scheduler of one PE's thread, where all PEs are threads of one process. Each PE has that thread alone.
pub trait Schedule: Send + Sync + fmt::Debug {
    /// A yield point, before each call of the library and at each step of one: the thread may be held here
    /// while other PEs run or operations in flight proceed.
    fn yield_point(&self);

    /// Called in a wait after an unsuccessful poll, instead of yielding or sleeping. `false` means that
    /// nothing can change any more: the wait cannot succeed.
    #[must_use]
    fn idle(&self) -> bool;
}

/// One PE's CPU accesses to one region, where a transport simulates what a CPU may do with plain
/// loads and stores instead of mapping the memory. Offsets are in bytes from the region's start; the
/// caller keeps them within it, and aligned where a width says so.
pub trait Accessor: Send + Sync + fmt::Debug {
    /// Relaxed loads; each aligned word of up to 8 bytes at once.
    fn load(&self, offset: u64, into: &mut [u8]);

    /// Relaxed stores; each aligned word of up to 8 bytes at once.
    fn store(&self, offset: u64, from: &[u8]);

    /// Loads one word: relaxed, or acquire.
    fn load_word(&self, offset: u64, width: Width, order: Ordering) -> u64;

    /// Stores one word: relaxed, or release.
    fn store_word(&self, offset: u64, width: Width, value: u64, order: Ordering);

    /// An atomic read-modify-write; gives the old value.
    fn rmw_word(&self, offset: u64, request: AtomicRequest, order: Ordering) -> u64;

    /// A fence of this PE's CPU, for accesses to all regions alike: acquire, release, both, or
    /// sequentially consistent.
    fn fence(&self, order: Ordering);
}
