//! Microbenchmarks of oxshmem and their peers' counterparts.
//!
//! `peer` measures oxshmem and the machine's limits, `peers.c` the same rows over OpenSHMEM, and
//! `peers` runs them by turns, compares them and judges them by the targets.

pub mod affinity;
pub mod batches;
pub mod limits;
pub mod sizes;
pub mod statistics;
pub mod targets;
