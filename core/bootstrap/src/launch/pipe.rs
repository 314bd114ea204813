//! The reading end of a PE's output.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A pipe that a PE writes to.
#[derive(Debug)]
pub(super) struct Pipe {
    rank: u32,
    descriptor: Option<OwnedFd>,
    /// The bytes that are still to be read, if there is a limit.
    left: Option<usize>,
}

impl Pipe {
    pub(super) fn new(rank: u32, descriptor: Option<OwnedFd>) -> Pipe {
        Pipe {
            rank,
            descriptor,
            left: None,
        }
    }

    /// The pipe, until its end.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Reads once; gives the number of bytes. After the last, the descriptor is gone.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> usize {
        let Some(pipe) = &self.descriptor else {
            return 0;
        };
        let most = self
            .left
            .map_or(scratch.len(), |left| left.min(scratch.len()));
        match rustix::io::read(pipe, &mut scratch[..most]) {
            Ok(0) => self.descriptor = None,
            Ok(count) => {
                self.left = self.left.map(|left| left - count);
                if self.left == Some(0) {
                    self.descriptor = None;
                }
                return count;
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(rank = self.rank, "cannot read a PE's output: {error}");
                self.descriptor = None;
            }
        }
        0
    }

    /// From now on reads only bytes that have been written already, and takes their end for the stream's. True
    /// if there are none.
    pub(super) fn end_with_what_came(&mut self) -> bool {
        let Some(pipe) = &self.descriptor else {
            return false;
        };
        let came = rustix::io::ioctl_fionread(pipe).unwrap_or_else(|error| {
            tracing::warn!(rank = self.rank, "cannot tell how much a PE wrote: {error}");
            0
        });
        self.left = usize::try_from(came).ok();
        if came == 0 {
            self.descriptor = None;
        }
        came == 0
    }
}
