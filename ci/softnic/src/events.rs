//! Pipes that carry events to programs, and the counts of events that a program was given and has acknowledged.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Condvar, Mutex};

use crate::sync::{lock, wait};

/// Events of an object that a program was given. The object is destroyed only after all were acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Given, and acknowledged.
    counts: Mutex<(u32, u32)>,
    changed: Condvar,
}

impl Given {
    pub(crate) fn give(&self) {
        lock(&self.counts).0 += 1;
    }

    pub(crate) fn acknowledge(&self, count: u32) {
        lock(&self.counts).1 += count;
        self.changed.notify_all();
    }

    /// Waits until all that were given are acknowledged.
    pub(crate) fn wait(&self) {
        let mut counts = lock(&self.counts);
        while counts.1 < counts.0 {
            counts = wait(&self.changed, counts);
        }
    }
}

/// A pipe of fixed-size records, whose end for reading the program polls.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// The bytes of a record.
const RECORD: usize = 16;

impl Pipe {
    pub(crate) fn new() -> Result<Pipe, c_int> {
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(libc::EMFILE);
        }
        // SAFETY: new descriptors, which nobody else owns.
        let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        // SAFETY: no memory is involved. An engine that waits for a program that reads no events would stop all.
        unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Pipe { read, write })
    }

    pub(crate) fn descriptor(&self) -> c_int {
        self.read.as_raw_fd()
    }

    /// Sends a record. A program that left thousands unread loses it, as it would lose the kernel's.
    pub(crate) fn send(&self, first: u64, second: u64) {
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&first.to_ne_bytes());
        record[8..].copy_from_slice(&second.to_ne_bytes());
        // SAFETY: a record is read. It is shorter than PIPE_BUF, so written whole or not at all.
        unsafe { libc::write(self.write.as_raw_fd(), record.as_ptr().cast(), RECORD) };
    }

    /// The next record; waits for it, unless the program has made the descriptor non-blocking.
    pub(crate) fn receive(&self) -> Option<(u64, u64)> {
        let mut record = [0u8; RECORD];
        // SAFETY: a record is written.
        let got = unsafe { libc::read(self.descriptor(), record.as_mut_ptr().cast(), RECORD) };
        if got != RECORD as isize {
            return None;
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&record[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Some((word(0), word(8)))
    }
}
