//! The memory of litmus programs' words, and of the blocks that `oxshmem perf` moves.

use clap::ValueEnum;
use oxshmem::{Builder, MemoryKind};

use super::refused::Refused;

/// A kind of memory, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Memory {
    /// Host memory.
    Host,
    /// GPU memory, by CUDA.
    Cuda,
}

impl Memory {
    /// The name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Host => "host",
            Memory::Cuda => "cuda",
        }
    }
}

impl From<Memory> for MemoryKind {
    fn from(memory: Memory) -> Self {
        match memory {
            Memory::Host => MemoryKind::Host,
            Memory::Cuda => MemoryKind::Cuda,
        }
    }
}

/// Bytes of each thread's GPU heap: one granule.
#[cfg(feature = "cuda")]
const HEAP: usize = 2 << 20;

/// Gives each thread a heap on the first GPU, which they share.
#[cfg(feature = "cuda")]
pub fn with_gpu(builder: Builder) -> Result<Builder, Refused> {
    use oxshmem::cuda::{Context, Device};

    let context = Device::new(0).and_then(|device| Context::new(&device));
    let context = context.map_err(|error| Refused(format!("--memory cuda: {error}")))?;
    Ok(builder.gpu(context, HEAP))
}

/// The refusal if a job has no GPU memory.
#[cfg(feature = "cuda")]
pub const NONE: &str = "--memory cuda: this job's PEs have no GPU memory; set OXSHMEM_CUDA_SYMMETRIC_SIZE=2M, \
    and have a GPU";
/// The refusal if this build has no CUDA.
#[cfg(not(feature = "cuda"))]
pub const NONE: &str =
    "--memory cuda: this build is without GPU memory; build it with the feature cuda";

/// Always refuses: this build has no GPU memory.
#[cfg(not(feature = "cuda"))]
pub fn with_gpu(_: Builder) -> Result<Builder, Refused> {
    Err(none())
}

/// The refusal where there is no GPU memory.
pub fn none() -> Refused {
    Refused(NONE.into())
}
