//! A PE's membership of a job.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
#[cfg(feature = "cuda")]
use std::sync::atomic::fence;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use oxshmem_bootstrap::Bootstrap;
use oxshmem_transport::{Memory, MemoryKind, Transport};

use crate::config::{Atomics, Config, MemoryModel};
use crate::gpu::GpuMemory;
use crate::growth::Growth;
use crate::live_block_cache::LiveBlockCache;
use crate::order::FenceSite;
use crate::place::{self, placed};
use crate::register::Registrations;
use crate::service::ProgressThread;
use crate::setup;
use crate::shared::Shared;
use crate::stats::Target;
#[cfg(feature = "cuda")]
use crate::stream::{gpu_streams::GpuStreams, gpu_teardown::GpuTeardown};
use crate::{Context, Error, Result, goodbye, report};

/// One PE of a job: its symmetric heap, its routes to the others, and every operation on them.
///
/// It is the PE's default [`Context`], too, and so has the calls of one: puts, gets, atomics, signals, waits, fence and
/// quiet. What it has itself is collective, or concerns the PE.
///
/// A `World` may move between threads and is used by one at a time (it is `Send`, not `Sync`); threads have
/// [contexts](Context::create_context), and [teams](crate::Team::detach) on them.
/// Collective calls of all PEs come in the same order on every PE. End it with [`finalize`](Self::finalize): a world that is merely dropped
/// is, to its peers, a PE that was lost.
pub struct World {
    /// Ended before what they serve.
    _services: Vec<ProgressThread>,
    context: Context<'static>,
    pub(crate) inner: Box<Inner>,
}

impl Deref for World {
    type Target = Context<'static>;
    #[inline(always)]
    fn deref(&self) -> &Context<'static> {
        &self.context
    }
}

/// Which 64-bit words of host memory have atomics that their PE's NIC performs, for all PEs alike
/// (M29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicAtomics {
    /// None: CPUs perform all.
    Never,
    /// Those of blocks that were allocated for remote atomics.
    IfHinted,
    /// All that programs allocate.
    Always,
}

/// What the World alone uses, no other context.
pub(crate) struct Inner {
    /// How heaps grow, the GPU's second.
    growths: [Growth; 2],
    /// Which words' atomics are NICs'.
    pub nic_atomics: NicAtomics,
    /// Whether blocks of which they are were allocated.
    pub hinted: Arc<AtomicBool>,
    /// Whether a world that is dropped without `finalize` keeps its connection for a moment.
    linger: bool,
    /// Whether words of the last arrival have not gone out.
    stranded: Cell<bool>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("pe", &self.my_pe())
            .field("pes", &self.n_pes())
            .field("heap_limit", &self.heap_limit())
            .finish_non_exhaustive()
    }
}

/// Makes a [`World`] with settings of the program's own. What is not set comes from the
/// environment.
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
    #[cfg(feature = "cuda")]
    gpu: Option<(oxshmem_cuda::Context, usize)>,
    omitted: Option<FenceSite>,
    program: Option<Arc<ProgramMemory>>,
    active_sets: bool,
    without_places: bool,
}

/// Memory of the program's that begins the heap.
#[derive(Debug)]
pub(crate) struct ProgramMemory {
    /// The file that is mapped there, until the heap takes it.
    pub file: Mutex<Option<OwnedFd>>,
    /// Where it is mapped, and how many bytes.
    pub base: usize,
    pub len: usize,
}

impl ProgramMemory {
    pub(crate) fn take_file(&self) -> Option<OwnedFd> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.take()
    }
}

/// Makes a PE's GPU memory, by its rank.
#[derive(Clone)]
pub(crate) struct MakeGpuMemory(pub Arc<Make>);

type Make = dyn Fn(usize) -> Result<Box<dyn GpuMemory>, String> + Send + Sync;

impl fmt::Debug for MakeGpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MakeGpuMemory").finish_non_exhaustive()
    }
}

/// What only a program can set, not the environment.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub bootstrap: Option<Arc<dyn Bootstrap>>,
    pub transports: Option<Vec<Arc<dyn Transport>>>,
    pub gpu_heap: Option<MakeGpuMemory>,
    #[cfg(feature = "cuda")]
    pub gpu: Option<(oxshmem_cuda::Context, usize)>,
    pub omitted: Option<FenceSite>,
    pub program: Option<Arc<ProgramMemory>>,
    pub active_sets: bool,
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

    /// Who performs atomics of 64 bits (M29); all PEs need the same.
    pub fn atomics(mut self, atomics: Atomics) -> Self {
        self.atomics = Some(atomics);
        self
    }

    /// After what time a wait for another PE is an error.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// How many iterations a wait spins before it yields.
    pub fn spin(mut self, iterations: u32) -> Self {
        self.spin = Some(iterations);
        self
    }

    /// Which host this PE says it is on; PEs of one id try to share memory.
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

    /// A file for what each PE has done, which is written at the end (`docs/statistics.md`); all PEs need the same.
    pub fn stats(mut self, file: impl Into<PathBuf>) -> Self {
        self.stats = Some(file.into());
        self
    }

    /// How to find the other PEs, instead of by the environment. A world that is dropped is lost to
    /// its peers when the last handle of its bootstrap is gone, so the program should keep none.
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
    /// allocates. All PEs give as many bytes, or none gives any; some transport must carry it, since nothing
    /// tells whether this process could copy it.
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

    /// This PE's GPU heap, of at most `limit` bytes on this context's GPU, and the transport between
    /// GPUs: [`gpu_limit`](Self::gpu_limit) with a GPU of the program's choice.
    #[cfg(feature = "cuda")]
    pub fn gpu(mut self, context: oxshmem_cuda::Context, limit: usize) -> Self {
        self.gpu = Some((context, limit));
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

    /// Sets room aside for teams that members make [among themselves](Context::active_set_team), as OpenSHMEM's active sets
    /// need them, on top of the heap's limit. It is theirs alone: for a quarter as many as a PE may be in otherwise, and
    /// for eight [of one call](crate::Team::is_for_one_call). All PEs do, or none.
    pub fn active_sets(mut self) -> Self {
        self.active_sets = true;
        self
    }

    /// Leaves one inserted order out, for a mutation check over simulated memory or lanes: the
    /// memory model no longer holds. Processors' own fences on real memory stay.
    pub fn disable_fence(mut self, inserted: FenceSite) -> Self {
        self.omitted = Some(inserted);
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
            place::hide();
        }
        let (mut config, warnings) = Config::from_environment()?;
        if let Some(bytes) = self.heap_limit {
            let by = ("Builder::heap_limit", &*bytes.to_string());
            config.set_heap_limit(by, bytes as u64)?;
        }
        if let Some(bytes) = self.gpu_limit {
            config.gpu_limit = bytes as u64;
        }
        config.model = self.model.unwrap_or(config.model);
        config.check = self.check.unwrap_or(config.check);
        config.atomics = self.atomics.unwrap_or(config.atomics);
        config.timeout = self.timeout.or(config.timeout);
        config.spin = self.spin.or(config.spin);
        config.host_id = self.host_id.or(config.host_id);
        config.trace = self.trace.or(config.trace);
        config.stats = self.stats.map(Target::File).or(config.stats);
        let given = Overrides {
            bootstrap: self.bootstrap,
            transports: self.transports,
            gpu_heap: self.gpu_heap,
            #[cfg(feature = "cuda")]
            gpu: self.gpu,
            omitted: self.omitted,
            program: self.program,
            active_sets: self.active_sets,
        };
        setup::join(config, &warnings, given)
    }
}

impl Inner {
    /// How the heap of a kind grows.
    pub(crate) fn growth(&self, kind: MemoryKind) -> &Growth {
        let [host, gpu] = &self.growths;
        match kind {
            MemoryKind::Host => host,
            _ => gpu,
        }
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

    pub(crate) fn assemble(parts: setup::Parts) -> World {
        #[cfg(feature = "cuda")]
        let (gpu_side, leaving) = {
            let side = parts.gpu_side.map(Arc::new);
            let (access, transports) = (parts.stage.shared_access(), &parts.transports);
            let leaving = side
                .as_ref()
                .map(|side| GpuTeardown::new(side, access, transports));
            (side, leaving)
        };
        let shared = Shared {
            me: parts.bootstrap.rank() as usize,
            bootstrap: parts.bootstrap,
            rails: parts.transports,
            own: parts.own,
            limit: parts.limit,
            contexts: AtomicU64::new(0),
            liveness: Arc::clone(parts.peers.liveness()),
            report_lost: parts.lose,
            spin: parts.spin,
            lane_spin: parts.lane_spin,
            oversubscribed: parts.takes_turns,
            progress_hook: OnceLock::new(),
            fences_always_slow: parts.always,
            requests: parts.questions,
            long_waits: parts.lasting,
            broken_locks: parts.broken_locks,
            pending_replies: parts.active,
            #[cfg(feature = "cuda")]
            gpu_streams: gpu_side,
            #[cfg(feature = "cuda")]
            _leaving: leaving,
            bounce_pool: parts.bounces,
            sync_area: parts.internal,
            registered: Registrations::default(),
            live_blocks: LiveBlockCache::default(),
            heap_changes: Arc::clone(parts.heap.changes()),
            heap: Mutex::new(parts.heap),
            gpu: parts
                .gpu_heap
                .on_gpu_at()
                .map(|(base, limit)| (AtomicPtr::new(base.as_ptr()), limit)),
            gpu_heap: Mutex::new(parts.gpu_heap),
            gpu_flushes: parts.gpu_flushes,
            stage: parts.stage,
            staging_lock: Mutex::new(()),
            simulation: parts.simulation,
            schedule: parts.schedule,
            disabled_fence: parts.omitted,
            untracked_stores: Arc::default(),
            shadow: parts.shadow,
            mailbox: parts.mailbox,
            statics: parts.statics,
            program: parts.program,
            routes: parts.routes,
            visibility: parts.visibility,
            config: parts.config,
            hosts: parts.hosts,
            trace: parts.trace,
            stats: parts.stats,
        };
        World {
            _services: parts.services,
            context: Context::default(Arc::new(shared), parts.peers, parts.wire),
            inner: Box::new(Inner {
                growths: [parts.growth, parts.gpu_growth],
                nic_atomics: parts.nic_atomics,
                hinted: Arc::default(),
                linger: parts.linger,
                stranded: Cell::new(false),
            }),
        }
    }

    /// The memory model that this world keeps.
    #[must_use]
    pub fn model(&self) -> MemoryModel {
        self.shared.config.model
    }

    /// Which host each PE says it is on.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.shared.hosts
    }

    /// How the PEs found each other, in words.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.shared.bootstrap.describe()
    }

    /// Acknowledges every PE lost so far and gives their numbers: from here on waits no longer fail
    /// because of them. Calls that need them, collectives among them, still do.
    ///
    /// What was on its way to them by lanes is given up. Until then a quiet of the context that it was issued on
    /// fails: of the one that a team is bound to where a collective call's own words were, too.
    pub fn acknowledge_lost(&self) -> Vec<usize> {
        let lost = self.shared.liveness.acknowledge();
        self.forget_lost();
        #[cfg(feature = "cuda")]
        if let Some(side) = &self.shared.gpu_streams {
            self.resume_streams(side);
        }
        lost
    }

    /// Lets what streams are given wait again, if the program knows of every loss.
    #[cfg(feature = "cuda")]
    fn resume_streams(&self, side: &GpuStreams) {
        side.stop_word.resume();
        // One that was lost meanwhile had its waits ended before.
        fence(Ordering::SeqCst);
        if self.shared.liveness.first_lost().is_some() {
            side.stop_word.end();
        }
    }

    /// [`bindings::drive_in_waits`](crate::bindings::drive_in_waits).
    pub(crate) fn drive_in_waits(&self, drive: fn()) {
        // The first stays.
        let _ = self.shared.progress_hook.set(drive);
    }

    /// Ends the whole job with `status`: every PE, whatever it is doing. Does not return where a
    /// launcher ends the processes; with threads as PEs, every call of every PE fails from here on.
    #[doc(alias("shmem_global_exit", "nvshmem_global_exit", "MPI_Abort"))]
    pub fn global_exit(&self, status: i32) {
        self.shared.bootstrap.abort(
            status,
            &format!("PE {} called global_exit({status})", self.my_pe()),
        );
    }

    /// Leaves the job. Collective: completes this PE's operations and waits for all, as
    /// [`barrier_all`](Self::barrier_all). Blocks that were not freed are reported. Where this PE cannot complete
    /// what it has told the others in this call, it is lost to them.
    #[doc(alias("shmem_finalize", "nvshmem_finalize", "MPI_Finalize"))]
    #[track_caller]
    pub fn finalize(self) -> Result<()> {
        placed(|| self.finalize_inner())
    }

    fn finalize_inner(self) -> Result<()> {
        let traced = self.traced("finalize");
        let drained = self.last_arrival()?;
        let host = self.heap(MemoryKind::Host).leaks();
        let gpu = self.heap(MemoryKind::Cuda).leaks();
        let (blocks, bytes) = (host.0 + gpu.0, host.1 + gpu.1);
        if blocks > 0 && self.my_pe() == 0 {
            let told = format!("{blocks} symmetric blocks ({bytes} bytes a PE) were not freed");
            if self.shared.config.check {
                report::warn(&told)
            } else {
                report::info(&told)
            }
        }
        drop(traced);
        let streams = self.detach();
        drained.and(streams)
    }

    /// [`bindings::quiesce`](crate::bindings::quiesce).
    pub(crate) fn quiesce(&self) -> Result<()> {
        let _traced = self.traced("finalize");
        let drained = self.last_arrival()?;
        let streams = self.end_streams();
        #[cfg(feature = "cuda")]
        if streams.is_err() && self.shared.gpu_streams.iter().any(|side| side.is_used()) {
            return drained.and(streams);
        }
        self.heap(MemoryKind::Host).free_all();
        self.heap(MemoryKind::Cuda).free_all();
        if drained.is_ok() {
            // Nobody writes to it before all have come to the next collective call.
            for team in self.shared.sync_area.pool.release_all() {
                self.own(team).zero();
            }
            self.shared.sync_area.shared.reset(self);
            self.shared.bootstrap.rest(true);
        }
        drained.and(streams)
    }

    /// Waits for what this PE's streams were given, which may use all of its memory. Every PE has come to the end.
    fn end_streams(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(side) = &self.shared.gpu_streams {
            return side.end();
        }
        Ok(())
    }

    /// [`bindings::unquiesce`](crate::bindings::unquiesce).
    pub(crate) fn unquiesce(&self) -> Result<()> {
        self.shared.bootstrap.rest(false);
        if self.inner.linger {
            goodbye::expect(&self.shared.bootstrap);
        }
        // `quiesce` may have ended waits.
        #[cfg(feature = "cuda")]
        if let Some(side) = &self.shared.gpu_streams {
            self.resume_streams(side);
        }
        self.barrier_all()
    }

    /// Completes this PE's operations and waits for all, who may then leave. Inside is what became of the words by
    /// which others hear of it.
    fn last_arrival(&self) -> Result<Result<()>> {
        if self.inner.linger {
            goodbye::is_said(&self.shared.bootstrap);
        }
        self.arrive_in_finalize(self.quiet())?;
        // The words of that arrival itself may be on their way still.
        let drained = match self.is_idle() {
            true => Ok(()),
            false => self.drain_lanes("finalize"),
        };
        self.inner.stranded.set(drained.is_err());
        self.end_stats();
        Ok(drained)
    }

    /// Leaves the job, and waits for nobody.
    pub(crate) fn detach(mut self) -> Result<()> {
        let left = self.say_goodbye();
        self.inner.linger &= self.inner.stranded.get();
        left
    }

    /// [`bindings::finalize_at_exit`](crate::bindings::finalize_at_exit).
    pub(crate) fn finalize_at_exit(&self) -> Result<()> {
        let traced = self.traced("finalize");
        let drained = self.last_arrival()?;
        drop(traced);
        self.shared.sync_area.all.close();
        let left = self.say_goodbye();
        // Who has not left is among those that the rendezvous waits for.
        if !self.inner.stranded.get() {
            self.shared.bootstrap.outlast();
        }
        drained.and(left)
    }

    fn say_goodbye(&self) -> Result<()> {
        let streams = self.end_streams();
        self.end_trace();
        // Who waits for a word that has not gone out hears of a death instead.
        if !self.inner.stranded.get() {
            self.shared.bootstrap.leave();
        }
        streams
    }
}

/// How long the connection of a world that was dropped, not finalized, stays open.
const LINGER: Duration = Duration::from_millis(300);

impl Drop for World {
    fn drop(&mut self) {
        // First: what a lane has in page-locked memory is freed when this PE's streams are done.
        #[cfg(feature = "cuda")]
        if let Some(side) = &self.shared.gpu_streams {
            side.stop_word.end();
        }
        for opened in &self.shared.rails {
            opened.domain.shutdown();
        }
        // A `main` that returns an error drops its world before the error is printed. Were the
        // others told of the loss at once, one of them could fail, and the launcher end the job,
        // before this PE, whose failure it is, has said a word.
        if self.inner.linger {
            if std::thread::panicking() {
                goodbye::is_said(&self.shared.bootstrap);
            }
            let bootstrap = Arc::clone(&self.shared.bootstrap);
            // Where no thread can be had, the connection closes now.
            let _ = std::thread::Builder::new().spawn(move || {
                std::thread::sleep(LINGER);
                // No error has ended the process meanwhile.
                goodbye::is_forgotten(&bootstrap);
                drop(bootstrap);
            });
        }
    }
}

/// Numbers the worlds of this process, so that handles of one are foreign to another: even numbers,
/// never 0; the next odd one is for the world's GPU memory.
pub(crate) fn next_tag() -> Result<u32> {
    static NEXT: AtomicU32 = AtomicU32::new(2);
    // Never again one that was used: its handles may still be about.
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tag| {
        tag.checked_add(2)
    })
    .map_err(|_| Error::Argument {
        call: "World::init",
        what: "this process has made 2^31 worlds; start a new process".into(),
    })
}
