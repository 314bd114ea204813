//! A PE's part in a job, as all its workers and threads share it. Data only: the operations lie in [`ops`](crate::ops).

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_heap::Mapping;
use oxshmem_transport::Schedule;

use crate::am::pending_replies::PendingReplies;
use crate::control::pending::ControlRequests;
use crate::error::{Error, Result};
use crate::gpu::flush::GpuFlushes;
use crate::gpu::staging_server::StagingServer;
use crate::lane::rail::Rail;
use crate::memory::bounce_pool::BouncePool;
use crate::memory::registrations::Registrations;
use crate::memory::simulated::Simulation;
use crate::memory::target::Target;
use crate::order::fence_site::FenceSite;
use crate::peer::liveness::Liveness;
use crate::progress::long_waits::LongWaits;
use crate::route::table::Routes;
use crate::trace::timeline::Trace;

/// The sink for PEs that a lane cannot reach any more: it marks them as lost.
pub type PeerFailureSink = Arc<dyn Fn(u32) + Send + Sync>;
/// The observer of waits that did not end at their first polls: it gets the call and the duration.
pub type WaitObserver = Arc<dyn Fn(&'static str, Duration) + Send + Sync>;

/// One PE of a job, without the state of one stream of operations.
pub struct Engine {
    /// The bootstrap. Closed before the lanes: they may wait for work on a shared GPU that waits for this PE's exit.
    pub bootstrap: Arc<dyn Bootstrap>,
    /// The guard that ends this PE's work on its GPU. Dropped after the bootstrap has reported this PE's exit, for
    /// which that work may wait, and before the memory that the work may use.
    pub gpu_teardown: Option<Box<dyn Any + Send + Sync>>,

    // The memory, and the paths to it.
    /// The opened transports; a path names one by its index.
    pub rails: Vec<Arc<Rail>>,
    /// This PE's number in the world.
    pub me: usize,
    /// This PE's own heap, mapped here.
    pub own: Arc<Mapping>,
    /// The start of this PE's GPU heap, if transports carry it, and its limit in bytes.
    pub gpu: Option<(AtomicPtr<u8>, usize)>,
    /// The path to each PE.
    pub routes: Routes,
    /// Private buffers that the program has registered.
    pub registered: Registrations,
    /// Registered memory for sources and destinations that are not.
    pub bounce_pool: BouncePool,
    /// The flushes after which this PE's GPU sees data that NICs have placed.
    pub gpu_flushes: GpuFlushes,
    /// The server by which others reach this PE's GPU memory where no transport carries it.
    pub stage: Arc<StagingServer>,
    /// The right to use other PEs' staging servers: one transfer at a time.
    pub staging_lock: Mutex<()>,

    // The other PEs.
    /// The PEs that are lost.
    pub liveness: Arc<Liveness>,
    /// Marks a PE as lost.
    pub report_lost: PeerFailureSink,
    /// Requests to other PEs without a reply.
    pub requests: ControlRequests,
    /// Active messages without a reply.
    pub pending_replies: PendingReplies,

    // Waits.
    /// Iterations that a wait spins, less one.
    pub spin: u32,
    /// Rounds of progress that a wait makes before it yields.
    pub lane_spin: u32,
    /// Whether a wait yields its CPU before it checks anything else: PEs outnumber the CPUs, no lane needs progress,
    /// and no trace records waits.
    pub oversubscribed: bool,
    /// The deadline of a wait.
    pub timeout: Option<Duration>,
    /// The program's function that waits call beside the progress of their own worker.
    pub progress_hook: OnceLock<fn()>,
    /// Waits that have lasted for a while.
    pub long_waits: LongWaits,
    /// The counter of waits, if the program wants statistics.
    pub wait_observer: Option<WaitObserver>,
    /// The start of the path of the source files whose calls are the library's own, not the program's.
    pub sources: &'static str,

    // Order.
    /// Whether a fence orders nonblocking operations, too, and reads are ordered (M18, M20).
    pub is_ordered: bool,
    /// Whether every fence and quiet has more to do than a mapped world's.
    pub fences_always_slow: bool,
    /// Whether a raw pointer was handed out: from then on every quiet is a full fence.
    pub untracked_stores: Arc<AtomicBool>,
    /// Whether accesses are checked: then no PE is mapped.
    pub is_checked: bool,
    /// Checked mode's table, on every PE.
    pub shadow: Option<Target>,

    // Tests.
    /// The memory that a transport simulates.
    pub simulation: Option<Simulation>,
    /// The transport's schedule of this PE's thread.
    pub schedule: Option<Arc<dyn Schedule>>,
    /// The fence that a mutation check leaves out.
    pub disabled_fence: Option<FenceSite>,

    /// The number of workers that were made.
    pub workers: AtomicU64,
    /// The time line of this PE's calls, if the program wants one.
    pub trace: Option<Arc<Trace>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("me", &self.me)
            .field("rails", &self.rails)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Number of PEs in the job.
    #[must_use]
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.routes.paths.len()
    }

    /// The start of this PE's own heap.
    #[inline]
    #[must_use]
    pub fn own_base(&self) -> NonNull<u8> {
        self.own.base()
    }

    /// Bytes of each PE's symmetric memory on its host: the bound of every offset.
    #[inline]
    #[must_use]
    pub fn own_len(&self) -> usize {
        self.own.len()
    }

    /// Calls the program's function that waits call beside the progress of their own worker. A panic there is an error of
    /// the call: lanes may be using memory that its caller would have back.
    #[inline]
    pub fn run_progress_hook(&self, call: &'static str) -> Result<()> {
        match self.progress_hook.get() {
            Some(hook) => std::panic::catch_unwind(hook).map_err(|_| Error::Argument {
                call,
                what: "the function given to drive_in_waits panicked; catch panics within it (std::panic::catch_unwind)"
                    .into(),
            }),
            None => Ok(()),
        }
    }

    /// Gives its turn to others, where a transport schedules this PE's thread.
    pub fn yield_point(&self) {
        if let Some(schedule) = &self.schedule {
            schedule.yield_point();
        }
    }

    /// Whether the order of this site is kept: a mutation check leaves one out.
    #[must_use]
    pub fn inserts(&self, site: FenceSite) -> bool {
        self.disabled_fence != Some(site)
    }
}
