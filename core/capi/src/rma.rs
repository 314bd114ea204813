//! Put and get.

use std::ffi::c_int;

use bytemuck::Pod;
use oxshmem::{Blocks, Context};

use crate::failure::{Done, Failure};
use crate::handles::Ctx;
use crate::library::{Library, number, on, straight};

#[inline(always)]
pub(crate) unsafe fn put<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    straight!(call, ctx, |library, context, dest| {
        library.word_of(dest, nelems) =>
            // SAFETY: the caller gives so many elements.
            unsafe { context.put_raw_here(dest, source, number(pe)) }.then_some(()),
        library.object_or_end(call, "dest", dest, nelems) =>
            // SAFETY: as above.
            unsafe { context.put_raw(dest, source, number(pe)) },
    })
}

#[inline(always)]
pub(crate) unsafe fn get<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    straight!(call, ctx, |library, context, source| {
        library.word_of(source, nelems) =>
            // SAFETY: the caller gives room for so many elements.
            unsafe { context.get_raw_here(dest, source, number(pe)) }.then_some(()),
        library.object_or_end(call, "source", source, nelems) =>
            // SAFETY: as above.
            unsafe { context.get_raw(dest, source, number(pe)) },
    })
}

pub(crate) unsafe fn put_nbi<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    on!(call, ctx, |library, context| {
        let dest = library.object_or_end(call, "dest", dest, nelems);
        // SAFETY: the caller leaves so many elements alone until a quiet. If one fails the job ends.
        unsafe { context.put_nbi(dest, source, nelems, number(pe)) }
    })
}

pub(crate) unsafe fn get_nbi<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    on!(call, ctx, |library, context| {
        let source = library.object_or_end(call, "source", source, nelems);
        // SAFETY: as of put_nbi.
        unsafe { context.get_nbi(dest, source, nelems, number(pe)) }
    })
}

#[inline(always)]
pub(crate) unsafe fn p<T: Pod>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    straight!(call, ctx, |library, context, dest| {
        library.addresses.object(dest, 1) => context.p_here(dest, value, number(pe)).then_some(()),
        library.object_or_end(call, "dest", dest, 1) => context.p(dest, value, number(pe)),
    })
}

#[inline(always)]
pub(crate) unsafe fn g<T: Pod>(call: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    straight!(call, ctx, |library, context, source| {
        library.addresses.object(source, 1) => context.g_here(source, number(pe)),
        library.object_or_end(call, "source", source, 1) => context.g(source, number(pe)),
    })
}

/// A stride, which is at least 1.
pub(crate) fn stride(name: &'static str, stride: isize) -> Done<usize> {
    match usize::try_from(stride) {
        Ok(stride) if stride > 0 => Ok(stride),
        _ => Err(Failure::argument(
            name,
            format!("a stride of {stride}; it is 1 element at least"),
        )),
    }
}

/// The blocks of a strided call; none where it moves nothing, whatever its strides are.
fn blocks(
    far: (&'static str, isize),
    near: (&'static str, isize),
    (block, count): (usize, usize),
) -> Done<Option<Blocks>> {
    if block == 0 || count == 0 {
        return Ok(None);
    }
    Ok(Some(Blocks {
        far: stride(far.0, far.1)?,
        near: stride(near.0, near.1)?,
        block,
        count,
    }))
}

pub(crate) unsafe fn iput<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { ibput(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

pub(crate) unsafe fn iget<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { ibget(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

pub(crate) unsafe fn ibput<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let act = move |library: &'static Library, context: &Context<'static>| -> Done {
        let Some(blocks) = blocks(("dst", dst), ("sst", sst), (bsize, nblocks))? else {
            return Ok(());
        };
        let dest = library.object("dest", dest, blocks.far_span())?;
        // SAFETY: the caller gives such elements.
        Ok(unsafe { context.put_blocks_raw("iput", dest, source, blocks, number(pe)) }?)
    };
    on!(call, ctx, |library, context| act(library, context))
}

pub(crate) unsafe fn ibget<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let act = move |library: &'static Library, context: &Context<'static>| -> Done {
        let Some(blocks) = blocks(("sst", sst), ("dst", dst), (bsize, nblocks))? else {
            return Ok(());
        };
        let source = library.object("source", source, blocks.far_span())?;
        // SAFETY: the caller gives room for such elements.
        Ok(unsafe { context.get_blocks_raw("iget", dest, source, blocks, number(pe)) }?)
    };
    on!(call, ctx, |library, context| act(library, context))
}
