//! The trace of a PE's calls: its file, opened by the PEs together, and its end.

pub(crate) mod end;
pub(crate) mod open;
