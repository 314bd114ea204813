use std::fmt;
use std::time::Duration;

use crate::{Pe, Remote, Result};

/// What goes back to the sender of a message: two words of 8 bytes, aligned, in a region of its own
/// that it exported to this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Where the value goes.
    pub to: Remote,
    /// The value.
    pub value: u64,
    /// Where the number goes. Who sees it there sees the value (as M22).
    pub done: Remote,
    /// The number by which the sender knows that its message was served.
    pub number: u64,
}

/// The messages that come to a PE. One owner at a time.
///
/// Answers leave by the way that the message came, and are sent by the calls made here: who serves
/// goes on calling. What cannot be sent because its PE is lost is given up.
pub trait Inbox: Send + fmt::Debug {
    /// Takes a bounded number of the messages that have come, in the order of each sender, and sends
    /// what `serve` answers to each. Gives how many were taken; 0 says that nothing is left to do
    /// until something comes.
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize>;

    /// Sleeps until something may have come, at most `timeout`. After
    /// [`shutdown`](crate::Domain::shutdown), which ends the sleep, it is
    /// [`Error::Closed`](crate::Error::Closed).
    fn wait(&mut self, timeout: Duration) -> Result<()>;
}
