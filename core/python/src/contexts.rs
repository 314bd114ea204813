//! Contexts.

use oxshmem::ContextOptions;
use pyo3::prelude::*;

use crate::job::Job;

/// Makes a context of a team. Gives its number.
#[pyfunction]
pub(crate) fn context_create(py: Python<'_>, job: &Job, team: u64, nostore: bool) -> PyResult<u64> {
    let options = match nostore {
        true => ContextOptions::NOSTORE,
        false => ContextOptions::NONE,
    };
    job.run(py, |live| live.add_context(team, options))
}

/// Completes a context and ends it.
#[pyfunction]
pub(crate) fn context_destroy(py: Python<'_>, job: &Job, context: u64) -> PyResult<()> {
    job.run(py, |live| live.remove_context(context))
}
