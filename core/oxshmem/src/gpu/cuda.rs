//! A GPU heap of CUDA memory, and the choice of a PE's GPU.

pub(crate) mod access;
pub(crate) mod copy_engine;
pub(crate) mod device;
pub(crate) mod inbox;

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::gpu::cuda::access::CudaAccess;
use crate::gpu::cuda::device::Gpu;
use oxshmem_cuda::{Context, Device, Names, Segment, SegmentKind, devices, pointer};
use oxshmem_engine::gpu::memory::{GpuAccess, GpuMemory};
use oxshmem_transport::{Memory, MemoryKind};

/// A segment's memory, committed as the heap grows. A peer that mapped memory keeps it after it
/// was taken back, but nothing uses it.
#[derive(Debug)]
pub(crate) struct CudaHeap {
    gpu: Gpu,
    segment: Arc<Mutex<Segment>>,
    base: NonNull<u8>,
    limit: usize,
}

// SAFETY: the address names GPU memory, which the segment keeps; no method here touches it.
unsafe impl Send for CudaHeap {}

impl CudaHeap {
    /// At most `limit` bytes on a GPU, rounded up to its granule.
    pub(crate) fn new(gpu: &Gpu, limit: usize) -> Result<CudaHeap, String> {
        let segment = Segment::new(&gpu.context, limit).map_err(|error| error.to_string())?;
        let base = std::ptr::with_exposed_provenance_mut(segment.base().as_raw() as usize);
        Ok(CudaHeap {
            gpu: gpu.clone(),
            base: NonNull::new(base).ok_or("the driver reserved no addresses")?,
            limit: segment.limit(),
            segment: Arc::new(Mutex::new(segment)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Segment> {
        self.segment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: an extent of a segment is as long as it was asked to be, or refused, and lies where the one before has ended; the
// segment keeps it.
unsafe impl GpuMemory for CudaHeap {
    fn limit(&self) -> usize {
        self.limit
    }

    fn commit(&mut self, start: usize, len: usize) -> Result<Memory, String> {
        let mut segment = self.lock();
        let new = segment.grow_to(start + len).map_err(|e| e.to_string())?;
        // A synchronous copy of the program's (cudaMemcpy) is done when it returns: peers, NICs and the library's streams may read the
        // memory then. A driver that cannot promise that of mapped memory says so; the program's streams have to order it there.
        let _ = pointer::set_sync_memops(segment.context(), segment.base().add(start));
        // A legacy segment is one extent, which is shown piece by piece, each named as the whole.
        let (extent, offset) = match segment.kind() {
            SegmentKind::Vmm => {
                let extent = segment.extents().get(new.start);
                (extent, extent.map_or(start, |extent| extent.offset))
            }
            SegmentKind::Legacy => (segment.extents().first(), start),
        };
        let Some(extent) = extent else {
            return Err(format!("{} bytes are committed already", start + len));
        };
        let len = match segment.kind() {
            SegmentKind::Vmm => extent.len,
            SegmentKind::Legacy => len.min(extent.len.saturating_sub(start)),
        };
        let descriptor = extent.handles.fd.as_ref().map(OwnedFd::try_clone);
        let (passed, names) = (descriptor.transpose(), Names::of(&extent.handles));
        let descriptor = match (passed, &names.refused) {
            // Peers that reach the earlier extents by the GPU would not reach this one.
            (Ok(None), Some(why)) if is_passed_on(&segment) => Err(why.clone()),
            (Ok(descriptor), _) => Ok(descriptor.map(Arc::new)),
            (Err(error), _) => Err(error.to_string()),
        };
        let descriptor = descriptor.inspect_err(|_| segment.truncate(new.start))?;
        drop(segment);
        let base = self.base.as_ptr().wrapping_add(offset);
        let base = NonNull::new(base).ok_or("an extent at no address")?;
        let owner = Arc::clone(&self.segment) as _;
        // SAFETY: the segment keeps the extent at its address while the heap names it, and the CPU
        // cannot touch it at all.
        let memory = unsafe { Memory::new(base, len, MemoryKind::Cuda, descriptor, owner) };
        Ok(memory.named(names.to_bytes()).part_of(offset, self.limit))
    }

    fn uncommit(&mut self, start: usize) {
        let mut segment = self.lock();
        let keep = segment
            .extents()
            .partition_point(|extent| extent.offset < start);
        segment.truncate(keep);
    }

    fn access(&mut self) -> Result<Option<Arc<dyn GpuAccess>>, String> {
        Ok(Some(Arc::new(CudaAccess::new(&self.segment, &self.gpu))))
    }
}

/// Whether other processes can be given the heap's first extent. Where they cannot, it is reached through
/// host memory, and so are all later ones.
fn is_passed_on(segment: &Segment) -> bool {
    let first = segment.extents().first();
    first.is_some_and(|first| first.handles.refused.is_none())
}

/// The GPU of a PE that is the `place`-th of its host, unless `wanted` names one by its number.
pub(crate) fn context_for(place: usize, wanted: Option<usize>) -> Result<Context, String> {
    let words = |error: oxshmem_cuda::Error| error.to_string();
    let all = devices().map_err(words)?;
    let ordinal = wanted.unwrap_or(place % all.len().max(1));
    let device = Device::new(ordinal).map_err(words)?;
    Context::new(&device).map_err(words)
}
