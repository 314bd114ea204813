//! The paths to a PE: the compact result of route selection, which each operation reads.

use oxshmem_transport::MemoryKind;

/// The path of one kind of operation to one kind of memory at one PE. The number is the index of the
/// opened transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// Not at all: there is no such memory there, or nothing that reaches it.
    None,
    /// By this PE's CPU, in memory that this transport mapped here or simulates as mapped;
    /// [`Path::OWN`] where it is this PE's own memory and no transport is involved.
    Mapped(u8),
    /// By operations on this transport's lane.
    Lane(u8),
    /// By messages on this transport's lane, which the CPU of the PE serves: atomics only.
    Message(u8),
    /// Through the PE's host memory, by its process, which copies to and from its GPU: GPU memory only. A PE's
    /// own needs no host memory.
    Staged,
}

impl Path {
    /// The number in [`Path::Mapped`] of memory that is mapped without a transport.
    pub const OWN: u8 = u8::MAX;

    /// The index of the transport, whose lane can carry the operation too if the memory is mapped.
    #[inline]
    pub fn transport(self) -> Option<usize> {
        match self {
            Path::None | Path::Staged | Path::Mapped(Self::OWN) => None,
            Path::Mapped(index) | Path::Lane(index) | Path::Message(index) => Some(index.into()),
        }
    }

    pub(crate) fn is_mapped(self) -> bool {
        matches!(self, Path::Mapped(_))
    }
}

/// The paths to one PE. Atomics may take another than puts and gets: they need a transport that
/// performs them as a CPU does (M28, M29) or takes a message to the CPU that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerPaths {
    /// Copies from and to host memory.
    pub host: Path,
    /// Atomics on host memory.
    pub host_atomics: Path,
    /// Copies from and to GPU memory.
    pub gpu: Path,
    /// Atomics on GPU memory.
    pub gpu_atomics: Path,
    /// The path of atomics on words of host memory that belong to NICs.
    pub nic: Path,
}

impl PeerPaths {
    /// No path at all.
    pub const NONE: PeerPaths = PeerPaths {
        host: Path::None,
        host_atomics: Path::None,
        gpu: Path::None,
        gpu_atomics: Path::None,
        nic: Path::None,
    };

    /// The path of puts and gets.
    #[inline]
    pub fn copies(&self, kind: MemoryKind) -> Path {
        match kind {
            MemoryKind::Cuda => self.gpu,
            _ => self.host,
        }
    }

    /// The path of atomics.
    #[inline]
    pub fn atomics(&self, kind: MemoryKind) -> Path {
        match kind {
            MemoryKind::Cuda => self.gpu_atomics,
            _ => self.host_atomics,
        }
    }

    /// All of them.
    pub fn each(&self) -> [Path; 5] {
        [
            self.host,
            self.host_atomics,
            self.gpu,
            self.gpu_atomics,
            self.nic,
        ]
    }
}

const _: () = assert!(size_of::<PeerPaths>() == 10);
