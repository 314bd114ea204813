//! A worker: one sequence of operations, with a fence and quiet of its own. Data only: the operations lie in
//! [`ops`](crate::ops).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::Engine;
use crate::lane::lanes::Lanes;
use crate::order::conflict::Entered;
use crate::peer::mapped_table::PeerTable;

/// One sequence of operations, used by one thread at a time. It names PEs by their numbers in the world, but for its
/// [`peers`](Self::peers).
pub struct Worker {
    // No interior mutability outside boxes: so the compiler may keep these fields in registers in a loop.
    /// The table that the fast path reads, in the numbering of the context.
    pub peers: PeerTable,
    /// The tag of its world's handles.
    pub tag: u32,
    /// Whether a fence orders nonblocking operations, too (M18).
    pub ordered: bool,
    /// Whether plain stores may be in flight that no call has noted. None for a worker that ignores the PE's own
    /// stores.
    pub untracked_stores: Option<Arc<AtomicBool>>,
    /// Dropped before the engine: the default worker has left its lanes there.
    pub state: Box<WorkerState>,
    /// The state that it shares with the PE's other workers.
    pub engine: Arc<Engine>,
}

/// The state that inlined operations on mapped peers do not read. On cache lines that no other thread writes.
#[repr(align(128))]
#[derive(Debug)]
pub struct WorkerState {
    /// The worker's number among those of this PE; the default one's is 0.
    pub number: u64,
    /// Its lanes.
    pub lanes: Lanes,
    /// The entries of checked mode for its operations.
    pub entered: RefCell<Entered>,
    /// The user's call that it is in, for errors and reports.
    pub call: Cell<&'static str>,
    /// Whether atomics that fetch nothing are posted in batches: in a session that asks for it.
    pub batches: Cell<bool>,
    /// The number of the active message that is being posted, if one is; else 0.
    pub posting: Cell<u64>,
}

/// Restores the name of the outer call when it is dropped.
struct OuterCall<'w> {
    call: &'w Cell<&'static str>,
    name: &'static str,
}

impl Drop for OuterCall<'_> {
    fn drop(&mut self) {
        self.call.set(self.name);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("number", &self.state.number)
            .field("pe", &self.engine.me)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker with these peers and lanes; `tracks_stores` unless it ignores the PE's own stores.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        peers: PeerTable,
        mut lanes: Lanes,
        tracks_stores: bool,
    ) -> Self {
        let number = engine.workers.fetch_add(1, Ordering::Relaxed);
        lanes.trace(engine.trace.as_ref(), number);
        Worker {
            tag: peers.tag(),
            peers,
            ordered: engine.is_ordered,
            untracked_stores: tracks_stores.then(|| Arc::clone(&engine.untracked_stores)),
            state: Box::new(WorkerState {
                number,
                lanes,
                entered: RefCell::default(),
                call: Cell::new("init"),
                batches: Cell::new(false),
                posting: Cell::new(0),
            }),
            engine,
        }
    }

    /// The worker, in a user's call of this name: errors and reports of waits name it.
    #[inline(always)]
    pub fn in_call(&self, call: &'static str) -> &Self {
        self.state.call.set(call);
        self
    }

    /// The name of the user's call that the worker is in.
    #[inline]
    #[must_use]
    pub fn call(&self) -> &'static str {
        self.state.call.get()
    }

    /// Runs a part of a call that has a name of its own.
    pub fn named<R>(&self, call: &'static str, part: impl FnOnce() -> R) -> R {
        let _outer = OuterCall {
            call: &self.state.call,
            name: self.state.call.replace(call),
        };
        part()
    }

    /// Ends the worker; `completed` says whether all that it has issued has completed.
    pub fn close(&mut self, completed: bool) {
        let state = &mut *self.state;
        let replies = &self.engine.pending_replies;
        // A reply may still arrive by its lanes.
        state
            .lanes
            .close(completed && !replies.has_any_of(state.number));
        replies.end(state.number);
    }
}
