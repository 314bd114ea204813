//! An atomic as data: the operation, the width, and the operands.

use crate::op::{AtomicOp, Width};

/// The operands of an atomic; those of 32 bits are in the low half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// The value that the operation writes or combines.
    pub operand: u64,
    /// The expected old value of a compare-swap; 0 for every other operation.
    pub compare: u64,
}

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
    /// An atomic with these operands.
    #[inline(always)]
    #[must_use]
    pub fn new(op: AtomicOp, width: Width, operands: Operands) -> Self {
        let Operands { operand, compare } = operands;
        AtomicRequest {
            op,
            width,
            operand,
            compare,
        }
    }

    /// An atomic of 64 bits.
    #[inline(always)]
    #[must_use]
    pub fn wide(op: AtomicOp, operand: u64, compare: u64) -> Self {
        AtomicRequest {
            op,
            width: Width::W64,
            operand,
            compare,
        }
    }

    /// The value that the word has after the operation, if it held `old` and that meets the comparison.
    #[must_use]
    pub fn applied_to(self, old: u64) -> u64 {
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
