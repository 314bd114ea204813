//! The nvlink transport: GPU memory of PEs on one host, reached by copy engines and kernels over
//! NVLink or PCIe peer access, or within one GPU that several PEs share.
//!
//! Each PE's GPU maps the peers' extents: by a descriptor where one came, else by a fabric handle, else
//! by legacy CUDA IPC, which maps a whole heap (and of which PEs that are threads have no need). A peer's
//! memory stays mapped when the peer dies, but for legacy memory, which the driver takes away with its
//! process: what is under way towards it then may end this PE's context, too. A lane is
//! a stream of its own that never waits for others': puts and gets are copies on it, atomics and
//! signals are kernels of one thread.
//!
//! # Guarantees
//!
//! A stream performs what it is given in order, so that on one lane everything is ordered: put after
//! put, atomic after put, signal after its data. Two lanes are not ordered. What has completed is
//! placed in the target's memory, and visible to what its GPU begins afterwards. Atomics are performed
//! by this PE's GPU on the peer's memory, exclusive against those of all GPUs (between two GPUs the
//! link must carry atomics, which [`reach`](oxshmem_transport::Domain::reach) checks); the host has no
//! other access to GPU memory, so they are told as the owner's own level.
//!
//! # Local memory
//!
//! Memory of the PE's own GPU heap is used as it is, and so is what
//! [`register_local`](oxshmem_transport::Domain::register_local) takes: memory of the same GPU and context
//! (of another one where peer access to it was enabled), managed memory, and host memory that the program
//! has page-locked. Other host memory, up to [`UNREGISTERED`] bytes,
//! is copied through a page-locked pool: what is sent when it is posted, what is fetched when it is
//! counted. A lane's pool has 16 pieces of that size; a lane whose pieces are all lent is full.
//!
//! Without the feature `cuda` there is nothing here.
#![cfg(feature = "cuda")]

mod domain;
mod fault;
mod key;
mod lane;
mod local;
mod pool;
mod process;
mod shared;
mod transport;

pub use self::transport::Nvlink;

/// Its name, as users write it in `OXSHMEM_TRANSPORT`.
pub const NAME: &str = "nvlink";

/// Bytes of host memory that one operation takes without registration.
pub const UNREGISTERED: usize = 64 << 10;
