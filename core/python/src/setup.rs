//! The start of a world and its ends.

use std::time::Duration;

use oxshmem::{Atomics, MemoryModel, World, bindings};
use pyo3::prelude::*;

use crate::errors::{Done, Failure};
use crate::exit;
use crate::job::{Job, is_forked};

/// The settings of a start: none where the environment says them.
#[derive(FromPyObject)]
pub(crate) struct Settings {
    #[pyo3(item)]
    heap_size: Option<usize>,
    #[pyo3(item)]
    gpu_heap_size: Option<usize>,
    #[pyo3(item)]
    check: Option<bool>,
    #[pyo3(item)]
    timeout: Option<f64>,
    #[pyo3(item)]
    atomics: Option<String>,
    #[pyo3(item)]
    model: Option<String>,
    #[pyo3(item)]
    trace: Option<String>,
    #[pyo3(item)]
    stats: Option<String>,
}

fn wrong(name: &str, value: &str, right: &str) -> Failure {
    Failure::Argument("init", format!("{name}={value:?}; give one of {right}"))
}

fn join(settings: Settings) -> Done<Job> {
    let mut builder = bindings::without_places(World::builder());
    if let Some(bytes) = settings.heap_size {
        builder = builder.heap_limit(bytes);
    }
    if let Some(check) = settings.check {
        builder = builder.check(check);
    }
    if let Some(seconds) = settings.timeout {
        let limit = Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::Argument("init", format!("timeout={seconds}; give seconds, above 0"))
        })?;
        builder = builder.timeout(limit);
    }
    if let Some(name) = settings.atomics {
        builder = builder.atomics(match name.as_str() {
            "auto" => Atomics::Auto,
            "cpu" => Atomics::Cpu,
            "nic" => Atomics::Nic,
            _ => return Err(wrong("atomics", &name, "auto, cpu and nic")),
        });
    }
    if let Some(name) = settings.model {
        builder = builder.model(match name.as_str() {
            "ordered" => MemoryModel::Ordered,
            "relaxed" => MemoryModel::Relaxed,
            _ => return Err(wrong("model", &name, "ordered and relaxed")),
        });
    }
    if let Some(file) = settings.trace {
        builder = builder.trace(file);
    }
    if let Some(file) = settings.stats {
        builder = builder.stats(file);
    }
    if let Some(bytes) = settings.gpu_heap_size.filter(|bytes| *bytes > 0) {
        // SAFETY: a context of the program's own stays until the world has ended (docs/python.md).
        let current = unsafe { bindings::current_context("init") }?;
        builder = match current {
            // The GPU that the program has chosen, by torch, CuPy or cuda-python.
            Some(context) => builder.gpu(context, bytes),
            None => builder.gpu_limit(bytes),
        };
    }
    Job::new(builder.join()?)
}

/// Joins the job that the environment describes.
#[pyfunction]
pub(crate) fn init(py: Python<'_>, settings: Settings) -> PyResult<Job> {
    let joined = py.detach(|| {
        if is_forked() {
            return Err(Failure::Forked);
        }
        join(settings)
    });
    let job = joined.map_err(|failure| failure.raise(py))?;
    exit::register();
    Ok(job)
}

/// Leaves the job. Collective.
#[pyfunction]
pub(crate) fn finalize(py: Python<'_>, job: &Job) -> PyResult<()> {
    let done = py.detach(|| match is_forked() {
        true => Err(Failure::Forked),
        false => job.state.finalize(),
    });
    done.map_err(|failure| failure.raise(py))
}

/// Leaves the job without the others.
#[pyfunction]
pub(crate) fn abandon(py: Python<'_>, job: &Job) -> PyResult<()> {
    let done = py.detach(|| match is_forked() {
        true => Err(Failure::Forked),
        false => job.state.abandon(),
    });
    done.map_err(|failure| failure.raise(py))
}

/// Ends the whole job.
#[pyfunction]
pub(crate) fn global_exit(py: Python<'_>, job: &Job, status: i32) -> PyResult<()> {
    job.run(py, |live| {
        live.world().global_exit(status);
        Ok(())
    })
}

/// The PEs lost so far, which are acknowledged.
#[pyfunction]
pub(crate) fn acknowledge_lost(py: Python<'_>, job: &Job) -> PyResult<Vec<usize>> {
    job.run(py, |live| {
        live.with_world(|world| Ok(world.acknowledge_lost()))
    })
}
