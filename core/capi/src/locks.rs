//! Locks: the library's locks fit a `long`.
//!
//! A lock belongs to a PE. Where several threads make calls at once, those of one PE take turns before they ask for it.

use std::ffi::{c_int, c_long};

use oxshmem::{Context, Sym};

use crate::failure::{CResult, or_abort_job};
use crate::library::{self, Library};

fn with<R>(
    call: &'static str,
    lock: *mut c_long,
    act: impl FnOnce(&'static Library, Sym<u64>) -> CResult<R>,
) -> R {
    or_abort_job(
        call,
        || -> CResult<R> {
            let library = library::get()?;
            let lock = library.word("lock", lock.cast_const().cast())?;
            act(library, lock)
        }(),
    )
}

pub(crate) fn set(call: &'static str, lock: *mut c_long) {
    with(call, lock, |library, word| {
        if let Some(threads) = library.threads() {
            threads.acquire_turn(call, lock.addr())?;
        }
        Ok(library.with_own_context(|context| context.set_lock(word))??)
    });
}

pub(crate) fn clear(call: &'static str, lock: *mut c_long) {
    with(call, lock, |library, word| {
        library.quiet_default()?;
        library.with_own_context(|context| context.clear_lock(word))??;
        if let Some(threads) = library.threads() {
            threads.release_turn(lock.addr());
        }
        Ok(())
    });
}

pub(crate) fn test(call: &'static str, lock: *mut c_long) -> c_int {
    with(call, lock, |library, word| {
        let test = |context: &Context<'static>| context.test_lock(word);
        let Some(threads) = library.threads() else {
            return Ok((!library.with_own_context(test)??).into());
        };
        if !threads.try_acquire_turn(lock.addr()) {
            return Ok(1);
        }
        let taken = library.with_own_context(test)??;
        if !taken {
            threads.release_turn(lock.addr());
        }
        Ok((!taken).into())
    })
}
