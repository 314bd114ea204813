//! The transfers themselves: a number of operations, then other work before they are completed.

use std::hint::black_box;

use oxshmem::{Result, SignalOp, Sym};

use crate::perf::fixture::Target;

/// The stride of a strided transfer's remote elements or blocks, as a multiple of their length.
pub const STRIDE: usize = 2;
/// Words of a block.
pub const BLOCK: usize = 8;

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

pub fn put(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    times.each(|| at.context.put(at.block, black_box(&*local), at.pe))
}

pub fn iput(local: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, words) = (at.block.cast()?, local.len());
    times.each(|| {
        let local = black_box(&*local);
        at.context.iput(block, local, STRIDE, 1, words, at.pe)
    })
}

pub fn put_nbi(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let local = &*local;
    at.context
        .scope(|scope| times.each(|| scope.put_nbi(at.block, black_box(local), at.pe)))
}

pub fn get(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    times.each(|| at.context.get(black_box(&mut *local), at.block, at.pe))
}

pub fn iget(local: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, words) = (at.block.cast()?, local.len());
    times.each(|| {
        let local = black_box(&mut *local);
        at.context.iget(local, block, 1, STRIDE, words, at.pe)
    })
}

pub fn get_nbi(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (into, len) = (local.as_mut_ptr(), local.len());
    at.context.scope(|_| {
        times.each(|| {
            // SAFETY: `local` belongs to this function, which touches it only through `into` until
            // the scope has completed the gets or closed their lane. All gets bring the same bytes.
            unsafe { at.context.get_nbi(black_box(into), at.block, len, at.pe) }
        })
    })
}

pub fn ibput(local: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, blocks, apart) = (at.block.cast()?, local.len() / BLOCK, BLOCK * STRIDE);
    times.each(|| {
        let local = black_box(&*local);
        at.context
            .ibput(block, local, apart, BLOCK, BLOCK, blocks, at.pe)
    })
}

pub fn ibget(local: &mut [u64], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, blocks, apart) = (at.block.cast()?, local.len() / BLOCK, BLOCK * STRIDE);
    times.each(|| {
        let local = black_box(&mut *local);
        at.context
            .ibget(local, block, BLOCK, apart, BLOCK, blocks, at.pe)
    })
}

/// The peer's block and this PE's source, cut to the length of `local`.
fn both(local: &[u8], at: &Target<'_, '_>) -> Result<(Sym<u8>, Sym<u8>)> {
    Ok((
        at.block.range(..local.len())?,
        at.source.range(..local.len())?,
    ))
}

pub fn put_from(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(local, at)?;
    times.each(|| at.context.put_from(block, black_box(source), at.pe))
}

pub fn get_into(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(local, at)?;
    times.each(|| at.context.get_into(black_box(source), block, at.pe))
}

pub fn put_from_nbi(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(local, at)?;
    at.context
        .scope(|scope| times.each(|| scope.put_from_nbi(block, black_box(source), at.pe)))
}

pub fn get_into_nbi(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let (block, source) = both(local, at)?;
    at.context
        .scope(|scope| times.each(|| scope.get_into_nbi(black_box(source), block, at.pe)))
}

pub fn put_signal_nbi(local: &mut [u8], at: &Target<'_, '_>, times: Times<'_>) -> Result<()> {
    let local = &*local;
    at.context.scope(|scope| {
        times.each(|| {
            let local = black_box(local);
            scope.put_signal_nbi(at.block, local, at.word, 1, SignalOp::Add, at.pe)
        })
    })
}
