//! The end of a trace.

use crate::world::World;

impl World {
    /// Completes the trace, once every PE has called this. No event is traced after that.
    pub(crate) fn end_trace(&self) {
        let Some(trace) = &self.worker.engine.trace else {
            return;
        };
        self.worker.state.lanes.write_trace_counts();
        trace.end();
        // Without those that were lost meanwhile the file stays open, which viewers accept.
        if self.worker.engine.bootstrap.barrier().is_ok() {
            trace.close();
        }
    }
}
