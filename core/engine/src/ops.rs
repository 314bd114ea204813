//! The operations of a worker: transfers, atomics, active messages, order, connection, failure.

pub mod access_path;
pub mod am;
pub mod amo;
pub mod conflict_check;
pub mod connect;
pub mod copy;
pub mod failure;
pub mod fence_plan;
pub mod flush;
pub mod gpu_flush;
pub mod lane_fence;
pub mod lane_rma;
pub mod local_chunk;
pub mod own;
pub mod post;
pub mod rpc;
pub mod staged;
pub mod tracing;
pub mod waiting;
pub mod worker_fence;
