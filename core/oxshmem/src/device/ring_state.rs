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
    /// The number of restarts that were asked for, and of those that are done.
    pub restarts: [AtomicU64; 2],
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

    /// Has the thread forget its failures, and what kernels have left in the ring whose waits were ended. No kernel uses the ring.
    pub(crate) fn restart(&self) {
        let [asked, done] = &self.state.restarts;
        let wanted = asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.thread.unpark();
        while done.load(Ordering::Acquire) < wanted && !self.state.ended.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Asks for a quiet. Its number.
    pub(crate) fn ask(&self) -> u64 {
        let number = self.state.quiets.fetch_add(1, Ordering::AcqRel) + 1;
        self.thread.unpark();
        number
    }

    /// Whether that quiet is done, or the thread has ended.
    pub(crate) fn is_quiet(&self, number: u64) -> bool {
        *lock(&self.state.quieted) >= number || self.state.ended.load(Ordering::Acquire)
    }

    /// Waits until all requests that kernels had made are complete (G4). Requests that fail end it, too:
    /// [`DeviceLibrary::check`](crate::DeviceLibrary::check) has the error.
    pub(crate) fn quiet(&self) {
        let wanted = self.ask();
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
