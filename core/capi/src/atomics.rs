//! Atomics.

use std::ffi::c_int;

use oxshmem::{AtomicBits, AtomicInt, AtomicOp, AtomicValue};

use crate::handles::Ctx;
use crate::library::{number, on, straight};

/// Atomics that give nothing, or the old value.
macro_rules! atomics {
    ($($name:ident: $bound:ident, $word:ident: $address:ty, ($($argument:ident),*) $(-> $returns:ident)?, $op:ident, $operand:expr, $compare:expr;)*) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $name<T: $bound>(
            call: &'static str, ctx: Ctx, $word: $address, $($argument: T,)* pe: c_int,
        ) $(-> $returns)? {
            straight!(call, ctx, |library, context, word| {
                library.addresses.word($word) =>
                    context.atomic_here(AtomicOp::$op, word, ($operand, $compare), number(pe))
                        .map(|_old| { $(let old: $returns = _old; old)? }),
                library.word_or_end(call, stringify!($word), $word) =>
                    context.$name(word, $($argument,)* number(pe)),
            })
        }
    )*};
}
atomics! {
    fetch: AtomicValue, source: *const T, () -> T, Fetch, T::zeroed(), T::zeroed();
    set: AtomicValue, dest: *mut T, (value), Set, value, T::zeroed();
    compare_swap: AtomicInt, dest: *mut T, (cond, value) -> T, CompareSwap, value, cond;
    swap: AtomicValue, dest: *mut T, (value) -> T, Swap, value, T::zeroed();
    fetch_inc: One, dest: *mut T, () -> T, Add, T::ONE, T::zeroed();
    inc: One, dest: *mut T, (), Add, T::ONE, T::zeroed();
    fetch_add: AtomicInt, dest: *mut T, (value) -> T, Add, value, T::zeroed();
    add: AtomicInt, dest: *mut T, (value), Add, value, T::zeroed();
    fetch_and: AtomicBits, dest: *mut T, (value) -> T, And, value, T::zeroed();
    and: AtomicBits, dest: *mut T, (value), And, value, T::zeroed();
    fetch_or: AtomicBits, dest: *mut T, (value) -> T, Or, value, T::zeroed();
    or: AtomicBits, dest: *mut T, (value), Or, value, T::zeroed();
    fetch_xor: AtomicBits, dest: *mut T, (value) -> T, Xor, value, T::zeroed();
    xor: AtomicBits, dest: *mut T, (value), Xor, value, T::zeroed();
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

    use super::One;
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
        fetch_inc: One, *mut T, () -> T;
        inc: One, *mut T, ();
        fetch_add: AtomicInt, *mut T, (value) -> T;
        add: AtomicInt, *mut T, (value);
    }
}
