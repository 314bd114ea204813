//! One output stream of a PE, cut into whole lines.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::sink::Sink;

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 1 << 20;

/// The reading end of a PE's output pipe and the line that is not complete yet.
#[derive(Debug)]
pub(super) struct Lines {
    rank: u32,
    pipe: Option<OwnedFd>,
    begun: Vec<u8>,
    /// Where only so much more is to be read: how much.
    left: Option<usize>,
}

impl Lines {
    pub(super) fn new(rank: u32, pipe: Option<OwnedFd>) -> Lines {
        Lines {
            rank,
            pipe,
            begun: Vec::new(),
            left: None,
        }
    }

    /// The pipe, until its end.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads once and passes whole lines on; false if there was nothing to read.
    pub(super) fn read(&mut self, scratch: &mut [u8], sink: &mut Sink) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let most = self
            .left
            .map_or(scratch.len(), |left| left.min(scratch.len()));
        match rustix::io::read(pipe, &mut scratch[..most]) {
            Ok(0) => self.finish(sink),
            Ok(count) => {
                self.take(&scratch[..count], sink);
                self.left = self.left.map(|left| left - count);
                if self.left == Some(0) {
                    self.finish(sink);
                }
            }
            Err(rustix::io::Errno::AGAIN) => return false,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(rank = self.rank, "cannot read a PE's output: {error}");
                self.finish(sink);
            }
        }
        true
    }

    fn take(&mut self, bytes: &[u8], sink: &mut Sink) {
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let (whole, rest) = bytes.split_at(whole);
        if !whole.is_empty() {
            self.begun.extend_from_slice(whole);
            self.pass_on(sink);
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() >= LONGEST {
            self.pass_on(sink);
        }
    }

    /// From now on reads what has been written already, and takes that for the stream's end.
    pub(super) fn end_with_what_came(&mut self, sink: &mut Sink) {
        let Some(pipe) = &self.pipe else { return };
        let came = rustix::io::ioctl_fionread(pipe).unwrap_or_else(|error| {
            tracing::warn!(rank = self.rank, "cannot tell how much a PE wrote: {error}");
            0
        });
        self.left = usize::try_from(came).ok();
        if came == 0 {
            self.finish(sink);
        }
    }

    /// The stream's end: passes on what was said without a line's end.
    fn finish(&mut self, sink: &mut Sink) {
        self.pipe = None;
        self.pass_on(sink);
        self.begun = Vec::new();
    }

    fn pass_on(&mut self, sink: &mut Sink) {
        sink.push(self.rank, &self.begun);
        self.begun.clear();
    }
}
