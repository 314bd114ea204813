//! Threads that connect lanes of other PEs with this one.
//!
//! A device may take seconds to connect a queue pair, as it looks for an address that nobody has any more. The
//! bootstrap's receive thread does not wait for that: this PE hears of exits and answers other requests meanwhile. The
//! threads begin with the first requests. Dropping the workers waits for those that connect, and drops the rest.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use oxshmem_engine::report;

/// Requests that are carried out at the same time: one that takes long does not hold up all others.
const WORKERS: usize = 4;

/// Bytes of a thread's stack; libraries of devices run on it.
const STACK: usize = 256 << 10;

/// One request, with its reply.
type Job = Box<dyn FnOnce() + Send>;

/// The threads and their queue.
pub(super) struct AcceptWorkers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Threads that wait for a request.
    idle: usize,
    closed: bool,
}

impl fmt::Debug for AcceptWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptWorkers").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out requests until the workers end.
    fn serve(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        queue.idle += 1;
        let mut queue = self
            .changed
            .wait_while(queue, |queue| queue.waiting.is_empty() && !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        queue.idle -= 1;
        queue.waiting.pop_front()
    }
}

impl AcceptWorkers {
    pub(super) fn new() -> Self {
        AcceptWorkers {
            shared: Arc::default(),
            threads: Mutex::default(),
        }
    }

    /// Has a request carried out, after those before it unless more than one thread does so.
    pub(super) fn submit(&self, job: Job) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = self.shared.lock();
        queue.waiting.push_back(job);
        let is_short = queue.waiting.len() > queue.idle;
        drop(queue);
        self.shared.changed.notify_one();
        if !is_short || threads.len() == WORKERS {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new()
            .name("oxshmem-accept".into())
            .stack_size(STACK)
            .spawn(move || shared.serve());
        match spawned {
            Ok(thread) => threads.push(thread),
            // One of the other threads takes it.
            Err(_) if !threads.is_empty() => {}
            Err(error) => {
                report::warn(&format!(
                    "no thread can be started for the connections of other PEs ({error}): they are made by the \
                     thread that serves the bootstrap"
                ));
                let job = self.shared.lock().waiting.pop_front();
                job.into_iter().for_each(|job| job());
            }
        }
    }
}

impl Drop for AcceptWorkers {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        // Dropped without the lock: they own domains.
        let dropped = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(dropped);
        self.shared.changed.notify_all();
        let threads = self.threads.get_mut();
        for thread in threads.unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A request may hold the last reference to the bootstrap that owns these workers: its thread ends by
            // itself.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                report::warn("the connection of another PE's lane panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A request that waits until its sender is dropped.
    fn blocked(workers: &AcceptWorkers) -> Sender<()> {
        let (hold, held) = channel();
        workers.submit(Box::new(move || assert!(held.recv().is_err())));
        hold
    }

    #[test]
    fn a_request_that_takes_long_does_not_hold_up_the_next() {
        let workers = AcceptWorkers::new();
        let holds: Vec<_> = (1..WORKERS).map(|_| blocked(&workers)).collect();
        let (done, news) = channel();
        for number in 0..100 {
            let done = done.clone();
            workers.submit(Box::new(move || done.send(number).unwrap()));
        }
        for number in 0..100 {
            assert_eq!(
                news.recv_timeout(LIMIT),
                Ok(number),
                "in order on one thread"
            );
        }
        drop(holds);
    }

    #[test]
    fn workers_end_with_requests_waiting_and_running() {
        let workers = AcceptWorkers::new();
        let holds: Vec<_> = (0..WORKERS + 2).map(|_| blocked(&workers)).collect();
        // Those that wait are dropped, and the running ones end with their senders.
        let ended = std::thread::spawn(move || drop(workers));
        drop(holds);
        ended.join().unwrap();
    }

    #[test]
    fn a_request_may_own_the_workers() {
        let workers = Arc::new(AcceptWorkers::new());
        let (done, news) = channel();
        let own = Arc::clone(&workers);
        let (hold, held) = channel::<()>();
        workers.submit(Box::new(move || {
            let _ = held.recv();
            drop(own);
            done.send(()).unwrap();
        }));
        drop(workers);
        drop(hold);
        assert_eq!(news.recv_timeout(LIMIT), Ok(()));
    }
}
