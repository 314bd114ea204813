//! Posting operations on a context's endpoints, and waiting for their completions.
//!
//! Posting never blocks: a full lane is progressed and tried again under the waiting rules of [`crate::progress`].

use oxshmem_transport::{Op, Status};

use crate::error::Result;
use crate::lane::endpoint::Endpoint;
use crate::lane::in_flight::{Effect, Issued, Until};
use crate::lane::lane_state::PollOutcome;
use crate::lane::remote::LanePeer;
use crate::order::op_set::OpSet;
use crate::progress::long_waits::WaitedFor;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::worker::Worker;

/// Polls of one lane alone before a wait progresses all else, where PEs have CPUs enough.
const POLLS: u32 = 256;
/// The largest nonblocking transfer that is posted together with others, in bytes.
const MAX_BATCHED: usize = 4096;

impl Worker {
    /// Posts one operation and waits as `until` says.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`]; unless it is [`Until::Posted`] the local memory need only be
    /// valid during this call: if it fails, the lane has been dropped or has cancelled the operations.
    pub unsafe fn post(
        &self,
        peer: LanePeer<'_>,
        op: Op,
        until: Until,
        effect: Effect,
    ) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        let _traced = endpoint.traced(&op, pe, until != Until::Posted, effect);
        self.before_posting(peer, &op)?;
        let updates = !effect.updates().is_empty();
        let wanted = (until, updates);
        // SAFETY: the caller's promise.
        let tried = unsafe { endpoint.post_and_poll(peer.id(), &op, wanted, self.lane_polls()) };
        let (target, outcome) = match tried {
            Ok(Some(posted)) => posted,
            // SAFETY: as above.
            Ok(None) => unsafe { self.post_when_free(peer, op, wanted)? },
            Err(error) => {
                // A lane with a failure needs progress.
                self.state.lanes.set_busy();
                return Err(self.refusal(pe, error));
            }
        };
        if updates || outcome != PollOutcome::Reached || until == Until::Posted {
            self.state.lanes.set_busy();
        }
        self.note_effect(peer, effect);
        if outcome == PollOutcome::Reached {
            return Ok(());
        }
        self.note_failed_poll(outcome);
        let reached = self.await_count(peer, target, until);
        self.fail_or_complete(peer, reached)
    }

    /// Posts an operation that the lane did not accept at once. Gives the same as [`Endpoint::post_and_poll`], without the
    /// polls.
    ///
    /// # Safety
    ///
    /// As for [`post`](Self::post).
    #[cold]
    unsafe fn post_when_free(
        &self,
        peer: LanePeer<'_>,
        op: Op,
        (until, updates): (Until, bool),
    ) -> Result<(u64, PollOutcome)> {
        let LanePeer { endpoint, pe } = peer;
        if endpoint.needs_connection(pe) {
            self.connect(peer)?;
        }
        let mut target = 0;
        let posted = self.await_credits(peer, || {
            // SAFETY: the caller's promise.
            let posted = unsafe { endpoint.post(peer.id(), op) };
            // A full lane has earlier operations, which need progress.
            self.state.lanes.set_busy();
            match posted {
                Err(why) => Some(Err(endpoint.failed(self.call(), why))),
                Ok((Status::All, posted)) => {
                    target = posted;
                    Some(Ok(()))
                }
                Ok((Status::Full, _)) => self.failure_of(peer).map(Err),
                Ok((Status::Refused(error), _)) => Some(Err(self.refusal(pe, error))),
            }
        });
        // An operation that was not accepted touches nothing; callers post one at a time.
        posted.and_then(|inner| inner)?;
        if until == Until::Posted {
            return Ok((target, PollOutcome::Reached));
        }
        // A read completes by its data, without such a request.
        if updates {
            endpoint.request_completion(peer.id());
        }
        Ok((target, PollOutcome::Pending))
    }

    /// Posts a nonblocking operation of `len` bytes, which a later quiet completes; a small one together with
    /// others.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    pub(crate) unsafe fn post_nbi(
        &self,
        peer: LanePeer<'_>,
        op: Op,
        len: usize,
        effect: Effect,
    ) -> Result<()> {
        if len <= MAX_BATCHED {
            // SAFETY: the caller's promise.
            unsafe { self.post_batched(peer, op, effect) }
        } else {
            // SAFETY: as above.
            unsafe { self.post(peer, op, Until::Posted, effect) }
        }
    }

    /// Posts an operation together with others, if the lane gains by that.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    pub(crate) unsafe fn post_batched(
        &self,
        peer: LanePeer<'_>,
        op: Op,
        effect: Effect,
    ) -> Result<()> {
        let LanePeer { endpoint, pe, .. } = peer;
        if !endpoint.needs_connection(pe) {
            self.before_posting(peer, &op)?;
            // SAFETY: the caller's promise.
            if unsafe { endpoint.defer(pe, op) } {
                drop(endpoint.traced(&op, pe, false, effect));
                self.state.lanes.set_busy();
                self.note_effect(peer, effect);
                return Ok(());
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.post(peer, op, Until::Posted, effect) }
    }

    /// Posts the deferred operations towards a PE, before a wait; an error if one was refused.
    pub(crate) fn post_deferred(&self, peer: LanePeer<'_>) -> Result<()> {
        self.await_credits(peer, || match self.try_post_deferred(peer) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })?
    }

    /// Posts the deferred operations towards a PE as far as there are credits; an error if one was refused. Gives whether
    /// none is left.
    pub(crate) fn try_post_deferred(&self, peer: LanePeer<'_>) -> Result<bool> {
        let LanePeer { endpoint, pe } = peer;
        if !endpoint.post_deferred(pe) {
            return self.failure_of(peer).map_or(Ok(false), Err);
        }
        let Some(refusal) = endpoint.take_refusal(pe) else {
            return Ok(true);
        };
        if endpoint.failure_towards(pe).is_some() {
            // Before the operations that it may wait for are forgotten.
            self.notify_stranded_peers(endpoint);
            // Reported once: the operations in flight failed with the connection.
            endpoint.cancel(pe);
        }
        Err(self.refusal(pe, refusal))
    }

    /// Waits until an endpoint has credits for operations to a PE, or `ready` finds another end.
    pub(crate) fn await_credits<R>(
        &self,
        peer: LanePeer<'_>,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        let describe = || {
            (
                WaitedFor::Lane(peer.pe),
                format!("room on the {} lane", peer.endpoint.name),
            )
        };
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Lane(peer.pe),
            describe: &describe,
        };
        self.wait(&reason, None, ready)
    }

    /// Waits until `target` operations to a PE have completed.
    pub(crate) fn await_completions(&self, peer: LanePeer<'_>, target: u64) -> Result<()> {
        self.await_count(peer, target, Until::Completed)
    }

    /// Waits until `target` operations to a PE have come so far.
    fn await_count(&self, peer: LanePeer<'_>, target: u64, until: Until) -> Result<()> {
        let LanePeer { endpoint, pe } = peer;
        let rounds = self.lane_polls();
        if rounds > 0 {
            let outcome = endpoint.poll_until(peer.id(), (target, until), rounds);
            if outcome == PollOutcome::Reached {
                return Ok(());
            }
            self.note_failed_poll(outcome);
        }
        let describe = || {
            (
                WaitedFor::Lane(pe),
                format!("{target} completions on the {} lane", endpoint.name),
            )
        };
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Lane(pe),
            describe: &describe,
        };
        self.wait(&reason, None, || match endpoint.count(peer.id(), until) {
            Ok(count) if count >= target => Some(Ok(())),
            Ok(_) => self.failure_of(peer).map(Err),
            Err(why) => Some(Err(endpoint.failed(self.call(), why))),
        })?
    }

    /// Notes the work that an operation leaves for a later fence or quiet.
    #[inline]
    pub fn note_effect(&self, peer: LanePeer<'_>, effect: Effect) {
        if matches!(effect, Effect::Read) {
            return;
        }
        let updates = effect.updates();
        // Only the ordered model's fence orders nonblocking operations (M18).
        let is_ordered = self.ordered || matches!(effect, Effect::Write(_));
        let ordered = if is_ordered { updates } else { OpSet::NONE };
        let issued = Issued {
            updates,
            ordered,
            fetches: matches!(effect, Effect::FetchNbi(_)),
        };
        peer.endpoint.note_issued(peer.pe, issued);
    }

    /// Polls of a lane before all else: none where PEs share CPUs or are scheduled.
    #[inline]
    fn lane_polls(&self) -> u32 {
        match self.engine.schedule {
            None => self.engine.lane_spin.min(POLLS),
            Some(_) => 0,
        }
    }

    /// Drives the operations in flight on this context's lanes, as waits on it do: for a thread that waits on
    /// one context for an effect of another's operations.
    #[inline]
    pub fn progress(&self) {
        if self.state.lanes.want_progress() {
            self.progress_lanes();
        }
    }

    fn progress_lanes(&self) {
        let idle = self.is_idle();
        let driven = |endpoint: &&Endpoint| !idle || endpoint.caps.moves_in_calls;
        let endpoints = self.state.lanes.endpoints.iter().filter(driven);
        endpoints.for_each(|endpoint| self.progress_endpoint(endpoint));
    }
}
