//! The barrier: quiet and arrival.

use std::sync::atomic::{Ordering, fence};

use crate::call::CallInfo;
use crate::error::{Error, Result};
use crate::sync_area::SyncArea;
use oxshmem_engine::worker::Worker;

/// Completes this PE's operations, then waits for all PEs, for calls that contain a barrier. `mine` is the result of this
/// PE's part of the call so far.
#[inline]
pub fn barrier(
    worker: &Worker,
    area: &SyncArea,
    info: CallInfo<'_>,
    mine: Result<()>,
) -> Result<()> {
    if worker.engine.n_pes() == 1 {
        // No arrival follows, which would fence.
        fence(Ordering::SeqCst);
        worker.peers.clear_dirty();
    }
    let mine = if worker.is_idle() {
        mine
    } else {
        // Quiet first, whatever `mine` is: arriving means that all is complete.
        let quieted = worker.in_call(info.name).quiet_before_arrival();
        mine.and(quieted.map_err(Error::from))
    };
    area.begin(worker, &area.all, info, None).arrive(mine)
}
