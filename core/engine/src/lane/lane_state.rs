//! One lane of a context, its deferred operations, and the failures of its connections.

use oxshmem_transport::{Lane, Op, Pe, Status};

use crate::lane::in_flight::Until;
use crate::lane::reconnections::Reconnections;

/// One lane and the operations deferred for it, with its failures.
pub(crate) struct LaneState {
    pub lane: Option<Box<dyn Lane>>,
    /// By PE, whether it is connected; empty where none need be.
    pub connected: Vec<bool>,
    /// The reason why there is no lane any more.
    pub failure: String,
    /// Operations that are to be posted together.
    pub deferred: Deferred,
    /// The refusals of some of those, by their PE.
    pub refused: Vec<(usize, oxshmem_transport::Error)>,
    /// The PEs whose connections have failed although they live, with the reasons.
    pub failed_connections: Vec<(usize, String)>,
    /// A connection, or the lane, has failed since stranded peers were last notified.
    pub has_news: bool,
    /// The PEs that were notified.
    pub notified: Vec<usize>,
    /// The PEs whose connections are to be made again.
    pub interrupted: Vec<Pe>,
    /// The connections that are being made again.
    pub reconnections: Reconnections,
}

/// The outcome of polling one lane alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollOutcome {
    /// The awaited operations have come as far as they should.
    Reached,
    /// The connection to this PE has failed.
    Failed(Pe),
    Pending,
}

/// The number of operations towards a PE, of those posted, that have come so far.
#[inline]
pub(crate) fn count(lane: &dyn Lane, pe: Pe, until: Until) -> u64 {
    match until {
        Until::Posted => lane.counters(pe).posted,
        Until::Reusable => lane.reusable(pe),
        Until::Completed => lane.counters(pe).completed,
    }
}

/// Operations towards one PE that a lane has yet to be given: before any other, and before any wait.
#[derive(Default)]
pub(crate) struct Deferred {
    pub pe: usize,
    pub ops: Vec<Op>,
}

// SAFETY: the operations' local sides are the poster's, who promised their validity until they have
// completed, wherever the lane, and the operations deferred for it, are moved to.
unsafe impl Send for Deferred {}

impl LaneState {
    pub(crate) fn new(lane: Option<Box<dyn Lane>>, connected: Vec<bool>) -> Self {
        LaneState {
            lane,
            connected,
            failure: "not opened".into(),
            deferred: Deferred::default(),
            refused: Vec::new(),
            failed_connections: Vec::new(),
            has_news: false,
            notified: Vec::new(),
            interrupted: Vec::new(),
            reconnections: Reconnections::default(),
        }
    }

    /// Notes a connection that has failed although the PE lives. The others' go on.
    pub(crate) fn note_failed_connection(&mut self, error: &oxshmem_transport::Error) {
        if let oxshmem_transport::Error::Connection { pe, .. } = error
            && self.failure_towards(pe.index()).is_none()
        {
            self.failed_connections
                .push((pe.index(), error.to_string()));
            self.has_news = true;
        }
    }

    /// Drives the lane a step. Gives the PE whose connection has failed just now.
    #[inline]
    pub(crate) fn progress(&mut self) -> Option<Pe> {
        match self.lane.as_mut()?.progress() {
            Ok(()) => None,
            Err(oxshmem_transport::Error::PeerLost { pe, .. }) => Some(pe),
            Err(error @ oxshmem_transport::Error::Connection { .. }) => {
                self.note_failed_connection(&error);
                None
            }
            Err(oxshmem_transport::Error::Interrupted { pe, .. }) => {
                self.interrupted.push(pe);
                None
            }
            Err(error) => {
                self.lane = None;
                self.failure = error.to_string();
                self.has_news = true;
                None
            }
        }
    }

    /// Drives the lane until `target` operations towards a PE have come so far, for some rounds at most.
    #[inline(always)]
    pub(crate) fn poll_until(
        &mut self,
        pe: Pe,
        (target, until): (u64, Until),
        rounds: u32,
    ) -> PollOutcome {
        for _ in 0..rounds {
            if let Some(failed) = self.progress() {
                return PollOutcome::Failed(failed);
            }
            match &self.lane {
                Some(lane) if count(lane.as_ref(), pe, until) >= target => {
                    return PollOutcome::Reached;
                }
                Some(_) if self.failed_connections.is_empty() => {}
                _ => break,
            }
        }
        PollOutcome::Pending
    }

    /// Posts the deferred operations, as far as there are credits. Gives whether none is left.
    pub(crate) fn post_deferred(&mut self) -> bool {
        let pe = self.deferred.pe;
        while !self.deferred.ops.is_empty() {
            let ops = &mut self.deferred.ops;
            let Some(lane) = &mut self.lane else {
                ops.clear();
                break;
            };
            // SAFETY: the callers of `Endpoint::defer` promised the validity that `Lane::post` needs.
            let posted = unsafe { lane.post(Pe(pe as u32), ops) };
            let accepted = posted.accepted.min(ops.len());
            match posted.status {
                Status::All => ops.clear(),
                Status::Full => {
                    ops.drain(..accepted);
                    return false;
                }
                // A refused operation can never be accepted; those behind it may.
                Status::Refused(error) => {
                    ops.drain(..(accepted + 1).min(ops.len()));
                    self.note_failed_connection(&error);
                    self.refused.push((pe, error));
                }
            }
        }
        true
    }

    /// The reason why the connection to a PE has failed, if it has, although the PE lives.
    pub(crate) fn failure_towards(&self, pe: usize) -> Option<String> {
        let mut failed = self.failed_connections.iter();
        let (_, why) = failed.find(|(whom, _)| *whom == pe)?;
        Some(why.clone())
    }

    /// The lane, and whether all deferred operations have been posted.
    pub(crate) fn ready(&mut self) -> Result<(&mut dyn Lane, bool), String> {
        let posted = self.post_deferred();
        Ok((self.lane()?, posted))
    }

    #[inline]
    pub(crate) fn lane(&mut self) -> Result<&mut dyn Lane, String> {
        match &mut self.lane {
            Some(lane) => Ok(lane.as_mut()),
            None => Err(self.failure.clone()),
        }
    }

    /// Whether the next context may have it: nothing is left of this one's.
    pub(crate) fn is_reusable(&self) -> bool {
        self.failed_connections.is_empty()
            && self.refused.is_empty()
            && self.deferred.ops.is_empty()
    }
}
