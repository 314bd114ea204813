//! Atomics by the host, on words of GPU memory.

use std::ops::Add;

use oxshmem::Sym;

use crate::failure::{Done, Failure, or_end_job};
use crate::state::with_pe;
use crate::types::Element;

/// Does an atomic on a PE's word by its bits, in a word of as many. Gives the bits that the body gives.
macro_rules! on_bits {
    ($call:ident, $at:expr, $pe:expr, |$world:ident, $word:ident, $of:ident| $body:expr) => {{
        let done = with_pe($call, |own| {
            let $of = own.pe($pe)?;
            let $world = &own.world;
            match size_of::<T>() {
                4 => {
                    let $word: Sym<u32> = own.object("dest", $at.cast_const().cast(), 1)?;
                    narrow::<T>(wide::<u32>($body)?)
                }
                8 => {
                    let $word: Sym<u64> = own.object("dest", $at.cast_const().cast(), 1)?;
                    narrow::<T>(wide::<u64>($body)?)
                }
                other => Err(Failure::NotSupported(format!(
                    "atomics of the host are on words of 4 and 8 bytes, not {other}; make the call in a kernel"
                ))),
            }
        });
        or_end_job($call, done)
    }};
}

/// A call's value in 64 bits.
fn wide<W: Into<u64>>(value: oxshmem::Result<W>) -> Done<u64> {
    Ok(value?.into())
}

/// A type's value by its bits, which are the lowest.
fn narrow<T: Element>(bits: u64) -> Done<T> {
    let mut value = T::zeroed();
    for (to, from) in bytemuck::bytes_of_mut(&mut value)
        .iter_mut()
        .zip(bits.to_le_bytes())
    {
        *to = from;
    }
    Ok(value)
}

/// A type's bits as those of a word of the same size.
fn bits<T: Element, W: Element>(value: T) -> W {
    let mut word = W::zeroed();
    for (to, from) in bytemuck::bytes_of_mut(&mut word)
        .iter_mut()
        .zip(bytemuck::bytes_of(&value))
    {
        *to = *from;
    }
    word
}

pub(crate) unsafe fn fetch<T: Element>(call: &'static str, source: *const T, pe: i32) -> T {
    on_bits!(call, source.cast_mut(), pe, |world, word, pe| world
        .fetch(word, pe))
}

pub(crate) unsafe fn swap<T: Element>(call: &'static str, dest: *mut T, value: T, pe: i32) -> T {
    on_bits!(call, dest, pe, |world, word, pe| world.swap(
        word,
        bits(value),
        pe
    ))
}

pub(crate) unsafe fn set<T: Element>(call: &'static str, dest: *mut T, value: T, pe: i32) {
    // SAFETY: the caller's promise.
    unsafe { swap(call, dest, value, pe) };
}

pub(crate) unsafe fn compare_swap<T: Element>(
    call: &'static str,
    dest: *mut T,
    cond: T,
    value: T,
    pe: i32,
) -> T {
    on_bits!(call, dest, pe, |world, word, pe| world.compare_swap(
        word,
        bits(cond),
        bits(value),
        pe
    ))
}

/// Atomics that give the old value, and those that do not.
macro_rules! fetching {
    ($($fetch:ident, $plain:ident;)*) => {$(
        pub(crate) unsafe fn $fetch<T: Element>(
            call: &'static str,
            dest: *mut T,
            value: T,
            pe: i32,
        ) -> T {
            on_bits!(call, dest, pe, |world, word, pe| world.$fetch(word, bits(value), pe))
        }

        pub(crate) unsafe fn $plain<T: Element>(
            call: &'static str,
            dest: *mut T,
            value: T,
            pe: i32,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $fetch(call, dest, value, pe) };
        }
    )*};
}
fetching! {
    fetch_add, add;
    fetch_and, and;
    fetch_or, or;
    fetch_xor, xor;
}

pub(crate) unsafe fn fetch_inc<T: Element>(call: &'static str, dest: *mut T, pe: i32) -> T {
    on_bits!(call, dest, pe, |world, word, pe| world.fetch_inc(word, pe))
}

pub(crate) unsafe fn inc<T: Element>(call: &'static str, dest: *mut T, pe: i32) {
    // SAFETY: the caller's promise.
    unsafe { fetch_inc(call, dest, pe) };
}

pub(crate) unsafe fn fetch_add_float<T: Element + Add<Output = T>>(
    call: &'static str,
    dest: *mut T,
    value: T,
    pe: i32,
) -> T {
    // SAFETY: the caller's promise.
    let mut old = unsafe { fetch(call, dest.cast_const(), pe) };
    loop {
        // SAFETY: the caller's promise.
        let found = unsafe { compare_swap(call, dest, old, old + value, pe) };
        if bytemuck::bytes_of(&found) == bytemuck::bytes_of(&old) {
            return old;
        }
        old = found;
    }
}

pub(crate) unsafe fn add_float<T: Element + Add<Output = T>>(
    call: &'static str,
    dest: *mut T,
    value: T,
    pe: i32,
) {
    // SAFETY: the caller's promise.
    unsafe { fetch_add_float(call, dest, value, pe) };
}
