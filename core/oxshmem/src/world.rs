//! The world of a PE: its default context, its heaps and its part of the job, from `init` to `finalize`.

use std::cell::Cell;
#[cfg(feature = "cuda")]
use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "cuda")]
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use oxshmem_engine::am::progress_thread::ProgressThread;
use oxshmem_transport::MemoryKind;

use crate::config::MemoryModel;
use crate::context::Context;
#[cfg(feature = "cuda")]
use crate::device::open_library::OpenLibrary;
use crate::error::{Error, Result};
use crate::goodbye;
use crate::heap::Growth;
use crate::options::NicAtomics;
use crate::place::placed;
#[cfg(feature = "cuda")]
use crate::stream::gpu_streams::GpuStreams;
use oxshmem_engine::report;

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
    /// Ended before the domains that they serve.
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

/// State of the world that no other context uses.
pub(crate) struct Inner {
    /// Growth of the host heap, and of the GPU heap.
    growths: [Growth; 2],
    /// The words whose atomics NICs perform.
    pub nic_atomics: NicAtomics,
    /// Whether blocks of such words were allocated.
    pub hinted: Arc<AtomicBool>,
    /// Whether a world that is dropped without `finalize` keeps its connection for a moment.
    linger: bool,
    /// Whether signals of the last arrival could not be sent.
    stranded: Cell<bool>,
    /// The device library, once it is open.
    #[cfg(feature = "cuda")]
    pub device: OnceCell<OpenLibrary>,
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

impl Inner {
    pub(crate) fn new(growths: [Growth; 2], nic_atomics: NicAtomics, linger: bool) -> Self {
        Inner {
            growths,
            nic_atomics,
            hinted: Arc::default(),
            #[cfg(feature = "cuda")]
            device: OnceCell::new(),
            linger,
            stranded: Cell::new(false),
        }
    }

    /// The growth of the heap of this kind.
    pub(crate) fn growth(&self, kind: MemoryKind) -> &Growth {
        let [host, gpu] = &self.growths;
        match kind {
            MemoryKind::Host => host,
            _ => gpu,
        }
    }
}

impl World {
    pub(crate) fn new(
        services: Vec<ProgressThread>,
        context: Context<'static>,
        inner: Inner,
    ) -> Self {
        World {
            _services: services,
            context,
            inner: Box::new(inner),
        }
    }

    /// The memory model that this world keeps.
    #[must_use]
    pub fn model(&self) -> MemoryModel {
        self.pe.config.model
    }

    /// The host of each PE, as the PE names it.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.pe.hosts
    }

    /// The bootstrap by which the PEs found each other, in words.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.worker.engine.bootstrap.describe()
    }

    /// Acknowledges every PE lost so far and gives their numbers: from here on waits no longer fail
    /// because of them. Calls that need them, collectives among them, still do.
    ///
    /// Operations in flight to them on lanes are cancelled. Until then a quiet of the context that issued such an
    /// operation fails. The words of a collective call count as operations of the context that its team is bound to.
    ///
    /// The waits of streams and kernels that a loss has ended wait again. So synchronize the streams that make operations of this world before.
    pub fn acknowledge_lost(&self) -> Vec<usize> {
        let lost = self.worker.engine.liveness.acknowledge();
        self.worker.forget_lost();
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams {
            self.resume_streams(streams);
        }
        lost
    }

    /// Lets work queued on streams wait again, if the program has acknowledged every loss.
    #[cfg(feature = "cuda")]
    pub(crate) fn resume_streams(&self, side: &GpuStreams) {
        if let Some(ring) = side.ring() {
            // Requests towards lost PEs fail before it.
            ring.quiet();
            if side.stop_word.value() != 0 {
                ring.restart();
            }
            if ring.failure().is_some() {
                // Its waits stay ended.
                return;
            }
        }
        side.stop_word.resume();
        // The loss of another PE meanwhile may have ended the waits before this resumed them.
        fence(Ordering::SeqCst);
        if self.worker.engine.liveness.first_lost().is_some() {
            side.stop_word.end();
        }
    }

    /// [`bindings::drive_in_waits`](crate::bindings::drive_in_waits).
    pub(crate) fn drive_in_waits(&self, drive: fn()) {
        // The first function that was given stays.
        let _ = self.worker.engine.progress_hook.set(drive);
    }

    /// Ends the whole job with `status`: every PE, whatever it is doing. Does not return where a
    /// launcher ends the processes; with threads as PEs, every call of every PE fails from here on.
    #[doc(alias("shmem_global_exit", "nvshmem_global_exit", "MPI_Abort"))]
    pub fn global_exit(&self, status: i32) {
        self.worker.engine.bootstrap.abort(
            status,
            &format!("PE {} called global_exit({status})", self.my_pe()),
        );
    }

    /// Leaves the job. Collective: completes this PE's operations and waits for all, as
    /// [`barrier_all`](Self::barrier_all). Blocks that were not freed are reported. Where this PE's signals of
    /// this call cannot be delivered, it is lost to the others.
    #[doc(alias("shmem_finalize", "nvshmem_finalize", "MPI_Finalize"))]
    #[track_caller]
    pub fn finalize(self) -> Result<()> {
        placed(|| self.finalize_inner())
    }

    fn finalize_inner(self) -> Result<()> {
        let traced = self.worker.traced("finalize");
        let requests = self.complete_streams_requests();
        let drained = self.last_arrival()?;
        let host = self.heap(MemoryKind::Host).blocks.total();
        let gpu = self.heap(MemoryKind::Cuda).blocks.total();
        let (blocks, bytes) = (host.0 + gpu.0, host.1 + gpu.1);
        if blocks > 0 && self.my_pe() == 0 {
            let unfreed = format!("{blocks} symmetric blocks ({bytes} bytes a PE) were not freed");
            if self.pe.config.check {
                report::warn(&unfreed)
            } else {
                report::info(&unfreed)
            }
        }
        drop(traced);
        let streams = self.detach();
        drained.and(requests).and(streams)
    }

    /// Completes what streams ask of the host, while the other PEs are still there: waits for the streams' work first, as long as the end of
    /// a world may.
    fn complete_streams_requests(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams {
            return self.drain_requests("finalize", streams);
        }
        Ok(())
    }

    /// [`bindings::quiesce`](crate::bindings::quiesce).
    pub(crate) fn quiesce(&self) -> Result<()> {
        let _traced = self.worker.traced("finalize");
        let requests = self.complete_streams_requests();
        let drained = self.last_arrival()?;
        let streams = requests.and(self.end_streams());
        #[cfg(feature = "cuda")]
        if streams.is_err() && self.pe.gpu_streams.iter().any(|gpu| gpu.is_used()) {
            return drained.and(streams);
        }
        self.heap(MemoryKind::Host).free_all();
        self.heap(MemoryKind::Cuda).free_all();
        if drained.is_ok() {
            // No PE writes to it before all have entered the next collective call.
            for team in self.pe.sync_area.pool.release_all() {
                self.worker.own(team).zero();
            }
            self.pe.sync_area.shared.reset(&self.worker);
            self.worker.engine.bootstrap.rest(true);
        }
        drained.and(streams)
    }

    /// Waits for the work on this PE's streams, which may use all of its memory. Every PE has reached finalize.
    fn end_streams(&self) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams {
            return streams.end();
        }
        Ok(())
    }

    /// [`bindings::unquiesce`](crate::bindings::unquiesce).
    pub(crate) fn unquiesce(&self) -> Result<()> {
        self.worker.engine.bootstrap.rest(false);
        if self.inner.linger {
            goodbye::expect(&self.worker.engine.bootstrap);
        }
        // `quiesce` may have ended waits.
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams {
            self.resume_streams(streams);
        }
        self.barrier_all()
    }

    /// Completes this PE's operations and waits for all PEs, which may then leave. The inner result is the delivery of
    /// the signals by which the others learn of this PE's arrival.
    fn last_arrival(&self) -> Result<Result<()>> {
        if self.inner.linger {
            goodbye::is_said(&self.worker.engine.bootstrap);
        }
        self.arrive_in_finalize(self.quiet())?;
        // The signals of that arrival itself may still be in flight.
        let drained = match self.worker.is_idle() {
            true => Ok(()),
            false => self.worker.in_call("finalize").drain_lanes(),
        };
        self.inner.stranded.set(drained.is_err());
        self.end_stats();
        Ok(drained.map_err(Error::from))
    }

    /// Leaves the job, and waits for nobody.
    pub(crate) fn detach(mut self) -> Result<()> {
        let left = self.say_goodbye();
        self.inner.linger &= self.inner.stranded.get();
        left
    }

    /// [`bindings::finalize_at_exit`](crate::bindings::finalize_at_exit).
    pub(crate) fn finalize_at_exit(&self) -> Result<()> {
        let traced = self.worker.traced("finalize");
        let requests = self.complete_streams_requests();
        let drained = self.last_arrival()?.and(requests);
        drop(traced);
        self.pe.sync_area.all.close();
        let left = self.say_goodbye();
        // A rendezvous waits for every PE that has not left: one that has not would wait for itself.
        if !self.inner.stranded.get() {
            self.worker.engine.bootstrap.outlast();
        }
        drained.and(left)
    }

    fn say_goodbye(&self) -> Result<()> {
        let streams = self.end_streams();
        self.end_trace();
        // A PE that waits for a signal that could not be sent is to see this PE fail, not leave.
        if !self.inner.stranded.get() {
            self.worker.engine.bootstrap.leave();
        }
        streams
    }
}

/// How long the connection of a world that was dropped, not finalized, stays open.
const LINGER: Duration = Duration::from_millis(300);

impl Drop for World {
    fn drop(&mut self) {
        // First: a lane's page-locked memory is freed when this PE's streams are done.
        #[cfg(feature = "cuda")]
        if let Some(streams) = &self.pe.gpu_streams {
            streams.stop_word.end();
        }
        // Its context uses the domains.
        #[cfg(feature = "cuda")]
        {
            let open = self.inner.device.take();
            let is_used = self.pe.gpu_streams.iter().any(|streams| streams.is_used());
            if let Some(open) = open.filter(|_| is_used) {
                open.keep_memory();
            }
        }
        for opened in &self.worker.engine.rails {
            opened.domain.shutdown();
        }
        // A `main` that returns an error drops its world before the error is printed. If the
        // others learned of the loss at once, one of them could fail, and the launcher end the job,
        // before this PE has printed the error that caused it.
        if self.inner.linger {
            if std::thread::panicking() {
                goodbye::is_said(&self.worker.engine.bootstrap);
            }
            let bootstrap = Arc::clone(&self.worker.engine.bootstrap);
            // If no thread can be started, the connection closes now.
            let _ = std::thread::Builder::new().spawn(move || {
                std::thread::sleep(LINGER);
                // No error has ended the process meanwhile.
                goodbye::is_forgotten(&bootstrap);
                drop(bootstrap);
            });
        }
    }
}
