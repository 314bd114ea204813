//! Starting the PEs of a job.
pub use oxshmem_bootstrap::launch::*;
