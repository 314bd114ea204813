//! The symmetric heap.

use std::ffi::{c_long, c_void};
use std::ptr::null_mut;

use oxshmem::{Error, Hints, Result, Sym, World, bindings};

use crate::failure::{CResult, or_abort_job};
use crate::library;
use crate::objects;

const ATOMICS_REMOTE: c_long = 1;
const SIGNAL_REMOTE: c_long = 2;

/// The address of a new block: null where nothing was allocated.
pub(crate) fn address(
    call: &'static str,
    allocate: impl FnOnce(&World) -> CResult<Result<Sym<u8>>>,
) -> *mut c_void {
    let done = together(|world| match allocate(world)? {
        Ok(block) if block.is_empty() => Ok(null_mut()),
        Ok(block) => {
            let on_host = bindings::address_of(world, block).map(<*mut u8>::cast);
            let found = on_host.or_else(|| objects::gpu_address(world, block, world.my_pe()));
            Ok(found.unwrap_or(null_mut()))
        }
        // Every PE gets these errors, and the program null (M13).
        Err(Error::OutOfMemory { .. } | Error::Argument { .. }) => Ok(null_mut()),
        Err(error) => Err(error.into()),
    });
    or_abort_job(call, done)
}

/// Makes a call of all PEs, whose barriers complete what was issued on the default context.
fn together<R>(act: impl FnOnce(&World) -> CResult<R>) -> CResult<R> {
    let library = library::get()?;
    library.quiet_default()?;
    library.with_world(act)
}

pub(crate) fn malloc(call: &'static str, size: usize) -> *mut c_void {
    address(call, |world| Ok(world.alloc(size)))
}

pub(crate) fn malloc_with_hints(call: &'static str, size: usize, hints: c_long) -> *mut c_void {
    let mut wanted = Hints::NONE;
    if hints & ATOMICS_REMOTE != 0 {
        wanted = wanted | Hints::ATOMICS_REMOTE;
    }
    if hints & SIGNAL_REMOTE != 0 {
        wanted = wanted | Hints::SIGNAL_REMOTE;
    }
    address(call, |world| Ok(world.alloc_with_hints(size, wanted)))
}

pub(crate) fn calloc(call: &'static str, count: usize, size: usize) -> *mut c_void {
    // More than any heap has, where the product overflows.
    let bytes = count.saturating_mul(size);
    address(call, |world| Ok(world.alloc_zeroed(bytes)))
}

pub(crate) fn align(call: &'static str, alignment: usize, size: usize) -> *mut c_void {
    address(call, |world| Ok(world.alloc_aligned(size, alignment)))
}

/// The block at an address; null is no block.
fn block(world: &World, address: *mut c_void) -> CResult<Sym<u8>> {
    let block = if address.is_null() {
        bindings::object_at(world, "ptr", std::ptr::null(), 0)
    } else {
        bindings::block_at(world, "ptr", address.cast())
    };
    Ok(block?)
}

pub(crate) fn free(call: &'static str, ptr: *mut c_void) {
    or_abort_job(call, together(|world| Ok(world.free(block(world, ptr)?)?)));
}

pub(crate) fn realloc(call: &'static str, ptr: *mut c_void, size: usize) -> *mut c_void {
    address(call, |world| Ok(world.realloc(block(world, ptr)?, size)))
}
