//! Waits of a worker: it makes progress on its own lanes meanwhile.

use std::time::Duration;

use oxshmem_transport::Sleep;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::progress::park::Parker;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::progress::wait::{Waiter, spin, wait, wait_longer};
use crate::trace::timeline::Track;
use crate::worker::Worker;

impl Waiter for Worker {
    #[inline(always)]
    fn engine(&self) -> &Engine {
        &self.engine
    }

    #[inline]
    fn progress(&self) {
        self.progress();
    }

    fn sleep(&self, longest: Duration) -> bool {
        let slept = self.state.lanes.sleep(longest);
        if slept == Sleep::Unsupported {
            std::thread::sleep(longest);
        }
        slept == Sleep::Ready
    }

    fn stranded(&self, call: &'static str, needs: WaitsOn<'_>) -> Option<Error> {
        self.named(call, || self.blocked_by_failed_lane(needs))
    }

    fn track(&self) -> Option<Track> {
        Some(self.track())
    }
}

impl Worker {
    /// Waits until `ready` gives something.
    #[inline]
    pub fn wait<R>(
        &self,
        reason: &WaitReason<'_>,
        parker: Option<Parker<'_>>,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        wait(self, reason, parker, ready)
    }

    /// [`wait`](Self::wait), unless `ends` ends it, which is not polled while it spins.
    #[inline]
    pub fn wait_unless<R, E: From<Error>>(
        &self,
        reason: &WaitReason<'_>,
        parker: Option<Parker<'_>>,
        mut ready: impl FnMut() -> Option<R>,
        mut ends: impl FnMut() -> Option<Result<R, E>>,
    ) -> Result<R, E> {
        if let Some(value) = spin(&self.engine, &mut ready) {
            return Ok(value);
        }
        wait_longer(self, reason, parker, &mut || {
            ready().map(Ok).or_else(&mut ends)
        })?
    }
}
