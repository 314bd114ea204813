//! The requests of PEs to each other's staging servers, and their bytes.

use oxshmem_transport::{AtomicOp, Width};

/// A request of one PE to another's staging server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageRequest {
    /// Lend up to so many slots. The reply, a byte for each slot lent, is sent once at least one is free.
    Take(u8),
    /// Copy from the slot into GPU memory.
    In(StagePiece),
    /// Copy from GPU memory into the slot.
    Out(StagePiece),
    /// End the transfer: take all lent slots back, and drop the request for more. It has no reply.
    Done,
    /// Do this on a word of GPU memory; the reply is its old value.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The width of the word.
        width: Width,
        /// The word, in bytes from the start of the GPU heap.
        offset: u64,
        /// The operand; of a compare-and-swap the new value.
        operand: u64,
        /// The value that a compare-and-swap compares with.
        compare: u64,
    },
}

/// A copy between a slot's beginning and GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePiece {
    /// The slot in host memory.
    pub slot: u8,
    /// Number of bytes.
    pub len: u32,
    /// In bytes from the start of the GPU heap.
    pub offset: u64,
}

impl StagePiece {
    fn to_bytes(self, kind: u8) -> Vec<u8> {
        let mut bytes = vec![kind, self.slot];
        bytes.extend_from_slice(&self.len.to_le_bytes());
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<StagePiece> {
        let (slot, rest) = bytes.split_first()?;
        let (len, rest) = rest.split_first_chunk()?;
        Some(StagePiece {
            slot: *slot,
            len: u32::from_le_bytes(*len),
            offset: u64::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

impl StageRequest {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self {
            StageRequest::Take(most) => vec![0, most],
            StageRequest::In(piece) => piece.to_bytes(1),
            StageRequest::Out(piece) => piece.to_bytes(2),
            StageRequest::Done => vec![3],
            StageRequest::Atomic {
                op,
                width,
                offset,
                operand,
                compare,
            } => {
                let mut bytes = vec![4, op as u8, width as u8];
                for word in [offset, operand, compare] {
                    bytes.extend_from_slice(&word.to_le_bytes());
                }
                bytes
            }
        }
    }

    /// None for bytes that no PE of this version sends.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<StageRequest> {
        let (kind, rest) = bytes.split_first()?;
        match (kind, rest) {
            (0, [most]) => Some(StageRequest::Take(*most)),
            (1, rest) => StagePiece::of_bytes(rest).map(StageRequest::In),
            (2, rest) => StagePiece::of_bytes(rest).map(StageRequest::Out),
            (3, []) => Some(StageRequest::Done),
            (4, [op, width, words @ ..]) => {
                let ([offset, operand, compare], []) = words.as_chunks::<8>() else {
                    return None;
                };
                Some(StageRequest::Atomic {
                    op: *AtomicOp::ALL.get(usize::from(*op))?,
                    width: *Width::ALL.get(usize::from(*width))?,
                    offset: u64::from_le_bytes(*offset),
                    operand: u64::from_le_bytes(*operand),
                    compare: u64::from_le_bytes(*compare),
                })
            }
            _ => None,
        }
    }
}
