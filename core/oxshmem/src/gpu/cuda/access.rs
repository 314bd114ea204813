//! The access of a process to its GPU heap's memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_cuda::{DevicePtr, Segment};
use oxshmem_engine::gpu::memory::GpuAccess;
use oxshmem_transport::AtomicRequest;

use crate::gpu::cuda::copy_engine::Engine;
use crate::gpu::cuda::device::Gpu;

/// The access of a process to its GPU heap's memory.
#[derive(Debug)]
pub(crate) struct CudaAccess {
    /// Locked after the engine. While it is locked, committed memory stays.
    segment: Arc<Mutex<Segment>>,
    gpu: Gpu,
}

/// The addresses of bytes of the heap.
struct Committed<'a> {
    start: DevicePtr,
    _kept: MutexGuard<'a, Segment>,
}

impl CudaAccess {
    pub(super) fn new(segment: &Arc<Mutex<Segment>>, gpu: &Gpu) -> CudaAccess {
        CudaAccess {
            segment: Arc::clone(segment),
            gpu: gpu.clone(),
        }
    }

    fn committed(&self, offset: u64, len: usize) -> Result<Committed<'_>, String> {
        let segment = self.segment.lock();
        let segment = segment.unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(len));
        match (start, end) {
            (Some(start), Some(end)) if end <= segment.committed() => Ok(Committed {
                start: segment.base().add(start),
                _kept: segment,
            }),
            _ => Err(format!(
                "{len} bytes from {offset} on leave the {} of its GPU heap",
                segment.committed()
            )),
        }
    }

    /// Runs work on memory of the heap, one call at a time.
    fn run<R>(
        &self,
        offset: u64,
        len: usize,
        work: impl FnOnce(&mut Engine, DevicePtr) -> Result<R, String>,
    ) -> Result<R, String> {
        let mut engine = self.gpu.engine();
        let committed = self.committed(offset, len)?;
        work(&mut engine, committed.start)
    }
}

impl GpuAccess for CudaAccess {
    unsafe fn write(&self, offset: u64, source: *const u8, len: usize) -> Result<(), String> {
        self.run(offset, len, |engine, gpu| {
            // SAFETY: the source is the caller's promise; the heap's bytes stay committed while they are
            // locked.
            unsafe { engine.write(gpu, source, len) }
        })
    }

    unsafe fn read(&self, offset: u64, destination: *mut u8, len: usize) -> Result<(), String> {
        self.run(offset, len, |engine, gpu| {
            // SAFETY: the destination is the caller's promise; the heap's bytes are as in `write`.
            unsafe { engine.read(destination, gpu, len) }
        })
    }

    fn atomic(&self, offset: u64, request: AtomicRequest) -> Result<u64, String> {
        let width = request.width;
        if !offset.is_multiple_of(width.bytes() as u64) {
            return Err(format!("no word of {width} bits is at byte {offset}"));
        }
        if let Some(mut inbox) = self.gpu.inbox() {
            let word = self.committed(offset, width.bytes())?.start;
            return inbox.perform(word, request);
        }
        self.run(offset, width.bytes(), |engine, word| {
            // SAFETY: the word is aligned, and its bytes are as in `write`.
            unsafe { engine.atomic(word, request) }
        })
    }
}

#[cfg(test)]
mod tests;
