//! Order, completion, locks, and reads of this PE's own signals.

use oxshmem::Sym;
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::Done;
use crate::job::{DEFAULT, Job};

/// Orders a context's operations.
#[pyfunction]
pub(crate) fn fence(py: Python<'_>, job: &Job, context: u64) -> PyResult<()> {
    job.run(py, |live| Ok(live.context(context)?.lock().fence()?))
}

/// Completes a context's operations, and gives up the buffers of nonblocking ones.
#[pyfunction]
pub(crate) fn quiet(py: Python<'_>, job: &Job, context: u64) -> PyResult<()> {
    job.run(py, |live| live.context(context)?.quiet())
}

/// Drives a context's operations.
#[pyfunction]
pub(crate) fn progress(py: Python<'_>, job: &Job, context: u64) -> PyResult<()> {
    job.run(py, |live| {
        live.context(context)?.lock().progress();
        Ok(())
    })
}

/// Whether a PE is there and can be reached.
#[pyfunction]
pub(crate) fn is_accessible(py: Python<'_>, job: &Job, pe: usize) -> PyResult<bool> {
    job.run(py, |live| {
        Ok(live.context(DEFAULT)?.lock().pe_accessible(pe))
    })
}

/// Reads this PE's own signal.
#[pyfunction]
pub(crate) fn signal_fetch(
    py: Python<'_>,
    job: &Job,
    context: u64,
    block: &Block,
    offset: usize,
) -> PyResult<u64> {
    job.run(py, |live| {
        let word = block.part("signal_fetch", offset, 8)?.cast()?;
        Ok(live.context(context)?.context.signal_fetch(word)?)
    })
}

fn lock_word(call: &'static str, block: &Block, offset: usize) -> Done<Sym<u64>> {
    Ok(block.part(call, offset, 8)?.cast()?)
}

/// Acquires a lock.
#[pyfunction]
pub(crate) fn set_lock(py: Python<'_>, job: &Job, block: &Block, offset: usize) -> PyResult<()> {
    job.run(py, |live| {
        let word = lock_word("set_lock", block, offset)?;
        live.with_context_of_own(|context| Ok(context.set_lock(word)?))
    })
}

/// Acquires a lock that is free.
#[pyfunction]
pub(crate) fn test_lock(py: Python<'_>, job: &Job, block: &Block, offset: usize) -> PyResult<bool> {
    job.run(py, |live| {
        let word = lock_word("test_lock", block, offset)?;
        live.with_context_of_own(|context| Ok(context.test_lock(word)?))
    })
}

/// Releases a lock. What was put before on the default context is complete.
#[pyfunction]
pub(crate) fn clear_lock(py: Python<'_>, job: &Job, block: &Block, offset: usize) -> PyResult<()> {
    job.run(py, |live| {
        let word = lock_word("clear_lock", block, offset)?;
        live.default_context().quiet()?;
        live.with_context_of_own(|context| Ok(context.clear_lock(word)?))
    })
}
