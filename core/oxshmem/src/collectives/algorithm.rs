//! The algorithms of collective calls, and the steps that they share.
//!
//! The caller has checked the arguments, and hands the outcome over: it fails the call on all members.

pub(crate) mod alltoall;
pub(crate) mod alltoalls;
pub(crate) mod barrier;
pub(crate) mod broadcast;
pub(crate) mod collect;
pub(crate) mod exchange;
pub(crate) mod reduce;
pub(crate) mod reduce_hierarchical;
