//! The barrier: quiet and arrival.

use std::sync::atomic::{Ordering, fence};

use crate::collectives::call::CallInfo;
use crate::collectives::sync_area::SyncArea;
use crate::context::Context;
use crate::error::Result;

/// Completes this PE's operations, then waits for all PEs, for calls that contain a barrier. `mine` is the result of this
/// PE's part of the call so far.
#[inline]
pub(crate) fn barrier(
    context: &Context<'_>,
    area: &SyncArea,
    info: CallInfo<'_>,
    mine: Result<()>,
) -> Result<()> {
    if context.n_pes() == 1 {
        // There is no arrival, which would fence.
        fence(Ordering::SeqCst);
        context.worker.peers.clear_dirty();
    }
    let mine = if context.worker.is_idle() {
        mine
    } else {
        // Quiet first, whatever `mine` is: arriving means that all is complete.
        let quieted = context.quiet_slow(info.name, None, true);
        mine.and(quieted)
    };
    area.begin(context, &area.all, info, None).arrive(mine)
}
