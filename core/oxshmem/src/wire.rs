//! The slow branch: operations towards PEs that are not mapped, on their transports' lanes.
//!
//! One lane per transport, behind one short lock. Posting never blocks: a full lane is progressed
//! and tried again under the waiting rules of [`crate::wait`].

mod atomic;
mod transfer;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{Completion, Domain, Lane, MemoryKind, Op, Pe, Region, RegionId, Status};

use crate::wait::{Needs, Reason};
use crate::{Error, Result, World};

/// The symmetric heap is the first region that every PE registers with every domain.
pub(crate) const HEAP: RegionId = RegionId(0);

/// One opened transport.
pub(crate) struct Opened {
    pub name: &'static str,
    pub domain: Arc<dyn Domain>,
    // Dropped before the registration that its operations use. (A lock although one thread at a time
    // uses a world: contexts of several threads will share lanes.)
    lane: Mutex<LaneState>,
    /// This PE's heap, registered.
    pub heap: Option<Box<dyn Region>>,
}

struct LaneState {
    lane: Option<Box<dyn Lane>>,
    /// Why there is no lane any more.
    failure: String,
    /// PEs with operations posted since their last quiet.
    dirty: BTreeSet<usize>,
}

/// All lanes of a world.
pub(crate) struct Wire {
    pub transports: Vec<Opened>,
    /// For each PE the transport its operations take when it is not mapped.
    pub by_pe: Vec<Option<usize>>,
    busy: AtomicBool,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.transports.iter().map(|t| t.name))
            .finish()
    }
}

impl Opened {
    pub(crate) fn new(name: &'static str, domain: Arc<dyn Domain>) -> Self {
        let state = LaneState {
            lane: None,
            failure: "not opened".into(),
            dirty: BTreeSet::new(),
        };
        Opened {
            name,
            domain,
            heap: None,
            lane: Mutex::new(state),
        }
    }

    /// Opens the lane that operations will take.
    pub(crate) fn open_lane(&self) -> Result<()> {
        lock(&self.lane).lane = Some(self.domain.lane()?);
        Ok(())
    }

    /// This side's endpoint towards `pe`, for its lane.
    pub(crate) fn endpoint(&self, pe: usize) -> Result<Vec<u8>> {
        self.with_lane("init", |lane| Ok(lane.endpoint(Pe(pe as u32))?))
    }

    /// Connects the lane with `pe`'s.
    pub(crate) fn connect(&self, pe: usize, endpoint: &[u8]) -> Result<()> {
        self.with_lane("init", |lane| Ok(lane.connect(Pe(pe as u32), endpoint)?))
    }

    fn with_lane<R>(
        &self,
        call: &'static str,
        f: impl FnOnce(&mut dyn Lane) -> Result<R>,
    ) -> Result<R> {
        let mut state = lock(&self.lane);
        match &mut state.lane {
            Some(lane) => f(lane.as_mut()),
            None => Err(Error::LaneFailed {
                call,
                transport: self.name,
                why: state.failure.clone(),
            }),
        }
    }

    /// Drops the lane, which waits until nothing outstanding touches local memory. What it had not
    /// completed stays noted, so that the next quiet says so.
    fn fail(&self, why: &Error) {
        let mut state = lock(&self.lane);
        if state.lane.take().is_some() {
            state.failure = why.to_string();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a posted batch must have come before the call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Accepted by the lane.
    Posted,
    /// Completed, as the transport counts it.
    Completed,
}

impl Wire {
    pub(crate) fn new(transports: Vec<Opened>, by_pe: Vec<Option<usize>>) -> Self {
        Wire {
            transports,
            by_pe,
            busy: AtomicBool::new(false),
        }
    }

    /// Whether no lane has had an operation since the last quiet.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Relaxed)
    }

    fn route(&self, pe: usize) -> Option<&Opened> {
        self.transports.get((*self.by_pe.get(pe)?)?)
    }
}

impl World {
    /// The transport towards an unmapped PE, or why there is none.
    fn lane_to(&self, call: &'static str, pe: usize) -> Result<&Opened> {
        if pe >= self.n_pes() {
            return Err(Error::NoSuchPe {
                call,
                pe,
                size: self.n_pes(),
            });
        }
        // Who came here because it found no base finds why (Peers::loser).
        fence(Ordering::Acquire);
        if self.peers.is_lost(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        self.inner.wire.route(pe).ok_or_else(|| Error::Unreachable {
            call,
            from: self.my_pe(),
            pe,
            why: self
                .inner
                .routes
                .get(pe)
                .map(|r| r.refusals())
                .unwrap_or_default(),
        })
    }

    /// Posts one operation and waits as told.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`]; with [`Until::Completed`] the local memory need only be valid during this
    /// call: if it fails, the lane has been dropped or has given the operations up.
    unsafe fn post(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        op: Op,
        until: Until,
    ) -> Result<()> {
        let to = Pe(pe as u32);
        let mut target = 0;
        let tell = || (format!("PE {pe}"), format!("room on the {} lane", via.name));
        let full = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        let posted = self.wait(&full, None, || {
            let mut state = lock(&via.lane);
            let Some(lane) = &mut state.lane else {
                return Some(Err(Error::LaneFailed {
                    call,
                    transport: via.name,
                    why: state.failure.clone(),
                }));
            };
            // SAFETY: the caller's promise.
            let posted = unsafe { lane.post(to, &[op]) };
            target = lane.counters(to).posted;
            // One operation is accepted or not. A full lane has others to be driven for.
            if matches!(posted.status, Status::All) {
                state.dirty.insert(pe);
            }
            // Under the lock, after the insertion: `wire_quiet` relies on that order.
            self.inner.wire.busy.store(true, Ordering::Release);
            match posted.status {
                Status::All => Some(Ok(())),
                Status::Full => None,
                Status::Refused(oxshmem_transport::Error::PeerLost { .. }) => {
                    Some(Err(Error::PeerLost { call, pe }))
                }
                Status::Refused(error) => Some(Err(error.into())),
            }
        });
        // What was not accepted touches nothing; callers post one operation at a time.
        posted.and_then(|inner| inner)?;
        match until {
            Until::Posted => Ok(()),
            Until::Completed => {
                let completed = self.await_completions(call, via, pe, target);
                self.settle(via, pe, completed)
            }
        }
    }

    /// After a failure other than the peer's loss (where the domain has given the operations up),
    /// operations may be outstanding on memory that is about to be reused: drop the lane, which
    /// waits for them.
    fn settle(&self, via: &Opened, pe: usize, result: Result<()>) -> Result<()> {
        match &result {
            Ok(()) => {}
            Err(Error::PeerLost { pe: lost, .. }) if *lost == pe => {}
            Err(error) => via.fail(error),
        }
        result
    }

    fn await_completions(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        target: u64,
    ) -> Result<()> {
        let tell = || {
            (
                format!("PE {pe}"),
                format!("{target} completions on the {} lane", via.name),
            )
        };
        let reason = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        self.wait(&reason, None, || {
            let state = lock(&via.lane);
            match &state.lane {
                Some(lane) if lane.counters(Pe(pe as u32)).completed >= target => Some(Ok(())),
                Some(_) => None,
                None => Some(Err(Error::LaneFailed {
                    call,
                    transport: via.name,
                    why: state.failure.clone(),
                })),
            }
        })?
    }

    /// Drives every lane a step. One that fails is closed, and who waits for it finds it so.
    pub(crate) fn progress(&self) {
        if self.inner.wire.is_idle() {
            return;
        }
        for opened in &self.inner.wire.transports {
            let progressed = match &mut lock(&opened.lane).lane {
                Some(lane) => lane.progress(),
                None => Ok(()),
            };
            match progressed {
                // The wait that drives this progress notices the loss if it needs the peer.
                Ok(()) | Err(oxshmem_transport::Error::PeerLost { .. }) => {}
                Err(error) => opened.fail(&error.into()),
            }
        }
    }

    /// Waits until all that was posted to `pe` is placed (M27).
    fn flush(&self, call: &'static str, via: &Opened, pe: usize) -> Result<()> {
        let mut state = lock(&via.lane);
        if !state.dirty.contains(&pe) {
            return Ok(());
        }
        if state.lane.is_none() {
            // Told once: what the lane had not completed is lost with it.
            state.dirty.clear();
            let (transport, why) = (via.name, state.failure.clone());
            return Err(Error::LaneFailed {
                call,
                transport,
                why,
            });
        }
        drop(state);
        if self.guarantees(via).completion == Completion::Placed {
            let target = via.with_lane(call, |lane| Ok(lane.counters(Pe(pe as u32)).posted))?;
            let result = self.await_completions(call, via, pe, target);
            self.settle(via, pe, result)?;
        } else {
            // SAFETY: a flush has no local memory.
            unsafe { self.post(call, via, pe, Op::Flush, Until::Completed)? };
        }
        lock(&via.lane).dirty.remove(&pe);
        Ok(())
    }

    /// Fence for lanes: free where the lane keeps all orders itself, else a flush of each dirty PE.
    pub(crate) fn wire_fence(&self, call: &'static str) -> Result<()> {
        for via in &self.inner.wire.transports {
            let g = self.guarantees(via);
            if g.put_put && g.put_atomic && g.atomic_put && g.atomic_atomic {
                continue;
            }
            for pe in self.dirty_pes(via, None) {
                self.flush(call, via, pe)?;
            }
        }
        self.end_under_way()
    }

    /// Quiet for lanes, towards `only` or all.
    pub(crate) fn wire_quiet(&self, call: &'static str, only: Option<&[usize]>) -> Result<()> {
        let mut first = Ok(());
        for via in &self.inner.wire.transports {
            for pe in self.dirty_pes(via, only) {
                // One that fails keeps none of the others from being completed.
                let flushed = self.flush(call, via, pe);
                first = first.and(flushed);
            }
        }
        first?;
        self.end_under_way()?;
        // Cleared before the look: a thread that posts after the look sets it again.
        self.inner.wire.busy.store(false, Ordering::Relaxed);
        if self
            .inner
            .wire
            .transports
            .iter()
            .any(|via| !lock(&via.lane).dirty.is_empty())
        {
            self.inner.wire.busy.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Completes what is outstanding towards PEs that have not left.
    pub(crate) fn wire_drain(&self, call: &'static str) -> Result<()> {
        for via in &self.inner.wire.transports {
            for pe in self.dirty_pes(via, None) {
                match self.flush(call, via, pe) {
                    Err(Error::PeerLost { .. }) if !self.peers.has_died(pe) => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }

    fn dirty_pes(&self, via: &Opened, only: Option<&[usize]>) -> Vec<usize> {
        let state = lock(&via.lane);
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        state.dirty.iter().copied().filter(wanted).collect()
    }

    fn guarantees(&self, via: &Opened) -> oxshmem_transport::Guarantees {
        // A domain that carries host memory states its guarantees for it; one that does not say
        // gets none.
        via.domain
            .guarantees(MemoryKind::Host)
            .unwrap_or(oxshmem_transport::Guarantees {
                put_put: false,
                put_atomic: false,
                atomic_put: false,
                atomic_atomic: false,
                put_get: false,
                get_get: false,
                across_lanes: false,
                completion: Completion::SourceReusable,
                gpu_flush: oxshmem_transport::GpuFlush::None,
            })
    }

    /// Drops every lane, so that nothing outstanding touches local memory any more.
    pub(crate) fn wire_abandon(&self, why: &Error) {
        for via in &self.inner.wire.transports {
            let dirty = self.dirty_pes(via, None);
            // Operations to a lost PE were given up by the domain.
            if dirty.iter().any(|&pe| !self.peers.is_lost(pe)) {
                via.fail(why);
                // The caller gets `why`.
                lock(&via.lane).dirty.clear();
            }
        }
    }

    /// Forgets what was outstanding towards a PE whose loss was acknowledged.
    pub(crate) fn wire_forget(&self, pe: usize) {
        for via in &self.inner.wire.transports {
            lock(&via.lane).dirty.remove(&pe);
        }
    }
}
