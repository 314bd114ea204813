//! Symmetric memory: all of it is the GPU's.

use std::ffi::c_void;
use std::ptr::null_mut;

use oxshmem::{Error, bindings};

use crate::failure::{Done, Failure, or_end_job, status};
use crate::pe::Pe;
use crate::state::with_pe;

/// The alignment of blocks for which the program names none, in bytes.
const ALIGN: usize = 512;

/// A new block; null where there is none for it.
fn allocate(
    call: &'static str,
    bytes: usize,
    align: usize,
    prepare: impl FnOnce(&Pe, *mut c_void) -> Done,
) -> *mut c_void {
    let make = |own: &mut Pe| {
        own.check_current(call)?;
        own.quiet()?;
        let block = match bindings::alloc_on_gpu(&own.world, call, bytes, align) {
            Ok(block) if block.is_empty() => return Ok(null_mut()),
            Ok(block) => block,
            // Every PE gets these errors, and the program null (M13).
            Err(error @ (Error::OutOfMemory { .. } | Error::Argument { .. })) => {
                crate::failure::report(call, &error.into());
                return Ok(null_mut());
            }
            Err(error) => return Err(error.into()),
        };
        let address = own.address_at(block, own.world.my_pe());
        let address = address.unwrap_or(null_mut());
        prepare(own, address)?;
        Ok(address)
    };
    or_end_job(call, with_pe(call, make))
}

pub(crate) unsafe fn malloc(call: &'static str, size: usize) -> *mut c_void {
    allocate(call, size, ALIGN, |_, _| Ok(()))
}

pub(crate) unsafe fn align(call: &'static str, alignment: usize, size: usize) -> *mut c_void {
    allocate(call, size, alignment, |_, _| Ok(()))
}

pub(crate) unsafe fn calloc(call: &'static str, count: usize, size: usize) -> *mut c_void {
    // More than any heap has, where the product overflows.
    let bytes = count.saturating_mul(size);
    allocate(call, bytes, ALIGN, |own, address| {
        let dest = crate::pe::gpu_pointer(address.cast_const());
        // SAFETY: the block is this PE's and new, and no PE uses it before the barrier.
        unsafe { own.stream.fill(dest, 0, bytes) }?;
        own.barrier_all()
    })
}

pub(crate) unsafe fn free(call: &'static str, ptr: *mut c_void) {
    // Nothing is nothing, for each PE by itself (M11).
    if ptr.is_null() {
        return;
    }
    let give_back = |own: &mut Pe| {
        own.quiet()?;
        let block = bindings::block_at(&own.world, "ptr", ptr.cast())?;
        Ok(own.world.free(block)?)
    };
    or_end_job(call, with_pe(call, give_back));
}

pub(crate) unsafe fn ptr(call: &'static str, ptr: *const c_void, pe: i32) -> *mut c_void {
    let find = |own: &mut Pe| {
        let place = own.pe(pe).ok().and_then(|pe| {
            let byte = own.bytes("dest", ptr.cast::<u8>(), 1).ok()?;
            own.address_at(byte, pe)
        });
        Ok(place.unwrap_or(null_mut()))
    };
    or_end_job(call, with_pe(call, find))
}

/// No multicast addresses are there: null is NVSHMEM's answer for that.
pub(crate) unsafe fn mc_ptr(_: &'static str, _: i32, _: *const c_void) -> *mut c_void {
    null_mut()
}

/// A private buffer needs no registration here: its copies find their way by its address.
pub(crate) unsafe fn buffer_register(call: &'static str, addr: *mut c_void, length: usize) -> i32 {
    let check = match addr.is_null() || length == 0 {
        true => Err(Failure::argument(
            "argument addr: give the address of a buffer and its length in bytes",
        )),
        false => Ok(()),
    };
    status(call, check)
}

pub(crate) unsafe fn buffer_unregister(_: &'static str, _: *mut c_void) -> i32 {
    crate::failure::code::SUCCESS
}

pub(crate) unsafe fn buffer_unregister_all(_: &'static str) {}

/// The refusal of symmetric memory that the program brings.
fn not_ours() -> Failure {
    Failure::NotSupported(
        "memory of the program's own cannot become symmetric; allocate it by nvshmem_malloc, and copy into it".into(),
    )
}

pub(crate) unsafe fn buffer_register_symmetric(
    call: &'static str,
    _: *mut c_void,
    _: usize,
    _: i32,
) -> *mut c_void {
    crate::failure::report(call, &not_ours());
    null_mut()
}

pub(crate) unsafe fn buffer_register_symmetric_at_preferred_address(
    call: &'static str,
    _: *mut c_void,
    _: usize,
    _: *mut c_void,
    _: i32,
) -> *mut c_void {
    crate::failure::report(call, &not_ours());
    null_mut()
}

pub(crate) unsafe fn buffer_unregister_symmetric(
    call: &'static str,
    _: *mut c_void,
    _: usize,
) -> i32 {
    status(call, Err(not_ours()))
}
