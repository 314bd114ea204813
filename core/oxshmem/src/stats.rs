//! Statistics of a job, shown at its end: `OXSHMEM_STATS` (docs/statistics.md).
//!
//! The slow branch counts a program's operations. With the variable set all operations take that branch, since no peer is in
//! the tables that the fast path reads. Without it the fast path is the same as ever.

pub(crate) mod counters;
pub(crate) mod counting;
pub(crate) mod report;
