//! Completion queues: a ring that the engine fills and programs poll.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::abi::sys::ibv_wc;
use crate::counters::COUNTERS;
use crate::events::{Given, Pipe};
use crate::send_queue::SendQueue;
use crate::sync::lock;

/// A completion, with the slot of the send queue that is free when it was polled.
pub(crate) struct Entry {
    pub(crate) wc: ibv_wc,
    pub(crate) frees: Option<(Arc<SendQueue>, u64)>,
    /// The time of the packet that completed it, on the clock of round trips.
    pub(crate) clock: u64,
    pub(crate) solicited: bool,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({:#x}, status {})", self.wc.wr_id, self.wc.status)
    }
}

/// The completions for which a program asked to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    No,
    Solicited,
    Any,
}

#[derive(Debug)]
struct Ring {
    entries: VecDeque<Entry>,
    capacity: usize,
    armed: Armed,
    overrun: bool,
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) id: u64,
    ring: Mutex<Ring>,
    len: AtomicUsize,
    channel: Option<Arc<Pipe>>,
    /// The program's time on the clock of round trips.
    clock: Arc<AtomicU64>,
    /// The longest time for which a poll waits for a completion.
    patience: Duration,
    /// Asynchronous events, and those of the channel.
    pub(crate) events: Given,
    pub(crate) notifications: Given,
}

impl Queue {
    pub(crate) fn new(
        id: u64,
        capacity: usize,
        channel: Option<Arc<Pipe>>,
        clock: Arc<AtomicU64>,
        patience: Duration,
    ) -> Queue {
        Queue {
            id,
            ring: Mutex::new(Ring {
                entries: VecDeque::new(),
                capacity,
                armed: Armed::No,
                overrun: false,
            }),
            len: AtomicUsize::new(0),
            channel,
            clock,
            patience,
            events: Given::default(),
            notifications: Given::default(),
        }
    }

    /// Adds a completion; false if there is no room, after which the queue is of no use.
    pub(crate) fn push(&self, entry: Entry) -> bool {
        let mut ring = lock(&self.ring);
        if ring.overrun || ring.entries.len() >= ring.capacity {
            ring.overrun = true;
            return false;
        }
        let wakes = match ring.armed {
            Armed::No => false,
            Armed::Solicited => entry.solicited || entry.wc.status != 0,
            Armed::Any => true,
        };
        ring.entries.push_back(entry);
        self.len.store(ring.entries.len(), Ordering::Release);
        COUNTERS.completions.add(1);
        if wakes {
            ring.armed = Armed::No;
            if let Some(channel) = &self.channel {
                channel.send(self.id, 0);
            }
        }
        true
    }

    /// Waits for a completion as long as the device's profile says.
    fn wait(&self) {
        let end = Instant::now() + self.patience;
        while self.len.load(Ordering::Acquire) == 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(10));
        }
    }

    /// Takes up to `room` completions. `Err`: the queue has overrun.
    pub(crate) fn poll(&self, room: usize, mut take: impl FnMut(ibv_wc)) -> Result<usize, ()> {
        if self.len.load(Ordering::Acquire) == 0 && !self.patience.is_zero() {
            self.wait();
        }
        if self.len.load(Ordering::Acquire) == 0 {
            return match lock(&self.ring).overrun {
                true => Err(()),
                false => Ok(0),
            };
        }
        let mut ring = lock(&self.ring);
        let mut taken = 0;
        while taken < room
            && let Some(entry) = ring.entries.pop_front()
        {
            if let Some((queue, upto)) = &entry.frees {
                queue.free(*upto);
            }
            // Relaxed: a statistic.
            self.clock.fetch_max(entry.clock, Ordering::Relaxed);
            COUNTERS.half_trips.raise(entry.clock);
            take(entry.wc);
            taken += 1;
        }
        self.len.store(ring.entries.len(), Ordering::Release);
        Ok(taken)
    }

    pub(crate) fn arm(&self, solicited_only: bool) {
        let mut ring = lock(&self.ring);
        // A wish for all is not taken back by one for solicited ones.
        ring.armed = match (ring.armed, solicited_only) {
            (Armed::Any, _) | (_, false) => Armed::Any,
            _ => Armed::Solicited,
        };
    }

    /// Drops the completions of a queue pair that is destroyed.
    pub(crate) fn clean(&self, pair: u32) {
        let mut ring = lock(&self.ring);
        ring.entries.retain(|entry| entry.wc.qp_num != pair);
        self.len.store(ring.entries.len(), Ordering::Release);
    }

    /// Changes the capacity; false if more completions wait.
    pub(crate) fn resize(&self, capacity: usize) -> bool {
        let mut ring = lock(&self.ring);
        if capacity < ring.entries.len() {
            return false;
        }
        ring.capacity = capacity;
        true
    }
}
