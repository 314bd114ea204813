//! Modules that a program loads itself: by NVRTC, by Triton, by the driver.

use std::ffi::{CStr, c_void};

use oxshmem::bindings;
use oxshmem::cuda::{DevicePtr, raw_global};

use crate::failure::{Done, Failure, status};
use crate::pe::Pe;
use crate::state::with_pe;

/// The variable of a module whose kernels make calls.
const STATE: &CStr = c"oxshmem_state";

/// The ways to look a variable up.
#[derive(Clone, Copy)]
enum From {
    Module,
    Library,
}

/// Fills the state of a module or library.
fn init(call: &'static str, handle: *mut c_void, from: From) -> i32 {
    let fill = |own: &mut Pe| -> Done {
        let Some(context) = own.world.gpu_context() else {
            return Err(Failure::Start("this PE has no GPU".into()));
        };
        if handle.is_null() {
            return Err(Failure::argument("the module is null; load it first"));
        }
        // SAFETY: the caller gives a module or library that is loaded.
        let found = unsafe {
            match from {
                From::Module => raw_global::of_module(context, handle, STATE),
                From::Library => raw_global::of_library(context, handle, STATE),
            }
        };
        let (state, bytes): (DevicePtr, usize) = found.map_err(|error| {
            Failure::argument(format!(
                "the module has no variable oxshmem_state ({error}); compile its kernels with this library's nvshmem.h, or link its \
                 libnvshmem_device.bc: NVIDIA's bitcode cannot work with this library"
            ))
        })?;
        let library = own.library()?;
        // SAFETY: the variable is the module's own, of so many bytes; the program has launched none of its kernels yet (the call's rule).
        unsafe { bindings::prepare_module(&library, call, state, bytes) }?;
        Ok(())
    };
    status(call, with_pe(call, fill))
}

pub(crate) unsafe fn cumodule_init(call: &'static str, module: *mut c_void) -> i32 {
    init(call, module, From::Module)
}

pub(crate) unsafe fn culibrary_init(call: &'static str, library: *mut c_void) -> i32 {
    init(call, library, From::Library)
}

/// Nothing is kept of a module.
pub(crate) unsafe fn cumodule_finalize(_: &'static str, _: *mut c_void) -> i32 {
    crate::failure::code::SUCCESS
}

/// Nothing is kept of a library.
pub(crate) unsafe fn culibrary_finalize(_: &'static str, _: *mut c_void) -> i32 {
    crate::failure::code::SUCCESS
}
