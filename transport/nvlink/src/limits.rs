//! The transport's name, and the sizes that it fixes for all GPUs.

/// The transport's name, as users write it in `OXSHMEM_TRANSPORT`.
pub const NAME: &str = "nvlink";

/// Bytes of host memory that one operation takes without registration.
pub const UNREGISTERED: usize = 64 << 10;

/// Operations in flight towards one PE at most. Those whose local buffer is unregistered host memory are also
/// limited by the bounce pool.
pub(crate) const DEPTH: u32 = 256;
