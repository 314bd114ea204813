//! What a supervisor knows of the PEs' processes, wherever they run.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::How;
use crate::Result;

/// One of a PE's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(super) const BOTH: [Stream; 2] = [Stream::Out, Stream::Err];
}

/// News of a crew.
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
    Ended { rank: u32, how: How },
    /// A line to show the user.
    Note(String),
    /// A host's PEs could not be started or are out of reach; those that still ran count as ended.
    HostFailed {
        host: String,
        status: i32,
        why: String,
    },
}

/// A descriptor to wait for, and what to call [`Crew::act`] with once it is ready.
pub(super) struct Watched<'a> {
    pub(super) token: usize,
    /// What becoming ready would bring more of: no sense in it while that cannot be passed on.
    pub(super) brings: Option<Stream>,
    pub(super) wait: PollFd<'a>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(token: usize, descriptor: BorrowedFd<'a>, events: PollFlags) -> Watched<'a> {
        Watched {
            token,
            brings: None,
            wait: PollFd::from_borrowed_fd(descriptor, events),
        }
    }

    pub(super) fn bringing(self, stream: Stream) -> Watched<'a> {
        Watched {
            brings: Some(stream),
            ..self
        }
    }
}

/// A job's processes. Dropping it ends them.
pub(super) trait Crew {
    /// Adds what is to be waited for now.
    fn watch<'a>(&'a self, watched: &mut Vec<Watched<'a>>);

    /// Goes on with what has become ready.
    fn act(&mut self, token: usize, heard: &mut Vec<Event>) -> Result<()>;

    /// The output that was heard has been passed on; more is welcome.
    fn go_on(&mut self) {}

    /// Sends a signal to all PEs and what they started.
    fn signal(&mut self, signal: Signal);

    /// Kills all PEs, those that have left their group too.
    fn kill(&mut self);

    /// Waits no longer for processes that were killed some time ago and have not been heard of.
    fn abandon(&mut self, _heard: &mut Vec<Event>) {}

    /// When [`expire`](Crew::expire) is to be called, if nothing happens before.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Gives up what should have happened by `now`.
    fn expire(&mut self, _now: Instant, _heard: &mut Vec<Event>) {}

    /// All PEs have ended: ends what they left running. What they have said already is still heard.
    fn wind_up(&mut self, heard: &mut Vec<Event>);

    /// Whether, after [`wind_up`](Crew::wind_up), all has been heard.
    fn is_wound_up(&self) -> bool;
}
