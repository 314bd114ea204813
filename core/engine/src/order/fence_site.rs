//! The places where the library inserts an order, by name.

use std::sync::atomic::Ordering;

/// An order that the library inserts where the contract needs one: a processor's fence or ordered
/// access, a lane's flush, a drain, a GPU's flush.
///
/// The mutation check disables each in turn (`Builder::disable_fence`) and checks
/// that a litmus program notices. That works where memory or lanes are simulated; on real memory
/// no order is ever left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FenceSite {
    /// `fence`: earlier mapped stores before later ones (M17).
    FenceStores,
    /// `fence`: earlier mapped loads before later ones (M21).
    FenceLoads,
    /// `fence`: a flush of a lane whose guarantees do not keep the order, or a fence of one that then keeps it (M17).
    FenceLane,
    /// `fence`: a flush of a lane that keeps the order of all operations but of [long](oxshmem_transport::Limits::ordered)
    /// ones, and has such in flight (M17).
    FenceLong,
    /// `fence`: a flush of an ordered lane, because later operations may use another path to the
    /// same PE (M17).
    FenceOtherPath,
    /// `quiet`: mapped stores are performed (M19).
    QuietStores,
    /// `quiet`: a flush of every lane with operations in flight (M19, M27).
    QuietLane,
    /// A mapped put-with-signal: its data before its signal (M22).
    Signal,
    /// A put-with-signal made of a put, a flush and an atomic (M22).
    SignalLane,
    /// Blocking reads in the order performed (M20).
    Read,
    /// Fetching atomics in the order performed (M20).
    Fetch,
    /// A blocking read behind this PE's own puts to the same PE.
    ReadLane,
    /// A successful wait or test before later reads (M23).
    Wait,
    /// Mapped stores before an operation that is posted to a NIC.
    Doorbell,
    /// Arrival in a collective: earlier stores before the word that signals it.
    Arrive,
    /// A peer's arrival before later reads.
    Arrived,
    /// `quiet`: the target flushes the data that NICs placed in its GPU's memory (M27).
    QuietGpu,
    /// A wait, test or barrier flushes the data that NICs placed in this PE's GPU's memory (M27).
    WaitGpu,
    /// No order: an access that needs none.
    Nothing,
}

impl FenceSite {
    /// All sites that insert an order.
    pub const ALL: [FenceSite; 18] = [
        FenceSite::FenceStores,
        FenceSite::FenceLoads,
        FenceSite::FenceLane,
        FenceSite::FenceLong,
        FenceSite::FenceOtherPath,
        FenceSite::QuietStores,
        FenceSite::QuietLane,
        FenceSite::Signal,
        FenceSite::SignalLane,
        FenceSite::Read,
        FenceSite::Fetch,
        FenceSite::ReadLane,
        FenceSite::Wait,
        FenceSite::Doorbell,
        FenceSite::Arrive,
        FenceSite::Arrived,
        FenceSite::QuietGpu,
        FenceSite::WaitGpu,
    ];

    /// The processor's memory order of this site, where it has one.
    #[inline(always)]
    pub(crate) const fn order(self) -> Ordering {
        match self {
            FenceSite::FenceStores
            | FenceSite::Signal
            | FenceSite::Doorbell
            | FenceSite::Arrive => Ordering::Release,
            FenceSite::FenceLoads | FenceSite::Read | FenceSite::Wait | FenceSite::Arrived => {
                Ordering::Acquire
            }
            // Fetch: also orders a swap before a later fetch, which acquire and release do not.
            FenceSite::QuietStores | FenceSite::Fetch => Ordering::SeqCst,
            FenceSite::FenceLane
            | FenceSite::FenceLong
            | FenceSite::FenceOtherPath
            | FenceSite::QuietLane
            | FenceSite::SignalLane
            | FenceSite::ReadLane
            | FenceSite::QuietGpu
            | FenceSite::WaitGpu
            | FenceSite::Nothing => Ordering::Relaxed,
        }
    }
}
