//! What a domain and its lanes share: the peers' memory as it is mapped here, who is lost, whether all
//! is closed.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use oxshmem_cuda::DevicePtr;
use oxshmem_transport::{Error, Pe, RegionId, Remote};

use crate::NAME;

/// A peer's extent, mapped for this PE's GPU.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    pub start: DevicePtr,
    pub len: u64,
    /// Keeps it mapped.
    pub _keep: Keep,
}

/// What a mapping lives by.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// By PE and region.
pub(crate) type Table = BTreeMap<(Pe, RegionId), Mapped>;

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub table: Table,
    pub lost: Vec<Pe>,
    pub closed: bool,
}

impl State {
    /// The address of so many bytes of a region of `pe`, aligned so from its start.
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
