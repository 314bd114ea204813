//! Remote procedure calls over the bootstrap, once the job runs. They reach a PE that makes no
//! call: the bootstrap's service replies.

use std::time::Duration;

use crate::control::message::{ControlRequest, Message};
use crate::control::pending::PendingCall;
use crate::error::{Error, Result};
use crate::progress::long_wait::LongWait;
use crate::progress::long_waits::WaitedFor;
use crate::worker::Worker;

/// The time between two checks of liveness in a wait for a reply.
const SLICE: Duration = Duration::from_millis(20);

/// The bootstrap's error, in a call that needs a PE which is gone.
pub(crate) fn of_bootstrap(call: &'static str, error: oxshmem_bootstrap::Error) -> Error {
    match error {
        oxshmem_bootstrap::Error::PeerGone { rank, .. } => Error::PeerLost {
            call,
            pe: rank as usize,
        },
        other => other.into(),
    }
}

impl Worker {
    /// Sends a message to a PE.
    pub fn send(&self, to: usize, message: &Message) -> Result<()> {
        let sent = self.engine.bootstrap.send(to as u32, &message.to_bytes());
        sent.map_err(|error| of_bootstrap(self.call(), error))
    }

    /// Sends a request to a PE, and waits for its reply. The PE need make no call for it, so that nothing
    /// simulated takes part in this wait. `what` describes the reply in reports of the wait.
    pub(crate) fn call_peer(
        &self,
        pe: usize,
        request: ControlRequest,
        what: &str,
    ) -> Result<Vec<u8>> {
        let pending = self.begin_call(pe, request)?;
        self.await_reply(pending, what)
    }

    /// Sends a request to a PE; [`await_reply`](Self::await_reply) waits for the reply.
    pub(crate) fn begin_call(&self, pe: usize, request: ControlRequest) -> Result<PendingCall> {
        let pending = self.engine.requests.begin(pe);
        self.send(pe, &Message::Request(pending.number, request))?;
        Ok(pending)
    }

    /// Waits for the reply to a request.
    pub(crate) fn await_reply(&self, pending: PendingCall, what: &str) -> Result<Vec<u8>> {
        let pe = pending.pe;
        let requests = &self.engine.requests;
        let mut wait = LongWait::new(&self.engine, self.call());
        let mut open = requests.open();
        let reply = loop {
            if let Some(reply) = open.take_reply(pending.number) {
                break reply.map_err(|why| Error::FailedElsewhere {
                    call: self.call(),
                    pe,
                    why,
                });
            }
            if self.engine.liveness.is_lost(pe) {
                break Err(Error::PeerLost {
                    call: self.call(),
                    pe,
                });
            }
            if let Err(error) = wait.goes_on(&|| (WaitedFor::Lane(pe), what.into())) {
                break Err(error);
            }
            open = requests.wait(open, SLICE);
        };
        // Before `pending` is dropped, which takes the lock.
        drop(open);
        reply
    }
}
