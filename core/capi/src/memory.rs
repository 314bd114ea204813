//! The symmetric heap.

use std::ffi::{c_long, c_void};
use std::ptr::null_mut;

use oxshmem::{Error, Hints, Result, Sym};

use crate::failure::{Done, or_end};
use crate::library::{self, Library};

const ATOMICS_REMOTE: c_long = 1;
const SIGNAL_REMOTE: c_long = 2;

/// The address of what was allocated: null where nothing was.
fn address(
    call: &'static str,
    allocate: impl FnOnce(&Library) -> Done<Result<Sym<u8>>>,
) -> *mut c_void {
    let done = library::get().and_then(|library| match allocate(library)? {
        Ok(block) if block.is_empty() => Ok(null_mut()),
        Ok(block) => Ok(library
            .world
            .address_of(block)
            .map_or(null_mut(), <*mut u8>::cast)),
        // Of these every PE hears, and the program by null (M13).
        Err(Error::OutOfMemory { .. } | Error::Argument { .. }) => Ok(null_mut()),
        Err(error) => Err(error.into()),
    });
    or_end(call, done)
}

pub(crate) fn malloc(call: &'static str, size: usize) -> *mut c_void {
    address(call, |library| Ok(library.world.alloc(size)))
}

pub(crate) fn malloc_with_hints(call: &'static str, size: usize, hints: c_long) -> *mut c_void {
    let mut wanted = Hints::NONE;
    if hints & ATOMICS_REMOTE != 0 {
        wanted = wanted | Hints::ATOMICS_REMOTE;
    }
    if hints & SIGNAL_REMOTE != 0 {
        wanted = wanted | Hints::SIGNAL_REMOTE;
    }
    address(call, |library| {
        Ok(library.world.alloc_with_hints(size, wanted))
    })
}

pub(crate) fn calloc(call: &'static str, count: usize, size: usize) -> *mut c_void {
    // More than any heap has, where the product overflows.
    let bytes = count.saturating_mul(size);
    address(call, |library| Ok(library.world.alloc_zeroed(bytes)))
}

pub(crate) fn align(call: &'static str, alignment: usize, size: usize) -> *mut c_void {
    address(call, |library| {
        Ok(library.world.alloc_aligned(size, alignment))
    })
}

/// The block that the program means; null is none.
fn block(library: &Library, address: *mut c_void) -> Done<Sym<u8>> {
    match address.is_null() {
        true => library.block_of("ptr", std::ptr::null(), 0),
        false => Ok(library.world.block_at("ptr", address.cast())?),
    }
}

pub(crate) fn free(call: &'static str, ptr: *mut c_void) {
    let done = library::get().and_then(|library| Ok(library.world.free(block(library, ptr)?)?));
    or_end(call, done);
}

pub(crate) fn realloc(call: &'static str, ptr: *mut c_void, size: usize) -> *mut c_void {
    address(call, |library| {
        Ok(library.world.realloc(block(library, ptr)?, size))
    })
}
