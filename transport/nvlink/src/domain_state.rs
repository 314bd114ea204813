//! The state that a domain publishes to its lanes: the peers' mapped memory, the lost PEs, whether it is closed.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use oxshmem_cuda::DevicePtr;
use oxshmem_transport::{Error, Pe, RegionId, Remote};

use crate::limits::NAME;

/// A peer's extent, mapped for this PE's GPU.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub start: DevicePtr,
    pub len: u64,
    /// Keeps it mapped.
    pub _keep: Keep,
}

/// The owner of a mapping, which ends it when it is dropped.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// Mapped extents by PE and region.
pub(crate) type Table = BTreeMap<(Pe, RegionId), Mapped>;

/// The published state.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainState {
    pub table: Table,
    pub lost: Vec<Pe>,
    pub closed: bool,
}

impl DomainState {
    /// The address in a region of `pe`, whose offset is checked for a size and an alignment.
    pub(crate) fn find(
        &self,
        pe: Pe,
        at: Remote,
        size: (u64, u64),
        what: &'static str,
    ) -> Result<DevicePtr, Error> {
        let Some(mapped) = self.table.get(&(pe, at.region)) else {
            return Err(Error::UnknownRegion {
                transport: NAME,
                region: at.region.0,
                pe,
            });
        };
        at.check(NAME, what, size, mapped.len)?;
        Ok(mapped.start.add(at.offset as usize))
    }
}
