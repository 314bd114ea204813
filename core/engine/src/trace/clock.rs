//! The clock of a trace.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the clock that all processes of a host share.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}
