//! This process's end, of which a process manager may want to hear.

use std::sync::atomic::{AtomicU32, Ordering};

/// The process whose end is told; its children's are not. 0 while nothing is to be told.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Has the process manager told when this process exits.
pub(crate) fn expect() {
    // Relaxed: what is told lies behind locks of its own.
    if PROCESS.swap(std::process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: the function may be called at any exit. If it cannot be, the manager tells of an improper end.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    tell(0);
}

/// Tells that this process ends with this status.
pub(crate) fn tell(status: i32) {
    if PROCESS.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // To a manager of PMI who has not finalized has failed, with a status of the manager's own.
    crate::pmi::end();
    if status == 0 {
        // Without it, PMIx's manager takes this for a failure, as another status is meant to be.
        crate::pmix::end();
    }
}
