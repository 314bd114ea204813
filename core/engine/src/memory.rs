//! Symmetric memory as the engine sees it: mapped and simulated bytes, targets, extents, registrations.

pub mod bounce_pool;
pub mod extents;
pub mod mapped;
pub mod registrations;
pub mod simulated;
pub mod target;
