//! Memory that is offered for registration, and the names of registered regions.

use std::any::Any;
use std::fmt;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// The kind of memory: the processor that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Memory that the CPU loads and stores.
    Host,
    /// Memory of a CUDA GPU.
    Cuda,
}

impl MemoryKind {
    /// All kinds, in the order of tables.
    pub const ALL: [MemoryKind; 2] = [MemoryKind::Host, MemoryKind::Cuda];
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MemoryKind::Host => "host",
            MemoryKind::Cuda => "cuda",
        })
    }
}

/// The number under which a PE registered a region: the first is 0, the next 1, and so on, alike
/// on every PE because regions are registered in the same order everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// A transport's handle of a local registered region, for a NIC's local key. Opaque to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalKey(pub u64);

/// A piece of memory offered for registration. Registration holds its owner, so the memory stays
/// where it is while any region made from it lives, on this PE or (in one process) on another.
#[derive(Clone)]
pub struct Memory {
    base: NonNull<u8>,
    len: usize,
    kind: MemoryKind,
    descriptor: Option<Arc<OwnedFd>>,
    names: Option<Arc<[u8]>>,
    owner: Arc<dyn Any + Send + Sync>,
    /// Its offset in the memory that it is a part of, and the length of that.
    part: (usize, usize),
}

impl Memory {
    /// `len` bytes from `base`, of the processor that `kind` names. Through `descriptor`, if there
    /// is one, another process can map the same bytes from its offset 0.
    ///
    /// # Safety
    ///
    /// While `owner` lives the bytes stay where they are, readable and writable by that processor,
    /// and are accessed atomically or at machine level only: never through a reference to plain
    /// memory, since peers may write them at any time.
    pub unsafe fn new(
        base: NonNull<u8>,
        len: usize,
        kind: MemoryKind,
        descriptor: Option<Arc<OwnedFd>>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Memory {
            base,
            len,
            kind,
            descriptor,
            names: None,
            owner,
            part: (0, len),
        }
    }

    /// Adds `names` by which another process can map it, too, or instead of by a descriptor. Their content is
    /// agreed between the makers of such memory and the transports that support it; those of GPU memory are
    /// `oxshmem_cuda::Names`. Memory of which this is a [part](Self::part_of) may have names as a whole only;
    /// then they name the whole.
    #[must_use]
    pub fn named(mut self, names: Vec<u8>) -> Self {
        self.names = Some(names.into());
        self
    }

    /// Makes it the part from byte `offset` on of memory of `whole` bytes, which is registered part by part
    /// as it grows. Peers that map parts map them at these offsets.
    #[must_use]
    pub fn part_of(mut self, offset: usize, whole: usize) -> Self {
        self.part = (offset, whole);
        self
    }

    /// Its offset in the memory that it is a part of, and the length of that; 0 and its own length if it is no
    /// part.
    #[must_use]
    pub fn part(&self) -> (usize, usize) {
        self.part
    }

    /// First byte.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The descriptor through which another process can map it.
    #[must_use]
    pub fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        self.descriptor.as_ref()
    }

    /// The bytes by which another process can map it.
    #[must_use]
    pub fn names(&self) -> Option<&[u8]> {
        self.names.as_deref()
    }

    /// The owner, which keeps the memory where it is.
    #[must_use]
    pub fn owner(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.owner
    }
}

// SAFETY: `Memory` only names bytes; `owner`, which is Send and Sync, keeps them mapped, and no
// method here touches them.
unsafe impl Send for Memory {}
// SAFETY: as for Send.
unsafe impl Sync for Memory {}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("base", &self.base)
            .field("len", &self.len)
            .field("kind", &self.kind)
            .field("descriptor", &self.descriptor)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
