//! The spans of calls in a trace.

use crate::trace::timeline::{SHORT, Span, Track};
use crate::worker::Worker;

impl Worker {
    /// The track of this worker's calls.
    #[must_use]
    pub fn track(&self) -> Track {
        Track::of_context(self.state.number)
    }

    /// The span of a call that begins here, if there is a trace.
    #[inline]
    pub fn traced(&self, call: &'static str) -> Option<Span<'_>> {
        let trace = self.engine.trace.as_ref()?;
        Some(trace.begin(self.track(), "call", call, 0))
    }

    /// The span of a fence or quiet, which is not shown if it is short.
    pub(crate) fn traced_order(&self, call: &'static str) -> Option<Span<'_>> {
        let trace = self.engine.trace.as_ref()?;
        Some(trace.begin(self.track(), "order", call, SHORT))
    }
}
