//! The driver of a PE's GPU as transports with NICs use it (GPUDirect RDMA): its properties, the export of its memory, and
//! the flush after which the GPU sees the NICs' writes (M27).
//!
//! How a NIC registers GPU memory is each transport's own.

#[cfg(feature = "cuda")]
mod cuda;
mod driver;

#[cfg(feature = "cuda")]
pub use self::cuda::Cuda;
pub use self::driver::{Gpu, GpuProperties, may_write};
