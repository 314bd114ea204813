//! Locks: the library's fit a `long`.
//!
//! A lock belongs to a PE. Where several threads make calls at once, those of one PE take turns before.

use std::ffi::{c_int, c_long};

use oxshmem::{Context, Sym};

use crate::failure::{Done, or_end};
use crate::library::{self, Library};

fn with<R>(
    call: &'static str,
    lock: *mut c_long,
    act: impl FnOnce(&'static Library, Sym<u64>) -> Done<R>,
) -> R {
    or_end(
        call,
        || -> Done<R> {
            let library = library::get()?;
            let lock = library.word("lock", lock.cast_const().cast())?;
            act(library, lock)
        }(),
    )
}

pub(crate) fn set(call: &'static str, lock: *mut c_long) {
    with(call, lock, |library, word| {
        if let Some(threads) = library.threads() {
            threads.queue(library, call, lock.addr())?;
        }
        Ok(library.apart(|context| context.set_lock(word))??)
    });
}

pub(crate) fn clear(call: &'static str, lock: *mut c_long) {
    with(call, lock, |library, word| {
        library.complete()?;
        library.apart(|context| context.clear_lock(word))??;
        if let Some(threads) = library.threads() {
            threads.next(lock.addr());
        }
        Ok(())
    });
}

pub(crate) fn test(call: &'static str, lock: *mut c_long) -> c_int {
    with(call, lock, |library, word| {
        let test = |context: &Context<'static>| context.test_lock(word);
        let Some(threads) = library.threads() else {
            return Ok((!library.apart(test)??).into());
        };
        if !threads.queue_alone(lock.addr()) {
            return Ok(1);
        }
        let taken = library.apart(test)??;
        if !taken {
            threads.next(lock.addr());
        }
        Ok((!taken).into())
    })
}
