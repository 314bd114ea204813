//! The end of a world: objects that the GPU may use until all of its work is done.

use std::sync::Arc;
use std::time::Duration;

use oxshmem_engine::gpu::memory::GpuAccess;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_transport::MemoryKind;

use crate::stream::gpu_streams::{FINALIZE, GpuStreams};
use oxshmem_engine::report;

/// The longest time that a GPU's work may take after a world's end, as for that of a lane.
const TEARDOWN_LIMIT: Duration = Duration::from_secs(10);

/// Objects that the GPU may use, freed only when the GPU is done.
///
/// The driver frees page-locked memory, GPU memory and modules when all work of the context is done, a
/// program's own kernels included, and waits for that without end: a kernel that spins on the flag of a PE
/// that is gone would hold this process for ever. So this waits for that work, for a limited time; if it does not
/// end, the objects that it may use stay, until the process ends.
pub(crate) struct GpuTeardown {
    streams: Arc<GpuStreams>,
    /// Access to the heap, also where it is mapped for no GPU.
    access: Option<Arc<dyn GpuAccess>>,
    /// The transports that carry GPU memory by the GPU itself, with their lanes.
    rails: Vec<Arc<Rail>>,
}

impl GpuTeardown {
    pub(crate) fn new(
        streams: &Arc<GpuStreams>,
        access: Option<Arc<dyn GpuAccess>>,
        all: &[Arc<Rail>],
    ) -> GpuTeardown {
        // No work of the GPU uses the NICs' registrations of it.
        let carries = |via: &&Arc<Rail>| via.caps.memory.contains(&MemoryKind::Cuda) && !via.pins();
        GpuTeardown {
            streams: Arc::clone(streams),
            access,
            rails: all.iter().filter(carries).cloned().collect(),
        }
    }
}

impl Drop for GpuTeardown {
    fn drop(&mut self) {
        let why = match self.streams.drained_within(FINALIZE, TEARDOWN_LIMIT) {
            Ok(true) => return,
            Ok(false) => {
                format!("its work has not ended within {TEARDOWN_LIMIT:?} after the world")
            }
            Err(error) => error.to_string(),
        };
        report::warn(&format!(
            "GPU {}: {why}. This PE's memory there and what else that work may use stays as it is until the \
             process ends; synchronize all streams before the world ends",
            self.streams.gpu.context.device().ordinal()
        ));
        let kept = (Arc::clone(&self.streams), self.access.take());
        std::mem::forget((kept, std::mem::take(&mut self.rails)));
    }
}
