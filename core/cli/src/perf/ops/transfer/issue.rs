//! The transfers themselves: a number of operations, then other work before they are completed.

use std::hint::black_box;

use oxshmem::{Result, SignalOp, Sym};

use super::{BLOCK, STRIDE};
use crate::perf::ground::Target;

/// Issues transfers to or from private memory, or symmetric memory of the same length.
pub type Issue<T> = fn(&mut [T], &Target<'_, '_>, Times<'_>) -> Result<()>;

/// A number of operations, then other work.
pub struct Times<'t> {
    pub count: u64,
    pub then: &'t mut dyn FnMut(),
}

impl Times<'_> {
    #[inline(always)]
    fn each(self, mut one: impl FnMut() -> Result<()>) -> Result<()> {
        for _ in 0..self.count {
            one()?;
        }
        (self.then)();
        Ok(())
    }
}

pub fn put(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    times.each(|| at.context.put(at.block, black_box(&*near), at.pe))
}

pub fn iput(near: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, words) = (at.block.cast()?, near.len());
    times.each(|| {
        let near = black_box(&*near);
        at.context.iput(block, near, STRIDE, 1, words, at.pe)
    })
}

pub fn put_nbi(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let near = &*near;
    at.context
        .scope(|scope| times.each(|| scope.put_nbi(at.block, black_box(near), at.pe)))
}

pub fn get(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    times.each(|| at.context.get(black_box(&mut *near), at.block, at.pe))
}

pub fn iget(near: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, words) = (at.block.cast()?, near.len());
    times.each(|| {
        let near = black_box(&mut *near);
        at.context.iget(near, block, 1, STRIDE, words, at.pe)
    })
}

pub fn get_nbi(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (into, len) = (near.as_mut_ptr(), near.len());
    at.context.scope(|_| {
        times.each(|| {
            // SAFETY: `local` belongs to this function, which touches it only through `into` until
            // the scope has completed the gets or closed their lane. All gets bring the same bytes.
            unsafe { at.context.get_nbi(black_box(into), at.block, len, at.pe) }
        })
    })
}

pub fn ibput(near: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, blocks, apart) = (at.block.cast()?, near.len() / BLOCK, BLOCK * STRIDE);
    times.each(|| {
        let near = black_box(&*near);
        at.context
            .ibput(block, near, apart, BLOCK, BLOCK, blocks, at.pe)
    })
}

pub fn ibget(near: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, blocks, apart) = (at.block.cast()?, near.len() / BLOCK, BLOCK * STRIDE);
    times.each(|| {
        let near = black_box(&mut *near);
        at.context
            .ibget(near, block, BLOCK, apart, BLOCK, blocks, at.pe)
    })
}

/// The peer's block and this PE's source, cut to the length of `local`.
fn both(near: &[u8], at: &Target<'_, '_>) -> Result<(Sym<u8>, Sym<u8>)> {
    Ok((
        at.block.range(..near.len())?,
        at.source.range(..near.len())?,
    ))
}

pub fn put_from(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(near, at)?;
    times.each(|| at.context.put_from(block, black_box(source), at.pe))
}

pub fn get_into(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(near, at)?;
    times.each(|| at.context.get_into(black_box(source), block, at.pe))
}

pub fn put_from_nbi(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(near, at)?;
    at.context
        .scope(|scope| times.each(|| scope.put_from_nbi(block, black_box(source), at.pe)))
}

pub fn get_into_nbi(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(near, at)?;
    at.context
        .scope(|scope| times.each(|| scope.get_into_nbi(black_box(source), block, at.pe)))
}

pub fn put_signal_nbi(near: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let near = &*near;
    at.context.scope(|scope| {
        times.each(|| {
            let near = black_box(near);
            scope.put_signal_nbi(at.block, near, at.word, 1, SignalOp::Add, at.pe)
        })
    })
}
