//! One opened transport: its lanes, one a context, and what is outstanding on each.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    Completion, Counters, Domain, GpuFlush, Guarantees, Lane, MemoryKind, Op, Pe, Region, Status,
    WireUp,
};

use crate::order::{Class, Classes, keeps};
use crate::{Error, Result};

/// One opened transport.
pub(crate) struct Opened {
    pub name: &'static str,
    pub domain: Arc<dyn Domain>,
    // Dropped before the registrations that its operations use. (A lock although one thread at a time
    // uses a world: contexts of several threads will share lanes.)
    lanes: Mutex<Lanes>,
    /// This PE's heap, registered.
    pub heap: Option<Box<dyn Region>>,
    /// This PE's GPU heap, registered.
    pub gpu: Option<Box<dyn Region>>,
}

#[derive(Default)]
struct Lanes {
    lanes: Vec<LaneState>,
    contexts: Vec<ContextState>,
}

struct LaneState {
    lane: Option<Box<dyn Lane>>,
    /// Its context has ended: another may take its place.
    vacant: bool,
    /// Why there is no lane any more.
    failure: String,
}

/// What one context has outstanding on its lane.
#[derive(Default)]
struct ContextState {
    lane: usize,
    /// By PE, since the context's last quiet towards it.
    dirty: BTreeMap<usize, Dirty>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dirty {
    /// Updates that the next fence orders.
    classes: Classes,
    /// Updates that quiet completes: these, and nonblocking ones. None for reads alone.
    all: Classes,
    /// A fence has ordered these before what other lanes are given later.
    fenced: bool,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Lanes {
    fn lane(&mut self, context: usize) -> Result<&mut dyn Lane, String> {
        let index = self.contexts.get(context).map_or(0, |c| c.lane);
        match self.lanes.get_mut(index) {
            Some(LaneState {
                lane: Some(lane), ..
            }) => Ok(lane.as_mut()),
            Some(state) => Err(state.failure.clone()),
            None => Err("not opened".into()),
        }
    }

    fn dirty(&mut self, context: usize) -> Option<&mut BTreeMap<usize, Dirty>> {
        Some(&mut self.contexts.get_mut(context)?.dirty)
    }
}

/// A lock's guard. No code that holds one leaves its data half changed.
pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Opened {
    pub(crate) fn new(name: &'static str, domain: Arc<dyn Domain>) -> Self {
        Opened {
            name,
            domain,
            lanes: Mutex::default(),
            heap: None,
            gpu: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        held(&self.lanes)
    }

    /// Opens the default context's lane.
    pub(crate) fn open_lane(&self) -> Result<()> {
        self.open_context(0)
    }

    /// Opens a context's lane, if operations take lanes of this transport at all. Where a lane must
    /// be wired to each peer's, the context shares the default one's.
    pub(crate) fn open_context(&self, context: usize) -> Result<()> {
        let mut lanes = self.lock();
        if context > 0 && lanes.lanes.is_empty() {
            return Ok(());
        }
        let shared = context > 0 && self.domain.capabilities().wire_up == WireUp::PerLane;
        let lane = if shared {
            0
        } else {
            let state = LaneState {
                lane: Some(self.domain.lane()?),
                vacant: false,
                failure: String::new(),
            };
            let vacant = lanes.lanes.iter().position(|lane| lane.vacant);
            let place = vacant.unwrap_or(lanes.lanes.len());
            match lanes.lanes.get_mut(place) {
                Some(slot) => *slot = state,
                None => lanes.lanes.push(state),
            }
            place
        };
        let state = ContextState {
            lane,
            dirty: BTreeMap::new(),
        };
        while lanes.contexts.len() <= context {
            lanes.contexts.push(ContextState::default());
        }
        if let Some(slot) = lanes.contexts.get_mut(context) {
            *slot = state;
        }
        Ok(())
    }

    /// Drops the lane of a context that has been quieted, if it is its own.
    pub(crate) fn close_context(&self, context: usize) {
        let mut lanes = self.lock();
        let index = lanes.contexts.get(context).map_or(0, |c| c.lane);
        if index > 0
            && let Some(state) = lanes.lanes.get_mut(index)
        {
            state.lane = None;
            state.vacant = true;
            state.failure = "its context was destroyed".into();
        }
    }

    pub(crate) fn contexts(&self) -> usize {
        self.lock().contexts.len()
    }

    /// This side's endpoint towards `pe`, for its lane.
    pub(crate) fn endpoint(&self, pe: usize) -> Result<Vec<u8>> {
        let mut lanes = self.lock();
        let lane = lanes.lane(0).map_err(|why| self.failed("init", why))?;
        Ok(lane.endpoint(Pe(pe as u32))?)
    }

    /// Connects the lane with `pe`'s.
    pub(crate) fn connect(&self, pe: usize, endpoint: &[u8]) -> Result<()> {
        let mut lanes = self.lock();
        let lane = lanes.lane(0).map_err(|why| self.failed("init", why))?;
        Ok(lane.connect(Pe(pe as u32), endpoint)?)
    }

    /// The error of a lane that is gone.
    pub(super) fn failed(&self, call: &'static str, why: String) -> Error {
        Error::LaneFailed {
            call,
            transport: self.name,
            why,
        }
    }

    /// Posts one operation; gives how many the lane has then taken towards the PE.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    pub(super) unsafe fn post(
        &self,
        context: usize,
        to: Pe,
        op: Op,
    ) -> Result<(Status, u64), String> {
        let mut lanes = self.lock();
        let lane = lanes.lane(context)?;
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, &[op]) };
        Ok((posted.status, lane.counters(to).posted))
    }

    pub(super) fn counters(&self, context: usize, to: Pe) -> Result<Counters, String> {
        Ok(self.lock().lane(context)?.counters(to))
    }

    /// Drives every lane a step.
    pub(super) fn progress(&self) {
        for state in &mut self.lock().lanes {
            let progressed = match &mut state.lane {
                Some(lane) => lane.progress(),
                None => Ok(()),
            };
            match progressed {
                // The wait that drives this progress notices the loss if it needs the peer.
                Ok(()) | Err(oxshmem_transport::Error::PeerLost { .. }) => {}
                Err(error) => {
                    state.lane = None;
                    state.failure = error.to_string();
                }
            }
        }
    }

    /// Drops a context's lane, which waits until nothing outstanding touches local memory. What it
    /// had not completed stays noted, so that the next quiet says so.
    pub(super) fn fail(&self, context: usize, why: &Error) {
        let mut lanes = self.lock();
        let index = lanes.contexts.get(context).map_or(0, |c| c.lane);
        if let Some(state) = lanes.lanes.get_mut(index)
            && state.lane.take().is_some()
        {
            state.failure = why.to_string();
        }
    }

    /// Notes something outstanding: `updates`, none of them if it only reads, of which a fence orders
    /// `ordered`.
    pub(super) fn note(&self, context: usize, pe: usize, updates: Classes, ordered: Classes) {
        if let Some(dirty) = self.lock().dirty(context) {
            let dirty = dirty.entry(pe).or_default();
            dirty.all.add(updates);
            dirty.classes.add(ordered);
        }
    }

    /// How many operations towards a PE a flush must see completed; none if nothing is outstanding.
    /// An error is told once: what the lane had not completed is lost with it.
    pub(super) fn outstanding(&self, context: usize, pe: Pe) -> Option<Result<u64, String>> {
        let mut lanes = self.lock();
        lanes.dirty(context)?.get(&pe.index())?;
        match lanes.lane(context) {
            Ok(lane) => Some(Ok(lane.counters(pe).posted)),
            Err(why) => {
                if let Some(dirty) = lanes.dirty(context) {
                    dirty.clear();
                }
                Some(Err(why))
            }
        }
    }

    /// All updates outstanding towards a PE.
    pub(super) fn dirt(&self, context: usize, pe: usize) -> Classes {
        let mut lanes = self.lock();
        let dirty = lanes.dirty(context).and_then(|d| d.get(&pe).copied());
        dirty.unwrap_or_default().all
    }

    /// Whether completion means placement for all of these.
    pub(super) fn places(&self, classes: Classes) -> bool {
        self.kinds(classes)
            .all(|kind| self.guarantees(kind).completion == Completion::Placed)
    }

    /// Whether what it places in memory of a kind needs a flush by the target's GPU (M27).
    pub(super) fn needs_gpu_flush(&self, kind: MemoryKind) -> bool {
        self.guarantees(kind).gpu_flush == GpuFlush::Target
    }

    fn kinds(&self, classes: Classes) -> impl Iterator<Item = MemoryKind> {
        MemoryKind::ALL
            .into_iter()
            .filter(move |kind| classes.has(Class::Put, *kind) || classes.has(Class::Atomic, *kind))
    }

    /// What it promises about memory of a kind: nothing, if it does not say.
    pub(super) fn guarantees(&self, kind: MemoryKind) -> Guarantees {
        self.domain.guarantees(kind).unwrap_or(Guarantees::NONE)
    }

    /// Whether the lane itself performs all of `earlier` before any of `later`.
    pub(super) fn keeps(&self, earlier: Classes, later: Classes) -> bool {
        keeps(|kind| self.guarantees(kind), earlier, later)
    }

    /// The PEs with updates that a fence has to order, and which.
    pub(super) fn to_order(&self, context: usize) -> Vec<(usize, Classes)> {
        let mut lanes = self.lock();
        let dirty = lanes.dirty(context).into_iter().flatten();
        dirty
            .filter(|(_, dirty)| !dirty.classes.is_empty())
            .map(|(pe, dirty)| (*pe, dirty.classes))
            .collect()
    }

    /// The PEs with anything outstanding.
    pub(super) fn dirty(&self, context: usize) -> Vec<usize> {
        let mut lanes = self.lock();
        lanes
            .dirty(context)
            .map(|dirty| dirty.keys().copied().collect())
            .unwrap_or_default()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.lock().contexts.iter().all(|c| c.dirty.is_empty())
    }

    pub(super) fn clean(&self, context: usize, pe: usize) {
        if let Some(dirty) = self.lock().dirty(context) {
            dirty.remove(&pe);
        }
    }

    pub(super) fn clean_all(&self, context: usize) {
        if let Some(dirty) = self.lock().dirty(context) {
            dirty.clear();
        }
    }

    /// What is outstanding towards a PE comes before what other lanes are given later.
    pub(super) fn fence(&self, context: usize, pe: usize) {
        let mut lanes = self.lock();
        if let Some(dirty) = lanes.dirty(context).and_then(|d| d.get_mut(&pe)) {
            dirty.fenced = true;
        }
    }

    pub(super) fn is_fenced(&self, context: usize, pe: usize) -> bool {
        let mut lanes = self.lock();
        let dirty = lanes.dirty(context).and_then(|d| d.get(&pe).copied());
        dirty.is_some_and(|d| d.fenced)
    }
}
