//! The GPU heap: symmetric memory that this PE's CPU neither loads nor stores (M2, M4), and when its
//! GPU sees what NICs place there (M27).

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use oxshmem_transport::{Domain, GpuFlush, Memory, MemoryKind};

use crate::messages::Message;
use crate::order::Inserted;
use crate::wait::WARN_EVERY;
use crate::{Error, Result, Sym, World, report};

/// How long a look for an answer sleeps.
const SLICE: Duration = Duration::from_millis(20);

/// Where this PE's GPU's view of its memory is brought up to date, and the answers of other PEs that
/// were asked to do so.
#[derive(Clone, Default)]
pub(crate) struct GpuFlushes {
    /// The domains whose transports need it.
    domains: Arc<[Arc<dyn Domain>]>,
    answers: Arc<Answers>,
}

#[derive(Default)]
struct Answers {
    /// The number of the last request, and what came for it.
    state: Mutex<(u64, Vec<(usize, String)>)>,
    changed: Condvar,
}

impl fmt::Debug for GpuFlushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuFlushes")
            .field("domains", &self.domains.len())
            .finish_non_exhaustive()
    }
}

impl Answers {
    fn state(&self) -> MutexGuard<'_, (u64, Vec<(usize, String)>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GpuFlushes {
    /// For the domains among `all` that need it.
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a Arc<dyn Domain>>) -> Self {
        let needs = |domain: &&Arc<dyn Domain>| {
            let guarantees = domain.guarantees(MemoryKind::Cuda);
            guarantees.is_some_and(|g| g.gpu_flush == GpuFlush::Target)
        };
        GpuFlushes {
            domains: all.filter(needs).cloned().collect(),
            answers: Arc::default(),
        }
    }

    fn flush(&self) -> Result<(), oxshmem_transport::Error> {
        self.domains
            .iter()
            .try_for_each(|domain| domain.make_visible(MemoryKind::Cuda))
    }

    /// What to answer to a PE that asks for a flush.
    pub(crate) fn asked(&self, number: u64) -> Message {
        let why = self.flush().err().map(|error| error.to_string());
        Message::Flushed(number, why.unwrap_or_default())
    }

    /// An answer has come.
    pub(crate) fn answered(&self, from: usize, number: u64, why: String) {
        let mut state = self.answers.state();
        // One of an earlier request, which was given up, counts no more.
        if state.0 == number {
            state.1.push((from, why));
            self.answers.changed.notify_all();
        }
    }
}

impl World {
    /// The tag of handles that name GPU memory. Worlds' own tags are even.
    #[inline(always)]
    pub(crate) fn gpu_tag(&self) -> u32 {
        self.tag | 1
    }

    /// Bytes of each PE's GPU heap; 0 if there is none.
    #[must_use]
    pub fn gpu_heap_limit(&self) -> usize {
        self.inner.gpu.as_ref().map_or(0, Memory::len)
    }

    /// [`alloc`](Self::alloc) in memory of another kind (M2): on the GPU, from the heap that
    /// [`Builder::gpu_heap`](crate::Builder::gpu_heap) gave. Collective, with the same arguments on
    /// every PE.
    ///
    /// The host cannot load or store GPU memory (M4): puts, gets and atomics on it go by a
    /// transport's operations, also towards this PE itself, and calls that would have to look at it
    /// (waits, collectives, `realloc`) give [`Error::GpuMemory`].
    #[doc(alias = "nvshmem_malloc")]
    pub fn alloc_on<T: Pod>(&self, kind: MemoryKind, len: usize) -> Result<Sym<T>> {
        self.allocate_on(kind, "alloc_on", len)
    }

    /// Brings this PE's GPU's view up to date with what NICs have placed in its memory, where a
    /// transport needs that (M27). Run by waits, tests and barriers.
    #[inline(always)]
    pub(crate) fn see_gpu_data(&self) -> Result<()> {
        let flushes = &self.inner.gpu_flushes;
        if flushes.domains.is_empty() || !self.inserts(Inserted::WaitGpu) {
            return Ok(());
        }
        Ok(flushes.flush()?)
    }

    /// Has a PE bring its GPU's view up to date, and waits until it has (M27). It needs make no call
    /// for it: the bootstrap's service answers, so that nothing simulated takes part in this wait.
    pub(crate) fn ask_gpu_flush(&self, call: &'static str, pe: usize) -> Result<()> {
        let flushes = &self.inner.gpu_flushes;
        if pe == self.my_pe() {
            return Ok(flushes.flush()?);
        }
        let number = {
            let mut state = flushes.answers.state();
            state.0 += 1;
            state.1.clear();
            state.0
        };
        self.send(call, pe, &Message::FlushGpu(number))?;
        let since = Instant::now();
        let mut warn_at = WARN_EVERY;
        let mut state = flushes.answers.state();
        loop {
            if let Some((_, why)) = state.1.iter().find(|(from, _)| *from == pe) {
                return match why.as_str() {
                    "" => Ok(()),
                    why => Err(Error::FailedElsewhere {
                        call,
                        pe,
                        why: why.into(),
                    }),
                };
            }
            if self.peers.is_lost(pe) {
                return Err(Error::PeerLost { call, pe });
            }
            let waited = since.elapsed();
            if let Some(limit) = self.timeout().filter(|limit| waited >= *limit) {
                return Err(Error::Timeout {
                    call,
                    me: self.my_pe(),
                    whom: format!("PE {pe}"),
                    what: "its GPU's flush".into(),
                    waited,
                    limit,
                });
            }
            if waited >= warn_at {
                warn_at += WARN_EVERY;
                report::warn(&format!(
                    "PE {} has waited {} s in {call} for PE {pe}: its GPU's flush",
                    self.my_pe(),
                    waited.as_secs()
                ));
            }
            let waited = flushes.answers.changed.wait_timeout(state, SLICE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
