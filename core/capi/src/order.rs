//! Fence and quiet.

use std::ffi::c_int;

use oxshmem::bindings;

use crate::call::{outlined, pe_index, unlocked, with_context};
use crate::handles::Ctx;

#[inline(always)]
pub(crate) fn fence(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        with_context!(call, ctx, |_library, context| context.fence());
    }
}

#[inline(always)]
pub(crate) fn quiet(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        if unlocked(ctx).is_some_and(|(_, context)| bindings::try_quiet(context)) {
            return;
        }
        outlined(move || with_context!(call, ctx, |_library, context| context.quiet()));
    }
}

pub(crate) unsafe fn pe_quiet(call: &'static str, ctx: Ctx, pes: *const c_int, npes: usize) {
    if ctx == Ctx::INVALID || npes == 0 {
        return;
    }
    // SAFETY: the caller gives so many numbers.
    let pes: Vec<usize> = (0..npes)
        .map(|i| pe_index(unsafe { pes.add(i).read() }))
        .collect();
    with_context!(call, ctx, |_library, context| context.pe_quiet(&pes));
}
