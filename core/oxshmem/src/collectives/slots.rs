//! Slots for new teams in the sync area, and the agreement of the members on one.

pub(crate) mod active_set;
pub(crate) mod mailbox;
pub(crate) mod pool;
pub(crate) mod proposal;
pub(crate) mod split;
