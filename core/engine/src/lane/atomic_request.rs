//! An atomic as data: the operation, the width, and the operands.

use oxshmem_transport::{AtomicOp, Width};

/// An atomic on a word, wherever that is.
#[derive(Clone, Copy, Debug)]
pub struct AtomicRequest {
    /// The operation.
    pub op: AtomicOp,
    /// The width of the word.
    pub width: Width,
    /// The value that the operation writes or combines.
    pub operand: u64,
    /// The expected old value of a compare-swap; 0 for every other operation.
    pub compare: u64,
}

impl AtomicRequest {
    /// An atomic of 64 bits.
    pub(crate) fn wide(op: AtomicOp, operand: u64, compare: u64) -> Self {
        AtomicRequest {
            op,
            width: Width::W64,
            operand,
            compare,
        }
    }

    /// The operand and the value to compare with.
    #[inline(always)]
    pub fn operands(self) -> (u64, u64) {
        (self.operand, self.compare)
    }

    /// The value that the word has after the operation, if it held `old` and that meets the comparison.
    pub(crate) fn applied_to(self, old: u64) -> u64 {
        let operand = self.operand;
        let new = match self.op {
            AtomicOp::Fetch => old,
            AtomicOp::Set | AtomicOp::Swap | AtomicOp::CompareSwap => operand,
            AtomicOp::Add => old.wrapping_add(operand),
            AtomicOp::And => old & operand,
            AtomicOp::Or => old | operand,
            AtomicOp::Xor => old ^ operand,
        };
        match self.width {
            Width::W32 => new & 0xffff_ffff,
            Width::W64 => new,
        }
    }
}
