//! The builder of a world: settings of the program's own, which come before those of the environment; and the assembly of a
//! world from the parts that the start-up has made.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::engine::Engine;
use oxshmem_engine::gpu::memory::GpuMemory;
use oxshmem_engine::memory::registrations::Registrations;
use oxshmem_engine::memory::target::Target;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_transport::{Memory, Transport};

use crate::config::{Atomics, Config, MemoryModel};
use crate::context::Context;
use crate::error::Result;
use crate::live_block_cache::LiveBlockCache;
use crate::options::{MakeGpuMemory, Overrides, ProgramMemory};
use crate::pe_state::PeState;
use crate::place;
use crate::setup::Setup;
use crate::stats::counters::Stats;
use crate::world::{Inner, World};
use crate::{setup, stats};
use oxshmem_engine::call_site;
use oxshmem_engine::report;

#[cfg(feature = "cuda")]
use crate::stream::gpu_teardown::GpuTeardown;

/// Makes a [`World`] with settings of the program's own. Those that are not set come from the environment.
///
/// ```
/// use oxshmem::{Result, World};
/// use std::time::Duration;
///
/// fn main() -> Result<()> {
///     let world = World::builder()
///         .heap_limit(64 << 20) // 64 MiB a PE
///         .timeout(Duration::from_secs(60)) // for another PE
///         .check(true) // finds what the memory model leaves undefined
///         .join()?;
///     let table = world.alloc::<u64>(1000)?;
///     world.free(table)?;
///     world.finalize()
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    heap_limit: Option<usize>,
    model: Option<MemoryModel>,
    check: Option<bool>,
    atomics: Option<Atomics>,
    timeout: Option<Duration>,
    spin: Option<u32>,
    host_id: Option<String>,
    trace: Option<PathBuf>,
    stats: Option<PathBuf>,
    bootstrap: Option<Arc<dyn Bootstrap>>,
    transports: Option<Vec<Arc<dyn Transport>>>,
    gpu_heap: Option<MakeGpuMemory>,
    gpu_limit: Option<usize>,
    default_gpu_limit: Option<usize>,
    #[cfg(feature = "cuda")]
    gpu: Option<(oxshmem_cuda::Context, usize)>,
    #[cfg(feature = "cuda")]
    gpu_context: Option<oxshmem_cuda::Context>,
    variables: Vec<(&'static str, String)>,
    disabled_fence: Option<FenceSite>,
    program: Option<Arc<ProgramMemory>>,
    active_sets: bool,
    shared_by_gpu: bool,
    without_places: bool,
}

impl Builder {
    /// Limit of each PE's symmetric heap in bytes; the PEs agree on the smallest (M14).
    pub fn heap_limit(mut self, bytes: usize) -> Self {
        self.heap_limit = Some(bytes);
        self
    }

    /// The memory model (M20, M21); all PEs need the same.
    pub fn model(mut self, model: MemoryModel) -> Self {
        self.model = Some(model);
        self
    }

    /// Whether to check what the memory models leave undefined; all PEs need the same.
    pub fn check(mut self, on: bool) -> Self {
        self.check = Some(on);
        self
    }

    /// The processors that perform atomics of 64 bits (M29); all PEs need the same.
    pub fn atomics(mut self, atomics: Atomics) -> Self {
        self.atomics = Some(atomics);
        self
    }

    /// Time limit of a wait for another PE; after it the wait is an error.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Iterations that a wait spins before it yields.
    pub fn spin(mut self, iterations: u32) -> Self {
        self.spin = Some(iterations);
        self
    }

    /// The name of this PE's host; PEs of one name try to share memory.
    pub fn host_id(mut self, id: impl Into<String>) -> Self {
        self.host_id = Some(id.into());
        self
    }

    /// A file for a time line of what the PEs do, which Perfetto opens (`docs/trace.md`); all PEs need the
    /// same. The error of joining says if it cannot be written.
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// A file for statistics of each PE, written at the end (`docs/statistics.md`); all PEs need the same.
    pub fn stats(mut self, file: impl Into<PathBuf>) -> Self {
        self.stats = Some(file.into());
        self
    }

    /// The bootstrap to join by, instead of the environment's. A world that is dropped is lost to its peers when the last
    /// handle of its bootstrap is gone, so the program should keep none.
    pub fn bootstrap(mut self, bootstrap: Arc<dyn Bootstrap>) -> Self {
        self.bootstrap = Some(bootstrap);
        self
    }

    /// The transports to choose from, best first, instead of the built-in ones.
    pub fn transports(mut self, transports: Vec<Arc<dyn Transport>>) -> Self {
        self.transports = Some(transports);
        self
    }

    /// This PE's GPU heap: GPU memory from which [`World::alloc_on`](crate::World::alloc_on)
    /// allocates. All PEs give as many bytes, or none gives any; some transport must carry it, since the library
    /// does not know whether this process could copy it.
    pub fn gpu_heap(self, memory: Memory) -> Self {
        self.gpu_memory(move |_| Ok(Box::new(memory.clone())))
    }

    /// As [`gpu_heap`](Self::gpu_heap), of memory that is committed as the heap grows. `make` is called
    /// on each PE with its rank; an error in words ends the joining on every PE. With an
    /// [access](GpuMemory::access) every PE's memory can be reached, by whichever transports there are.
    pub fn gpu_memory(
        mut self,
        make: impl Fn(usize) -> Result<Box<dyn GpuMemory>, String> + Send + Sync + 'static,
    ) -> Self {
        self.gpu_heap = Some(MakeGpuMemory(Arc::new(make)));
        self
    }

    /// Limit of each PE's GPU heap in bytes, as `OXSHMEM_CUDA_SYMMETRIC_SIZE` sets it; the PEs agree on the
    /// smallest (M14), and 0 is no GPU heap. `OXSHMEM_GPU`, or the PE's place on its host, chooses the GPU.
    pub fn gpu_limit(mut self, bytes: usize) -> Self {
        self.gpu_limit = Some(bytes);
        self
    }

    /// [`bindings::default_gpu_limit`](crate::bindings::default_gpu_limit).
    #[cfg(feature = "cuda")]
    pub(crate) fn default_gpu_limit(mut self, bytes: usize) -> Self {
        self.default_gpu_limit = Some(bytes);
        self
    }

    /// This PE's GPU heap, of at most `limit` bytes on this context's GPU, and the transport between
    /// GPUs: [`gpu_limit`](Self::gpu_limit) with a GPU of the program's choice.
    #[cfg(feature = "cuda")]
    pub fn gpu(mut self, context: oxshmem_cuda::Context, limit: usize) -> Self {
        self.gpu = Some((context, limit));
        self
    }

    /// [`bindings::gpu_context`](crate::bindings::gpu_context).
    #[cfg(feature = "cuda")]
    pub(crate) fn gpu_context(mut self, context: oxshmem_cuda::Context) -> Self {
        self.gpu_context = Some(context);
        self
    }

    /// [`bindings::default_variable`](crate::bindings::default_variable).
    pub(crate) fn default_variable(mut self, name: &'static str, value: String) -> Self {
        self.variables.push((name, value));
        self
    }

    /// [`bindings::program_memory`](crate::bindings::program_memory).
    ///
    /// # Safety
    ///
    /// As of that.
    pub(crate) unsafe fn program_memory(
        mut self,
        file: OwnedFd,
        base: *mut u8,
        len: usize,
    ) -> Self {
        self.program = Some(Arc::new(ProgramMemory {
            file: Mutex::new(Some(file)),
            base: base.addr(),
            len,
        }));
        self
    }

    /// Sets room aside for teams that members make [among themselves](crate::Context::active_set_team), as OpenSHMEM's active sets
    /// need them, on top of the heap's limit. It is theirs alone: for a quarter as many as a PE may be in otherwise, and
    /// for eight [of one call](crate::Team::is_for_one_call). All PEs do, or none.
    pub fn active_sets(mut self) -> Self {
        self.active_sets = true;
        self
    }

    /// [`bindings::shared_by_gpu`](crate::bindings::shared_by_gpu).
    #[cfg(feature = "cuda")]
    pub(crate) fn shared_by_gpu(mut self) -> Self {
        self.shared_by_gpu = true;
        self
    }

    /// Leaves one inserted order out, for a mutation check over simulated memory or lanes: the
    /// memory model no longer holds. Processors' own fences on real memory stay.
    pub fn disable_fence(mut self, inserted: FenceSite) -> Self {
        self.disabled_fence = Some(inserted);
        self
    }

    /// [`bindings::without_places`](crate::bindings::without_places).
    pub(crate) fn without_places(mut self) -> Self {
        self.without_places = true;
        self
    }

    pub(crate) fn or_heap_limit(mut self, bytes: usize) -> Self {
        self.heap_limit = self.heap_limit.or(Some(bytes));
        self
    }

    pub(crate) fn or_transports(mut self, make: impl FnOnce() -> Vec<Arc<dyn Transport>>) -> Self {
        self.transports.get_or_insert_with(make);
        self
    }

    /// Joins the job. Collective over its PEs.
    pub fn join(self) -> Result<World> {
        if self.without_places {
            call_site::hide();
        }
        let (mut config, warnings) = Config::from_environment(&self.variables)?;
        if let Some(bytes) = self.heap_limit {
            let by = ("Builder::heap_limit", &*bytes.to_string());
            config.set_heap_limit(by, bytes as u64)?;
        }
        if let Some(bytes) = self.default_gpu_limit.filter(|_| !config.names_gpu_limit) {
            (config.gpu_limit, config.gpu_limit_is_default) = (bytes as u64, true);
        }
        if let Some(bytes) = self.gpu_limit {
            (config.gpu_limit, config.gpu_limit_is_default) = (bytes as u64, false);
        }
        #[cfg(feature = "cuda")]
        let of_context = |context| (context, config.gpu_limit as usize);
        #[cfg(feature = "cuda")]
        let gpu = self.gpu.or(self.gpu_context.map(of_context));
        config.model = self.model.unwrap_or(config.model);
        config.check = self.check.unwrap_or(config.check);
        config.atomics = self.atomics.unwrap_or(config.atomics);
        config.timeout = self.timeout.or(config.timeout);
        config.spin = self.spin.or(config.spin);
        config.host_id = self.host_id.or(config.host_id);
        config.trace = self.trace.or(config.trace);
        config.stats = self
            .stats
            .map(stats::counters::Target::File)
            .or(config.stats);
        let overrides = Overrides {
            bootstrap: self.bootstrap,
            transports: self.transports,
            gpu_heap: self.gpu_heap,
            #[cfg(feature = "cuda")]
            gpu,
            disabled_fence: self.disabled_fence,
            program: self.program,
            active_sets: self.active_sets,
            shared_by_gpu: self.shared_by_gpu,
        };
        let setup = setup::join(config, &warnings, overrides)?;
        let stages = setup.stages;
        let world = assemble(setup);
        if stages {
            world.open_stage()?;
        }
        log_world(&world);
        Ok(world)
    }
}

impl World {
    /// Joins the job that the environment describes: that of `oxshmem run`, or of torchrun-style
    /// variables. Where there is none, it makes a world of one PE.
    ///
    /// ```
    /// use oxshmem::{Result, World};
    ///
    /// fn main() -> Result<()> {
    ///     let world = World::init()?;
    ///     println!("PE {} of {}", world.my_pe(), world.n_pes());
    ///     world.finalize()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyJoined`](crate::Error::AlreadyJoined) if this process is a PE of the job
    /// already; a setting that makes no sense; PEs that do not come, named.
    #[doc(alias(
        "shmem_init",
        "shmem_init_thread",
        "start_pes",
        "nvshmem_init",
        "MPI_Init"
    ))]
    pub fn init() -> Result<World> {
        Self::builder().join()
    }

    /// A world with settings of the program's own.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Makes a world of the parts that the start-up has made.
fn assemble(setup: Setup) -> World {
    let (membership, host, rails) = (setup.membership, setup.heap, setup.rails);
    let (gpu, peers, handlers) = (setup.gpu, setup.peers, setup.handlers);
    #[cfg(feature = "cuda")]
    let (gpu_streams, teardown) = {
        let streams = gpu.streams.map(Arc::new);
        let access = gpu.stage.shared_access();
        let teardown = streams
            .as_ref()
            .map(|streams| GpuTeardown::new(streams, access, &rails));
        (streams, teardown)
    };
    let stats = setup.stats.map(Arc::new);
    let engine = Engine {
        me: membership.me(),
        bootstrap: membership.bootstrap,
        #[cfg(feature = "cuda")]
        gpu_teardown: teardown.map(|teardown| Box::new(teardown) as _),
        #[cfg(not(feature = "cuda"))]
        gpu_teardown: None,
        rails,
        own: host.own,
        gpu: gpu
            .heap
            .on_gpu_at()
            .map(|(base, limit)| (AtomicPtr::new(base.as_ptr()), limit)),
        routes: peers.routes,
        registered: Registrations::default(),
        bounce_pool: host.parts.bounce_pool,
        gpu_flushes: gpu.flushes,
        stage: gpu.stage,
        staging_lock: Mutex::new(()),
        liveness: Arc::clone(peers.table.liveness()),
        report_lost: handlers.report_lost,
        requests: handlers.requests,
        pending_replies: host.parts.pending_replies,
        spin: setup.spins.spin,
        lane_spin: setup.spins.lane_spin,
        oversubscribed: setup.spins.oversubscribed,
        timeout: setup.config.timeout,
        progress_hook: OnceLock::new(),
        long_waits: handlers.long_waits,
        wait_observer: stats.clone().map(Stats::wait_observer),
        sources: place::sources(),
        is_ordered: setup.config.model == MemoryModel::Ordered,
        fences_always_slow: peers.fences_always_slow,
        untracked_stores: Arc::default(),
        is_checked: setup.config.check,
        shadow: host.parts.shadow.map(Target::from),
        simulation: peers.test_hooks.simulation,
        schedule: peers.test_hooks.schedule,
        disabled_fence: peers.test_hooks.disabled_fence,
        workers: AtomicU64::new(0),
        trace: setup.trace,
    };
    let mut sync_area = host.parts.sync_area;
    sync_area.gpu_limit = gpu.heap.limit() as u64;
    let pe = PeState {
        engine: Arc::new(engine),
        limit: host.limit,
        broken_locks: handlers.broken_locks,
        sync_area,
        heap_changes: Arc::clone(host.heap.blocks.changes()),
        heap: Mutex::new(host.heap),
        live_blocks: LiveBlockCache::default(),
        gpu_heap: Mutex::new(gpu.heap),
        mailbox: host.parts.mailbox,
        statics: host.parts.statics,
        program: host.program,
        visibility: setup.visibility,
        config: setup.config,
        hosts: setup.hosts,
        #[cfg(feature = "cuda")]
        gpu_streams,
        #[cfg(feature = "cuda")]
        no_gpu_heap: gpu.absence,
        stats,
    };
    let context = Context::default(Arc::new(pe), peers.table, peers.lanes);
    let growths = [host.growth, gpu.growth];
    let inner = Inner::new(growths, setup.nic_atomics, membership.linger);
    World::new(setup.services, context, inner)
}

/// Logs a world: its bootstrap, and the routes of this PE to the others.
fn log_world(world: &World) {
    if !tracing::enabled!(target: "oxshmem", tracing::Level::INFO) {
        return;
    }
    let (pes, version) = (world.n_pes(), env!("CARGO_PKG_VERSION"));
    let mib = world.heap_limit() >> 20;
    let how = world.bootstrap();
    report::info(&format!(
        "oxshmem {version}: {pes} PEs, up to {mib} MiB of heap each; {how}"
    ));
    // Routes in words, the first PE of each, and their numbers of PEs.
    let mut routes: Vec<(String, usize, usize)> = Vec::new();
    for pe in (0..pes).filter(|pe| *pe != world.my_pe()) {
        let Some(route) = world.worker.engine.routes.get(pe) else {
            continue;
        };
        let name = route.transport.unwrap_or("no transport");
        let device = route.device.map(|device| format!(" on {device}"));
        let mapped = if route.mapped { ", mapped" } else { "" };
        let words = format!("{name}{}{mapped}", device.unwrap_or_default());
        match routes.iter_mut().find(|(other, ..)| *other == words) {
            Some((_, _, count)) => *count += 1,
            None => routes.push((words, pe, 1)),
        }
    }
    for (words, first, count) in routes {
        let pes = match count {
            1 => format!("PE {first}"),
            _ => format!("{count} PEs from {first} on"),
        };
        report::info(&format!("host memory of {pes} by {words}"));
    }
}
