//! Failures of lanes, connections and PEs: the errors of calls, and the notices to PEs that may wait for
//! operations that failed.

use std::fmt::Display;
use std::time::Duration;

use crate::control::message::Message;
use crate::error::{Error, Result};
use crate::lane::endpoint::{Endpoint, LaneFailure};
use crate::lane::lane_state::PollOutcome;
use crate::lane::remote::LanePeer;
use crate::progress::reason::WaitsOn;
use crate::worker::Worker;

/// Memory that a call has lent to a lane. Dropped only where the call panics: then the lane is, too.
struct Lent<'a> {
    worker: &'a Worker,
    peer: LanePeer<'a>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let why = "a call on it panicked".into();
        let panicked = self.peer.endpoint.failed("a call", why);
        let _ = self.worker.fail_or_complete(self.peer, Err(panicked));
    }
}

impl Worker {
    /// After a failure operations may be in flight on memory that is about to be reused. A lane cancels those
    /// towards a lost PE with its next step; else it is dropped, which waits for them.
    pub fn fail_or_complete(&self, peer: LanePeer<'_>, result: Result<()>) -> Result<()> {
        if let Err(error) = &result {
            let is_lost = matches!(error, Error::PeerLost { pe, .. } if *pe == peer.pe);
            self.cancel_in_flight(peer, error, is_lost);
        }
        result
    }

    /// Cancels the operations towards a PE that are in flight after a failure; `is_lost` says whether the failure is the
    /// PE's loss.
    #[cold]
    pub fn cancel_in_flight(&self, peer: LanePeer<'_>, why: &dyn Display, is_lost: bool) {
        let LanePeer { endpoint, pe, .. } = peer;
        if is_lost {
            self.progress_endpoint(endpoint);
        } else if endpoint.failure_towards(pe).is_none() {
            endpoint.fail(why);
        }
        // Else the transport has ended that connection, and with it the operations in flight there.
        self.notify_stranded_peers(endpoint);
    }

    /// Runs a call that lends the caller's memory to a lane, which touches it no more when this returns, nor when
    /// a panic leaves it.
    #[inline]
    pub fn lending<R>(&self, peer: LanePeer<'_>, run: impl FnOnce() -> R) -> R {
        let lent = Lent { worker: self, peer };
        let done = run();
        std::mem::forget(lent);
        done
    }

    /// Reports the PE whose connection a poll found failed.
    pub(crate) fn note_failed_poll(&self, outcome: PollOutcome) {
        if let PollOutcome::Failed(pe) = outcome {
            self.report_unreachable(pe.index());
        }
    }

    /// Drives one lane a step. It has then cancelled the operations in flight to every PE whose loss this PE
    /// knew of before.
    pub fn progress_endpoint(&self, endpoint: &Endpoint) {
        match endpoint.progress() {
            None => {}
            Some(LaneFailure::Peer(pe)) => self.report_unreachable(pe.index()),
            Some(LaneFailure::Connection) => self.notify_stranded_peers(endpoint),
            Some(LaneFailure::Interrupted(pe)) => {
                let pe = pe.index();
                self.begin_reconnect(LanePeer { endpoint, pe });
            }
            Some(LaneFailure::Reconnecting) => self.end_reconnects(endpoint),
        }
    }

    /// A PE does not answer a lane any more. The bootstrap reports its death or exit at about the same time; if
    /// it does not, that PE is lost to this one, and is notified: neither waits for the other, and a
    /// collective call, which needs them all, ends for all.
    #[cold]
    pub(crate) fn report_unreachable(&self, pe: usize) {
        if !self.engine.liveness.is_lost(pe) && !self.exit_was_reported(pe) {
            (self.engine.report_lost)(pe as u32);
        }
    }

    /// Whether the bootstrap reports the PE's end, too, not only a transport; it may take a moment. Then that PE is
    /// lost when this returns.
    #[cold]
    pub fn exit_was_reported(&self, pe: usize) -> bool {
        let liveness = &self.engine.liveness;
        let reported = liveness.exit_is_reported(pe);
        // The thread that has reported it is ending the paths that lead there.
        while reported && !liveness.is_lost(pe) {
            std::thread::sleep(Duration::from_millis(1));
        }
        reported
    }

    /// The error of a connection that has failed although the PE lives.
    pub(crate) fn failure_of(&self, peer: LanePeer<'_>) -> Option<Error> {
        let why = peer.endpoint.failure_towards(peer.pe)?;
        self.notify_stranded_peers(peer.endpoint);
        Some(peer.endpoint.failed(self.call(), why))
    }

    /// The error of an operation that a transport has refused towards a PE.
    #[cold]
    pub(crate) fn refusal(&self, pe: usize, error: oxshmem_transport::Error) -> Error {
        match error {
            oxshmem_transport::Error::PeerLost { .. } => {
                self.report_unreachable(pe);
                Error::PeerLost {
                    call: self.call(),
                    pe,
                }
            }
            error => error.into(),
        }
    }

    /// Notifies the PEs that may wait for operations in flight on a connection that has failed, though both live:
    /// those operations do not complete, and this PE is lost to them.
    #[cold]
    pub(crate) fn notify_stranded_peers(&self, endpoint: &Endpoint) {
        let stranded = endpoint.undelivered_peers().into_iter();
        for (pe, why) in stranded.filter(|(pe, _)| *pe != self.engine.me) {
            // A PE that is gone waits for nothing.
            let _ = self.send(pe, &Message::disconnect(&why));
        }
    }

    /// The reason why a collective call that needs these PEs cannot complete: operations to one of them, the
    /// call's own words perhaps, are in flight on a connection that has failed.
    #[cold]
    pub(crate) fn blocked_by_failed_lane(&self, needs: WaitsOn<'_>) -> Option<Error> {
        let liveness = &self.engine.liveness;
        let needed = |pe: usize| match needs {
            WaitsOn::Members(members) => members.rank_of(pe).is_some(),
            // A PE that has left in order has seen all that it waited for.
            WaitsOn::Finalizing => !self.exit_was_reported(pe) || liveness.has_died(pe),
            _ => false,
        };
        let mut endpoints = self.state.lanes.endpoints.iter();
        let (endpoint, (pe, why)) =
            endpoints.find_map(|endpoint| Some((endpoint, endpoint.stranded_peer(needed)?)))?;
        // The PE's exit may be the cause.
        Some(if self.exit_was_reported(pe) {
            Error::PeerLost {
                call: self.call(),
                pe,
            }
        } else {
            endpoint.failed(self.call(), why)
        })
    }

    /// Drops every lane of this context with operations in flight to `only` or any PE, so that none of them
    /// touches local memory any more.
    pub fn abandon_lanes(&self, why: &dyn Display, only: Option<&[usize]>) {
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        for endpoint in &self.state.lanes.endpoints {
            // The transport cancelled the operations on a connection that has failed; the next step of the lane
            // cancels those to a lost PE.
            let lost = |pe: usize| self.engine.liveness.is_lost(pe);
            let mut in_flight = endpoint.peers_in_flight().filter(wanted);
            if in_flight.any(|pe| !lost(pe) && endpoint.failure_towards(pe).is_none()) {
                endpoint.fail(why);
                // Before the operations that those PEs may wait for are forgotten.
                self.notify_stranded_peers(endpoint);
                // The caller gets `why`. The next quiet reports the operations to other PEs that were dropped
                // with the lane.
                endpoint.peers_in_flight().filter(wanted).for_each(|pe| {
                    endpoint.failure_was_reported(pe);
                    endpoint.cancel(pe);
                });
            } else if endpoint.peers_in_flight().filter(wanted).any(lost) {
                self.progress_endpoint(endpoint);
            }
        }
    }

    /// The context ends with operations that did not complete: PEs that may wait for those are notified.
    pub fn end_lanes(&self, why: &dyn Display) {
        let endpoints = self.state.lanes.endpoints.iter();
        for endpoint in endpoints.filter(|endpoint| !endpoint.is_clean()) {
            endpoint.fail(why);
            self.notify_stranded_peers(endpoint);
        }
    }

    /// Forgets the operations in flight to PEs whose loss was acknowledged since it last did so. The next quiet
    /// reports the fetches among them.
    #[inline]
    pub fn forget_lost(&self) {
        let now = self.engine.liveness.acknowledgements();
        if self.state.lanes.acknowledgements.replace(now) != now {
            self.forget_acknowledged();
        }
    }

    #[cold]
    fn forget_acknowledged(&self) {
        let (lanes, liveness) = (&self.state.lanes, &self.engine.liveness);
        // After this step no operation with a lost PE touches local memory: no call will wait for any.
        let endpoints = lanes.endpoints.iter();
        endpoints.for_each(|endpoint| self.progress_endpoint(endpoint));
        self.cancel_messages();
        for pe in (0..self.engine.n_pes()).filter(|&pe| liveness.is_acknowledged(pe)) {
            lanes
                .endpoints
                .iter()
                .for_each(|endpoint| endpoint.forget(pe));
            lanes.gpu_flushes_due.borrow_mut().remove(pe);
        }
    }
}
