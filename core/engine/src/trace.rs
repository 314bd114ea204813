//! The time line of a PE's calls (docs/trace.md): its events, their counters, and the file.

pub mod clock;
pub mod json;
pub mod lane_counters;
pub mod log;
pub mod timeline;
