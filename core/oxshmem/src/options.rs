//! Options of a world that a program sets, not the environment; and the policy for NIC atomics that the PEs agree on.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::gpu::memory::GpuMemory;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_transport::Transport;

/// 64-bit words of host memory whose atomics the NIC of their PE performs, for all PEs alike (M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicAtomics {
    /// None: CPUs perform all.
    Never,
    /// Those of blocks that were allocated for remote atomics.
    IfHinted,
    /// All that programs allocate.
    Always,
}

/// Memory of the program's that begins the heap.
#[derive(Debug)]
pub(crate) struct ProgramMemory {
    /// The file that is mapped there, until the heap takes it.
    pub file: Mutex<Option<OwnedFd>>,
    /// The address where it is mapped.
    pub base: usize,
    /// Its length in bytes.
    pub len: usize,
}

impl ProgramMemory {
    pub(crate) fn take_file(&self) -> Option<OwnedFd> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take()
    }
}

/// Makes a PE's GPU memory, by its rank.
#[derive(Clone)]
pub(crate) struct MakeGpuMemory(pub Arc<Make>);

type Make = dyn Fn(usize) -> Result<Box<dyn GpuMemory>, String> + Send + Sync;

impl fmt::Debug for MakeGpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MakeGpuMemory").finish_non_exhaustive()
    }
}

/// Options that only a program can set, not the environment.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub bootstrap: Option<Arc<dyn Bootstrap>>,
    pub transports: Option<Vec<Arc<dyn Transport>>>,
    pub gpu_heap: Option<MakeGpuMemory>,
    #[cfg(feature = "cuda")]
    pub gpu: Option<(oxshmem_cuda::Context, usize)>,
    pub disabled_fence: Option<FenceSite>,
    pub program: Option<Arc<ProgramMemory>>,
    pub active_sets: bool,
    /// Whether the shared team has those alone whose GPU memory is mapped, too.
    pub shared_by_gpu: bool,
}
