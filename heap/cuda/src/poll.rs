//! Polling with a deadline.

use std::thread;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::error::{Error, Result};

/// Polls a condition, at intervals that grow up to a millisecond, until it holds.
pub(crate) fn poll(
    timeout: Duration,
    what: &'static str,
    context: &Context,
    mut holds: impl FnMut() -> Result<bool>,
) -> Result<()> {
    const YIELDS: u32 = 200;
    let start = Instant::now();
    let mut rounds = 0_u32;
    while !holds()? {
        let waited = start.elapsed();
        if waited >= timeout {
            return Err(Error::Deadline {
                what,
                device: context.ordinal(),
                waited,
            });
        }
        rounds += 1;
        if rounds < YIELDS {
            thread::yield_now();
        } else {
            let pause = Duration::from_micros(50) * (rounds - YIELDS + 1).min(20);
            thread::sleep(pause.min(timeout - waited));
        }
    }
    Ok(())
}
