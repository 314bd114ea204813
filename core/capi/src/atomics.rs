//! Atomics.

use std::ffi::c_int;

use oxshmem::{AtomicBits, AtomicInt, AtomicOp, AtomicValue};

use crate::handles::Ctx;
use crate::library::{number, on};

/// Atomics that give nothing, or the old value.
macro_rules! atomics {
    ($($name:ident: $bound:ident, $word:ident: $address:ty, ($($argument:ident),*) $(-> $returns:ident)?;)*) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(
            call: &'static str, ctx: Ctx, $word: $address, $($argument: T,)* pe: c_int,
        ) $(-> $returns)? {
            on!(call, ctx, |library, context| {
                let word = library.word_or_end(call, stringify!($word), $word);
                context.$name(word, $($argument,)* number(pe))
            })
        }
    )*};
}
atomics! {
    fetch: AtomicValue, source: *const T, () -> T;
    set: AtomicValue, dest: *mut T, (value);
    compare_swap: AtomicInt, dest: *mut T, (cond, value) -> T;
    swap: AtomicValue, dest: *mut T, (value) -> T;
    fetch_inc: AtomicInt, dest: *mut T, () -> T;
    inc: AtomicInt, dest: *mut T, ();
    fetch_add: AtomicInt, dest: *mut T, (value) -> T;
    add: AtomicInt, dest: *mut T, (value);
    fetch_and: AtomicBits, dest: *mut T, (value) -> T;
    and: AtomicBits, dest: *mut T, (value);
    fetch_or: AtomicBits, dest: *mut T, (value) -> T;
    or: AtomicBits, dest: *mut T, (value);
    fetch_xor: AtomicBits, dest: *mut T, (value) -> T;
    xor: AtomicBits, dest: *mut T, (value);
}

/// Atomics whose old value comes by the next quiet.
macro_rules! nonblocking {
    ($($name:ident: $bound:ident, $word:ident: $address:ty, ($($argument:ident),*), $op:ident, $operand:expr, $compare:expr;)*) => {$(
        pub(crate) unsafe fn $name<T: $bound>(
            call: &'static str, ctx: Ctx, fetch: *mut T, $word: $address, $($argument: T,)* pe: c_int,
        ) {
            on!(call, ctx, |library, context| {
                let word = library.word_or_end(call, stringify!($word), $word);
                let operands = ($operand, $compare);
                // SAFETY: the caller leaves `fetch` alone until a quiet. If one fails the job ends.
                unsafe { context.atomic_nbi(AtomicOp::$op, fetch, word, operands, number(pe)) }
            })
        }
    )*};
}
nonblocking! {
    fetch_nbi: AtomicValue, source: *const T, (), Fetch, T::zeroed(), T::zeroed();
    compare_swap_nbi: AtomicInt, dest: *mut T, (cond, value), CompareSwap, value, cond;
    swap_nbi: AtomicValue, dest: *mut T, (value), Swap, value, T::zeroed();
    fetch_inc_nbi: One, dest: *mut T, (), Add, T::ONE, T::zeroed();
    fetch_add_nbi: AtomicInt, dest: *mut T, (value), Add, value, T::zeroed();
    fetch_and_nbi: AtomicBits, dest: *mut T, (value), And, value, T::zeroed();
    fetch_or_nbi: AtomicBits, dest: *mut T, (value), Or, value, T::zeroed();
    fetch_xor_nbi: AtomicBits, dest: *mut T, (value), Xor, value, T::zeroed();
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

/// The names of OpenSHMEM 1.3, without contexts.
pub(crate) mod old {
    use std::ffi::c_int;

    use oxshmem::{AtomicInt, AtomicValue};

    use crate::handles::Ctx;

    macro_rules! old {
        ($($name:ident: $bound:ident, $address:ty, ($($argument:ident),*) $(-> $returns:ident)?;)*) => {$(
            #[inline(always)]
            pub(crate) unsafe fn $name<T: $bound>(
                call: &'static str, dest: $address, $($argument: T,)* pe: c_int,
            ) $(-> $returns)? {
                // SAFETY: the caller's promise.
                unsafe { super::$name(call, Ctx::DEFAULT, dest, $($argument,)* pe) }
            }
        )*};
    }
    old! {
        fetch: AtomicValue, *const T, () -> T;
        set: AtomicValue, *mut T, (value);
        compare_swap: AtomicInt, *mut T, (cond, value) -> T;
        swap: AtomicValue, *mut T, (value) -> T;
        fetch_inc: AtomicInt, *mut T, () -> T;
        inc: AtomicInt, *mut T, ();
        fetch_add: AtomicInt, *mut T, (value) -> T;
        add: AtomicInt, *mut T, (value);
    }
}
