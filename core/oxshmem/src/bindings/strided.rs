//! Strided transfers of raw memory.

use bytemuck::Pod;

use crate::context::Context;
use crate::error::Result;
use crate::strided::Blocks;
use crate::sym::Sym;

/// [`Context::ibput`], named `call` in errors.
///
/// # Safety
///
/// `source` is readable where blocks of it lie.
pub unsafe fn put_blocks<T: Pod>(
    context: &Context<'_>,
    call: &'static str,
    dst: Sym<T>,
    source: *const T,
    blocks: Blocks,
    pe: usize,
) -> Result<()> {
    // SAFETY: the caller promises readable blocks.
    unsafe { context.put_blocks_raw(call, dst, source, blocks, pe) }
}

/// [`Context::ibget`], named `call` in errors.
///
/// # Safety
///
/// `destination` is writable where blocks of it lie.
pub unsafe fn get_blocks<T: Pod>(
    context: &Context<'_>,
    call: &'static str,
    destination: *mut T,
    src: Sym<T>,
    blocks: Blocks,
    pe: usize,
) -> Result<()> {
    // SAFETY: the caller promises writable blocks.
    unsafe { context.get_blocks_raw(call, destination, src, blocks, pe) }
}
