use std::sync::atomic::{AtomicU64, Ordering};

/// What lanes asked of the device, summed over those that were dropped: for measurements.
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

#[derive(Debug, Default)]
pub(crate) struct Totals {
    requests: AtomicU64,
    doorbells: AtomicU64,
    completions: AtomicU64,
    polls: AtomicU64,
}

// All relaxed: sums for people, which order nothing.
impl Totals {
    pub(crate) fn add(&self, lane: Statistics) {
        self.requests.fetch_add(lane.requests, Ordering::Relaxed);
        self.doorbells.fetch_add(lane.doorbells, Ordering::Relaxed);
        self.completions
            .fetch_add(lane.completions, Ordering::Relaxed);
        self.polls.fetch_add(lane.polls, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> Statistics {
        Statistics {
            requests: self.requests.load(Ordering::Relaxed),
            doorbells: self.doorbells.load(Ordering::Relaxed),
            completions: self.completions.load(Ordering::Relaxed),
            polls: self.polls.load(Ordering::Relaxed),
        }
    }
}
