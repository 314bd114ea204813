//! `shmem_atomic_*`: for each the CPU instruction, inlined, where the context needs no lock and the word is mapped; else the
//! library's call.

use std::ffi::c_int;

use oxshmem::{AtomicBits, AtomicInt, AtomicOp, AtomicValue, bindings};

use crate::call::{cold, fast_path, pe_index, with_context};
use crate::failure::or_abort_job;
use crate::handles::Ctx;

/// An atomic that returns nothing, or the old value.
macro_rules! atomic {
    ($name:ident: $bound:ident, $word:ident: $address:ty, ($($argument:ident),*) $(-> $returns:ident)?, $op:ident, $operand:expr, $compare:expr) => {
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(
            call: &'static str, ctx: Ctx, $word: $address, $($argument: T,)* pe: c_int,
        ) $(-> $returns)? {
            fast_path!(call, ctx, |library, context, word| {
                library.addresses.word($word) =>
                    bindings::try_atomic(context, AtomicOp::$op, word, $operand, $compare, pe_index(pe))
                        .map(|_old| { $(let old: $returns = _old; old)? }),
                library.word_or_abort(call, stringify!($word), $word) =>
                    context.$name(word, $($argument,)* pe_index(pe)),
            })
        }
    };
}

/// An atomic whose old value arrives by the next quiet.
macro_rules! nonblocking {
    ($name:ident: $bound:ident, $word:ident: $address:ty, ($($argument:ident),*), $op:ident, $operand:expr, $compare:expr) => {
        pub(crate) unsafe fn $name<T: $bound>(
            call: &'static str, ctx: Ctx, fetch: *mut T, $word: $address, $($argument: T,)* pe: c_int,
        ) {
            with_context!(call, ctx, |library, context| {
                let word = match library.addresses.word($word) {
                    Some(word) => word,
                    None => cold(|| {
                        or_abort_job(call, library.local_operand("fetch", fetch, 1));
                        library.word_or_abort(call, stringify!($word), $word)
                    }),
                };
                // SAFETY: the caller leaves `fetch` alone until a quiet. If one fails the job ends.
                unsafe { context.atomic_nbi(AtomicOp::$op, fetch, word, $operand, $compare, pe_index(pe)) }
            })
        }
    };
}

/// Atomics, with the nonblocking form of those that have one.
macro_rules! atomics {
    ($($name:ident $(and $nbi:ident)?: $bound:ident, $word:ident: $address:ty, $arguments:tt $(-> $returns:ident)?, $op:ident, $operand:expr, $compare:expr;)*) => {$(
        atomic!($name: $bound, $word: $address, $arguments $(-> $returns)?, $op, $operand, $compare);
        $(nonblocking!($nbi: $bound, $word: $address, $arguments, $op, $operand, $compare);)?
    )*};
}
atomics! {
    fetch and fetch_nbi: AtomicValue, source: *const T, () -> T, Fetch, T::zeroed(), T::zeroed();
    set: AtomicValue, dest: *mut T, (value), Set, value, T::zeroed();
    compare_swap and compare_swap_nbi: AtomicInt, dest: *mut T, (cond, value) -> T, CompareSwap, value, cond;
    swap and swap_nbi: AtomicValue, dest: *mut T, (value) -> T, Swap, value, T::zeroed();
    fetch_inc and fetch_inc_nbi: One, dest: *mut T, () -> T, Add, T::ONE, T::zeroed();
    inc: One, dest: *mut T, (), Add, T::ONE, T::zeroed();
    fetch_add and fetch_add_nbi: AtomicInt, dest: *mut T, (value) -> T, Add, value, T::zeroed();
    add: AtomicInt, dest: *mut T, (value), Add, value, T::zeroed();
    fetch_and and fetch_and_nbi: AtomicBits, dest: *mut T, (value) -> T, And, value, T::zeroed();
    and: AtomicBits, dest: *mut T, (value), And, value, T::zeroed();
    fetch_or and fetch_or_nbi: AtomicBits, dest: *mut T, (value) -> T, Or, value, T::zeroed();
    or: AtomicBits, dest: *mut T, (value), Or, value, T::zeroed();
    fetch_xor and fetch_xor_nbi: AtomicBits, dest: *mut T, (value) -> T, Xor, value, T::zeroed();
    xor: AtomicBits, dest: *mut T, (value), Xor, value, T::zeroed();
}

/// A type that has a 1.
pub(crate) trait One: AtomicInt {
    const ONE: Self;
}

macro_rules! ones {
    ($($t:ty)*) => {$(
        impl One for $t {
            const ONE: Self = 1;
        }
    )*};
}
ones!(i32 u32 i64 u64 isize usize);
