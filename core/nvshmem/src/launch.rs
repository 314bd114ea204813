//! Collective launches for callers that look these names up: the headers have them inline, by the program's own CUDA runtime, which alone
//! knows its kernels.

use std::ffi::c_void;

use crate::failure::{Failure, status};
use crate::types::{Dim3, LaunchAttr, StreamHandle};

fn only_inline(call: &'static str) -> i32 {
    status(
        call,
        Err(Failure::NotSupported(
            "a kernel is known to the CUDA runtime of the program alone; compile the call with nvshmemx.h, which has it inline".into(),
        )),
    )
}

pub(crate) unsafe fn collective_launch(
    call: &'static str,
    _: *const c_void,
    _: Dim3,
    _: Dim3,
    _: *mut *mut c_void,
    _: usize,
    _: StreamHandle,
) -> i32 {
    only_inline(call)
}

pub(crate) unsafe fn collective_launch_query_gridsize(
    call: &'static str,
    _: *const c_void,
    _: Dim3,
    _: *mut *mut c_void,
    _: usize,
    _: *mut i32,
) -> i32 {
    only_inline(call)
}

pub(crate) unsafe fn collective_launch_attr(
    call: &'static str,
    _: *const LaunchAttr,
    _: *const c_void,
    _: *mut *mut c_void,
) -> i32 {
    only_inline(call)
}
