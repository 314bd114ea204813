//! The thread of a stream.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Stream, Task};
use crate::call::Outcome;
use crate::driver::running;
use crate::sync::lock;

/// Random delays before work, so that missing synchronisation shows.
struct Jitter(Option<u64>);

impl Jitter {
    fn new(stream: u64) -> Jitter {
        let seed = crate::config::config()
            .ok()
            .and_then(|config| config.jitter);
        Jitter(seed.map(|seed| (seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1))
    }

    /// Half of the time no delay, else up to a quarter of a millisecond.
    fn delay(&mut self) {
        let Some(state) = &mut self.0 else { return };
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        if *state & 1 == 0 {
            std::thread::sleep(Duration::from_micros((*state >> 8) % 250));
        }
    }
}

impl Stream {
    pub(super) fn run(self: Arc<Self>) {
        let mut jitter = Jitter::new(self.handle);
        while let Some(task) = self.next() {
            self.strand.follow(&task.given_at);
            if self.is_legacy() {
                self.strand.follow(&self.context.retired());
            }
            for (stream, ticket) in &task.after {
                stream.wait_done(*ticket);
                self.strand.follow(&stream.strand.clock());
            }
            jitter.delay();
            // After an error no more work is done in the context, but all tasks complete.
            let is_well = self.context.check().is_ok();
            if is_well && let Err(code) = self.work(&task) {
                self.context.fail(code);
            }
            let mark = task.mark.clone().filter(|_| is_well);
            // The task's objects are dropped before its completion is announced.
            drop(task);
            // Both at once: whoever sees one sees the other, too.
            let mut queue = lock(&self.queue);
            if let Some(mark) = mark {
                mark.reach();
            }
            queue.done += 1;
            drop(queue);
            self.changed.notify_all();
        }
    }

    fn work(&self, task: &Task) -> Outcome {
        // Not by the ordinal: each process may see other devices.
        let ordinal = self.context.ordinal;
        let device = running().map_or(ordinal, |driver| driver.devices[ordinal].physical);
        self.strand.piece(device, || (task.work)(&self.context))
    }

    fn next(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                return Some(task);
            }
            if queue.closed {
                return None;
            }
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
