use std::fmt;

use crate::{LocalKey, RegionId};

/// The width of an atomic's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
}

impl Width {
    /// Both widths, in the order of [`AtomicTable`](crate::AtomicTable)'s columns.
    pub const ALL: [Width; 2] = [Width::W32, Width::W64];

    /// Bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Width::W32 => 4,
            Width::W64 => 8,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Width::W32 => "32",
            Width::W64 => "64",
        })
    }
}

/// An atomic read-modify-write (or read, or write) of one word. Each but [`Set`](Self::Set) yields
/// the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Read only.
    Fetch,
    /// Store the operand. What was there is not yielded: it comes without
    /// [`fetch`](Op::Atomic::fetch).
    Set,
    /// Wrapping sum.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Store the operand and yield the old value.
    Swap,
    /// Store the operand if the word equals `compare`.
    CompareSwap,
}

impl AtomicOp {
    /// Every operation, in the order of [`AtomicTable`](crate::AtomicTable)'s rows.
    pub const ALL: [AtomicOp; 8] = [
        AtomicOp::Fetch,
        AtomicOp::Set,
        AtomicOp::Add,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Swap,
        AtomicOp::CompareSwap,
    ];
}

impl fmt::Display for AtomicOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AtomicOp::Fetch => "fetch",
            AtomicOp::Set => "set",
            AtomicOp::Add => "add",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Xor => "xor",
            AtomicOp::Swap => "swap",
            AtomicOp::CompareSwap => "compare_swap",
        })
    }
}

/// How a put-with-signal updates its signal word (64 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalOp {
    /// The signal becomes the value.
    Set,
    /// The value is added to the signal (wrapping).
    Add,
}

/// The near side of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// First byte.
    pub addr: *mut u8,
    /// Bytes.
    pub len: usize,
    /// The region's key where the bytes are registered, else none.
    pub key: Option<LocalKey>,
}

/// The far side of an operation: an offset in a region of the peer that the lane is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The peer's region.
    pub region: RegionId,
    /// Bytes from its start.
    pub offset: u64,
}

/// One operation for a [`Lane`](crate::Lane). Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Op {
    /// Copy to the peer. Each aligned word of 8 bytes lands whole, so that a waiter may watch one.
    Put {
        /// Source.
        from: Local,
        /// Destination.
        to: Remote,
    },
    /// Copy from the peer.
    Get {
        /// Destination.
        into: Local,
        /// Source.
        from: Remote,
    },
    /// Copy to the peer, then update a signal word there: whoever sees the signal's new value sees
    /// the data (M22).
    PutSignal {
        /// Source; may be empty.
        from: Local,
        /// Destination.
        to: Remote,
        /// The signal word, 8-byte aligned.
        signal: Remote,
        /// How it changes.
        op: SignalOp,
        /// By what.
        value: u64,
    },
    /// An atomic on one word of the peer. 32-bit operands are in the low half.
    Atomic {
        /// Which.
        op: AtomicOp,
        /// The word's width; its offset is a multiple of it.
        width: Width,
        /// The word.
        on: Remote,
        /// The operand (ignored by fetch).
        operand: u64,
        /// Compare-swap's expected value (ignored by the others).
        compare: u64,
        /// Where the old value goes: `width` bytes, aligned to them; none if it is not wanted.
        fetch: Option<Local>,
    },
    /// Send bytes to the peer's [inbox](crate::Inbox), up to [`Capabilities::message`] of them. They
    /// may be reused as soon as `post` returns. Messages of one lane to one PE arrive in the order
    /// posted, each once; completion says that the peer has received it, not that it was served.
    ///
    /// [`Capabilities::message`]: crate::Capabilities::message
    Message {
        /// The bytes; they need no registration.
        from: Local,
    },
    /// Completes when every operation posted before it on this lane to this PE has been placed in
    /// the target's memory, whatever a mere completion means on this transport.
    Flush,
}
