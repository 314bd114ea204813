//! The requests of this PE that have no reply yet. State only; the calls lie in [`control`](super).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The requests of this PE that have no reply yet.
#[derive(Clone, Default)]
pub struct ControlRequests(Arc<Inner>);

#[derive(Default)]
struct Inner {
    open: Mutex<OpenRequests>,
    changed: Condvar,
}

/// The reply, or the reason why there is none.
pub(crate) type Reply = Result<Vec<u8>, String>;

#[derive(Default)]
pub(crate) struct OpenRequests {
    last: u64,
    /// By number: the PE that each request went to, and its reply.
    requests: HashMap<u64, (usize, Option<Reply>)>,
}

impl fmt::Debug for ControlRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlRequests").finish_non_exhaustive()
    }
}

impl OpenRequests {
    /// The reply to a request, once.
    pub(crate) fn take_reply(&mut self, number: u64) -> Option<Reply> {
        let (_, reply) = self.requests.get_mut(&number)?;
        reply.take()
    }
}

impl ControlRequests {
    pub(crate) fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request to a PE, with a number of its own.
    pub(crate) fn begin(&self, pe: usize) -> PendingCall {
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.requests.insert(number, (pe, None));
        PendingCall {
            requests: self.clone(),
            pe,
            number,
        }
    }

    /// The number of requests that were made, for a test.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn made(&self) -> u64 {
        self.open().last
    }

    /// A reply has arrived.
    pub fn answered(&self, from: usize, number: u64, reply: Reply) {
        // A reply to a request that was cancelled counts no more.
        if let Some((pe, slot)) = self.open().requests.get_mut(&number)
            && *pe == from
        {
            *slot = Some(reply);
            self.0.changed.notify_all();
        }
    }

    /// Waits for a while, or until a reply arrives.
    pub(crate) fn wait<'a>(
        &'a self,
        open: MutexGuard<'a, OpenRequests>,
        limit: Duration,
    ) -> MutexGuard<'a, OpenRequests> {
        let waited = self.0.changed.wait_timeout(open, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A request that was sent. Dropped, it is cancelled.
#[must_use]
pub(crate) struct PendingCall {
    requests: ControlRequests,
    pub(crate) pe: usize,
    pub(crate) number: u64,
}

impl PendingCall {
    /// The reply, once, if it has arrived.
    pub(crate) fn take_reply(&self) -> Option<Reply> {
        self.requests.open().take_reply(self.number)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.requests.open().requests.remove(&self.number);
    }
}
