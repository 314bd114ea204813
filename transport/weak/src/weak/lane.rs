//! The lane of the weak transport.

use std::collections::BTreeSet;
use std::sync::Arc;

use oxshmem_transport::{Counters, Lane, Op, Pe, Posted, Result, Status};

use super::domain::Checks;
use super::pool::Pool;

/// One lane's part of the pool.
#[derive(Debug)]
pub(super) struct WeakLane {
    pub pool: Arc<Pool>,
    pub checks: Arc<Checks>,
    pub number: u64,
    pub connected: BTreeSet<Pe>,
}

impl Lane for WeakLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.pool.with_lane(self.number, |lane| lane.endpoint(pe))
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        self.pool
            .with_lane(self.number, |lane| lane.connect(pe, endpoint))?;
        self.connected.insert(pe);
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let connected = self.connected.contains(&pe);
        for (accepted, op) in ops.iter().enumerate() {
            if let Err(error) = self.checks.check(pe, op, connected) {
                return Posted::refused(accepted, error);
            }
            // SAFETY: the caller's promise.
            match unsafe { self.pool.post(self.number, pe, *op) } {
                Status::All => self.checks.taken(pe),
                status => return Posted { accepted, status },
            }
        }
        Posted::all(ops.len())
    }

    fn progress(&mut self) -> Result<()> {
        self.checks.open()?;
        self.pool.progress(self.number)
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.pool.counters(self.number, pe)
    }

    fn fence(&mut self, pe: Pe) {
        self.pool.fence(self.number, pe);
    }

    fn request_completion(&mut self, pe: Pe) {
        // A lane that is gone has nothing to hurry.
        let _ = self.pool.with_lane(self.number, |lane| {
            lane.request_completion(pe);
            Ok(())
        });
    }
}

impl Drop for WeakLane {
    fn drop(&mut self) {
        self.pool.remove_lane(self.number);
    }
}
