//! An event descriptor that wakes a thread out of `poll`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::error::{Result, io};

/// A descriptor that becomes readable when another thread wants attention.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    pub(crate) fn new() -> Result<Wake> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Wake(
            eventfd(0, flags).map_err(io("making an event descriptor"))?,
        ))
    }

    /// Makes the descriptor readable until [`clear`](Wake::clear).
    pub(crate) fn signal(&self) {
        // The only failure is a counter that is full, and then the descriptor is readable anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        // The only failure is a counter at zero, which is the aim.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
