//! Connecting an endpoint with a PE: at the first operation towards it, and again after an interruption.

use std::fmt::Display;

use oxshmem_transport::Pe;

use crate::control::message::ControlRequest;
use crate::control::pending::PendingCall;
use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::reconnections::Outcome;
use crate::lane::remote::LanePeer;
use crate::report;
use crate::worker::Worker;

impl Worker {
    /// Connects a lane with a PE, whose bootstrap's service replies.
    #[cold]
    pub(crate) fn connect(&self, peer: LanePeer<'_>) -> Result<()> {
        let LanePeer { pe, .. } = peer;
        self.try_connect(peer).map_err(|error| match error {
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

    /// Begins to connect a lane again whose connection with a PE was interrupted; [`end_reconnects`](Self::end_reconnects)
    /// ends it. If it cannot be, the PE is lost.
    #[cold]
    pub(crate) fn begin_reconnect(&self, peer: LanePeer<'_>) {
        let LanePeer { endpoint, pe } = peer;
        if self.engine.liveness.is_lost(pe) {
            // The lane has cancelled what it kept.
            return;
        }
        // Waits are to drive it on.
        self.state.lanes.set_busy();
        // Their replies came by the old connection, and may have been lost with it.
        if self.has_unanswered_messages(peer) {
            self.reconnected(peer, Err("active messages are unanswered"));
        } else if pe == self.engine.me {
            let connected = self.try_connect(peer);
            self.reconnected(peer, connected);
        } else {
            match self.request_connection(peer) {
                Ok(request) => endpoint.begin_reconnection(request),
                Err(error) => self.reconnected(peer, Err(error)),
            }
        }
    }

    /// Ends the connections of a lane that are being made again, as far as PEs have replied, or have not replied in time.
    #[cold]
    pub(crate) fn end_reconnects(&self, endpoint: &Endpoint) {
        let is_lost = |pe| self.engine.liveness.is_lost(pe);
        while let Some((pe, outcome)) = endpoint.ended_reconnection(is_lost) {
            let peer = LanePeer { endpoint, pe };
            match outcome {
                // The lane has cancelled what it kept.
                Outcome::Lost => {}
                Outcome::Late => self.reconnected(peer, Err("it does not reply")),
                Outcome::Replied(Err(why)) => self.reconnected(peer, Err(why)),
                Outcome::Replied(Ok(address)) => {
                    self.reconnected(peer, endpoint.connect(self.call(), pe, &address));
                }
            }
        }
    }

    /// A connection was made again, or cannot be: then its PE is lost.
    fn reconnected(&self, peer: LanePeer<'_>, connected: Result<(), impl Display>) {
        let LanePeer { endpoint, pe } = peer;
        let name = endpoint.name;
        match connected {
            Ok(()) => report::info(&format!(
                "the {name} connection with PE {pe} was made again"
            )),
            Err(why) => {
                report::info(&format!(
                    "the {name} connection with PE {pe} cannot be made again: {why}"
                ));
                self.report_unreachable(pe);
            }
        }
    }

    fn try_connect(&self, peer: LanePeer<'_>) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        let reply = if pe == self.engine.me {
            let address = endpoint.local_address(self.call(), pe)?;
            endpoint.domain.accept(Pe(pe as u32), &address)?
        } else {
            let what = format!("its answer to a {} lane", endpoint.name);
            self.await_reply(self.request_connection(peer)?, &what)?
        };
        endpoint.connect(self.call(), pe, &reply)
    }

    /// Asks another PE to accept a lane.
    fn request_connection(&self, peer: LanePeer<'_>) -> Result<PendingCall> {
        let LanePeer { endpoint, pe } = peer;
        let request = ControlRequest::Connect {
            transport: endpoint.name.into(),
            endpoint: endpoint.local_address(self.call(), pe)?,
        };
        self.begin_call(pe, request)
    }
}
