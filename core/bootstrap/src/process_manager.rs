//! The trait through which a PE speaks to the process manager that started it (PMI-1, PMI-2, PMIx).
//!
//! A process manager gives this PE's rank, the job's size, and one value from rank 0 to all.

use crate::error::Result;

/// A PE's rank and the job's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankAndSize {
    pub rank: u32,
    pub size: u32,
}

/// A session with a process manager.
pub(crate) trait ProcessManager {
    /// This PE's rank and the job's size.
    fn rank_and_size(&self) -> RankAndSize;

    /// Whether the process manager says that all of the job's PEs are on one host. If it does not tell,
    /// they may not be.
    fn is_on_one_host(&mut self) -> bool;

    /// The interface's name, for people.
    fn name(&self) -> &'static str;

    /// Collective: gives the value that rank 0, and only it, has `published` (no spaces in it), and ends
    /// the session.
    fn exchange(self: Box<Self>, published: Option<&str>) -> Result<String>;
}
