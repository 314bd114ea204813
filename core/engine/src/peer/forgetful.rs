//! The PEs that left the job without finalize, by their own report, and the words for a lost PE.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The PEs of the job that this process joined last.
static FORGETFUL: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn forgetful() -> MutexGuard<'static, Vec<u32>> {
    FORGETFUL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets the reports of an earlier job: this process joins another.
pub fn clear() {
    forgetful().clear();
}

/// Records that another PE of the job has reported a missing finalize.
pub fn record(pe: u32) {
    forgetful().push(pe);
}

/// Whether a PE has reported that it left without finalize.
#[must_use]
pub fn has_forgotten(pe: usize) -> bool {
    forgetful().iter().any(|known| *known as usize == pe)
}

/// A lost PE, in words.
#[must_use]
pub fn describe_lost(pe: usize) -> String {
    if has_forgotten(pe) {
        format!(
            "PE {pe} left without finalize; have its program call World::finalize, in C shmem_finalize, before it ends"
        )
    } else {
        format!(
            "PE {pe} is lost (it died, or left the job); after World::acknowledge_lost the others can go on with calls \
             that do not need it (no collective ones)"
        )
    }
}
