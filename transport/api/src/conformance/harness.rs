//! The harness: a transport as the suite sees it.

use std::sync::Arc;
use std::time::Duration;

use super::area::{Contents, host_memory};
use crate::memory::{Memory, MemoryKind};
use crate::pe::Pe;
use crate::traits::{Device, HostId, Transport};

/// A transport to try, with what the suite needs to know of it.
pub trait Harness: Sync {
    /// The transport. Every PE is opened on it.
    fn transport(&self) -> &dyn Transport;

    /// The device for this PE, one of those probed, of which there is at least one.
    fn device<'d>(&self, _pe: Pe, devices: &'d [Device]) -> &'d Device {
        &devices[0]
    }

    /// The host this PE claims.
    fn host(&self, _pe: Pe) -> HostId {
        HostId("conformance".into())
    }

    /// The kind of memory that the checks move data between.
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    /// Zeroed memory of `kind` and at least `len` bytes for a PE to register. Host memory must be
    /// loadable and storable at [`Memory::base`]. The default knows host memory, without a
    /// descriptor.
    fn memory(&self, _pe: Pe, kind: MemoryKind, len: usize) -> Result<Memory, String> {
        match kind {
            MemoryKind::Host => host_memory(len),
            other => Err(format!("this harness has no {other} memory")),
        }
    }

    /// Access of the suite to memory of that PE that is not host memory.
    fn contents(&self, _pe: Pe, memory: &Memory) -> Result<Arc<dyn Contents>, String> {
        Err(format!(
            "this harness cannot look into {} memory",
            memory.kind()
        ))
    }

    /// Makes a PE fail in a way that this transport detects by itself, if there is one: a cut link, a queue
    /// pair in error. The suite calls [`peer_lost`](crate::Domain::peer_lost) right after.
    fn lose(&self, _pe: Pe) {}

    /// How long any one wait may last before it counts as a failure.
    fn deadline(&self) -> Duration {
        Duration::from_secs(20)
    }

    /// The largest single transfer tried, in bytes.
    fn largest(&self) -> u64 {
        (1 << 20) + 13
    }
}
