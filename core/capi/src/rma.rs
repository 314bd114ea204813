//! Put and get.
//!
//! Of an object that is not easily found the bytes are copied: its place need not be aligned for elements, unless checks are on.

use std::ffi::c_int;

use bytemuck::Pod;
use oxshmem::{Blocks, Context};

use crate::failure::{Done, Failure, or_end};
use crate::handles::Ctx;
use crate::library::{Library, given, number, on, seldom, straight};

#[inline(always)]
pub(crate) unsafe fn put<T: Pod>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    straight!(call, ctx, |library, context, to| {
        library.word_of(dest, nelems) =>
            // SAFETY: the caller gives so many elements.
            unsafe { context.put_raw_here(to, source, number(pe)) }.then_some(()),
        library.addresses.object(dest, nelems) => match to {
            // SAFETY: as above.
            Some(to) => unsafe { context.put_raw(to, source, number(pe)) },
            None => seldom(move || {
                or_end(call, given("source", source, nelems));
                let to = or_end(call, library.bytes("dest", dest, nelems));
                // SAFETY: as above.
                unsafe { context.put_raw(to, source.cast(), number(pe)) }
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
    straight!(call, ctx, |library, context, from| {
        library.word_of(source, nelems) =>
            // SAFETY: the caller gives room for so many elements.
            unsafe { context.get_raw_here(dest, from, number(pe)) }.then_some(()),
        library.addresses.object(source, nelems) => match from {
            // SAFETY: as above.
            Some(from) => unsafe { context.get_raw(dest, from, number(pe)) },
            None => seldom(move || {
                or_end(call, given("dest", dest, nelems));
                let from = or_end(call, library.bytes("source", source, nelems));
                // SAFETY: as above.
                unsafe { context.get_raw(dest.cast(), from, number(pe)) }
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
    on!(call, ctx, |library, context| {
        match library.addresses.object(dest, nelems) {
            // SAFETY: the caller leaves so many elements alone until a quiet. If one fails the job ends.
            Some(dest) => unsafe { context.put_nbi(dest, source, nelems, number(pe)) },
            None => seldom(move || {
                or_end(call, given("source", source, nelems));
                let dest = or_end(call, library.bytes("dest", dest, nelems));
                // SAFETY: as above.
                unsafe { context.put_nbi(dest, source.cast(), dest.len(), number(pe)) }
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
    on!(call, ctx, |library, context| {
        match library.addresses.object(source, nelems) {
            // SAFETY: as of put_nbi.
            Some(source) => unsafe { context.get_nbi(dest, source, nelems, number(pe)) },
            None => seldom(move || {
                or_end(call, given("dest", dest, nelems));
                let source = or_end(call, library.bytes("source", source, nelems));
                // SAFETY: as above.
                unsafe { context.get_nbi(dest.cast(), source, source.len(), number(pe)) }
            }),
        }
    })
}

#[inline(always)]
pub(crate) unsafe fn p<T: Pod>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    straight!(call, ctx, |library, context, to| {
        library.addresses.object(dest, 1) => context.p_here(to, value, number(pe)).then_some(()),
        library.addresses.object(dest, 1) => match to {
            Some(to) => context.p(to, value, number(pe)),
            None => seldom(move || {
                let to = or_end(call, library.bytes("dest", dest, 1));
                // SAFETY: the value has as many bytes.
                unsafe { context.put_raw(to, (&raw const value).cast(), number(pe)) }
            }),
        },
    })
}

#[inline(always)]
pub(crate) unsafe fn g<T: Pod>(call: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    straight!(call, ctx, |library, context, from| {
        library.addresses.object(source, 1) => context.g_here(from, number(pe)),
        library.addresses.object(source, 1) => match from {
            Some(from) => context.g(from, number(pe)),
            None => seldom(move || {
                let from = or_end(call, library.bytes("source", source, 1));
                let mut value = T::zeroed();
                // SAFETY: the value has as many bytes.
                unsafe { context.get_raw((&raw mut value).cast(), from, number(pe)) }?;
                Ok(value)
            }),
        },
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

/// The same blocks of bytes.
fn of_bytes<T>(blocks: Blocks) -> Blocks {
    // Of one block the strides do not matter, and those of more have been found to lie in memory.
    let bytes = |elements: usize| elements.saturating_mul(size_of::<T>());
    Blocks {
        far: bytes(blocks.far),
        near: bytes(blocks.near),
        block: bytes(blocks.block),
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
    let act = move |library: &'static Library, context: &Context<'static>| -> Done {
        let Some(blocks) = blocks(("dst", dst), ("sst", sst), (bsize, nblocks))? else {
            return Ok(());
        };
        let span = blocks.far_span();
        let dest =
            match library.addresses.object(dest, span) {
                Some(dest) => dest,
                None if library.takes_bytes_at(dest) => {
                    return seldom(move || {
                        let dest = library.bytes("dest", dest, span)?;
                        let (source, blocks) = (source.cast(), of_bytes::<T>(blocks));
                        // SAFETY: the caller gives such elements.
                        Ok(unsafe {
                            context.put_blocks_raw("iput", dest, source, blocks, number(pe))
                        }?)
                    });
                }
                None => {
                    given("source", source, span)?;
                    library.block_of("dest", dest, span)?
                }
            };
        // SAFETY: as above.
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
        let span = blocks.far_span();
        let source =
            match library.addresses.object(source, span) {
                Some(source) => source,
                None if library.takes_bytes_at(source) => {
                    return seldom(move || {
                        let source = library.bytes("source", source, span)?;
                        let (dest, blocks) = (dest.cast(), of_bytes::<T>(blocks));
                        // SAFETY: the caller gives room for such elements.
                        Ok(unsafe {
                            context.get_blocks_raw("iget", dest, source, blocks, number(pe))
                        }?)
                    });
                }
                None => {
                    given("dest", dest, span)?;
                    library.block_of("source", source, span)?
                }
            };
        // SAFETY: as above.
        Ok(unsafe { context.get_blocks_raw("iget", dest, source, blocks, number(pe)) }?)
    };
    on!(call, ctx, |library, context| act(library, context))
}
