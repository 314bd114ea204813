//! The algorithms of collective calls, and the steps that they share.
//!
//! The caller has checked the arguments and passes the outcome: an error fails the call on all members.

pub mod alltoall;
pub mod alltoalls;
pub mod broadcast;
pub mod collect;
pub mod exchange;
pub mod reduce;
pub mod reduce_hierarchical;
pub mod world_barrier;
