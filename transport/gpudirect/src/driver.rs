//! A GPU's driver, as far as transports with NICs need it.

use std::fmt::Debug;
use std::os::fd::OwnedFd;

use oxshmem_transport::{Memory, MemoryKind};

/// The properties of a GPU, as its driver reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProperties {
    /// Such as "GPU 0 (NVIDIA H200)".
    pub name: String,
    /// Its number among those of the process.
    pub ordinal: i32,
    /// Whether NICs can reach its memory at all.
    pub rdma: bool,
    /// Whether every GPU sees writes of NICs in order, without a flush.
    pub ordered: bool,
    /// Whether the driver can flush writes of NICs.
    pub flushes: bool,
}

/// The driver of a GPU. Errors are in words.
pub trait Gpu: Send + Sync + Debug {
    /// The properties of the GPU.
    fn properties(&self) -> GpuProperties;

    /// A small block of memory, allocated as heaps are, to try a registration with.
    fn trial_memory(&self) -> Result<Memory, String>;

    /// A dma-buf of a range, and the range's offset in it.
    fn export(&self, base: *const u8, len: usize) -> Result<(OwnedFd, u64), String>;

    /// Makes the driver's copies synchronous: NICs rely on the data being there when a copy returns.
    fn synchronize_copies(&self, base: *const u8);

    /// The kind of memory at an address.
    fn kind_of(&self, address: *const u8) -> MemoryKind;

    /// Makes earlier writes of NICs to its memory visible to every GPU.
    fn flush(&self) -> Result<(), String>;
}

/// Whether a PE may write to the GPU of another one, by whether the GPUs of the two need a flush; else the reason. The writer
/// is the one that asks for a flush, and it does so where its own GPU needs one.
pub fn may_write(own_needs_flush: bool, its_needs_flush: bool) -> Result<(), String> {
    match (own_needs_flush, its_needs_flush) {
        (false, true) => Err(
            "its GPU needs a flush after what NICs write and this PE's needs none, so that neither would ask for it: \
             use GPUs of one kind"
                .into(),
        ),
        _ => Ok(()),
    }
}
