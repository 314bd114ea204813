//! What of a world the GPU may use until all of its work is done: the end of the world.

use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::MemoryKind;

use super::gpu_streams::{END, GpuStreams};
use crate::gpu::GpuAccess;
use crate::lane::Rail;
use crate::report;

/// How long the work of a GPU may take after a world's end, as for that of a lane.
const FAREWELL: Duration = Duration::from_secs(10);

/// Holds what the GPU may use, so that it is freed only when the GPU is done.
///
/// The driver frees page-locked memory, GPU memory and modules when all work of the context is done, a
/// program's own kernels included, and waits for that without end: a kernel that spins on the flag of a PE
/// that is gone would hold this process for ever. So it is waited for here, for a while; and what does not
/// end then keeps what it may use, until the process ends.
pub(crate) struct GpuTeardown {
    side: Arc<GpuStreams>,
    /// The heap, also where it is mapped for no GPU.
    access: Option<Arc<dyn GpuAccess>>,
    /// Those that carry GPU memory by the GPU itself, with their lanes.
    transports: Vec<Arc<Rail>>,
}

impl GpuTeardown {
    pub(crate) fn new(
        side: &Arc<GpuStreams>,
        access: Option<Arc<dyn GpuAccess>>,
        all: &[Arc<Rail>],
    ) -> GpuTeardown {
        // What NICs have of it, no work of the GPU uses.
        let carries = |via: &&Arc<Rail>| via.caps.memory.contains(&MemoryKind::Cuda) && !via.pins();
        GpuTeardown {
            side: Arc::clone(side),
            access,
            transports: all.iter().filter(carries).cloned().collect(),
        }
    }
}

impl Drop for GpuTeardown {
    fn drop(&mut self) {
        let why = match self.side.runs_out(END, FAREWELL) {
            Ok(true) => return,
            Ok(false) => format!("its work has not ended within {FAREWELL:?} after the world"),
            Err(error) => error.to_string(),
        };
        report::warn(&format!(
            "GPU {}: {why}. This PE's memory there and what else that work may use stays as it is until the \
             process ends; synchronize all streams before the world ends",
            self.side.gpu.context.device().ordinal()
        ));
        let kept = (Arc::clone(&self.side), self.access.take());
        std::mem::forget((kept, std::mem::take(&mut self.transports)));
    }
}
