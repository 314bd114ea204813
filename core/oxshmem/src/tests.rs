//! Tests of the engine under a world: lanes, active messages, checked mode.

mod am;
mod conflict_check;
pub(crate) mod lanes;
