//! The GPU heap: symmetric memory that this PE's CPU neither loads nor stores (M2, M4), and the flushes after
//! which its GPU sees the data that NICs place there (M27).

#[cfg(feature = "cuda")]
pub(crate) mod cuda;

use bytemuck::Pod;
use oxshmem_engine::gpu::staging_server::Slots;
use oxshmem_transport::MemoryKind;

use crate::context::Context;
use crate::error::Result;
use crate::place::placed;
use crate::sym::Sym;
use crate::world::World;

impl World {
    /// [`alloc`](Self::alloc) in memory of another kind (M2): on the GPU, from the heap that
    /// [`Builder::gpu_heap`](crate::Builder::gpu_heap) gave. Collective, with the same arguments on
    /// every PE.
    ///
    /// The host cannot load or store GPU memory (M4): puts, gets and atomics on it go by a
    /// transport's operations, also towards this PE itself, and so do collective calls; calls that would
    /// have to load it (waits, `realloc`) give [`Error::GpuMemory`](crate::Error::GpuMemory).
    #[doc(alias("nvshmem_malloc", "shmemx_cuda_malloc"))]
    #[track_caller]
    pub fn alloc_on<T: Pod>(&self, kind: MemoryKind, len: usize) -> Result<Sym<T>> {
        placed(|| self.allocate_on(kind, "alloc_on", len))
    }

    /// Allocates the slots by which other PEs reach this PE's GPU through host memory. Collective.
    pub(crate) fn open_stage(&self) -> Result<()> {
        let limit = self.heap_limit();
        let all = self.allocate_own("init", Slots::all(limit))?;
        self.worker.engine.stage.open(Slots {
            area: all.into(),
            bytes: Slots::size(limit),
        });
        Ok(())
    }
}

impl Context<'_> {
    /// Bytes of each PE's GPU heap; 0 if there is none.
    #[must_use]
    pub fn gpu_heap_limit(&self) -> usize {
        self.heap(MemoryKind::Cuda).limit()
    }

    /// The tag of handles that name GPU memory. Worlds' own tags are even.
    #[inline(always)]
    pub(crate) fn gpu_tag(&self) -> u32 {
        self.worker.tag | 1
    }
}
