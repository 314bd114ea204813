//! The memory model's order as pure data: fence sites, sets of operation kinds, and entries of checked mode.

pub mod conflict;
pub mod fence_site;
pub mod op_set;
