//! The slow branch: operations towards PEs that are not mapped, on their transports' lanes.
//!
//! One lane per transport and [context](crate::Context), which its thread alone uses.

mod access_path;
mod am;
mod amo;
mod atomic_request;
mod bounce_pool;
mod connect;
mod endpoint;
mod extents;
mod failure;
mod fence_plan;
mod fence_quiet;
mod flush;
mod in_flight;
mod lane_state;
mod lanes;
mod local_buffer;
mod local_chunk;
mod pending_replies;
mod post;
mod rail;
mod rma;
mod staged;
mod strided_get;
mod target;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::access_path::AccessPath;
pub(crate) use self::atomic_request::AtomicRequest;
pub(crate) use self::bounce_pool::BouncePool;
// Named outside by copies of CUDA slices alone.
#[cfg(feature = "cuda")]
pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::extents::Extents;
pub(crate) use self::lanes::Lanes;
pub(crate) use self::local_buffer::{LocalBuffer, MrKey};
pub(crate) use self::pending_replies::PendingReplies;
pub(crate) use self::rail::Rail;
pub(crate) use self::rma::Signal;
#[cfg(feature = "cuda")]
pub(crate) use self::target::RemoteTarget;
