//! Connecting an endpoint with a PE, at the first operation towards it.

use oxshmem_transport::Pe;

use crate::control::message::ControlRequest;
use crate::error::{Error, Result};
use crate::lane::remote::LanePeer;
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

    fn try_connect(&self, peer: LanePeer<'_>) -> Result<()> {
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
            self.call_peer(pe, request, &what)?
        };
        endpoint.connect(self.call(), pe, &reply)
    }
}
