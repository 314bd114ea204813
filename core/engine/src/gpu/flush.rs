//! Flushes of this PE's GPU, after which it sees the data that NICs have placed in its memory (M27).

use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{Domain, GpuFlush, MemoryKind};

use crate::am::request::AmRequest;
use crate::lane::rail::Rail;
use crate::route::path::{Path, PeerPaths};

/// The domains that flush this PE's GPU: they make data that NICs placed in its memory visible to it (M27).
#[derive(Clone, Default)]
pub struct GpuFlushes {
    domains: Arc<[Arc<dyn Domain>]>,
}

impl fmt::Debug for GpuFlushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuFlushes")
            .field("domains", &self.domains.len())
            .finish_non_exhaustive()
    }
}

impl GpuFlushes {
    /// The domains among `all` that need it.
    pub fn of<'a>(all: impl Iterator<Item = &'a Arc<dyn Domain>>) -> Self {
        let needs = |domain: &&Arc<dyn Domain>| {
            let guarantees = domain.guarantees(MemoryKind::Cuda);
            guarantees.is_some_and(|g| g.gpu_flush == GpuFlush::Target)
        };
        GpuFlushes {
            domains: all.filter(needs).cloned().collect(),
        }
    }

    /// Whether there are any.
    #[inline(always)]
    pub fn are_needed(&self) -> bool {
        !self.domains.is_empty()
    }

    pub(crate) fn flush(&self) -> Result<(), oxshmem_transport::Error> {
        self.domains
            .iter()
            .try_for_each(|domain| domain.make_visible(MemoryKind::Cuda))
    }

    /// The reply to a PE's request for a flush.
    pub fn asked(&self) -> Result<Vec<u8>, String> {
        let flushed = self.flush().map_err(|error| error.to_string());
        flushed.map(|()| Vec::new())
    }
}

/// The index of the rail by whose messages a PE's GPU is flushed (M27): that of the lane that writes to its memory, where
/// this lane's data need a flush and its messages can ask for it. Other PEs are asked by the bootstrap.
#[must_use]
pub fn rail_of_requests(paths: &PeerPaths, rails: &[Arc<Rail>]) -> Option<usize> {
    let Path::Lane(index) = paths.gpu else {
        return None;
    };
    let index = usize::from(index);
    let rail = rails.get(index)?;
    let asks = rail.needs_gpu_flush(MemoryKind::Cuda) && AmRequest::fits(&rail.caps);
    asks.then_some(index)
}
