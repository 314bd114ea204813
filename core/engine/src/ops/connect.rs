//! Connecting an endpoint with a PE: at the first operation towards it, and again after an interruption.

use std::time::Duration;

use oxshmem_transport::Pe;

use crate::control::message::ControlRequest;
use crate::error::{Error, Result};
use crate::lane::remote::LanePeer;
use crate::report;
use crate::worker::Worker;

/// The longest wait for the reply of a PE with which a connection is made again. Its bootstrap's service replies at once,
/// if it lives; a host that has died says nothing.
const RECONNECT_DELAY: Duration = Duration::from_secs(10);

impl Worker {
    /// Connects a lane with a PE, whose bootstrap's service replies.
    #[cold]
    pub(crate) fn connect(&self, peer: LanePeer<'_>) -> Result<()> {
        let LanePeer { pe, .. } = peer;
        self.try_connect(peer, None).map_err(|error| match error {
            // A PE that is about to exit refuses, and the address of one that has exited since its reply is
            // useless.
            Error::Transport(_) | Error::FailedElsewhere { .. }
                if pe != self.engine.me && self.exit_was_reported(pe) =>
            {
                Error::PeerLost {
                    call: self.call(),
                    pe,
                }
            }
            Error::Transport(error) => self.refusal(pe, error),
            error => error,
        })
    }

    /// Connects a lane again whose connection with a PE was interrupted. If that cannot be, the PE is lost.
    #[cold]
    pub(crate) fn reconnect(&self, peer: LanePeer<'_>) {
        let LanePeer { endpoint, pe } = peer;
        if self.engine.liveness.is_lost(pe) {
            // The lane has cancelled what it kept.
            return;
        }
        // Their replies came by the old connection, and may have been lost with it.
        let connected = if self.has_unanswered_messages(peer) {
            Err("active messages are unanswered".to_owned())
        } else {
            let connected = self.try_connect(peer, Some(RECONNECT_DELAY));
            connected.map_err(|error| error.to_string())
        };
        match connected {
            Ok(()) => report::info(&format!(
                "the {} connection with PE {pe} was made again",
                endpoint.name
            )),
            Err(why) => {
                report::info(&format!(
                    "the {} connection with PE {pe} cannot be made again: {why}",
                    endpoint.name
                ));
                self.report_unreachable(pe);
            }
        }
    }

    fn try_connect(&self, peer: LanePeer<'_>, limit: Option<Duration>) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        let address = endpoint.local_address(self.call(), pe)?;
        let reply = if pe == self.engine.me {
            endpoint.domain.accept(Pe(pe as u32), &address)?
        } else {
            let request = ControlRequest::Connect {
                transport: endpoint.name.into(),
                endpoint: address,
            };
            let what = format!("its answer to a {} lane", endpoint.name);
            let pending = self.begin_call(pe, request)?;
            self.await_reply_within(pending, &what, limit)?
        };
        endpoint.connect(self.call(), pe, &reply)
    }
}
