//! The state that all contexts of a PE share: its membership of the job, as any thread may use it.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::Mapping;
use oxshmem_transport::{MemoryKind, Schedule};

use crate::collectives::slots::mailbox::Mailbox;
use crate::collectives::sync_area::SyncArea;
use crate::config::Config;
use crate::control::ControlRequests;
use crate::error::{Error, Result};
use crate::gpu::GpuFlushes;
use crate::gpu::staging_server::StagingServer;
use crate::hang::LongWaits;
use crate::heap::Heap;
use crate::lane::{BouncePool, PendingReplies, Rail};
use crate::live_block_cache::LiveBlockCache;
use crate::lock::BrokenLocks;
use crate::options::ProgramMemory;
use crate::order::{FenceSite, Visibility};
use crate::peer::Liveness;
use crate::register::Registrations;
use crate::route::Routes;
use crate::simulated::Simulation;
use crate::stats::Stats;
#[cfg(feature = "cuda")]
use crate::stream::{gpu_streams::GpuStreams, gpu_teardown::GpuTeardown};
use crate::sym::Sym;
use crate::trace::Trace;

/// Marks a PE as lost, because a lane finds it so, and ends the paths to it.
pub(crate) type PeerFailureSink = Arc<dyn Fn(u32) + Send + Sync>;

/// One PE of a job, without the state of single streams of operations.
pub(crate) struct Shared {
    /// Closed before lanes are: a kernel on a shared GPU that those wait for may wait for this PE's end.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// Waits for the GPU before anything that it may use is freed, and after this PE's end was reported: a kernel there
    /// may wait for that.
    #[cfg(feature = "cuda")]
    pub _leaving: Option<GpuTeardown>,
    pub rails: Vec<Arc<Rail>>,
    pub me: usize,
    /// This PE's own heap, mapped here.
    pub own: Arc<Mapping>,
    /// Bytes of a heap for the program's blocks.
    pub limit: usize,
    /// The number of contexts made so far.
    pub contexts: AtomicU64,
    pub liveness: Arc<Liveness>,
    /// Marks a PE as lost, and ends the paths to it.
    pub report_lost: PeerFailureSink,
    /// Iterations a wait spins, less one.
    pub spin: u32,
    /// Rounds of progress that a wait makes before it yields.
    pub lane_spin: u32,
    /// Whether a wait yields its CPU before it polls anything else: PEs outnumber the CPUs, no lane has to be
    /// driven, and no trace records each wait.
    pub oversubscribed: bool,
    /// A function that waits call beside the progress of their own context, if the program has set one.
    pub progress_hook: OnceLock<fn()>,
    /// Every fence and quiet has more to do than a mapped world's.
    pub fences_always_slow: bool,
    /// The requests of this PE that have no reply yet.
    pub requests: ControlRequests,
    /// Waits that have lasted for a while.
    pub long_waits: LongWaits,
    pub broken_locks: BrokenLocks,
    /// Active messages in flight.
    pub pending_replies: PendingReplies,
    pub bounce_pool: BouncePool,
    /// The memory of collective calls.
    pub sync_area: SyncArea,
    /// Private buffers that the program has registered.
    pub registered: Registrations,
    pub heap: Mutex<Heap>,
    /// The number of blocks of it that have ended.
    pub heap_changes: Arc<AtomicU64>,
    /// Blocks of it that are known to live.
    pub live_blocks: LiveBlockCache,
    /// The start of this PE's GPU heap, if transports carry it, and its limit in bytes.
    pub gpu: Option<(AtomicPtr<u8>, usize)>,
    pub gpu_heap: Mutex<Heap>,
    pub gpu_flushes: GpuFlushes,
    /// Serves others that reach this PE's GPU memory where no transport carries it.
    pub stage: Arc<StagingServer>,
    /// Held by the thread that uses other PEs' staging servers.
    pub staging_lock: Mutex<()>,
    /// The simulated mappings, where a transport simulates them.
    pub simulation: Option<Simulation>,
    /// The schedule of this PE's thread, where a transport has one.
    pub schedule: Option<Arc<dyn Schedule>>,
    /// The fence that a mutation check disables.
    pub disabled_fence: Option<FenceSite>,
    /// A raw pointer was handed out: from then on every quiet is a full fence.
    pub untracked_stores: Arc<AtomicBool>,
    /// Checked mode's table, on every PE.
    pub shadow: Option<Sym<u64>>,
    /// Messages for teams that are made among members.
    pub mailbox: Option<Mailbox>,
    pub statics: Vec<Sym<u8>>,
    /// The program's own memory, where that begins the heap.
    pub program: Option<Arc<ProgramMemory>>,
    pub routes: Routes,
    pub visibility: Visibility,
    pub config: Config,
    pub hosts: Vec<String>,
    /// The GPU work of streams and of copies of slices, where there is a CUDA heap. Dropped after the contexts' lanes.
    #[cfg(feature = "cuda")]
    pub gpu_streams: Option<Arc<GpuStreams>>,
    pub trace: Option<Arc<Trace>>,
    pub stats: Option<Stats>,
}

impl Shared {
    /// Number of PEs in the job.
    pub(crate) fn n_pes(&self) -> usize {
        self.routes.paths.len()
    }

    /// Calls the program's function that waits call beside the progress of their own context. A panic there is an error of
    /// the call: lanes may be using memory that its caller would have back.
    #[inline]
    pub(crate) fn run_progress_hook(&self, call: &'static str) -> Result<()> {
        match self.progress_hook.get() {
            Some(hook) => std::panic::catch_unwind(hook).map_err(|_| Error::Argument {
                call,
                what: "the function given to drive_in_waits panicked; catch panics within it (std::panic::catch_unwind)"
                    .into(),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.config.timeout
    }

    pub(crate) fn heap(&self, kind: MemoryKind) -> MutexGuard<'_, Heap> {
        let heap = match kind {
            MemoryKind::Host => &self.heap,
            _ => &self.gpu_heap,
        };
        heap.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
