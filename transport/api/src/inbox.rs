//! Messages between PEs: the inbox that takes them, and the replies to them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::op::Remote;
use crate::pe::Pe;

/// The reply to a message: two adjacent words of 8 bytes, the value and then the number, at a multiple of 16 bytes in
/// a region that the sender has exported to this PE. A sender that sees the number sees the value (as M22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The address of the value. The number lies behind it.
    pub to: Remote,
    /// The value.
    pub value: u64,
    /// The number by which the sender recognises that its message was served.
    pub number: u64,
}

impl Reply {
    /// Bytes of both words, and the alignment of the first.
    pub const BYTES: u64 = 16;
}

/// Serves a message where it arrives: from a PE, its bytes. Gives the reply, or nothing if the inbox is to have the message. It
/// does not block, and calls no domain or lane.
pub type ServeAtOnce = Arc<dyn Fn(Pe, &[u8]) -> Option<Reply> + Send + Sync>;

/// The inbox of a PE. One owner at a time.
///
/// Replies use the connection that the message arrived by. They are sent only inside [`drain`](Self::drain), so
/// its caller calls it until it gives 0. Replies to a lost PE are dropped.
pub trait Inbox: Send + fmt::Debug {
    /// Takes a bounded number of received messages, those of each sender in order, calls `handler` for each, and
    /// sends its reply. Gives the number of messages taken; 0 means that nothing is left to do until another
    /// arrives.
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize>;

    /// Sleeps until a message may have arrived, at most `timeout`. After
    /// [`shutdown`](crate::Domain::shutdown), which ends the sleep, it is
    /// [`Error::Closed`](crate::Error::Closed).
    fn wait(&mut self, timeout: Duration) -> Result<()>;

    /// Offers to serve messages where they arrive, in order with those that the inbox takes. Of use where
    /// [data move inside calls](crate::Capabilities::moves_in_calls): no other thread has to wake.
    fn serve_at_once(&mut self, _serve: ServeAtOnce) {}
}
