//! The reach of completed updates (M24 to M26).

/// The reach of an update when `barrier`, `quiet`, `wait_until*` or `test*` return (M26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Completed updates are visible to every PE: all routes of the job are load/store mapped (M24).
    Global,
    /// Only updates to the calling PE's own objects are promised: some route crosses a network
    /// (M25).
    Local,
}
