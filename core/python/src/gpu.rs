//! This PE's GPU: copies by the host on the library's own stream, and the device library.

use oxshmem::cuda::{DevicePtr, Stream};
use oxshmem::{Error, World, bindings};
use pyo3::prelude::*;

use crate::block::Block;
use crate::errors::{Done, Failure};
use crate::job::{Job, Live};
use crate::own_stream::{no_gpu, own};

/// The number of this PE's GPU; none without a GPU heap.
#[pyfunction]
pub(crate) fn gpu_number(py: Python<'_>, job: &Job) -> PyResult<Option<usize>> {
    job.run(py, |live| Ok(bindings::gpu_number(live.world())))
}

/// The reason why the job has no GPU heap, if it would have had one.
#[pyfunction]
pub(crate) fn why_no_gpu(py: Python<'_>, job: &Job) -> PyResult<Option<String>> {
    job.run(py, |live| {
        Ok(bindings::why_no_gpu_heap(live.world()).map(str::to_owned))
    })
}

/// Opens the device library. Collective.
#[pyfunction]
pub(crate) fn open_device_library(py: Python<'_>, job: &Job, teams: usize) -> PyResult<()> {
    job.run(py, |live| {
        live.with_world(|world| {
            if world.gpu_context().is_none() {
                return Err(no_gpu("open_device_library", world));
            }
            let library = bindings::device_library(world)?;
            if teams > 0 {
                library.reserve_teams(teams)?;
            }
            Ok(())
        })
    })
}

/// The handle of the library's own stream.
#[pyfunction]
pub(crate) fn own_stream(py: Python<'_>, job: &Job) -> PyResult<usize> {
    job.run(py, |live| {
        live.with_world(|world| {
            let stream = own("own_stream", &live.own_stream, world)?;
            Ok(stream.as_raw().expose_provenance())
        })
    })
}

fn on_own(live: &Live, call: &'static str, act: impl FnOnce(&World, &Stream) -> Done) -> Done {
    live.with_world(|world| {
        let stream = own(call, &live.own_stream, world)?;
        act(world, stream)?;
        Ok(world.synchronize(stream)?)
    })
}

/// A put or a get whose local operand is any memory of this PE's GPU.
#[pyfunction]
pub(crate) fn gpu_put(
    py: Python<'_>,
    job: &Job,
    is_get: bool,
    block: &Block,
    offset: usize,
    address: usize,
    bytes: usize,
    pe: usize,
) -> PyResult<()> {
    let call = if is_get { "get" } else { "put" };
    job.run(py, |live| {
        let object = block.part(call, offset, bytes)?;
        let local = DevicePtr::from_raw(address as u64);
        on_own(live, call, |world, stream| {
            // SAFETY: the caller holds the local memory, which is the GPU's, during the call, and the stream is synchronized in it.
            Ok(unsafe {
                match is_get {
                    true => {
                        bindings::get_on_stream(world, call, local, object, (pe, false), stream)
                    }
                    false => {
                        bindings::put_on_stream(world, call, object, local, (pe, false), stream)
                    }
                }
            }?)
        })
    })
}

/// Copies between this PE's memory and that of its GPU, in any combination.
#[pyfunction]
pub(crate) fn copy_gpu(
    py: Python<'_>,
    job: &Job,
    destination: usize,
    source: usize,
    bytes: usize,
) -> PyResult<()> {
    const CALL: &str = "copy";
    job.run(py, |live| {
        on_own(live, CALL, |_, stream| {
            let [to, from] = [destination, source].map(|at| DevicePtr::from_raw(at as u64));
            // SAFETY: the caller holds both during the call, and the stream is synchronized in it.
            let copied = unsafe { stream.copy(to, from, bytes) };
            copied.map_err(|error| {
                Failure::Core(Error::Gpu {
                    call: CALL,
                    why: error.to_string(),
                })
            })
        })
    })
}
