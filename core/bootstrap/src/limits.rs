//! Sizes that the bootstrap protocol and its users keep to.

/// Bytes that all ranks together may give to one allgather.
pub const MAX_GATHERED_BYTES: usize = 64 << 20;
/// Bytes that one message may have.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Bytes of messages that may wait for a handler to be set before more are held back.
pub(crate) const MAX_WAITING_BYTES: usize = 64 << 20;
/// Bytes of a reason given in words.
pub(crate) const MAX_WORDS: usize = 4096;
/// The longest body of a frame: a whole allgather's result and its table of lengths.
pub(crate) const MAX_BODY: usize = MAX_GATHERED_BYTES + (4 << 20);
/// Most PEs in a job: bounds the memory that a hello can make the rendezvous use.
pub(crate) const MAX_PES: u32 = 1 << 16;

/// Each rank's share of one allgather, in bytes.
pub(crate) fn gathered_share(ranks: usize) -> usize {
    MAX_GATHERED_BYTES / ranks
}
