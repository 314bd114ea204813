//! The GPU's driver, as the transport uses it.

use std::fmt::Debug;

use oxshmem_transport::{Memory, MemoryKind};

/// The properties of a GPU, as its driver reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GpuProperties {
    /// Such as "GPU 0 (NVIDIA H200)".
    pub name: String,
    /// Its number, by which libfabric names it.
    pub ordinal: i32,
    /// Whether NICs can reach its memory at all.
    pub rdma: bool,
    /// Whether every GPU sees writes of NICs in order, without a flush.
    pub ordered: bool,
    /// Whether the driver can flush writes of NICs.
    pub flushes: bool,
}

/// The driver of a GPU, as far as this transport needs it. Errors are in words.
pub(crate) trait Gpu: Send + Sync + Debug {
    fn properties(&self) -> GpuProperties;

    /// A small block of memory, allocated as heaps are, to try a registration with.
    fn trial_memory(&self) -> Result<Memory, String>;

    /// Makes the driver's copies synchronous: NICs rely on the data being there when a copy returns.
    fn synchronize_copies(&self, base: *const u8);

    /// The kind of memory at an address.
    fn kind_of(&self, address: *const u8) -> MemoryKind;

    /// Makes earlier writes of NICs to its memory visible to every GPU.
    fn flush(&self) -> Result<(), String>;
}
