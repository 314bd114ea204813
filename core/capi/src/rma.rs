//! Put and get.
//!
//! Of an object that is not easily found the bytes are copied: its address need not be aligned for elements, unless checks are
//! on.

use std::ffi::c_int;

use bytemuck::Pod;
use oxshmem::{Context, bindings};

use crate::call::{cold, fast_path, pe_index, with_context};
use crate::failure::{CResult, Failure, or_abort_job};
use crate::handles::Ctx;
use crate::library::Library;

#[inline(always)]
pub(crate) unsafe fn put<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    fast_path!(call, ctx, |library, context, to| {
        library.word_of(dest, nelems) =>
            // SAFETY: the caller gives so many elements.
            unsafe { bindings::try_put(context, to, source, pe_index(pe)) }.then_some(()),
        library.addresses.object(dest, nelems) => match to {
            // SAFETY: as above.
            Some(to) => unsafe { context.put_raw(to, source, pe_index(pe)) },
            None => cold(move || {
                or_abort_job(call, library.local_operand("source", source, nelems));
                let to = or_abort_job(call, library.bytes("dest", dest, nelems));
                // SAFETY: as above.
                unsafe { context.put_raw(to, source.cast(), pe_index(pe)) }
            }),
        },
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
    fast_path!(call, ctx, |library, context, from| {
        library.word_of(source, nelems) =>
            // SAFETY: the caller gives room for so many elements.
            unsafe { bindings::try_get(context, dest, from, pe_index(pe)) }.then_some(()),
        library.addresses.object(source, nelems) => match from {
            // SAFETY: as above.
            Some(from) => unsafe { context.get_raw(dest, from, pe_index(pe)) },
            None => cold(move || {
                or_abort_job(call, library.local_operand("dest", dest, nelems));
                let from = or_abort_job(call, library.bytes("source", source, nelems));
                // SAFETY: as above.
                unsafe { context.get_raw(dest.cast(), from, pe_index(pe)) }
            }),
        },
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
    with_context!(call, ctx, |library, context| {
        match library.addresses.object(dest, nelems) {
            // SAFETY: the caller leaves so many elements alone until a quiet. If one fails the job ends.
            Some(dest) => unsafe { context.put_nbi(dest, source, nelems, pe_index(pe)) },
            None => cold(move || {
                or_abort_job(call, library.local_operand("source", source, nelems));
                let dest = or_abort_job(call, library.bytes("dest", dest, nelems));
                // SAFETY: as above.
                unsafe { context.put_nbi(dest, source.cast(), dest.len(), pe_index(pe)) }
            }),
        }
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
    with_context!(call, ctx, |library, context| {
        match library.addresses.object(source, nelems) {
            // SAFETY: as of put_nbi.
            Some(source) => unsafe { context.get_nbi(dest, source, nelems, pe_index(pe)) },
            None => cold(move || {
                or_abort_job(call, library.local_operand("dest", dest, nelems));
                let source = or_abort_job(call, library.bytes("source", source, nelems));
                // SAFETY: as above.
                unsafe { context.get_nbi(dest.cast(), source, source.len(), pe_index(pe)) }
            }),
        }
    })
}

#[inline(always)]
pub(crate) unsafe fn p<T: Pod>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    fast_path!(call, ctx, |library, context, to| {
        library.addresses.object(dest, 1) => bindings::try_p(context, to, value, pe_index(pe)).then_some(()),
        library.addresses.object(dest, 1) => match to {
            Some(to) => context.p(to, value, pe_index(pe)),
            None => cold(move || {
                let to = or_abort_job(call, library.bytes("dest", dest, 1));
                // SAFETY: the value has as many bytes.
                unsafe { context.put_raw(to, (&raw const value).cast(), pe_index(pe)) }
            }),
        },
    })
}

#[inline(always)]
pub(crate) unsafe fn g<T: Pod>(call: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    fast_path!(call, ctx, |library, context, from| {
        library.addresses.object(source, 1) => bindings::try_g(context, from, pe_index(pe)),
        library.addresses.object(source, 1) => match from {
            Some(from) => context.g(from, pe_index(pe)),
            None => cold(move || {
                let from = or_abort_job(call, library.bytes("source", source, 1));
                let mut value = T::zeroed();
                // SAFETY: the value has as many bytes.
                unsafe { context.get_raw((&raw mut value).cast(), from, pe_index(pe)) }?;
                Ok(value)
            }),
        },
    })
}

/// A stride: at least 1.
pub(crate) fn stride(name: &'static str, stride: isize) -> CResult<usize> {
    match usize::try_from(stride) {
        Ok(stride) if stride > 0 => Ok(stride),
        _ => Err(Failure::argument(
            name,
            format!("a stride of {stride}; it is 1 element at least"),
        )),
    }
}

/// The layout of a strided put; none where it moves nothing, whatever its strides are.
fn put_layout(
    dst: isize,
    sst: isize,
    block_len: usize,
    count: usize,
) -> CResult<Option<bindings::Blocks>> {
    if block_len == 0 || count == 0 {
        return Ok(None);
    }
    let (dst, sst) = (stride("dst", dst)?, stride("sst", sst)?);
    Ok(Some(bindings::Blocks::of_put(dst, sst, block_len, count)))
}

/// The same of a strided get, whose source's stride is checked first.
fn get_layout(
    dst: isize,
    sst: isize,
    block_len: usize,
    count: usize,
) -> CResult<Option<bindings::Blocks>> {
    if block_len == 0 || count == 0 {
        return Ok(None);
    }
    let (sst, dst) = (stride("sst", sst)?, stride("dst", dst)?);
    Ok(Some(bindings::Blocks::of_get(dst, sst, block_len, count)))
}

/// The same blocks of bytes.
fn of_bytes<T>(blocks: bindings::Blocks) -> bindings::Blocks {
    // The strides of one block do not matter, and those of more have been found to lie in memory.
    let bytes = |elements: usize| elements.saturating_mul(size_of::<T>());
    bindings::Blocks {
        remote_stride: bytes(blocks.remote_stride),
        local_stride: bytes(blocks.local_stride),
        block_len: bytes(blocks.block_len),
        count: blocks.count,
    }
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
    let act = move |library: &'static Library, context: &Context<'static>| -> CResult {
        let Some(blocks) = put_layout(dst, sst, bsize, nblocks)? else {
            return Ok(());
        };
        let span = blocks.remote_span();
        let dest = match library.addresses.object(dest, span) {
            Some(dest) => dest,
            None if library.takes_bytes_at(dest) => {
                return cold(move || {
                    let dest = library.bytes("dest", dest, span)?;
                    let (source, blocks) = (source.cast(), of_bytes::<T>(blocks));
                    // SAFETY: the caller gives such elements.
                    Ok(unsafe {
                        bindings::put_blocks(context, "iput", dest, source, blocks, pe_index(pe))
                    }?)
                });
            }
            None => {
                library.local_operand("source", source, span)?;
                library.object_in_block("dest", dest, span)?
            }
        };
        // SAFETY: as above.
        Ok(unsafe { bindings::put_blocks(context, "iput", dest, source, blocks, pe_index(pe)) }?)
    };
    with_context!(call, ctx, |library, context| act(library, context))
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
    let act = move |library: &'static Library, context: &Context<'static>| -> CResult {
        let Some(blocks) = get_layout(dst, sst, bsize, nblocks)? else {
            return Ok(());
        };
        let span = blocks.remote_span();
        let source = match library.addresses.object(source, span) {
            Some(source) => source,
            None if library.takes_bytes_at(source) => {
                return cold(move || {
                    let source = library.bytes("source", source, span)?;
                    let (dest, blocks) = (dest.cast(), of_bytes::<T>(blocks));
                    // SAFETY: the caller gives room for such elements.
                    Ok(unsafe {
                        bindings::get_blocks(context, "iget", dest, source, blocks, pe_index(pe))
                    }?)
                });
            }
            None => {
                library.local_operand("dest", dest, span)?;
                library.object_in_block("source", source, span)?
            }
        };
        // SAFETY: as above.
        Ok(unsafe { bindings::get_blocks(context, "iget", dest, source, blocks, pe_index(pe)) }?)
    };
    with_context!(call, ctx, |library, context| act(library, context))
}
