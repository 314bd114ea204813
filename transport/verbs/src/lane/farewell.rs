//! How a lane ends.

use std::time::{Duration, Instant};

use oxshmem_transport::Pe;

use super::VerbsLane;
use super::batch::{Do, Near, Request};
use super::ring::Slot;
use super::way::{End, Way};

/// How long a lane that ends waits for the other sides to take note of it.
const FAREWELL: Duration = Duration::from_millis(20);

impl VerbsLane {
    /// Tells the other sides that their queue pairs may end, and waits a little until they know:
    /// else they keep them until their domain ends.
    fn say_goodbye(&mut self) {
        let mut told = 0;
        for at in 0..self.ways.len() {
            let pe = Pe(at as u32);
            let End::Connected(link) = &mut self.ways[at].end else {
                continue;
            };
            if self.room == 0 || link.ring.free() == 0 {
                continue;
            }
            let number = link.ring.push(Slot {
                ends: false,
                ..Slot::PLAIN
            });
            self.room -= 1;
            let request = Request {
                what: Do::Goodbye,
                near: Near::Nothing,
                fenced: false,
            };
            self.batch
                .push(u64::from(pe.0) << 32 | u64::from(number), request);
            // SAFETY: the request has no near side.
            told += u32::from(unsafe { self.submit(pe, true) }.is_ok());
        }
        let since = Instant::now();
        let outstanding = |way: &Way| match &way.end {
            End::Connected(link) => link.ring.outstanding() > 0,
            _ => false,
        };
        while told > 0 && self.ways.iter().any(outstanding) && since.elapsed() < FAREWELL {
            if self.poll().is_err() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for VerbsLane {
    fn drop(&mut self) {
        self.look();
        // After a shutdown the others end as well.
        if !self.closed {
            self.say_goodbye();
        }
    }
}
