//! Operations of a lane.

use std::fmt;

use crate::error::{Error, Result};
use crate::memory::{LocalKey, RegionId};

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
    /// Store the operand. The old value is not yielded: there is no
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
    #[doc(alias("SHMEM_SIGNAL_SET", "NVSHMEM_SIGNAL_SET"))]
    Set,
    /// The value is added to the signal (wrapping).
    #[doc(alias("SHMEM_SIGNAL_ADD", "NVSHMEM_SIGNAL_ADD"))]
    Add,
}

/// The local buffer of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// First byte.
    pub addr: *mut u8,
    /// Bytes.
    pub len: usize,
    /// The region's key where the bytes are registered, else none.
    pub key: Option<LocalKey>,
}

impl Local {
    /// Checks the buffer for an atomic's old value: it has as many bytes as the word, and is aligned to them.
    #[inline]
    pub fn check_fetch(&self, transport: &'static str, width: Width) -> Result<()> {
        let bytes = width.bytes();
        if self.len == bytes && self.addr.addr().is_multiple_of(bytes) {
            Ok(())
        } else {
            Err(self.no_fetch(transport, width))
        }
    }

    #[cold]
    fn no_fetch(&self, transport: &'static str, width: Width) -> Error {
        if self.len != width.bytes() {
            let what = format!("a fetch of {width} bits into {} bytes", self.len);
            return Error::Unsupported { transport, what };
        }
        Error::Misaligned {
            transport,
            what: "where an atomic's old value goes",
            offset: self.addr.addr() as u64,
            align: width.bytes() as u64,
        }
    }
}

/// The remote address of an operation: an offset in a region of the peer that the post names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The peer's region.
    pub region: RegionId,
    /// Bytes from its start.
    pub offset: u64,
}

impl Remote {
    /// Checks the address of `len` bytes: they are aligned to `align`, as `what` needs, and end within a region of
    /// `region` bytes.
    #[inline]
    pub fn check(
        self,
        transport: &'static str,
        what: &'static str,
        (len, align): (u64, u64),
        region: u64,
    ) -> Result<()> {
        let end = self.offset.checked_add(len);
        if self.offset.is_multiple_of(align) && end.is_some_and(|end| end <= region) {
            Ok(())
        } else {
            Err(self.refusal(transport, what, (len, align), region))
        }
    }

    #[cold]
    fn refusal(
        self,
        transport: &'static str,
        what: &'static str,
        (len, align): (u64, u64),
        region: u64,
    ) -> Error {
        let offset = self.offset;
        if offset.is_multiple_of(align) {
            Error::OutOfRange {
                transport,
                offset,
                len,
                region,
            }
        } else {
            Error::Misaligned {
                transport,
                what,
                offset,
                align,
            }
        }
    }
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
    /// Copy to the peer, then update a signal word there: a reader that sees the signal's new value sees
    /// the data (M22).
    PutSignal {
        /// Source; may be empty.
        from: Local,
        /// Destination.
        to: Remote,
        /// The signal word, 8-byte aligned.
        signal: Remote,
        /// The update of the signal.
        op: SignalOp,
        /// The operand of the update.
        value: u64,
    },
    /// An atomic on one word of the peer. 32-bit operands are in the low half.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The word's width; its offset is a multiple of it.
        width: Width,
        /// The word.
        on: Remote,
        /// The operand (ignored by fetch).
        operand: u64,
        /// Compare-swap's expected value (ignored by the others).
        compare: u64,
        /// The buffer for the old value: `width` bytes, aligned to them; none if it is not wanted.
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
    /// the target's memory, whatever a completion alone means on this transport.
    Flush,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_aligned_and_ends_within_its_region() {
        let check = |offset, size| {
            let region = RegionId(0);
            Remote { region, offset }.check("test", "a word", size, 64)
        };
        for (offset, size) in [(56, (8, 8)), (61, (3, 1)), (64, (0, 1))] {
            assert!(check(offset, size).is_ok(), "{offset}, {size:?}");
        }
        for (offset, size) in [(64, (8, 8)), (62, (3, 1)), (65, (0, 1)), (u64::MAX, (2, 1))] {
            let error = check(offset, size).unwrap_err();
            assert!(matches!(error, Error::OutOfRange { region: 64, .. }));
        }
        let error = check(60, (8, 8)).unwrap_err();
        assert!(matches!(error, Error::Misaligned { align: 8, .. }));
    }

    #[test]
    fn an_old_value_goes_to_an_aligned_word_of_its_width() {
        let check = |addr, len| {
            let addr = std::ptr::without_provenance_mut(addr);
            let key = None;
            Local { addr, len, key }.check_fetch("test", Width::W64)
        };
        assert!(check(0x1008, 8).is_ok());
        assert!(matches!(check(0x1004, 8), Err(Error::Misaligned { .. })));
        assert!(matches!(check(0x1008, 4), Err(Error::Unsupported { .. })));
    }
}
