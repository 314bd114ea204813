//! The peers of a PE: the table that the fast path reads, and their liveness.

pub mod entry;
mod exit_reports;
pub mod liveness;
pub mod loss_reasons;
pub mod mapped_table;
pub(crate) mod pe_set;
