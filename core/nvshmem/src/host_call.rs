//! Calls of the host that move data: the call on the library's stream, and the wait for it.

use oxshmem::cuda::Stream;

use crate::failure::Done;
use crate::pe::Pe;
use crate::state::with_pe;

/// Whether a call of the host waits for its work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The work is queued.
    Queued,
    /// The work is done.
    Done,
}

/// Makes a call on the library's stream.
pub(crate) fn on_own_stream<R>(
    call: &'static str,
    until: Until,
    act: impl FnOnce(&Pe, &Stream) -> Done<R>,
) -> Done<R> {
    with_pe(call, |pe| {
        let given = act(pe, &pe.stream)?;
        if until == Until::Done {
            pe.finish()?;
        }
        Ok(given)
    })
}
