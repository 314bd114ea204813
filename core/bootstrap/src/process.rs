//! This process: its end, the status it ends with, and its limit on descriptors.

use crate::exit_hook;

/// Ends the process by `_exit`, without the handlers of a normal exit: another thread may hold a lock that they need. Process
/// managers are told first, which takes a few seconds at most; else the end is at once.
pub(crate) fn exit_now(status: i32) -> ! {
    exit_hook::notify(status);
    // SAFETY: `_exit` takes no memory of ours and has no precondition.
    unsafe { libc::_exit(process_status(status)) }
}

/// The status with which a process can end: the low byte, but not 0 for another status than 0.
pub(crate) fn process_status(status: i32) -> i32 {
    match status.to_le_bytes()[0] {
        0 if status != 0 => 1,
        byte => byte.into(),
    }
}

/// Raises this process's soft limit on descriptors to the hard one.
///
/// The launcher has four descriptors a PE, and each PE one of every PE's heap: hundreds of PEs need
/// more than the usual soft limit. The PEs inherit it. If it cannot be raised, running out is an
/// error later.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
