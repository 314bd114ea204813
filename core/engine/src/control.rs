//! Messages of PEs to each other over the bootstrap, once the job runs.

pub mod message;
pub mod pending;
