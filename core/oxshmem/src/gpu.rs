//! The GPU heap: symmetric memory that this PE's CPU neither loads nor stores (M2, M4), and when its
//! GPU sees what NICs place there (M27).

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod memory;
pub(crate) mod staging_server;

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use oxshmem_transport::{Domain, GpuFlush, MemoryKind};

pub use self::memory::{GpuAccess, GpuMemory};
use self::staging_server::Slots;
pub(crate) use self::staging_server::StageRequest;
use crate::control::ControlRequest;
use crate::order::FenceSite;
use crate::place::placed;
use crate::shared::Shared;
use crate::{Context, Result, Sym, World};

/// Where this PE's GPU's view of its memory is brought up to date.
#[derive(Clone, Default)]
pub(crate) struct GpuFlushes {
    /// The domains whose transports need it.
    domains: Arc<[Arc<dyn Domain>]>,
}

impl fmt::Debug for GpuFlushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuFlushes")
            .field("domains", &self.domains.len())
            .finish_non_exhaustive()
    }
}

impl GpuFlushes {
    /// For the domains among `all` that need it.
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a Arc<dyn Domain>>) -> Self {
        let needs = |domain: &&Arc<dyn Domain>| {
            let guarantees = domain.guarantees(MemoryKind::Cuda);
            guarantees.is_some_and(|g| g.gpu_flush == GpuFlush::Target)
        };
        GpuFlushes {
            domains: all.filter(needs).cloned().collect(),
        }
    }

    /// Whether any does.
    #[cfg(feature = "cuda")]
    pub(crate) fn are_needed(&self) -> bool {
        !self.domains.is_empty()
    }

    fn flush(&self) -> Result<(), oxshmem_transport::Error> {
        self.domains
            .iter()
            .try_for_each(|domain| domain.make_visible(MemoryKind::Cuda))
    }

    /// What to answer to a PE that asks for a flush.
    pub(crate) fn asked(&self) -> Result<Vec<u8>, String> {
        let flushed = self.flush().map_err(|error| error.to_string());
        flushed.map(|()| Vec::new())
    }
}

impl World {
    /// [`alloc`](Self::alloc) in memory of another kind (M2): on the GPU, from the heap that
    /// [`Builder::gpu_heap`](crate::Builder::gpu_heap) gave. Collective, with the same arguments on
    /// every PE.
    ///
    /// The host cannot load or store GPU memory (M4): puts, gets and atomics on it go by a
    /// transport's operations, also towards this PE itself, and so do collective calls; calls that would
    /// have to look at it (waits, `realloc`) give [`Error::GpuMemory`](crate::Error::GpuMemory).
    #[doc(alias = "nvshmem_malloc")]
    #[track_caller]
    pub fn alloc_on<T: Pod>(&self, kind: MemoryKind, len: usize) -> Result<Sym<T>> {
        placed(|| self.allocate_on(kind, "alloc_on", len))
    }

    /// Makes what other PEs reach this PE's GPU by through host memory. Collective.
    pub(crate) fn open_stage(&self) -> Result<()> {
        let limit = self.heap_limit();
        let all = self.allocate_own("init", Slots::all(limit))?;
        self.shared.stage.open(Slots {
            start: all.offset(),
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
        self.tag | 1
    }

    #[inline(always)]
    pub(crate) fn make_gpu_data_visible(&self) -> Result<()> {
        self.shared.make_gpu_data_visible()
    }

    /// Has what this PE has put into its own GPU memory be there, for its GPU and for others.
    pub(crate) fn make_own_gpu_visible(&self, call: &'static str) -> Result<()> {
        self.quiet_slow(call, Some(&[self.shared.me]), true)?;
        self.make_gpu_data_visible()
    }

    /// Has a PE bring its GPU's view up to date, and waits until it has (M27). It needs make no call
    /// for it: the bootstrap's service answers, so that nothing simulated takes part in this wait.
    pub(crate) fn request_gpu_flush(&self, call: &'static str, pe: usize) -> Result<()> {
        let flushes = &self.shared.gpu_flushes;
        if pe == self.shared.me {
            return Ok(flushes.flush()?);
        }
        let asked = self.call(call, pe, ControlRequest::FlushGpu, "its GPU's flush");
        asked.map(drop)
    }
}

impl Shared {
    /// Brings this PE's GPU's view up to date with what NICs have placed in its memory, where a
    /// transport needs that (M27). Run by waits, tests and barriers.
    #[inline(always)]
    pub(crate) fn make_gpu_data_visible(&self) -> Result<()> {
        let flushes = &self.gpu_flushes;
        if flushes.domains.is_empty() || !self.inserts(FenceSite::WaitGpu) {
            return Ok(());
        }
        Ok(flushes.flush()?)
    }
}
