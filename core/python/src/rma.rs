//! Put, get and signals. Local memory is given by its address; its owner is held by the caller, or until a quiet.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use oxshmem::{SignalOp, bindings};
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::{Done, Failure};
use crate::job::Job;

/// Copies local memory to a PE's copy.
#[pyfunction]
pub(crate) fn put(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    source: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| {
        let dst = block.part("put", offset, bytes)?;
        let entry = live.context(context)?;
        // SAFETY: the caller holds the source during the call.
        Ok(unsafe {
            entry
                .lock()
                .put_raw(dst, with_exposed_provenance(source), pe)
        }?)
    })
}

/// Copies a PE's copy to local memory.
#[pyfunction]
pub(crate) fn get(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    destination: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| {
        let src = block.part("get", offset, bytes)?;
        let entry = live.context(context)?;
        // SAFETY: the caller holds the destination, which is writable, during the call.
        Ok(unsafe {
            entry
                .lock()
                .get_raw(with_exposed_provenance_mut(destination), src, pe)
        }?)
    })
}

/// Puts an integer of 1, 2, 4 or 8 bytes, by its bits.
#[pyfunction]
pub(crate) fn p(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    width: usize,
    value: u64,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| {
        let dst = block.part("p", offset, width)?;
        let entry = live.context(context)?;
        let context = entry.lock();
        Ok(match width {
            1 => context.p(dst, value as u8, pe),
            2 => context.p(dst.cast()?, value as u16, pe),
            4 => context.p(dst.cast()?, value as u32, pe),
            8 => context.p(dst.cast()?, value, pe),
            _ => return Err(wrong_width("p", width)),
        }?)
    })
}

/// Gets an integer of 1, 2, 4 or 8 bytes, by its bits.
#[pyfunction]
pub(crate) fn g(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    width: usize,
    pe: usize,
) -> PyResult<u64> {
    job.run(py, |live| {
        let src = block.part("g", offset, width)?;
        let entry = live.context(context)?;
        let context = entry.lock();
        Ok(match width {
            1 => context.g(src, pe)?.into(),
            2 => context.g(src.cast::<u16>()?, pe)?.into(),
            4 => context.g(src.cast::<u32>()?, pe)?.into(),
            8 => context.g(src.cast::<u64>()?, pe)?,
            _ => return Err(wrong_width("g", width)),
        })
    })
}

fn wrong_width(call: &'static str, width: usize) -> Failure {
    Failure::Argument(call, format!("elements of {width} bytes; use put and get"))
}

/// [`put`], complete at the context's next quiet.
#[pyfunction]
pub(crate) fn put_nbi(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    source: usize,
    bytes: usize,
    pe: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    job.run(py, |live| {
        let dst = block.part("put_nbi", offset, bytes)?;
        let entry = live.context(context)?;
        entry.issue(owner, |context| {
            // SAFETY: the entry holds the source's owner until a quiet has completed the call.
            unsafe { context.put_nbi(dst, with_exposed_provenance(source), bytes, pe) }
        })
    })
}

/// [`get`], complete at the context's next quiet.
#[pyfunction]
pub(crate) fn get_nbi(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    destination: usize,
    bytes: usize,
    pe: usize,
    owner: Py<PyAny>,
) -> PyResult<()> {
    job.run(py, |live| {
        let src = block.part("get_nbi", offset, bytes)?;
        let entry = live.context(context)?;
        entry.issue(owner, |context| {
            let destination = with_exposed_provenance_mut(destination);
            // SAFETY: the entry holds the destination's owner until a quiet has completed the call.
            unsafe { context.get_nbi(destination, src, bytes, pe) }
        })
    })
}

/// Copies a part of a block of this PE to a PE's copy of another one.
#[pyfunction]
pub(crate) fn put_from(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    source: &Block,
    source_offset: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| {
        let dst = block.part("put", offset, bytes)?;
        let src = source.part("put", source_offset, bytes)?;
        let entry = live.context(context)?;
        Ok(entry.lock().put_from(dst, src, pe)?)
    })
}

/// Copies a PE's copy of a part of a block to another one of this PE.
#[pyfunction]
pub(crate) fn get_into(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    destination: &Block,
    destination_offset: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| {
        let src = block.part("get", offset, bytes)?;
        let dst = destination.part("get", destination_offset, bytes)?;
        let entry = live.context(context)?;
        Ok(entry.lock().get_into(dst, src, pe)?)
    })
}

/// A layout of blocks, all in bytes: the strides of both sides, a block's bytes, and the number of blocks.
type Layout = (usize, usize, usize, usize);

/// Puts blocks at strides.
#[pyfunction]
pub(crate) fn put_blocks(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    source: usize,
    layout: Layout,
    pe: usize,
) -> PyResult<()> {
    let (dst_stride, src_stride, len, count) = layout;
    job.run(py, |live| {
        let blocks = bindings::Blocks::of_put(dst_stride, src_stride, len, count);
        let dst = block.part("iput", offset, blocks.remote_span())?;
        let entry = live.context(context)?;
        let source = with_exposed_provenance::<u8>(source);
        // SAFETY: the caller holds the source during the call, and has checked its extent.
        Ok(unsafe { bindings::put_blocks(&entry.lock(), "iput", dst, source, blocks, pe) }?)
    })
}

/// Gets blocks at strides.
#[pyfunction]
pub(crate) fn get_blocks(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    destination: usize,
    layout: Layout,
    pe: usize,
) -> PyResult<()> {
    let (dst_stride, src_stride, len, count) = layout;
    job.run(py, |live| {
        let blocks = bindings::Blocks::of_get(dst_stride, src_stride, len, count);
        let src = block.part("iget", offset, blocks.remote_span())?;
        let entry = live.context(context)?;
        let destination = with_exposed_provenance_mut::<u8>(destination);
        // SAFETY: the caller holds the destination during the call, and has checked its extent.
        Ok(unsafe { bindings::get_blocks(&entry.lock(), "iget", destination, src, blocks, pe) }?)
    })
}

/// The operation of a signal.
pub(crate) fn signal_op(is_add: bool) -> SignalOp {
    match is_add {
        true => SignalOp::Add,
        false => SignalOp::Set,
    }
}

/// A put, and the update of a signal behind it. With an owner it is complete at the next quiet.
#[pyfunction]
pub(crate) fn put_signal(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    source: usize,
    bytes: usize,
    signal: (PyRef<'_, Block>, usize, u64, bool),
    pe: usize,
    owner: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (word, at, value, is_add) = &signal;
    let (word, at, value, is_add) = (&**word, *at, *value, *is_add);
    job.run(py, |live| {
        const CALL: &str = "put_signal";
        let dst = block.part(CALL, offset, bytes)?;
        let word = word.part(CALL, at, 8)?.cast::<u64>()?;
        let entry = live.context(context)?;
        let source = with_exposed_provenance::<u8>(source);
        let op = signal_op(is_add);
        let put = |context: &oxshmem::Context<'static>, nonblocking| {
            // SAFETY: the source's owner is held by the caller during the call, or by the entry until a quiet has completed it.
            unsafe { context.put_signal_raw(dst, source, word, value, op, pe, nonblocking) }
        };
        match owner {
            Some(owner) => entry.issue(owner, |context| put(context, true)),
            None => Ok(put(&entry.lock(), false)?),
        }
    })
}

/// The update of a PE's signal.
#[pyfunction]
pub(crate) fn signal(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
    value: u64,
    is_add: bool,
    pe: usize,
) -> PyResult<()> {
    job.run(py, |live| -> Done {
        let word = block.part("signal", offset, 8)?.cast::<u64>()?;
        let entry = live.context(context)?;
        let context = entry.lock();
        Ok(match is_add {
            true => context.signal_add(word, value, pe),
            false => context.signal_set(word, value, pe),
        }?)
    })
}
