//! The lanes of one context: an endpoint per transport, and the work that a fence or quiet owes beyond their
//! flushes. Data only; the operations lie in the files beside this one.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::{MemoryKind, Sleep};

use crate::error::Result;
use crate::lane::endpoint::Endpoint;
use crate::lane::flush_state::BegunFlush;
use crate::lane::rail::Rail;
use crate::lane::remote::RemoteTarget;
use crate::peer::pe_set::PeSet;
use crate::trace::timeline::Trace;

/// All lanes of a context.
pub struct Lanes {
    /// By transport.
    pub endpoints: Box<[Endpoint]>,
    /// Operations may be in flight on some lane, or fences and quiets have more to do than a mapped world's
    /// for another reason ([`Lanes::always_slow`]).
    busy: Cell<bool>,
    /// Memory is simulated, or there is GPU memory: every fence and quiet takes the slow branch.
    always_slow: bool,
    /// Data arrive on some lane only while it is driven.
    moves_in_calls: bool,
    /// Some endpoint has operations that a fence ordered before later ones on other endpoints.
    pub(crate) has_fenced: Cell<bool>,
    /// The PEs whose GPUs must flush before a quiet ends (M27): a flush of the lane does not do that.
    pub(crate) gpu_flushes_due: RefCell<PeSet>,
    /// Empty outside fences and quiets, which use its memory again.
    pub(crate) flushes: RefCell<Vec<BegunFlush>>,
    /// Nonblocking gets into this PE's own GPU memory are in flight that need a flush here.
    pub(crate) gpu_gets_in_flight: Cell<bool>,
    /// Slices of cudarc's are lent to nonblocking operations.
    pub slices_lent: Cell<bool>,
    /// The number of acknowledgements of losses when this context last forgot the lost PEs.
    pub(crate) acknowledgements: Cell<u32>,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.endpoints).finish()
    }
}

impl Lanes {
    /// A context's lanes of these transports, in a job of `pes` PEs.
    pub fn open(rails: &[Arc<Rail>], pes: usize, always_slow: bool) -> Result<Self> {
        let open = |(index, rail)| Endpoint::open(rail, index, pes);
        let endpoints = rails.iter().enumerate().map(open);
        Ok(Lanes {
            endpoints: endpoints.collect::<Result<_>>()?,
            busy: Cell::new(always_slow),
            always_slow,
            moves_in_calls: rails.iter().any(|rail| rail.caps.moves_in_calls),
            has_fenced: Cell::new(false),
            gpu_flushes_due: RefCell::default(),
            flushes: RefCell::default(),
            gpu_gets_in_flight: Cell::new(false),
            slices_lent: Cell::new(false),
            acknowledgements: Cell::new(0),
        })
    }

    /// Whether fences and quiets take the slow branch.
    #[inline(always)]
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Whether a wait has lanes to drive: some have operations in flight, or data arrive only while they are driven.
    #[inline(always)]
    pub(crate) fn want_progress(&self) -> bool {
        self.moves_in_calls || self.is_busy()
    }

    /// Sleeps until data may have arrived on a lane, at most so long; not at all where none can.
    pub(crate) fn sleep(&self, longest: Duration) -> Sleep {
        let driven = |endpoint: &&Endpoint| endpoint.caps.moves_in_calls;
        let mut sleeps = self.endpoints.iter().filter(driven);
        let slept = sleeps.find_map(|endpoint| match endpoint.sleep(longest) {
            Sleep::Unsupported => None,
            slept => Some(slept),
        });
        slept.unwrap_or(Sleep::Unsupported)
    }

    /// Operations may be in flight from here on.
    #[inline]
    pub fn set_busy(&self) {
        self.busy.set(true);
    }

    /// Nothing is in flight: a quiet has completed all.
    pub(crate) fn set_idle(&self) {
        self.busy.set(self.always_slow);
        self.has_fenced.set(false);
        self.gpu_gets_in_flight.set(false);
    }

    /// The lanes of the context with this number are shown in a trace.
    pub(crate) fn trace(&mut self, trace: Option<&Arc<Trace>>, context: u64) {
        let Some(trace) = trace else {
            return;
        };
        trace.name_context(context);
        for endpoint in &mut self.endpoints {
            endpoint.trace = Some(endpoint.trace_counters(trace, context));
        }
    }

    /// Writes the counts of all lanes to the trace.
    pub fn write_trace_counts(&self) {
        let all = self.endpoints.iter().flat_map(|endpoint| &endpoint.trace);
        all.for_each(|counters| counters.write());
    }

    /// The context ends; `completed` says whether all that it has issued has completed.
    pub(crate) fn close(&mut self, completed: bool) {
        for endpoint in &mut self.endpoints {
            endpoint.close(completed);
        }
    }

    /// The world ends.
    pub fn retire(&mut self) {
        self.endpoints.iter_mut().for_each(Endpoint::retire_lane);
    }

    /// An operation updates a GPU's memory: its PE must flush where the transport needs it.
    #[inline]
    pub(crate) fn note_gpu_update(&self, endpoint: &Endpoint, remote: RemoteTarget) {
        if remote.kind != MemoryKind::Host {
            self.note_gpu_flush(endpoint, remote);
        }
    }

    fn note_gpu_flush(&self, endpoint: &Endpoint, remote: RemoteTarget) {
        if endpoint.needs_gpu_flush(remote.kind) {
            self.gpu_flushes_due.borrow_mut().insert(remote.pe);
        }
    }
}
