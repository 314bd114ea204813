//! The CUDA driver as the driver of the PE's GPU.

use std::os::fd::OwnedFd;
use std::ptr::{NonNull, with_exposed_provenance_mut};
use std::sync::Arc;

use oxshmem_cuda::pointer::{self, Memory as MemoryType};
use oxshmem_cuda::{Context, DevicePtr, FlushScope, Segment, WritesOrdering, dma_buf};
use oxshmem_transport::{Memory, MemoryKind};

use crate::driver::{Gpu, GpuProperties};

/// The GPU of a context.
#[derive(Debug)]
pub struct Cuda(pub Context);

impl Gpu for Cuda {
    fn properties(&self) -> GpuProperties {
        let device = self.0.device();
        GpuProperties {
            name: format!("GPU {} ({})", device.ordinal(), device.name()),
            ordinal: i32::try_from(device.ordinal()).unwrap_or(i32::MAX),
            rdma: device.has_gpudirect_rdma(),
            ordered: device.writes_ordering() == WritesOrdering::AllDevices,
            flushes: device.flush_options().host,
        }
    }

    fn trial_memory(&self) -> Result<Memory, String> {
        let words = |error: oxshmem_cuda::Error| format!("no memory to try with: {error}");
        let mut segment = Segment::new(&self.0, 1).map_err(words)?;
        segment.grow_to(1).map_err(words)?;
        let base = with_exposed_provenance_mut(segment.base().as_raw() as usize);
        let base = NonNull::new(base).ok_or("the driver gave memory at no address")?;
        let len = segment.committed();
        // SAFETY: the segment keeps its memory where it is while it lives, as the owner of this; the CPU cannot touch it.
        Ok(unsafe { Memory::new(base, len, MemoryKind::Cuda, None, Arc::new(segment)) })
    }

    fn export(&self, base: *const u8, len: usize) -> Result<(OwnedFd, u64), String> {
        let exported = dma_buf::export(&self.0, DevicePtr::from_host(base), len);
        let exported = exported.map_err(|error| error.to_string())?;
        Ok((exported.fd, exported.offset as u64))
    }

    fn synchronize_copies(&self, base: *const u8) {
        // For some memory the driver has no such setting.
        if let Err(error) = pointer::set_sync_memops(&self.0, DevicePtr::from_host(base)) {
            tracing::debug!(%error, "copies are as synchronous as the driver makes them");
        }
    }

    fn kind_of(&self, address: *const u8) -> MemoryKind {
        match pointer::attributes(&self.0, DevicePtr::from_host(address)) {
            Ok(attributes) if attributes.memory == MemoryType::Device => MemoryKind::Cuda,
            _ => MemoryKind::Host,
        }
    }

    fn flush(&self) -> Result<(), String> {
        let flushed = self.0.flush_rdma_writes(FlushScope::AllDevices);
        flushed.map_err(|error| error.to_string())
    }
}
