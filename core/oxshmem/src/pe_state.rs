//! The state of one PE above its engine, as all its contexts and threads share it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_engine::engine::Engine;
use oxshmem_transport::MemoryKind;

use crate::config::Config;
use crate::heap::Heap;
use crate::live_block_cache::LiveBlockCache;
use crate::lock::broken::BrokenLocks;
use crate::options::ProgramMemory;
use crate::stats::counters::Stats;
#[cfg(feature = "cuda")]
use crate::stream::gpu_streams::GpuStreams;
use crate::sym::Sym;
use crate::visibility::Visibility;
use oxshmem_collectives::slots::mailbox::Mailbox;
use oxshmem_collectives::sync_area::SyncArea;

/// The state of one PE above its engine.
pub(crate) struct PeState {
    /// Dropped first: the other parts keep memory alive that its transports have registered.
    pub engine: Arc<Engine>,
    /// Bytes of a heap for the program's blocks.
    pub limit: usize,
    pub broken_locks: BrokenLocks,
    /// The memory of collective calls.
    pub sync_area: SyncArea,
    pub heap: Mutex<Heap>,
    /// The number of blocks of it that have ended.
    pub heap_changes: Arc<AtomicU64>,
    /// Blocks of it that are known to live.
    pub live_blocks: LiveBlockCache,
    pub gpu_heap: Mutex<Heap>,
    /// Messages for teams that are made among members.
    pub mailbox: Option<Mailbox>,
    pub statics: Vec<Sym<u8>>,
    /// The program's own memory, where that begins the heap.
    pub program: Option<Arc<ProgramMemory>>,
    pub visibility: Visibility,
    pub config: Config,
    pub hosts: Vec<String>,
    /// The GPU work of streams and of copies of slices, where there is a CUDA heap. Dropped after the contexts' lanes.
    #[cfg(feature = "cuda")]
    pub gpu_streams: Option<Arc<GpuStreams>>,
    /// The reason why there is no GPU heap, where there would be one by default.
    #[cfg(feature = "cuda")]
    pub no_gpu_heap: Option<String>,
    pub stats: Option<Arc<Stats>>,
}

impl PeState {
    pub(crate) fn heap(&self, kind: MemoryKind) -> MutexGuard<'_, Heap> {
        let heap = match kind {
            MemoryKind::Host => &self.heap,
            _ => &self.gpu_heap,
        };
        heap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
