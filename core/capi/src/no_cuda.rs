//! The calls for GPU memory in a build without the feature `cuda`: each says so.

use std::ffi::{c_int, c_void};

use oxshmem::Builder;

use crate::failure::{Failure, or_abort_job, report};
use crate::handles::Team;

fn failure() -> Failure {
    Failure::Gpu("this build of the library lacks the feature cuda".into())
}

/// Takes no notice of an image: `init` says why.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_register_image(_image: *const c_void) {}

/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn oxshmem_unregister_image(_image: *const c_void) {}

pub(crate) fn default_heap(builder: Builder) -> Builder {
    builder
}

pub(crate) fn init(call: &'static str) -> c_int {
    report(call, &failure());
    -1
}

pub(crate) fn device(_: &'static str) -> c_int {
    -1
}

pub(crate) fn malloc(call: &'static str, _size: usize) -> *mut c_void {
    or_abort_job(call, Err(failure()))
}

pub(crate) fn ptr(_: &'static str, _dest: *const c_void, _pe: c_int) -> *mut c_void {
    std::ptr::null_mut()
}

pub(crate) fn team(call: &'static str, _team: Team) -> c_int {
    init(call)
}

pub(crate) fn reserve_teams(call: &'static str, _teams: c_int) -> c_int {
    init(call)
}

pub(crate) fn check(call: &'static str) -> c_int {
    init(call)
}

pub(crate) fn resume(call: &'static str) -> c_int {
    init(call)
}
