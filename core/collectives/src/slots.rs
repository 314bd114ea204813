//! Slots for new teams in the sync area, and the agreement of the members on one.

pub mod active_set;
pub mod mailbox;
pub mod pool;
pub mod proposal;
pub mod split;
