//! Fence and quiet.

use std::ffi::c_int;

use crate::handles::Ctx;
use crate::library::{apart, number, on, unlocked};

#[inline(always)]
pub(crate) fn fence(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        on!(call, ctx, |_library, context| context.fence());
    }
}

#[inline(always)]
pub(crate) fn quiet(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        if unlocked(ctx).is_some_and(|(_, context)| context.quiet_here()) {
            return;
        }
        apart(move || on!(call, ctx, |_library, context| context.quiet()));
    }
}

pub(crate) unsafe fn pe_quiet(call: &'static str, ctx: Ctx, pes: *const c_int, npes: usize) {
    if ctx == Ctx::INVALID || npes == 0 {
        return;
    }
    // SAFETY: the caller gives so many numbers.
    let pes: Vec<usize> = (0..npes)
        .map(|i| number(unsafe { pes.add(i).read() }))
        .collect();
    on!(call, ctx, |_library, context| context.pe_quiet(&pes));
}
