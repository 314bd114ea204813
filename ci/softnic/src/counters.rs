//! Counts of the work of this process's NICs, for tests and benchmarks.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    pub(crate) fn add(&self, count: u64) {
        // Relaxed: a statistic.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Makes it a number that is no count.
    pub(crate) fn set(&self, to: u64) {
        // Relaxed: a statistic.
        self.0.store(to, Ordering::Relaxed);
    }

    pub(crate) fn raise(&self, to: u64) {
        // Relaxed: a statistic.
        self.0.fetch_max(to, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: a statistic.
        self.0.load(Ordering::Relaxed)
    }
}

/// All counts of the process.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Work requests posted to send queues.
    pub(crate) requests: Counter,
    /// Calls of `ibv_post_send` that posted something.
    pub(crate) doorbells: Counter,
    pub(crate) receives: Counter,
    /// Calls that posted receive buffers.
    pub(crate) receive_doorbells: Counter,
    pub(crate) completions: Counter,
    pub(crate) empty_polls: Counter,
    pub(crate) writes: Counter,
    pub(crate) reads: Counter,
    pub(crate) atomics: Counter,
    pub(crate) sends: Counter,
    /// Packets of writes that were placed after a later one, or after they were acknowledged.
    pub(crate) late: Counter,
    pub(crate) rnr_naks: Counter,
    pub(crate) naks: Counter,
    pub(crate) resent: Counter,
    pub(crate) dropped: Counter,
    /// Twice the round trips that followed each other, on the context with most.
    pub(crate) half_trips: Counter,
    pub(crate) queue_pairs: Counter,
    pub(crate) registrations: Counter,
    /// Options of connections (ECE) that queue pairs took of their peers.
    pub(crate) options_taken: Counter,
    /// The number of the queue pair that was made last.
    pub(crate) newest_queue_pair: Counter,
    /// The flow label of the global route that a queue pair took last.
    pub(crate) newest_flow_label: Counter,
    /// The completion vector of the queue of completions that was made last with a channel.
    pub(crate) newest_vector: Counter,
}

pub(crate) static COUNTERS: Counters = Counters {
    requests: Counter::new(),
    doorbells: Counter::new(),
    receives: Counter::new(),
    receive_doorbells: Counter::new(),
    completions: Counter::new(),
    empty_polls: Counter::new(),
    writes: Counter::new(),
    reads: Counter::new(),
    atomics: Counter::new(),
    sends: Counter::new(),
    late: Counter::new(),
    rnr_naks: Counter::new(),
    naks: Counter::new(),
    resent: Counter::new(),
    dropped: Counter::new(),
    half_trips: Counter::new(),
    queue_pairs: Counter::new(),
    registrations: Counter::new(),
    options_taken: Counter::new(),
    newest_queue_pair: Counter::new(),
    newest_flow_label: Counter::new(),
    newest_vector: Counter::new(),
};

impl Counters {
    fn all(&self) -> [(&'static str, u64); 22] {
        [
            ("requests", self.requests.get()),
            ("doorbells", self.doorbells.get()),
            ("receives", self.receives.get()),
            ("receive_doorbells", self.receive_doorbells.get()),
            ("completions", self.completions.get()),
            ("empty_polls", self.empty_polls.get()),
            ("writes", self.writes.get()),
            ("reads", self.reads.get()),
            ("atomics", self.atomics.get()),
            ("sends", self.sends.get()),
            ("late", self.late.get()),
            ("rnr_naks", self.rnr_naks.get()),
            ("naks", self.naks.get()),
            ("resent", self.resent.get()),
            ("dropped", self.dropped.get()),
            ("round_trips", self.half_trips.get() / 2),
            ("queue_pairs", self.queue_pairs.get()),
            ("registrations", self.registrations.get()),
            ("options_taken", self.options_taken.get()),
            ("newest_queue_pair", self.newest_queue_pair.get()),
            ("newest_flow_label", self.newest_flow_label.get()),
            ("newest_vector", self.newest_vector.get()),
        ]
    }

    /// The count of a name.
    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        let found = self.all().into_iter().find(|(one, _)| *one == name);
        found.map(|(_, count)| count)
    }

    /// A line for each.
    pub(crate) fn text(&self) -> String {
        self.all()
            .iter()
            .fold(String::new(), |mut text, (name, count)| {
                let _ = writeln!(text, "{name} {count}");
                text
            })
    }
}
