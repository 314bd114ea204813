//! A terminal's input, passed on to PE 0.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::ChildStdin;

use rustix::io::Errno;

/// Input on its way from the launcher's terminal to PE 0's pipe.
#[derive(Debug)]
pub(super) struct Pump {
    pipe: ChildStdin,
    waiting: Vec<u8>,
}

impl Pump {
    pub(super) fn new(pipe: ChildStdin) -> Pump {
        Pump {
            pipe,
            waiting: Vec::new(),
        }
    }

    /// The descriptor to wait for and whether to write to it (else, to read from it). None while
    /// the launcher is in the background, where reading a terminal would stop it; SIGCONT tells
    /// when that changes.
    pub(super) fn wants(&self) -> Option<(BorrowedFd<'_>, bool)> {
        if !self.waiting.is_empty() {
            return Some((self.pipe.as_fd(), true));
        }
        in_foreground().then(|| (own_input(), false))
    }

    /// Goes on after that descriptor became ready; false at the end of the input, or when PE 0
    /// takes no more.
    pub(super) fn step(&mut self) -> bool {
        if !self.waiting.is_empty() {
            return match rustix::io::write(&self.pipe, &self.waiting) {
                Ok(count) => {
                    self.waiting.drain(..count);
                    true
                }
                Err(Errno::AGAIN | Errno::INTR) => true,
                Err(_) => false,
            };
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(own_input(), &mut bytes) {
            Ok(0) => false,
            Ok(count) => {
                self.waiting.extend_from_slice(&bytes[..count]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            Err(_) => false,
        }
    }
}

pub(super) fn own_input() -> BorrowedFd<'static> {
    // SAFETY: standard input is open as long as the process runs: nothing here closes it.
    unsafe { BorrowedFd::borrow_raw(libc::STDIN_FILENO) }
}

pub(super) fn in_foreground() -> bool {
    // SAFETY: both only ask, and take no memory.
    unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) == libc::getpgrp() }
}
