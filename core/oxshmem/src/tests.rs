//! Tests of the engine under a world: lanes, active messages, checked mode.

mod am;
mod collectives {
    mod active_set;
    mod collect;
    mod transfer;
}
mod conflict_check;
mod gpu_flushes;
pub(crate) mod lanes;
