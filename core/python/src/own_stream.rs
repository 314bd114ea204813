//! The library's own stream, on this PE's GPU.

use std::sync::OnceLock;

use oxshmem::cuda::{DevicePtr, Stream, StreamOptions};
use oxshmem::{Error, World, bindings};

use crate::errors::{Done, Failure};
use crate::job::Live;

/// An error where the job has no GPU heap.
pub(crate) fn no_gpu(call: &'static str, world: &World) -> Failure {
    let why = bindings::why_no_gpu_heap(world).map(|why| format!(" ({why})"));
    let why = why.unwrap_or_default();
    Failure::Core(Error::Gpu {
        call,
        why: format!(
            "this job has no GPU heap{why}; call oxshmem.init(gpu_heap_size=...), or set OXSHMEM_CUDA_SYMMETRIC_SIZE"
        ),
    })
}

/// The library's own stream, which the first call makes. Called within `with_world`.
pub(crate) fn own<'l>(
    call: &'static str,
    cell: &'l OnceLock<Stream>,
    world: &World,
) -> Done<&'l Stream> {
    if let Some(stream) = cell.get() {
        return Ok(stream);
    }
    let context = world.gpu_context().ok_or_else(|| no_gpu(call, world))?;
    let stream = Stream::new(context, &StreamOptions::default());
    let stream = stream.map_err(|error| Error::Gpu {
        call,
        why: error.to_string(),
    })?;
    Ok(cell.get_or_init(|| stream))
}

/// Writes zeros to new memory of this PE's GPU. Called within `with_world`.
pub(crate) fn zero(
    call: &'static str,
    live: &Live,
    world: &World,
    address: u64,
    bytes: usize,
) -> Done {
    if bytes == 0 {
        return Ok(());
    }
    let stream = own(call, &live.own_stream, world)?;
    // SAFETY: the block is new and this PE's own, and no PE uses it before the caller's barrier.
    let filled = unsafe { stream.fill(DevicePtr::from_raw(address), 0, bytes) };
    filled.map_err(|error| Error::Gpu {
        call,
        why: error.to_string(),
    })?;
    Ok(world.synchronize(stream)?)
}
