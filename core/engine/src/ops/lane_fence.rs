//! Fence and quiet for lanes (M17, M19): each endpoint and PE in flight gets the flush that it needs, and all these flushes
//! are posted before the first is awaited.

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::remote::LanePeer;
use crate::ops::fence_plan::{FenceAction, FenceInput, Preserved, fence_plan};
use crate::order::fence_site::FenceSite;
use crate::peer::pe_set::Towards;
use crate::worker::Worker;

impl Worker {
    /// Fence for lanes (M17), as [`fence_plan`] decides.
    pub(crate) fn fence_lanes(&self) -> Result<()> {
        self.forget_lost();
        let mut first = None;
        self.flush_all(
            |peer| self.fence_is_due(peer),
            |_, error| {
                first.get_or_insert(error);
            },
        );
        let ended = self.end_guarded();
        first.map_or(ended, Err)
    }

    /// Whether a fence needs a flush of an endpoint towards a PE now. It tells a lane that orders its puts itself, and
    /// marks an endpoint that needs a flush later.
    fn fence_is_due(&self, peer: LanePeer<'_>) -> bool {
        let LanePeer { endpoint, pe } = peer;
        let input = FenceInput {
            to_order: endpoint.to_order(pe),
            transport: endpoint.index,
            paths: self.engine.routes.paths_to(pe),
            long_may_follow: endpoint.has_long_operations(),
            is_own: pe == self.engine.me,
            stores_to_mapped: self.engine.simulation.is_some() || !self.engine.is_checked,
        };
        match fence_plan(input, |kind| endpoint.guarantees(pe, kind)) {
            FenceAction::Flush(site) => self.inserts(site),
            FenceAction::Preserved(Preserved {
                by_lane,
                by_later_flush,
            }) => {
                if by_lane.is_some_and(|site| self.inserts(site)) && !endpoint.fence(peer.id()) {
                    return true;
                }
                if by_later_flush.is_some_and(|site| self.inserts(site)) {
                    endpoint.mark_fenced(pe);
                    self.state.lanes.has_fenced.set(true);
                }
                false
            }
        }
    }

    /// Quiet for lanes, towards `only` or all.
    pub fn quiet_lanes(&self, only: Option<&[usize]>) -> Result<()> {
        let towards = Towards::of(only);
        self.quiet_due(&towards, |peer| towards.has(peer.pe))
    }

    /// Quiet for lanes before this PE arrives at a barrier: all but the words of earlier collective calls, where these complete
    /// by themselves.
    pub(crate) fn quiet_lanes_before_arrival(&self) -> Result<()> {
        self.quiet_due(&Towards::of(None), |peer| {
            !peer.endpoint.stays_in_flight(peer.pe)
        })
    }

    /// Quiet for lanes, of what is in flight to the PEs that are `due`, which are among `towards`.
    fn quiet_due<'w>(
        &'w self,
        towards: &Towards<'_>,
        due: impl Fn(LanePeer<'w>) -> bool,
    ) -> Result<()> {
        self.forget_lost();
        let lanes = &self.state.lanes;
        let mut first = None;
        if self.inserts(FenceSite::QuietLane) {
            self.flush_all(due, |peer, error| {
                peer.endpoint.failure_was_reported(peer.pe);
                first.get_or_insert(error);
            });
        } else {
            self.complete_without_flushes(towards)?;
        }
        let mut first = first.map_or(Ok(()), Err);
        for endpoint in &lanes.endpoints {
            while let Some(pe) = endpoint.cancelled_fetch(towards) {
                endpoint.failure_was_reported(pe);
                first = first.and(Err(self.fetch_failure(LanePeer { endpoint, pe })));
            }
        }
        if self.ordered && self.inserts(FenceSite::QuietGpu) {
            let flushed = self.flush_gpus(towards);
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

    /// Completes the operations in flight to PEs that have not left.
    pub fn drain_lanes(&self) -> Result<()> {
        let liveness = &self.engine.liveness;
        let mut failed = Vec::new();
        self.flush_all(|_| true, |peer, error| failed.push((peer.pe, error)));
        let left = |pe| self.exit_was_reported(pe) && !liveness.has_died(pe);
        // A PE that has left in order has seen all that it waited for.
        let first = failed.into_iter().find(|(pe, _)| !left(*pe));
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}
