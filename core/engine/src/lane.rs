//! Opened devices, and one context's endpoints on them. Data only.

pub mod endpoint;
pub(crate) mod flush_state;
pub mod in_flight;
pub mod lane_state;
pub mod lanes;
pub mod local_buffer;
pub mod rail;
pub(crate) mod reconnections;
pub mod remote;
