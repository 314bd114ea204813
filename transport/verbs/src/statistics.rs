//! Statistics of the requests and completions of all lanes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam::utils::CachePadded;

/// The calls of lanes to their device, summed over all lanes, dropped ones included: for measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Work requests posted.
    pub requests: u64,
    /// Calls of `ibv_post_send`: each rings a doorbell, on soft-RoCE by a system call.
    pub doorbells: u64,
    /// Completions taken.
    pub completions: u64,
    /// Calls of `ibv_poll_cq`.
    pub polls: u64,
}

/// The counts of one lane, which alone writes them: no locked instruction is needed. All accesses are
/// relaxed: the numbers are for people, and order nothing.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: AtomicU64,
    doorbells: AtomicU64,
    completions: AtomicU64,
    polls: AtomicU64,
}

#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Counts {
    /// One call of `ibv_post_send` with so many requests.
    #[inline]
    pub(crate) fn posted(&self, requests: u64) {
        add(&self.doorbells, 1);
        add(&self.requests, requests);
    }

    /// One call of `ibv_poll_cq` that gave so many completions.
    #[inline]
    pub(crate) fn polled(&self, completions: u64) {
        add(&self.polls, 1);
        add(&self.completions, completions);
    }
}

/// The counts of all lanes.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Padded, since each is written with every operation, by its lane's own thread.
    lanes: Mutex<Vec<Arc<CachePadded<Counts>>>>,
}

impl Totals {
    /// The counts of a new lane.
    pub(crate) fn enter(&self) -> Arc<CachePadded<Counts>> {
        let counts = Arc::<CachePadded<Counts>>::default();
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.push(Arc::clone(&counts));
        counts
    }

    pub(crate) fn sum(&self) -> Statistics {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |count: fn(&Counts) -> &AtomicU64| {
            lanes.iter().map(|lane| count(lane).load(Relaxed)).sum()
        };
        Statistics {
            requests: of(|lane| &lane.requests),
            doorbells: of(|lane| &lane.doorbells),
            completions: of(|lane| &lane.completions),
            polls: of(|lane| &lane.polls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_count_at_once_and_stay_counted() {
        let totals = Totals::default();
        let (one, two) = (totals.enter(), totals.enter());
        one.posted(16);
        one.polled(0);
        two.posted(1);
        two.polled(3);
        let expected = Statistics {
            requests: 17,
            doorbells: 2,
            completions: 3,
            polls: 2,
        };
        assert_eq!(totals.sum(), expected);
        drop((one, two));
        assert_eq!(totals.sum(), expected);
    }
}
