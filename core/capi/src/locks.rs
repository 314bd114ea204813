//! Locks: the library's fit a `long`.

use std::ffi::{c_int, c_long};

use oxshmem::{Sym, World};

use crate::failure::{Done, or_end};
use crate::library;

fn with<R>(
    call: &'static str,
    lock: *mut c_long,
    act: impl FnOnce(&World, Sym<u64>) -> oxshmem::Result<R>,
) -> R {
    or_end(
        call,
        || -> Done<R> {
            let library = library::get()?;
            let lock = library.object("lock", lock.cast_const().cast(), 1)?;
            Ok(act(&library.world, lock)?)
        }(),
    )
}

pub(crate) fn set(call: &'static str, lock: *mut c_long) {
    with(call, lock, World::set_lock)
}

pub(crate) fn clear(call: &'static str, lock: *mut c_long) {
    with(call, lock, World::clear_lock)
}

pub(crate) fn test(call: &'static str, lock: *mut c_long) -> c_int {
    (!with(call, lock, World::test_lock)).into()
}
