//! Fence and quiet.

use std::ffi::c_int;

use crate::failure::{Done, or_end};
use crate::handles::Ctx;
use crate::library::{context, number};

#[inline]
pub(crate) fn fence(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        or_end(
            call,
            context(ctx).and_then(|(_, context)| Ok(context.fence()?)),
        );
    }
}

#[inline]
pub(crate) fn quiet(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        or_end(
            call,
            context(ctx).and_then(|(_, context)| Ok(context.quiet()?)),
        );
    }
}

pub(crate) unsafe fn pe_quiet(call: &'static str, ctx: Ctx, pes: *const c_int, npes: usize) {
    if ctx == Ctx::INVALID || npes == 0 {
        return;
    }
    or_end(
        call,
        || -> Done {
            let (_, context) = context(ctx)?;
            // SAFETY: the caller gives so many numbers.
            let pes: Vec<usize> = (0..npes)
                .map(|i| number(unsafe { pes.add(i).read() }))
                .collect();
            Ok(context.pe_quiet(&pes)?)
        }(),
    );
}
