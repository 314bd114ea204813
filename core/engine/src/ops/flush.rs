//! Flushing endpoints: all operations posted to a PE are placed (M27).
//!
//! A flush has two steps. It is begun by one operation of the lane, and ended by a wait for that operation's completion and
//! for the replies to messages. A fence or quiet begins all its flushes before it ends the first: so they take one round
//! trip together, however many PEs they go to.

use oxshmem_transport::{Counters, MemoryKind, Op, Status};

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::flush_state::{BegunFlush, FlushState};
use crate::lane::in_flight::Effect;
use crate::lane::remote::LanePeer;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;
use crate::peer::pe_set::Towards;
use crate::worker::Worker;

impl Worker {
    /// Orders earlier operations before one that is about to be posted: this PE's own stores, which the NIC
    /// may read or overtake, and the operations that a fence left in flight on other endpoints, or on this one if it is a long
    /// operation.
    #[inline]
    pub(crate) fn before_posting(&self, peer: LanePeer<'_>, op: &Op) -> Result<()> {
        self.cpu_fence(FenceSite::Doorbell);
        if !self.state.lanes.has_fenced.get() {
            return Ok(());
        }
        let keeps_order = (!peer.endpoint.is_long(op)).then_some(peer.endpoint);
        self.flush_fenced(peer.pe, keeps_order)
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
        let begun = self.begin_flush(peer);
        let flushed = begun.and_then(|state| self.end_flush(peer, state));
        if flushed.is_err() {
            self.cancel_messages();
        }
        flushed
    }

    /// [Flushes](Self::flush) those endpoints and PEs with operations in flight that are `due`: each flush is posted before
    /// any is awaited. A failure does not keep the others from being made; `failed` gets each.
    pub(crate) fn flush_all<'w>(
        &'w self,
        due: impl Fn(LanePeer<'w>) -> bool,
        mut failed: impl FnMut(LanePeer<'w>, Error),
    ) {
        let lanes = &self.state.lanes;
        // Memory of the context's own: a quiet allocates nothing.
        let mut flushes = lanes.flushes.take();
        let mut outcome = |peer, result: Result<FlushState>| {
            result.unwrap_or_else(|error| {
                self.cancel_messages();
                failed(peer, error);
                FlushState::Clean
            })
        };
        for endpoint in &lanes.endpoints {
            for pe in endpoint.peers_in_flight() {
                let peer = LanePeer { endpoint, pe };
                if !due(peer) {
                    continue;
                }
                let state = outcome(peer, self.try_begin_flush(peer));
                if state != FlushState::Clean {
                    flushes.push(BegunFlush {
                        endpoint: endpoint.index,
                        pe,
                        state,
                    });
                }
            }
        }
        let peer_of = |flush: &BegunFlush| {
            let endpoint = lanes.endpoints.get(flush.endpoint)?;
            let pe = flush.pe;
            Some(LanePeer { endpoint, pe })
        };
        // The lanes make room while the other flushes are under way.
        for flush in &mut flushes {
            if flush.state == FlushState::Full
                && let Some(peer) = peer_of(flush)
            {
                flush.state = outcome(peer, self.begin_flush(peer));
            }
        }
        for flush in flushes.drain(..) {
            if let Some(peer) = peer_of(&flush) {
                let ended = self.end_flush(peer, flush.state);
                outcome(peer, ended.map(|()| FlushState::Clean));
            }
        }
        lanes.flushes.replace(flushes);
    }

    /// Begins a flush; waits while the lane is full.
    fn begin_flush(&self, peer: LanePeer<'_>) -> Result<FlushState> {
        let begun = self.await_credits(peer, || match self.try_begin_flush(peer) {
            Ok(FlushState::Full) => None,
            begun => Some(begun),
        });
        match begun {
            Ok(begun) => begun,
            Err(error) => self
                .fail_or_complete(peer, Err(error))
                .and(Ok(FlushState::Clean)),
        }
    }

    /// Begins a flush if the lane is not full.
    fn try_begin_flush(&self, peer: LanePeer<'_>) -> Result<FlushState> {
        let LanePeer { endpoint, pe } = peer;
        if !self.try_post_deferred(peer)? {
            return Ok(FlushState::Full);
        }
        let Some(target) = self.flush_target(peer)? else {
            return Ok(FlushState::Clean);
        };
        // A message with a reply is done; nothing else is in flight then.
        if endpoint.only_messages(pe) {
            return Ok(FlushState::Posted { target: 0 });
        }
        if endpoint.completion_is_placement(pe, endpoint.updates(pe)) {
            endpoint.request_completion(peer.id());
            return Ok(FlushState::Posted { target });
        }
        self.cpu_fence(FenceSite::Doorbell);
        // A full lane has earlier operations, which need progress.
        self.state.lanes.set_busy();
        // SAFETY: a flush has no local memory.
        match unsafe { endpoint.post(peer.id(), Op::Flush) } {
            Ok((Status::All, target)) => Ok(FlushState::Posted { target }),
            Ok((Status::Full, _)) => match self.failure_of(peer) {
                Some(error) => Err(error),
                None => Ok(FlushState::Full),
            },
            Ok((Status::Refused(error), _)) => {
                let error = self.refusal(pe, error);
                self.fail_or_complete(peer, Err(error))
                    .and(Ok(FlushState::Clean))
            }
            Err(why) => Err(endpoint.failed(self.call(), why)),
        }
    }

    /// The number of operations towards a PE that a flush must see completed; none if nothing is in flight. An error if
    /// some of them failed.
    fn flush_target(&self, peer: LanePeer<'_>) -> Result<Option<u64>> {
        let LanePeer { endpoint, pe } = peer;
        let Some(target) = endpoint.flush_target(peer.id()) else {
            return Ok(None);
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
        Ok(Some(target))
    }

    /// Ends a flush: waits until all operations in flight when it was begun are placed.
    fn end_flush(&self, peer: LanePeer<'_>, state: FlushState) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        let FlushState::Posted { target } = state else {
            return Ok(());
        };
        let messages = endpoint.updates(pe).has(OpKind::Message, MemoryKind::Host);
        let is_complete = |counters: Counters| counters.completed >= target;
        if messages || !endpoint.counters(peer.id()).is_ok_and(is_complete) {
            // Others were awaited since it was begun: the lane may have failed meanwhile.
            if self.flush_target(peer)?.is_none() {
                return Ok(());
            }
            let _traced = endpoint.traced(&Op::Flush, pe, true, Effect::Read);
            if messages {
                // Puts may be in flight from memory that the caller is about to reuse.
                let replied = self.await_replies(pe);
                self.fail_or_complete(peer, replied)?;
            }
            if target > 0 {
                let completed = self.await_completions(peer, target);
                self.fail_or_complete(peer, completed)?;
            }
        }
        endpoint.complete(pe);
        Ok(())
    }

    /// A quiet without its flushes, in a mutation check: completions are waited for, so that nothing touches
    /// local memory afterwards.
    #[cold]
    pub(crate) fn complete_without_flushes(&self, towards: &Towards<'_>) -> Result<()> {
        for endpoint in &self.state.lanes.endpoints {
            let due = endpoint.peers_in_flight().filter(|pe| towards.has(*pe));
            for pe in due {
                self.complete_without_flush(LanePeer { endpoint, pe })?;
            }
        }
        Ok(())
    }

    fn complete_without_flush(&self, peer: LanePeer<'_>) -> Result<()> {
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
