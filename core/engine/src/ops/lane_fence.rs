//! Fence and quiet for lanes (M17, M19): each endpoint and PE in flight gets the flush that it needs.

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::remote::LanePeer;
use crate::ops::fence_plan::{FenceAction, FenceInput, fence_plan};
use crate::order::fence_site::FenceSite;
use crate::worker::Worker;

impl Worker {
    /// Fence for lanes (M17), as [`fence_plan`] decides.
    pub(crate) fn fence_lanes(&self) -> Result<()> {
        self.forget_lost();
        let lanes = &self.state.lanes;
        let stores_to_mapped = self.engine.simulation.is_some() || !self.engine.is_checked;
        for (transport, endpoint) in lanes.endpoints.iter().enumerate() {
            for pe in endpoint.peers_in_flight() {
                let input = FenceInput {
                    to_order: endpoint.to_order(pe),
                    transport,
                    paths: self.engine.routes.paths_to(pe),
                    is_own: pe == self.engine.me,
                    stores_to_mapped,
                };
                match fence_plan(input, |kind| endpoint.guarantees(pe, kind)) {
                    FenceAction::Nothing => {}
                    FenceAction::Flush(site) => {
                        if self.inserts(site) {
                            self.flush(LanePeer { endpoint, pe })?;
                        }
                    }
                    FenceAction::MarkFenced(site) => {
                        if self.inserts(site) {
                            endpoint.mark_fenced(pe);
                            lanes.has_fenced.set(true);
                        }
                    }
                }
            }
        }
        self.end_guarded()
    }

    /// Quiet for lanes, towards `only` or all.
    pub fn quiet_lanes(&self, only: Option<&[usize]>) -> Result<()> {
        self.forget_lost();
        let lanes = &self.state.lanes;
        let mut first = Ok(());
        for endpoint in &lanes.endpoints {
            for pe in endpoint.peers_in_flight() {
                if only.is_some_and(|list| !list.contains(&pe)) {
                    continue;
                }
                let peer = LanePeer { endpoint, pe };
                if !self.inserts(FenceSite::QuietLane) {
                    self.complete_without_flush(peer)?;
                    continue;
                }
                // A failure does not keep the other flushes from being made.
                let flushed = self.flush(peer);
                if flushed.is_err() {
                    endpoint.failure_was_reported(pe);
                }
                first = first.and(flushed);
            }
            while let Some(pe) = endpoint.cancelled_fetch(only) {
                endpoint.failure_was_reported(pe);
                first = first.and(Err(self.fetch_failure(LanePeer { endpoint, pe })));
            }
        }
        if self.ordered && self.inserts(FenceSite::QuietGpu) {
            let flushed = self.flush_gpus(only);
            first = first.and(flushed);
        }
        if lanes.gpu_gets_in_flight.get() {
            first = first.and(self.make_gpu_data_visible());
        }
        let ended = self.end_guarded();
        first.and(ended)?;
        if lanes.endpoints.iter().all(Endpoint::is_clean) {
            lanes.set_idle();
        }
        Ok(())
    }

    /// The error of a fetch from a PE that was cancelled.
    #[cold]
    fn fetch_failure(&self, peer: LanePeer<'_>) -> Error {
        let LanePeer { endpoint, pe } = peer;
        let why = endpoint.lane_failure();
        match why.or_else(|| endpoint.failure_towards(pe)) {
            Some(why) => endpoint.failed(self.call(), why),
            None => Error::PeerLost {
                call: self.call(),
                pe,
            },
        }
    }

    /// Has the GPUs that are due make visible the data that were placed in their memory (M27).
    fn flush_gpus(&self, only: Option<&[usize]>) -> Result<()> {
        let lanes = &self.state.lanes;
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        let due: Vec<usize> = {
            let due = lanes.gpu_flushes_due.borrow();
            due.iter().copied().filter(wanted).collect()
        };
        let mut first = Ok(());
        for pe in due {
            match self.request_gpu_flush(pe) {
                Ok(()) => {
                    lanes.gpu_flushes_due.borrow_mut().remove(&pe);
                }
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// Completes the operations in flight to PEs that have not left.
    pub fn drain_lanes(&self) -> Result<()> {
        let liveness = &self.engine.liveness;
        let mut first = Ok(());
        for endpoint in &self.state.lanes.endpoints {
            for pe in endpoint.peers_in_flight() {
                let flushed = self.flush(LanePeer { endpoint, pe });
                // A PE that has left in order has seen all that it waited for.
                let left = || self.exit_was_reported(pe) && !liveness.has_died(pe);
                if flushed.is_err() && !left() {
                    first = first.and(flushed);
                }
            }
        }
        first
    }
}
