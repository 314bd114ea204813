//! The trait of a job's PE processes, wherever they run, and the events that it gives the supervisor.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use crate::error::Result;
use crate::exit_status::ExitStatus;

/// One of a PE's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(super) const BOTH: [Stream; 2] = [Stream::Out, Stream::Err];
}

/// An event of a job's processes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A PE's process runs.
    Started { rank: u32, pid: u32 },
    /// A PE has written.
    Output {
        rank: u32,
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// A PE writes no more to that stream.
    OutputEnd { rank: u32, stream: Stream },
    /// A PE's process has ended.
    Ended { rank: u32, exit: ExitStatus },
    /// A line to show the user.
    Note(String),
    /// A host's PEs could not be started or are out of reach; those that still ran count as ended.
    HostFailed {
        host: String,
        status: i32,
        why: String,
    },
}

/// A descriptor to poll, and the token for [`ProcessGroup::handle_ready`] once it is ready.
pub(super) struct Watched<'a> {
    pub(super) token: usize,
    /// The stream of which it would bring more output: not to be polled while that stream's sink is full.
    pub(super) output: Option<Stream>,
    pub(super) wait: PollFd<'a>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(token: usize, descriptor: BorrowedFd<'a>, events: PollFlags) -> Watched<'a> {
        Watched {
            token,
            output: None,
            wait: PollFd::from_borrowed_fd(descriptor, events),
        }
    }

    pub(super) fn with_output(self, stream: Stream) -> Watched<'a> {
        Watched {
            output: Some(stream),
            ..self
        }
    }
}

/// A job's PE processes. Dropping it ends them.
pub(super) trait ProcessGroup {
    /// Adds the descriptors to poll now.
    fn watch<'a>(&'a self, watched: &mut Vec<Watched<'a>>);

    /// Goes on with a descriptor that has become ready.
    fn handle_ready(&mut self, token: usize, events: &mut Vec<Event>) -> Result<()>;

    /// The output in earlier events has been passed on; more is welcome.
    fn output_taken(&mut self) {}

    /// Sends a signal to all PEs and the processes that they started.
    fn signal(&mut self, signal: Signal);

    /// Kills all PEs, also those that have left their group.
    fn kill(&mut self);

    /// Stops waiting for the ends of processes that were killed some time ago.
    fn abandon(&mut self, _events: &mut Vec<Event>) {}

    /// The time at which [`expire`](ProcessGroup::expire) is to be called, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Fails what should have happened by `now`.
    fn expire(&mut self, _now: Instant, _events: &mut Vec<Event>) {}

    /// All PEs have ended: ends the processes that they left running. Output that was written before is still read.
    fn finish(&mut self, events: &mut Vec<Event>);

    /// Whether, after [`finish`](ProcessGroup::finish), all output has been read.
    fn is_finished(&self) -> bool;
}
