//! The spans of calls in a trace.

use super::{SHORT, Span, Track};
use crate::context::Context;
use crate::world::World;

impl Context<'_> {
    /// The track of this context's calls.
    pub(crate) fn track(&self) -> Track {
        Track::of_context(self.state.number)
    }

    /// The span of a call that begins here, if there is a trace.
    #[inline]
    pub(crate) fn traced(&self, call: &'static str) -> Option<Span<'_>> {
        let trace = self.shared.trace.as_ref()?;
        Some(trace.begin(self.track(), "call", call, 0))
    }

    /// The span of a fence or quiet, which is not shown if it is short.
    pub(crate) fn traced_order(&self, call: &'static str) -> Option<Span<'_>> {
        let trace = self.shared.trace.as_ref()?;
        Some(trace.begin(self.track(), "order", call, SHORT))
    }
}

impl World {
    /// Completes the trace, once every PE has called this. No event is traced after that.
    pub(crate) fn end_trace(&self) {
        let Some(trace) = &self.shared.trace else {
            return;
        };
        self.state.lanes.write_trace_counts();
        trace.end();
        // Without those that were lost meanwhile the file stays open, which viewers accept.
        if self.shared.bootstrap.barrier().is_ok() && trace.leads {
            trace.log().close();
        }
    }
}
