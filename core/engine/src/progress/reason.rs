//! The reason of a wait: the PEs that it needs, and its description. Data only.

use crate::group::Group;
use crate::progress::long_waits::WaitedFor;
use std::fmt;

/// The PEs whose loss ends a wait.
#[derive(Clone, Copy, Debug)]
pub enum WaitsOn<'a> {
    /// Any PE, acknowledged or not.
    Everyone,
    /// Any of a team, acknowledged or not: a collective needs them all.
    Members(&'a Group),
    /// Any PE that died: one that has left has seen all arrive in finalize.
    Finalizing,
    /// This PE.
    Pe(usize),
    /// This PE, whose turn comes before: its store ends the wait, soon or after long.
    Predecessor(usize),
    /// This PE, while only its lane can end the wait.
    Lane(usize),
    /// Any PE whose loss is not acknowledged: it might have ended the wait.
    AnyPeer,
}

/// The reason of a wait.
pub struct WaitReason<'a> {
    /// The call that waits.
    pub call: &'static str,
    /// The PEs whose loss ends it.
    pub needs: WaitsOn<'a>,
    /// Describes the PE and the event that it is for, for reports.
    pub describe: &'a dyn Fn() -> (WaitedFor, String),
}

impl fmt::Debug for WaitReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitReason")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
