//! Signals, and puts with signals.

use std::ffi::c_int;

use bytemuck::Pod;
use oxshmem::{Context, SignalOp};

use crate::call::{cold, pe_index, with_context};
use crate::failure::{CResult, Failure, or_abort_job};
use crate::handles::Ctx;
use crate::library::{self, Library};
use crate::waits::{self, Word};

const SET: c_int = 0;
const ADD: c_int = 1;

#[expect(
    clippy::too_many_arguments,
    reason = "OpenSHMEM's put_signal has these"
)]
unsafe fn put_with<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
    nonblocking: bool,
) {
    let act = move |library: &'static Library, context: &Context<'static>| -> CResult {
        let op = match sig_op {
            SET => SignalOp::Set,
            ADD => SignalOp::Add,
            _ => {
                let what = format!("{sig_op} is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
                return Err(Failure::argument("sig_op", what));
            }
        };
        let word = library.word("sig_addr", sig_addr)?;
        let Some(dest) = library.addresses.object(dest, nelems) else {
            return cold(move || {
                library.local_operand("source", source, nelems)?;
                let (dest, source) = (library.bytes("dest", dest, nelems)?, source.cast());
                let pe = pe_index(pe);
                // SAFETY: as below.
                Ok(unsafe {
                    context.put_signal_raw(dest, source, word, signal, op, pe, nonblocking)
                }?)
            });
        };
        // SAFETY: the caller gives so many elements, and leaves them alone until a quiet if the call is
        // nonblocking. If a quiet fails the job ends.
        Ok(unsafe {
            context.put_signal_raw(dest, source, word, signal, op, pe_index(pe), nonblocking)
        }?)
    };
    with_context!(call, ctx, |library, context| act(library, context))
}

macro_rules! put_signals {
    ($($name:ident: $nonblocking:literal;)*) => {$(
        pub(crate) unsafe fn $name<T: Pod>(
            call: &'static str,
            ctx: Ctx,
            dest: *mut T,
            source: *const T,
            nelems: usize,
            sig_addr: *mut u64,
            signal: u64,
            sig_op: c_int,
            pe: c_int,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                put_with(
                    call, ctx, dest, source, nelems, sig_addr, signal, sig_op, pe, $nonblocking,
                )
            }
        }
    )*};
}
put_signals! {
    put_signal: false;
    put_signal_nbi: true;
}

pub(crate) unsafe fn add(call: &'static str, ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
    with_context!(call, ctx, |library, context| {
        let word = library.word_or_abort(call, "sig_addr", sig_addr);
        context.signal_add(word, signal, pe_index(pe))
    })
}

pub(crate) unsafe fn set(call: &'static str, ctx: Ctx, sig_addr: *mut u64, signal: u64, pe: c_int) {
    with_context!(call, ctx, |library, context| {
        let word = library.word_or_abort(call, "sig_addr", sig_addr);
        context.signal_set(word, signal, pe_index(pe))
    })
}

pub(crate) unsafe fn fetch(call: &'static str, sig_addr: *const u64) -> u64 {
    or_abort_job(
        call,
        || -> CResult<u64> {
            let library = library::get()?;
            library.object_on_host("sig_addr", sig_addr, 1)?;
            // SAFETY: the word is an aligned one of symmetric memory.
            library.poll_once(|| unsafe { u64::load(sig_addr.cast_mut()) })
        }(),
    )
}

pub(crate) unsafe fn wait_until(
    call: &'static str,
    sig_addr: *mut u64,
    cmp: c_int,
    value: u64,
) -> u64 {
    // SAFETY: the caller's promise.
    or_abort_job(call, unsafe {
        waits::word(call, "sig_addr", sig_addr, cmp, value)
    })
}
