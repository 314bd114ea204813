//! The kernel's futex, on which [`park`](super::park) sleeps.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::progress::park::Futex;

/// The kernel's futex, shared between processes.
#[derive(Debug)]
pub struct Kernel;

impl Futex for Kernel {
    fn wait(&self, word: &AtomicU32, expected: u32, limit: Duration) {
        let limit = rustix::thread::Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // A spurious return, a changed word and the limit are all alike to the caller.
        let _ = rustix::thread::futex::wait(
            word,
            rustix::thread::futex::Flags::empty(),
            expected,
            Some(&limit),
        );
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(
            word,
            rustix::thread::futex::Flags::empty(),
            i32::MAX as u32,
        );
    }
}
