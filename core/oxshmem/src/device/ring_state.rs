//! The state that the host's calls share with the thread that serves kernels.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// The part of the server that the world sees.
#[derive(Debug, Default)]
pub(crate) struct RingState {
    /// Whether the thread has to end.
    pub ended: AtomicBool,
    /// The first error of a request.
    pub failure: Mutex<Option<String>>,
    /// The number of quiets that the host's threads have asked for.
    pub quiets: AtomicU64,
    /// How many of them are done.
    pub quieted: Mutex<u64>,
    /// Told when that changes, or the thread ends.
    pub changed: Condvar,
}

/// A handle by which the host's quiets reach the thread.
#[derive(Clone, Debug)]
pub(crate) struct RingQuiet {
    pub state: Arc<RingState>,
    pub thread: Thread,
}

impl RingQuiet {
    /// The error of the first request that failed.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.state.failure).clone()
    }

    /// Forgets that error.
    pub(crate) fn forget_failure(&self) {
        *lock(&self.state.failure) = None;
    }

    /// Waits until all requests that kernels had made are complete (G4). Requests that fail end it, too:
    /// [`DeviceLibrary::check`](crate::DeviceLibrary::check) has the error.
    pub(crate) fn quiet(&self) {
        let wanted = self.state.quiets.fetch_add(1, Ordering::AcqRel) + 1;
        self.thread.unpark();
        let mut quieted = lock(&self.state.quieted);
        while *quieted < wanted && !self.state.ended.load(Ordering::Acquire) {
            let waited = self
                .state
                .changed
                .wait_timeout(quieted, Duration::from_secs(1));
            quieted = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
