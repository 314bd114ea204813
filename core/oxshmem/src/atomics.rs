//! Remote atomics (M28 to M30): 32- and 64-bit words of any PE.
//!
//! Operations of one width on one word all run in one domain (M29), fixed when its memory is
//! allocated: the CPU's, or for words of 64 bits its NIC's. Towards a PE whose memory is not mapped
//! the CPU's take an active message where the transport has no such atomics. Fetching atomics return
//! when the value is there (M16); the others may still be in flight (M17, M19).

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::conflict::{Access, Type};
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_transport::{AtomicOp, Width};
use oxshmem_transport::{AtomicRequest, Operands};

use crate::context::Context;
use crate::error::Result;
use crate::place::placed;
use crate::stats::counters::Kind;
use crate::sym::Sym;

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

/// Passes all atomics to a macro: for each its documentation, its name in C and here, both names of its nonblocking form if it
/// gives the old value, the types, the word, further arguments, and its operation with its operand and the value to compare
/// with.
macro_rules! all_atomics {
    ($define:ident) => {
        $define! {
            fetching {
                /// Reads a word atomically.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(2, |world| {
                ///         let word = world.alloc_zeroed::<u64>(1)?;
                ///         world.set(word, 5, world.my_pe())?;
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(word, 1 - world.my_pe())?, 5);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_fetch", "shmem_fetch"))]
                "shmem_atomic_fetch" fetch, "shmem_atomic_fetch_nbi" fetch_nbi:
                    AtomicValue, src, (), Fetch, 0, 0;
                /// Writes a word atomically and gives what it held.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(2, |world| {
                ///         let word = world.alloc_zeroed::<u64>(1)?;
                ///         let me = world.my_pe() as u64;
                ///         let before = world.swap(word, me + 1, 0)?; // both write their number to PE 0
                ///         world.barrier_all()?;
                ///         let last = world.fetch(word, 0)?;
                ///         assert!(before == 0 || last == me + 1); // one came first, the other last
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_swap", "shmem_swap", "MPI_Fetch_and_op"))]
                "shmem_atomic_swap" swap, "shmem_atomic_swap_nbi" swap_nbi:
                    AtomicValue, dst, (value), Swap, value.bits(), 0;
                /// Writes `value` if the word equals `expected`; gives what it held, whether it swapped or not.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(4, |world| {
                ///         let winner = world.alloc_zeroed::<u64>(1)?; // 0: nobody yet
                ///         let me = world.my_pe() as u64 + 1;
                ///         let won = world.compare_swap(winner, 0, me, 0)? == 0;
                ///         world.barrier_all()?;
                ///         assert_eq!(won, world.fetch(winner, 0)? == me);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_compare_swap", "shmem_cswap", "MPI_Compare_and_swap"))]
                "shmem_atomic_compare_swap" compare_swap, "shmem_atomic_compare_swap_nbi" compare_swap_nbi:
                    AtomicInt, dst, (expected, value), CompareSwap, value.bits(), expected.bits();
                /// Adds (wrapping) and gives the word's value before.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(4, |world| {
                ///         let next = world.alloc_zeroed::<u64>(1)?;
                ///         let first = world.fetch_add(next, 10, 0)?; // this PE has 10 pieces of work for itself
                ///         assert!(first % 10 == 0 && first < 40);
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(next, 0)?, 40);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_fetch_add", "shmem_fadd", "MPI_Fetch_and_op"))]
                "shmem_atomic_fetch_add" fetch_add, "shmem_atomic_fetch_add_nbi" fetch_add_nbi:
                    AtomicInt, dst, (value), Add, value.bits(), 0;
                /// Adds 1 and gives the word's value before.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(4, |world| {
                ///         let next = world.alloc_zeroed::<u64>(1)?;
                ///         let turn = world.fetch_inc(next, 0)?; // another number for each PE
                ///         assert!(turn < 4);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_fetch_inc", "shmem_finc"))]
                "shmem_atomic_fetch_inc" fetch_inc, "shmem_atomic_fetch_inc_nbi" fetch_inc_nbi:
                    AtomicInt, dst, (), Add, 1, 0;
                /// Bitwise and; gives the word's value before.
                #[doc(alias("nvshmem_atomic_fetch_and", "MPI_Fetch_and_op"))]
                "shmem_atomic_fetch_and" fetch_and, "shmem_atomic_fetch_and_nbi" fetch_and_nbi:
                    AtomicBits, dst, (value), And, value.bits(), 0;
                /// Bitwise or; gives the word's value before.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let seen = world.alloc_zeroed::<u64>(1)?;
                ///         let mine = 1 << world.my_pe();
                ///         assert_eq!(world.fetch_or(seen, mine, 0)? & mine, 0);
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(seen, 0)?, 0b111);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_fetch_or", "MPI_Fetch_and_op"))]
                "shmem_atomic_fetch_or" fetch_or, "shmem_atomic_fetch_or_nbi" fetch_or_nbi:
                    AtomicBits, dst, (value), Or, value.bits(), 0;
                /// Bitwise exclusive or; gives the word's value before.
                #[doc(alias("nvshmem_atomic_fetch_xor", "MPI_Fetch_and_op"))]
                "shmem_atomic_fetch_xor" fetch_xor, "shmem_atomic_fetch_xor_nbi" fetch_xor_nbi:
                    AtomicBits, dst, (value), Xor, value.bits(), 0;
            }
            giving_nothing {
                /// Writes a word atomically.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(2, |world| {
                ///         let word = world.alloc_zeroed::<u32>(1)?;
                ///         world.set(word, 5, 1 - world.my_pe())?;
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(word, world.my_pe())?, 5);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_set", "shmem_set"))]
                "shmem_atomic_set" set: AtomicValue, (value), Set, value.bits();
                /// Adds (wrapping).
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let sum = world.alloc_zeroed::<u64>(1)?;
                ///         world.add(sum, world.my_pe() as u64, 0)?; // all add on PE 0
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(sum, 0)?, 3);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_add", "shmem_add", "MPI_Accumulate"))]
                "shmem_atomic_add" add: AtomicInt, (value), Add, value.bits();
                /// Adds 1.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let count = world.alloc_zeroed::<u64>(1)?;
                ///         world.inc(count, 0)?; // all count on PE 0
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(count, 0)?, 3);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_inc", "shmem_inc"))]
                "shmem_atomic_inc" inc: AtomicInt, (), Add, 1;
                /// Bitwise and.
                #[doc(alias("nvshmem_atomic_and", "MPI_Accumulate"))]
                "shmem_atomic_and" and: AtomicBits, (value), And, value.bits();
                /// Bitwise or.
                ///
                /// ```
                /// use oxshmem::{Result, testing::spmd};
                ///
                /// fn main() -> Result<()> {
                ///     spmd(3, |world| {
                ///         let seen = world.alloc_zeroed::<u64>(1)?;
                ///         world.or(seen, 1 << world.my_pe(), 0)?; // each sets a bit of its own
                ///         world.barrier_all()?;
                ///         assert_eq!(world.fetch(seen, 0)?, 0b111);
                ///         Ok(())
                ///     })?;
                ///     Ok(())
                /// }
                /// ```
                #[doc(alias("nvshmem_atomic_or", "MPI_Accumulate"))]
                "shmem_atomic_or" or: AtomicBits, (value), Or, value.bits();
                /// Bitwise exclusive or.
                #[doc(alias("nvshmem_atomic_xor", "MPI_Accumulate"))]
                "shmem_atomic_xor" xor: AtomicBits, (value), Xor, value.bits();
            }
        }
    };
}
pub(crate) use all_atomics;

macro_rules! calls {
    (
        fetching {$(
            $(#[$doc:meta])+
            $alias:literal $name:ident, $nbi_alias:literal $nbi:ident:
                $bound:ident, $word:ident, ($($argument:ident),*), $op:ident, $operand:expr, $compare:expr;
        )*}
        giving_nothing {$(
            $(#[$doc_n:meta])+
            $alias_n:literal $name_n:ident:
                $bound_n:ident, ($($argument_n:ident)?), $op_n:ident, $operand_n:expr;
        )*}
    ) => {
        $(
            $(#[$doc])+
            #[doc(alias = $alias)]
            #[inline]
            #[track_caller]
            pub fn $name<T: $bound>(&self, $word: Sym<T>, $($argument: T,)* pe: usize) -> Result<T> {
                self.rmw(stringify!($name), AtomicOp::$op, $word, $operand, $compare, pe)
                    .map(T::of_bits)
            }
        )*
        $(
            $(#[$doc_n])+
            #[doc(alias = $alias_n)]
            #[inline]
            #[track_caller]
            pub fn $name_n<T: $bound_n>(&self, dst: Sym<T>, $($argument_n: T,)? pe: usize) -> Result<()> {
                self.post_rmw(stringify!($name_n), AtomicOp::$op_n, dst, $operand_n, 0, pe)
            }
        )*
    };
}

impl Context<'_> {
    all_atomics!(calls);

    /// An atomic that gives the old value; complete when it returns.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn rmw<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operand: u64,
        compare: u64,
        pe: usize,
    ) -> Result<u64> {
        let operands = Operands { operand, compare };
        self.atomic(call, op, on, operands, pe, false)
    }

    /// An atomic that gives nothing; in flight until a fence or quiet.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn post_rmw<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operand: u64,
        compare: u64,
        pe: usize,
    ) -> Result<()> {
        let operands = Operands { operand, compare };
        self.atomic(call, op, on, operands, pe, true).map(drop)
    }

    #[inline(always)]
    #[track_caller]
    fn atomic<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
        in_flight: bool,
    ) -> Result<u64> {
        match self.try_rmw(op, on, operands, pe, in_flight) {
            Some(old) => Ok(old),
            None => self.atomic_slow(call, op, on, operands, pe, in_flight),
        }
    }

    /// An atomic where it is an instruction of this CPU: gives the old value, of operations that have one. Else nothing is done.
    #[inline(always)]
    pub(crate) fn try_rmw<T: Word>(
        &self,
        op: AtomicOp,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
        in_flight: bool,
    ) -> Option<u64> {
        let span = self.worker.peers.word(on, pe).filter(|_| !on.is_empty())?;
        // An atomic that gives a value orders later reads behind it (M20); on x86 that costs nothing.
        let site = if in_flight {
            FenceSite::Nothing
        } else {
            FenceSite::Fetch
        };
        let old = span.rmw_word(AtomicRequest::new(op, T::WIDTH, operands), site);
        if op == AtomicOp::Set || (op != AtomicOp::Fetch && !RMW_IS_FENCE) {
            self.worker.peers.note_store(pe);
        }
        Some(old)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn atomic_slow<T: Word>(
        &self,
        call: &'static str,
        op: AtomicOp,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
        in_flight: bool,
    ) -> Result<u64> {
        placed(|| {
            self.in_call(call)
                .atomic_slow_inner(op, on, operands, pe, in_flight)
        })
    }

    fn atomic_slow_inner<T: Word>(
        &self,
        op: AtomicOp,
        on: Sym<T>,
        operands: Operands,
        pe: usize,
        in_flight: bool,
    ) -> Result<u64> {
        let pe = self.check(on, 1, pe)?;
        self.guard(Access::Atomic(Type(T::NAME)), on, 1, pe, in_flight)?;
        self.count(Kind::Atomic, on, size_of::<T>(), pe);
        let request = AtomicRequest::new(op, T::WIDTH, operands);
        match self.worker.access_path(OpKind::Atomic, on, pe)? {
            AccessPath::Mapped(word) => {
                let reads_in_order = !in_flight && self.worker.ordered;
                let site = if reads_in_order {
                    FenceSite::Fetch
                } else {
                    FenceSite::Nothing
                };
                let old = word.rmw_word(request, site);
                self.worker.peers.mark_dirty_any();
                Ok(old)
            }
            AccessPath::Lane(endpoint, remote) => Ok(self
                .worker
                .lane_amo(endpoint, remote, request, !in_flight)?),
            AccessPath::Staged(remote) => Ok(self.worker.staged_atomic(remote, request)?),
        }
    }
}
