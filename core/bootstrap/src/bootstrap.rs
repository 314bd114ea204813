//! The trait through which a PE reaches its job, and the types of its handlers.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::error::Result;
use crate::waits::Waiting;

/// A rank's end, as the others hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerExit {
    /// The rank that ended.
    pub rank: u32,
    /// Whether it said goodbye ([`Bootstrap::leave`]) before its connection closed, or that it may end
    /// ([`Bootstrap::rest`]).
    pub orderly: bool,
}

/// Called with each message as (sender's rank, bytes), from the receive service's thread.
pub type MessageHandler = Box<dyn Fn(u32, &[u8]) + Send + Sync>;
/// Called once for each peer that leaves or dies, from the receive service's thread.
pub type ExitHandler = Box<dyn Fn(PeerExit) + Send + Sync>;
/// Lists this PE's waits. Called from the receive service's thread.
pub type AskHandler = Box<dyn Fn() -> Vec<Waiting> + Send + Sync>;

/// A PE's connection to its job.
///
/// Collective calls are made by every rank in the same order. Each has a deadline (60 s unless set
/// otherwise) after which it fails, naming the ranks that did not come; a rank that has left or
/// died fails it at once. After one collective call failed, so do all later ones, with the same
/// reason. All calls may be made from any thread; collective ones by one thread at a time.
///
/// Handlers run on the receive service's thread. They may call [`send`](Bootstrap::send), but no
/// collective call: the service that would bring its answer is the one that runs the handler.
pub trait Bootstrap: Send + Sync + std::fmt::Debug {
    /// This PE's rank.
    fn rank(&self) -> u32;

    /// Number of PEs in the job.
    fn size(&self) -> u32;

    /// The back-end's name and the address it connected to, for `oxshmem info`.
    fn describe(&self) -> String;

    /// Collective: gives every rank's bytes, in rank order. All ranks' bytes together may be up to
    /// [`MAX_GATHERED_BYTES`](crate::MAX_GATHERED_BYTES), each an equal share of it.
    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Collective: returns when every rank has entered.
    fn barrier(&self) -> Result<()>;

    /// Sends bytes to one rank, whose message handler is called with them even while it computes.
    /// Messages from one rank to another arrive in the order sent, and none is lost: those that
    /// come before a handler is set wait for it, and so do those to a rank that has yet to arrive.
    /// At most [`MAX_MESSAGE_BYTES`](crate::MAX_MESSAGE_BYTES).
    fn send(&self, to: u32, message: &[u8]) -> Result<()>;

    /// Sets the receive service's handler for messages. Once only.
    fn on_message(&self, handler: MessageHandler) -> Result<()>;

    /// Sets the handler for peers' ends. Ends that came before are delivered at once. Once only.
    fn on_exit(&self, handler: ExitHandler) -> Result<()>;

    /// Sets the handler that lists this PE's waits when the launcher asks for them. Once only. A back-end without a
    /// launcher never calls it.
    fn on_ask(&self, _handler: AskHandler) -> Result<()> {
        Ok(())
    }

    /// Says that a wait of this PE lasts. Then the rendezvous, if there is one, asks all PEs for their waits and looks for a
    /// deadlock.
    fn hangs(&self) {}

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
    /// cannot be reached any more (or, for PEs that are threads, cannot be killed: their calls
    /// fail from then on); the caller then exits by itself.
    fn abort(&self, status: i32, why: &str);

    /// Says goodbye: peers hear of an orderly exit. Idempotent; does not wait for anyone.
    fn leave(&self);

    /// After [`leave`](Self::leave): waits as long as other PEs need this process, which may host their rendezvous, at most the
    /// deadline. Dropping this does the same.
    fn outlast(&self) {}

    /// With `true`: this PE may end from here on, in any way, and peers then hear of an orderly exit, as after
    /// [`leave`](Self::leave). With `false`: it goes on. Does not wait for anyone.
    fn rest(&self, may_end: bool);
}
