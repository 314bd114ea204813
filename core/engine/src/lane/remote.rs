//! The remote side of operations on lanes: bytes of a PE's symmetric memory, and the endpoint that leads there.

use oxshmem_transport::{MemoryKind, Pe, Remote};

use crate::lane::endpoint::Endpoint;

/// The executor of atomics on a word that a lane reaches (M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicsBy {
    /// The transport, coherent with the target's CPU.
    Transport,
    /// The target's NIC.
    Nic,
    /// The target's CPU, by an active message.
    TargetCpu,
}

/// An address in a PE's symmetric memory.
#[derive(Clone, Copy, Debug)]
pub struct RemoteTarget {
    /// The PE, by its number in the world.
    pub pe: usize,
    /// The kind of memory.
    pub kind: MemoryKind,
    /// Bytes from the start of its heap of that kind.
    pub offset: u64,
    /// The executor of atomics there.
    pub atomics: AtomicsBy,
}

impl RemoteTarget {
    /// The byte `further` on as a transport names it, and the bytes that its region has from there. Every PE
    /// registers the same heaps in the same extents, under the same region numbers.
    #[inline]
    pub fn locate(self, endpoint: &Endpoint, further: usize) -> (Remote, usize) {
        let heap = endpoint.registered_heap(self.kind);
        heap.locate(self.offset + further as u64)
    }

    /// [`locate`](Self::locate) of a word. A word is aligned, so it lies in one region.
    pub(crate) fn word(self, endpoint: &Endpoint) -> Remote {
        self.locate(endpoint, 0).0
    }
}

/// One PE as one call reaches it by a lane.
#[derive(Clone, Copy, Debug)]
pub struct LanePeer<'e> {
    /// The endpoint.
    pub endpoint: &'e Endpoint,
    /// The PE, by its number in the world.
    pub pe: usize,
}

impl LanePeer<'_> {
    /// The PE as transports name it.
    #[inline]
    pub(crate) fn id(self) -> Pe {
        Pe(self.pe as u32)
    }
}
