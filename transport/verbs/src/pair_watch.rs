//! The queue pairs of lanes by their numbers, so that a device's event that one has failed reaches its lane.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The queue pairs of one device that lanes watch.
#[derive(Debug, Default)]
pub(crate) struct WatchedPairs(Mutex<HashMap<u32, Arc<AtomicBool>>>);

/// A lane's watch over one of its queue pairs.
#[derive(Debug)]
pub(crate) struct PairWatch {
    number: u32,
    has_failed: Arc<AtomicBool>,
    all: Arc<WatchedPairs>,
}

impl WatchedPairs {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<AtomicBool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches the queue pair of this number, which is not connected yet.
    pub(crate) fn watch(self: &Arc<Self>, number: u32) -> PairWatch {
        let has_failed = Arc::<AtomicBool>::default();
        self.lock().insert(number, Arc::clone(&has_failed));
        PairWatch {
            number,
            has_failed,
            all: Arc::clone(self),
        }
    }

    /// The device has reported a queue pair as failed. Gives whether it is a lane's.
    pub(crate) fn fail(&self, number: u32) -> bool {
        let watched = self.lock();
        let Some(has_failed) = watched.get(&number) else {
            return false;
        };
        // Relaxed: the lane looks after a change of the published state.
        has_failed.store(true, Ordering::Relaxed);
        true
    }
}

impl PairWatch {
    /// Whether the device has reported it as failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

impl Drop for PairWatch {
    fn drop(&mut self) {
        let mut watched = self.all.lock();
        // The number may be a new queue pair's already.
        let known = watched.get(&self.number);
        if known.is_some_and(|known| Arc::ptr_eq(known, &self.has_failed)) {
            watched.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reaches_the_lane_whose_queue_pair_it_is_about() {
        let all = Arc::<WatchedPairs>::default();
        let (one, other) = (all.watch(7), all.watch(8));
        assert!(!all.fail(9), "a responder's");
        assert!(all.fail(7));
        assert!(one.has_failed() && !other.has_failed());
        drop(one);
        assert!(!all.fail(7));
    }

    #[test]
    fn a_number_that_is_given_again_is_the_new_queue_pairs() {
        let all = Arc::<WatchedPairs>::default();
        let old = all.watch(7);
        assert!(all.fail(7));
        let new = all.watch(7);
        drop(old);
        assert!(!new.has_failed());
        assert!(all.fail(7) && new.has_failed());
    }
}
