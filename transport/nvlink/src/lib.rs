//! The nvlink transport: GPU memory of PEs on one host, reached by copy engines and kernels over
//! NVLink or PCIe peer access, or within one GPU that several PEs share.
//!
//! Each PE's GPU maps the peers' extents: by a descriptor if there is one, else by a fabric handle, else by
//! legacy CUDA IPC, which maps a whole heap (PEs that are threads of one process need none of these). A peer's
//! memory stays mapped when the peer dies. Legacy memory is the exception: the driver unmaps it with its
//! process, and operations in flight towards it may then fail this PE's context, too. A lane is a stream of
//! its own that never waits for others': puts and gets are copies on it, atomics and signals are kernels of
//! one thread.
//!
//! # Guarantees
//!
//! A stream performs its work in order, so that on one lane everything is ordered: put after put, atomic after
//! put, signal after its data. Two lanes are not ordered. A completed operation is placed in the target's
//! memory, and visible to work that its GPU begins afterwards. Atomics are performed
//! by this PE's GPU on the peer's memory, exclusive against those of all GPUs (between two GPUs the
//! link must carry atomics, which [`reach`](oxshmem_transport::Domain::reach) checks); the host has no
//! other access to GPU memory, so they are declared as the owner's own level.
//!
//! # Local memory
//!
//! Memory of the PE's own GPU heap is accessed in place, and so is memory that
//! [`register_local`](oxshmem_transport::Domain::register_local) accepts: memory of the same GPU and context
//! (of another one where peer access to it was enabled), managed memory, and host memory that the program
//! has page-locked. Other host memory, up to [`UNREGISTERED`] bytes,
//! is copied through a page-locked bounce pool: a source when it is posted, a destination when the operation
//! is counted. A lane's pool has 16 blocks of that size; a lane whose blocks are all in use is full.
//!
//! Without the feature `cuda` there is nothing here.
#![cfg(feature = "cuda")]

mod bounce_pool;
mod device_state;
mod domain;
mod domain_state;
mod driver_error;
mod lane;
mod limits;
mod local_region;
mod process;
mod transport;
mod wire;

pub use self::limits::{NAME, UNREGISTERED};
pub use self::transport::Nvlink;
