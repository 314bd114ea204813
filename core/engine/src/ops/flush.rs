//! Flushing an endpoint towards one PE: all operations posted to it are placed (M27).

use oxshmem_transport::{MemoryKind, Op};

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::in_flight::{Effect, Until};
use crate::lane::remote::LanePeer;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;
use crate::worker::Worker;

impl Worker {
    /// Orders earlier operations before one that is about to be posted: this PE's own stores, which the NIC
    /// may read or overtake, and the operations that a fence left in flight on other endpoints.
    pub(crate) fn before_posting(&self, peer: LanePeer<'_>) -> Result<()> {
        self.cpu_fence(FenceSite::Doorbell);
        self.flush_fenced(peer.pe, Some(peer.endpoint))
    }

    /// Flushes the endpoints on which a fence left operations in flight to a PE, but `except`, which preserves
    /// the order itself.
    pub(crate) fn flush_fenced(&self, pe: usize, except: Option<&Endpoint>) -> Result<()> {
        if !self.state.lanes.has_fenced.get() {
            return Ok(());
        }
        for endpoint in &self.state.lanes.endpoints {
            let itself = except.is_some_and(|except| std::ptr::eq(endpoint, except));
            if !itself && endpoint.is_fenced(pe) {
                self.flush(LanePeer { endpoint, pe })?;
            }
        }
        Ok(())
    }

    /// Waits until all operations that this context posted to a PE are placed (M27).
    pub(crate) fn flush(&self, peer: LanePeer<'_>) -> Result<()> {
        let flushed = self.try_flush(peer);
        if flushed.is_err() {
            self.cancel_messages();
        }
        flushed
    }

    fn try_flush(&self, peer: LanePeer<'_>) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        self.post_deferred(peer)?;
        let Some(target) = endpoint.flush_target(peer.id()) else {
            return Ok(());
        };
        let target = target.map_err(|why| endpoint.failed(self.call(), why))?;
        if let Some(error) = self.failure_of(peer) {
            // Reported once: the operations in flight failed with the connection.
            endpoint.cancel(pe);
            return Err(error);
        }
        if endpoint.has_cancelled_messages(pe) {
            return Err(Error::PeerLost {
                call: self.call(),
                pe,
            });
        }
        let updates = endpoint.updates(pe);
        if updates.has(OpKind::Message, MemoryKind::Host) {
            // Puts may be in flight from memory that the caller is about to reuse.
            let replied = self.await_replies(pe);
            self.fail_or_complete(peer, replied)?;
        }
        // A message with a reply is done; nothing else is in flight then.
        if !endpoint.only_messages(pe) {
            if endpoint.completion_is_placement(pe, updates) {
                endpoint.request_completion(peer.id());
                let result = self.await_completions(peer, target);
                self.fail_or_complete(peer, result)?;
            } else {
                // SAFETY: a flush has no local memory.
                unsafe { self.post(peer, Op::Flush, Until::Completed, Effect::Read)? };
            }
        }
        endpoint.complete(pe);
        Ok(())
    }

    /// A quiet without its flush, in a mutation check: completions are waited for, so that nothing touches
    /// local memory afterwards.
    pub(crate) fn complete_without_flush(&self, peer: LanePeer<'_>) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        self.post_deferred(peer)?;
        if let Some(target) = endpoint.flush_target(peer.id()) {
            let target = target.map_err(|why| endpoint.failed(self.call(), why))?;
            endpoint.request_completion(peer.id());
            self.await_completions(peer, target)?;
            endpoint.complete(pe);
        }
        Ok(())
    }
}
