//! How the PEs of an oxshmem job are started and find each other.
//!
//! [`Bootstrap`] is what a PE needs before (and beside) its transports: its rank, the job's size,
//! collective exchange of bytes, messages to a peer that may be computing, and word of a peer's
//! death. Nothing here is on a data path.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// A rank's end, as the others hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerExit {
    /// Who.
    pub rank: u32,
    /// Whether it said goodbye ([`Bootstrap::leave`]) before its connection closed.
    pub orderly: bool,
}

/// Called with each message as (sender's rank, bytes), from the receive service's thread.
pub type MessageHandler = Box<dyn Fn(u32, &[u8]) + Send + Sync>;
/// Called once for each peer that leaves or dies, from the receive service's thread.
pub type ExitHandler = Box<dyn Fn(PeerExit) + Send + Sync>;

/// A PE's connection to its job.
///
/// Collective calls are made by every rank in the same order. Each has a deadline (60 s unless set
/// otherwise) after which it fails, naming the ranks that did not come; a rank that has left or
/// died fails it at once. All calls may be made from any thread; collective ones by one thread at
/// a time.
pub trait Bootstrap: Send + Sync + std::fmt::Debug {
    /// This PE's rank.
    fn rank(&self) -> u32;

    /// Number of PEs in the job.
    fn size(&self) -> u32;

    /// Which back-end this is and what it connected to, for `oxshmem info`.
    fn describe(&self) -> String;

    /// Collective: gives every rank's bytes, in rank order.
    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Collective: returns when every rank has entered.
    fn barrier(&self) -> Result<()>;

    /// Sends bytes to one rank, whose message handler is called with them even while it computes.
    /// Messages from one rank to another arrive in the order sent, and none is lost: those that
    /// come before a handler is set wait for it.
    fn send(&self, to: u32, message: &[u8]) -> Result<()>;

    /// Sets the receive service's handler for messages. Once only.
    fn on_message(&self, handler: MessageHandler) -> Result<()>;

    /// Sets the handler for peers' ends. Ends that came before are delivered at once. Once only.
    fn on_exit(&self, handler: ExitHandler) -> Result<()>;

    /// Collective over `among` (the same list, in the same order, on each of them, this rank
    /// included): passes descriptors between processes of one host. Gives each rank's descriptors,
    /// duplicated into this process, in the order of `among`; this rank's own entry is empty.
    fn share_descriptors(
        &self,
        among: &[u32],
        mine: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>>;

    /// Ends the whole job with `status`: every PE, whatever it is doing. Returns only if the job
    /// cannot be reached any more; the caller then exits by itself.
    fn abort(&self, status: i32, why: &str);

    /// Says goodbye: peers hear of an orderly exit. Idempotent; does not wait for anyone.
    fn leave(&self);
}

/// placeholder
pub type Result<T> = std::result::Result<T, std::io::Error>;
