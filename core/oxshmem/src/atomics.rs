//! Remote atomics (M28 to M30): 32- and 64-bit words of any PE.
//!
//! Operations of one width on one word all run in one domain (M29), fixed when its memory is
//! allocated: the CPU's, or for words of 64 bits its NIC's. Towards a PE whose memory is not mapped
//! the CPU's take an active message where the transport has no such atomics. Fetching ones return
//! when the value is there (M16); the others may still be on the way (M17, M19).

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, Width};

use crate::check::{Access, Type};
use crate::mapped::Bytes;
use crate::order::{Class, Inserted};
use crate::wire::Path;
use crate::{Context, Result, Sym};

mod sealed {
    pub trait Word: bytemuck::Pod {
        const WIDTH: oxshmem_transport::Width;
        const NAME: &'static str;
        fn bits(self) -> u64;
        fn of_bits(bits: u64) -> Self;
    }
}
pub(crate) use sealed::Word;

/// A type that [`Context::fetch`], [`Context::set`] and [`Context::swap`] take (M30's extended set).
pub trait AtomicValue: Pod + sealed::Word {}
/// A type that all arithmetic atomics take (M30's standard set).
pub trait AtomicInt: AtomicValue {}
/// A type that bitwise atomics take (M30: unsigned, and signed of fixed width).
pub trait AtomicBits: AtomicInt {}

macro_rules! word {
    ($($t:ty, $u:ty, $width:ident, $to:expr, $from:expr;)*) => {$(
        impl sealed::Word for $t {
            const WIDTH: Width = Width::$width;
            const NAME: &'static str = stringify!($t);
            #[inline(always)]
            fn bits(self) -> u64 {
                let to: fn($t) -> $u = $to;
                to(self).into()
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                let from: fn($u) -> $t = $from;
                from(bits as $u)
            }
        }
        impl AtomicValue for $t {}
    )*};
}
word! {
    u32, u32, W32, |v| v, |b| b;
    i32, u32, W32, |v| v as u32, |b| b as i32;
    f32, u32, W32, f32::to_bits, f32::from_bits;
    u64, u64, W64, |v| v, |b| b;
    i64, u64, W64, |v| v as u64, |b| b as i64;
    f64, u64, W64, f64::to_bits, f64::from_bits;
}
#[cfg(target_pointer_width = "64")]
word! {
    usize, u64, W64, |v| v as u64, |b| b as usize;
    isize, u64, W64, |v| v as u64, |b| b as isize;
}

macro_rules! mark {
    ($($marker:ident: $($t:ty)*;)*) => {$($(impl $marker for $t {})*)*};
}
mark! {
    AtomicInt: i32 u32 i64 u64 isize usize;
    AtomicBits: i32 u32 i64 u64 usize;
}

/// A locked instruction of this processor is a full fence in itself, so it leaves nothing for quiet.
const RMW_IS_FENCE: bool = cfg!(target_arch = "x86_64");

impl Context<'_> {
    /// Reads a word atomically.
    #[doc(alias = "shmem_atomic_fetch")]
    #[inline]
    pub fn fetch<T: AtomicValue>(&self, src: Sym<T>, pe: usize) -> Result<T> {
        self.rmw("fetch", AtomicOp::Fetch, src, 0, 0, pe)
            .map(T::of_bits)
    }

    /// Writes a word atomically.
    #[doc(alias = "shmem_atomic_set")]
    #[inline]
    pub fn set<T: AtomicValue>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.post_rmw("set", AtomicOp::Set, dst, value.bits(), 0, pe)
    }

    /// Writes a word atomically and gives what it held.
    #[doc(alias = "shmem_atomic_swap")]
    #[inline]
    pub fn swap<T: AtomicValue>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<T> {
        self.rmw("swap", AtomicOp::Swap, dst, value.bits(), 0, pe)
            .map(T::of_bits)
    }

    /// Writes `value` if the word equals `expected`; gives what it held, whether it swapped or not.
    #[doc(alias = "shmem_atomic_compare_swap")]
    #[inline]
    pub fn compare_swap<T: AtomicInt>(
        &self,
        dst: Sym<T>,
        expected: T,
        value: T,
        pe: usize,
    ) -> Result<T> {
        let (value, expected) = (value.bits(), expected.bits());
        self.rmw(
            "compare_swap",
            AtomicOp::CompareSwap,
            dst,
            value,
            expected,
            pe,
        )
        .map(T::of_bits)
    }

    /// Adds (wrapping) and gives the word's value before.
    #[doc(alias = "shmem_atomic_fetch_add")]
    #[inline]
    pub fn fetch_add<T: AtomicInt>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<T> {
        self.rmw("fetch_add", AtomicOp::Add, dst, value.bits(), 0, pe)
            .map(T::of_bits)
    }

    /// Adds (wrapping).
    #[doc(alias = "shmem_atomic_add")]
    #[inline]
    pub fn add<T: AtomicInt>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.post_rmw("add", AtomicOp::Add, dst, value.bits(), 0, pe)
    }

    /// Adds 1 and gives the word's value before.
    #[doc(alias = "shmem_atomic_fetch_inc")]
    #[inline]
    pub fn fetch_inc<T: AtomicInt>(&self, dst: Sym<T>, pe: usize) -> Result<T> {
        self.rmw("fetch_inc", AtomicOp::Add, dst, 1, 0, pe)
            .map(T::of_bits)
    }

    /// Adds 1.
    #[doc(alias = "shmem_atomic_inc")]
    #[inline]
    pub fn inc<T: AtomicInt>(&self, dst: Sym<T>, pe: usize) -> Result<()> {
        self.post_rmw("inc", AtomicOp::Add, dst, 1, 0, pe)
    }

    /// Bitwise and; gives the word's value before.
    #[doc(alias = "shmem_atomic_fetch_and")]
    #[inline]
    pub fn fetch_and<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<T> {
        self.rmw("fetch_and", AtomicOp::And, dst, value.bits(), 0, pe)
            .map(T::of_bits)
    }

    /// Bitwise and.
    #[doc(alias = "shmem_atomic_and")]
    #[inline]
    pub fn and<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.post_rmw("and", AtomicOp::And, dst, value.bits(), 0, pe)
    }

    /// Bitwise or; gives the word's value before.
    #[doc(alias = "shmem_atomic_fetch_or")]
    #[inline]
    pub fn fetch_or<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<T> {
        self.rmw("fetch_or", AtomicOp::Or, dst, value.bits(), 0, pe)
            .map(T::of_bits)
    }

    /// Bitwise or.
    #[doc(alias = "shmem_atomic_or")]
    #[inline]
    pub fn or<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.post_rmw("or", AtomicOp::Or, dst, value.bits(), 0, pe)
    }

    /// Bitwise exclusive or; gives the word's value before.
    #[doc(alias = "shmem_atomic_fetch_xor")]
    #[inline]
    pub fn fetch_xor<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<T> {
        self.rmw("fetch_xor", AtomicOp::Xor, dst, value.bits(), 0, pe)
            .map(T::of_bits)
    }

    /// Bitwise exclusive or.
    #[doc(alias = "shmem_atomic_xor")]
    #[inline]
    pub fn xor<T: AtomicBits>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.post_rmw("xor", AtomicOp::Xor, dst, value.bits(), 0, pe)
    }

    /// An atomic that gives the old value; complete when it returns.
    #[inline(always)]
    pub(crate) fn rmw<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operand: u64,
        compare: u64,
        pe: usize,
    ) -> Result<u64> {
        self.atomic(call, op, on, (operand, compare), pe, false)
    }

    /// An atomic that gives nothing; under way until a fence or quiet.
    #[inline(always)]
    pub(crate) fn post_rmw<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operand: u64,
        compare: u64,
        pe: usize,
    ) -> Result<()> {
        self.atomic(call, op, on, (operand, compare), pe, true)
            .map(drop)
    }

    #[inline(always)]
    fn atomic<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        (operand, compare): (u64, u64),
        pe: usize,
        under_way: bool,
    ) -> Result<u64> {
        match self.instruction(op, on, (operand, compare), pe, under_way) {
            Some(old) => Ok(old),
            None => self.atomic_slow(call, op, on, (operand, compare), pe, under_way),
        }
    }

    /// An atomic where it is an instruction of this CPU's: gives the old value, of operations that have one. Else nothing
    /// is done. For bindings, as [`p_here`](Self::p_here).
    #[inline(always)]
    #[must_use]
    pub fn atomic_here<T: AtomicValue>(
        &self,
        op: AtomicOp,
        on: Sym<T>,
        (operand, compare): (T, T),
        pe: usize,
    ) -> Option<T> {
        let operands = (operand.bits(), compare.bits());
        self.instruction(op, on, operands, pe, false)
            .map(T::of_bits)
    }

    #[inline(always)]
    fn instruction<T: Word>(
        &self,
        op: AtomicOp,
        on: Sym<T>,
        operands: (u64, u64),
        pe: usize,
        under_way: bool,
    ) -> Option<u64> {
        let span = self.peers.word(on, pe).filter(|_| !on.is_empty())?;
        // Who gives a value orders later reads behind it (M20); on x86 that costs nothing.
        let inserted = if under_way {
            Inserted::Nothing
        } else {
            Inserted::Fetch
        };
        let old = span.update(T::WIDTH, op, operands, inserted);
        if op == AtomicOp::Set || (op != AtomicOp::Fetch && !RMW_IS_FENCE) {
            self.peers.note(pe);
        }
        Some(old)
    }

    #[cold]
    fn atomic_slow<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        (operand, compare): (u64, u64),
        pe: usize,
        under_way: bool,
    ) -> Result<u64> {
        let pe = self.check(call, on, 1, pe)?;
        self.guard(call, Access::Atomic(Type(T::NAME)), on, 1, pe, under_way)?;
        let operands = (operand, compare);
        match self.path(call, Class::Atomic, on, pe)? {
            Path::Near(word) => {
                let reads_in_order = !under_way && self.ordered;
                let inserted = match reads_in_order {
                    true => Inserted::Fetch,
                    false => Inserted::Nothing,
                };
                let old = word.update(T::WIDTH, op, operands, inserted);
                self.peers.note_slow();
                Ok(old)
            }
            Path::Lane(via, far) => {
                self.wire_atomic(call, via, far, T::WIDTH, op, operands, !under_way)
            }
            Path::Staged(far) => self.staged_atomic(call, far, (op, T::WIDTH), operands),
        }
    }
}
