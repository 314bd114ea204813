//! Microbenchmarks of oxshmem, and the counterparts for other libraries.
//!
//! `peer` measures oxshmem and the machine's limits, and `oshmem/` the same rows over OpenSHMEM.
//! `peers` runs both alternately, UCX's own benchmark among them, compares them, and judges them by
//! the targets. `gpu_peer`, `nvshmem/peer.cu` and `gpu_peers` do the same for operations on
//! streams, against NVSHMEM.

pub mod affinity;
pub mod batches;
pub mod curves;
pub mod gpu;
pub mod limits;
pub mod modes;
pub mod samples;
pub mod sizes;
pub mod statistics;
pub mod table;
pub mod targets;
