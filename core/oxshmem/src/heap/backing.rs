//! Memory behind a symmetric heap, committed as the heap grows.

use std::sync::Arc;

use oxshmem_engine::gpu::memory::GpuMemory;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::extents::Extents;
use oxshmem_heap::Segment;
use oxshmem_transport::{Memory, MemoryKind};

/// Memory behind a heap.
pub(super) enum Backing {
    /// None: there is no such heap.
    Nothing,
    Host(Segment),
    Gpu {
        memory: Box<dyn GpuMemory>,
        extents: Extents,
        /// The extents that are committed, from the first on.
        committed: Vec<Memory>,
    },
}

impl Backing {
    pub(super) fn kind(&self) -> MemoryKind {
        match self {
            Backing::Gpu { .. } => MemoryKind::Cuda,
            _ => MemoryKind::Host,
        }
    }

    /// Whether the memory that this rail has registered stays committed while it is.
    pub(super) fn stays_committed(&self, rail: &Rail) -> bool {
        rail.pins() || self.kind() != MemoryKind::Host
    }

    /// Commits the first `bytes` at least.
    pub(super) fn commit(&mut self, bytes: usize) -> Result<(), String> {
        match self {
            Backing::Nothing => Ok(()),
            Backing::Host(segment) => segment.commit(bytes).map_err(|error| error.to_string()),
            Backing::Gpu {
                memory,
                extents,
                committed,
            } => {
                for extent in committed.len() as u32..extents.count(bytes as u64) {
                    let (start, end) = (extents.start(extent), extents.end(extent));
                    committed.push(memory.commit(start as usize, (end - start) as usize)?);
                }
                Ok(())
            }
        }
    }

    /// Uncommits the memory beyond the first `bytes`.
    pub(super) fn uncommit(&mut self, bytes: usize) {
        match self {
            Backing::Nothing => {}
            Backing::Host(segment) => {
                let _ = segment.uncommit(bytes);
            }
            Backing::Gpu {
                memory,
                extents,
                committed,
            } => {
                let keep = extents.count((bytes as u64).max(1));
                if (keep as usize) < committed.len() {
                    committed.truncate(keep as usize);
                    memory.uncommit(extents.start(keep) as usize);
                }
            }
        }
    }

    /// The extent from `start` to `end`, for a rail to register. It is committed if it stays so.
    pub(super) fn extent(&mut self, start: u64, end: u64, rail: &Rail) -> Result<Memory, String> {
        let (offset, len) = (start as usize, (end - start) as usize);
        if self.stays_committed(rail) {
            self.commit(end as usize)?;
        }
        match self {
            Backing::Nothing => Err("there is no such heap".into()),
            Backing::Host(segment) => {
                let descriptor = (!rail.pins()).then(|| Arc::clone(segment.descriptor()));
                let own = segment.mapping();
                let owner = Arc::clone(own) as _;
                // SAFETY: the extent lies within the mapping, which keeps the bytes mapped; this
                // library accesses them through Span alone.
                Ok(unsafe {
                    Memory::new(
                        own.base().add(offset),
                        len,
                        MemoryKind::Host,
                        descriptor,
                        owner,
                    )
                })
            }
            Backing::Gpu {
                extents, committed, ..
            } => {
                let extent = committed.get(extents.index(start) as usize);
                extent.cloned().ok_or("it is not committed".into())
            }
        }
    }
}
