//! One opened transport: what is registered with it, its lanes, one a context, and what is
//! outstanding on each.

use std::cell::{Cell, Ref, RefCell};
use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{
    Capabilities, Completion, Counters, Domain, GpuFlush, Guarantees, Lane, LocalKey, MemoryKind,
    Op, Pe, Peer, Region, RegionId, Remote, Status, WireUp,
};

use super::extents::{Extents, MOST};
use crate::order::{Class, Classes, keeps};
use crate::{Error, Result};

/// One opened transport.
pub(crate) struct Opened {
    pub name: &'static str,
    pub domain: Arc<dyn Domain>,
    /// The domain's, which are constant.
    pub caps: Capabilities,
    guarantees: [Guarantees; MemoryKind::ALL.len()],
    // Dropped before the registrations that its operations use.
    lanes: RefCell<Lanes>,
    /// How this PE's heaps are registered, and every other PE's with them.
    pub host: Pieces,
    pub gpu: Pieces,
    /// Nothing will ever go by it.
    retired: Cell<bool>,
}

/// A heap of this PE in the pieces in which one transport has it registered.
pub(crate) struct Pieces {
    pub extents: Extents,
    /// The region number of the first.
    first: u32,
    /// In order; none if the transport carries no such memory.
    regions: RefCell<Vec<Box<dyn Region>>>,
    /// Whose heap of this kind is imported here, and grows.
    pub imported: RefCell<Vec<Peer>>,
    /// The PEs that pass each other the descriptors of pieces, this one among them, if any do.
    pub shared_with: RefCell<Vec<u32>>,
}

#[derive(Default)]
struct Lanes {
    lanes: Vec<LaneState>,
    contexts: Vec<ContextState>,
    /// Number of PEs.
    pes: usize,
}

struct LaneState {
    lane: Option<Box<dyn Lane>>,
    /// By PE, whether it is connected; empty where none need be.
    connected: Vec<bool>,
    /// Its context has ended: another may take its place.
    vacant: bool,
    /// Why there is no lane any more.
    failure: String,
    /// Operations that are to be posted together.
    waiting: Waiting,
    /// Why some of those were refused, by the PE they went to.
    refused: Vec<(usize, oxshmem_transport::Error)>,
    /// The PEs to which the way has failed although they live, and why.
    cut: Vec<(usize, String)>,
}

/// What looking at a lane alone has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// What was looked for has completed.
    Completed,
    /// The way to this PE has failed.
    Failed(Pe),
    NotYet,
}

/// Operations towards one PE that a lane has yet to be given: before any other, and before anything
/// is waited for.
#[derive(Default)]
struct Waiting {
    pe: usize,
    ops: Vec<Op>,
}

// SAFETY: the operations' near sides are the poster's, who promised their validity until they have
// completed, wherever the lane, and what waits for it, is moved to.
unsafe impl Send for Waiting {}

impl LaneState {
    /// Notes a way that has failed although the PE lives. The others' go on.
    fn note_cut(&mut self, error: &oxshmem_transport::Error) {
        if let oxshmem_transport::Error::Connection { pe, .. } = error
            && !self.cut.iter().any(|(known, _)| *known == pe.index())
        {
            self.cut.push((pe.index(), error.to_string()));
        }
    }

    /// Drives the lane a step. Gives the PE to which a way has failed just now.
    #[inline]
    fn step(&mut self) -> Option<Pe> {
        match self.lane.as_mut()?.progress() {
            Ok(()) => None,
            Err(oxshmem_transport::Error::PeerLost { pe, .. }) => Some(pe),
            Err(error @ oxshmem_transport::Error::Connection { .. }) => {
                self.note_cut(&error);
                None
            }
            Err(error) => {
                self.lane = None;
                self.failure = error.to_string();
                None
            }
        }
    }

    /// Drives the lane until so many operations towards a PE have completed, for some rounds at most.
    #[inline]
    fn look_for(&mut self, pe: Pe, target: u64, rounds: u32) -> Looked {
        for _ in 0..rounds {
            if let Some(failed) = self.step() {
                return Looked::Failed(failed);
            }
            match &self.lane {
                Some(lane) if lane.counters(pe).completed >= target => return Looked::Completed,
                Some(_) if self.cut.is_empty() => {}
                _ => break,
            }
        }
        Looked::NotYet
    }

    /// Posts what waits, as far as there is room. Gives whether nothing waits any more.
    fn post_waiting(&mut self) -> bool {
        let pe = self.waiting.pe;
        while !self.waiting.ops.is_empty() {
            let ops = &mut self.waiting.ops;
            let Some(lane) = &mut self.lane else {
                ops.clear();
                break;
            };
            // SAFETY: whoever put them off promised what `Lane::post` needs.
            let posted = unsafe { lane.post(Pe(pe as u32), ops) };
            let taken = posted.accepted.min(ops.len());
            match posted.status {
                Status::All => ops.clear(),
                Status::Full => {
                    ops.drain(..taken);
                    return false;
                }
                // That one can never be taken; those behind it may.
                Status::Refused(error) => {
                    ops.drain(..(taken + 1).min(ops.len()));
                    self.note_cut(&error);
                    self.refused.push((pe, error));
                }
            }
        }
        true
    }
}

/// What one context has outstanding on its lane.
#[derive(Default)]
struct ContextState {
    lane: usize,
    /// By PE, since the context's last quiet towards it; empty before the first operation.
    dirty: Vec<Dirty>,
    /// The PEs with something outstanding, each once, in order.
    list: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dirty {
    /// Whether anything is outstanding.
    listed: bool,
    /// Updates that the next fence orders.
    classes: Classes,
    /// Updates that quiet completes: these, and nonblocking ones. None for reads alone.
    all: Classes,
    /// A fence has ordered these before what other lanes are given later.
    fenced: bool,
    /// Operations that read are among them.
    reads: bool,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Lanes {
    fn index(&self, context: usize) -> usize {
        self.contexts.get(context).map_or(0, |c| c.lane)
    }

    /// The lane of a context, and whether all that waited for it has been posted.
    fn ready(&mut self, context: usize) -> Result<(&mut dyn Lane, bool), String> {
        let index = self.index(context);
        let posted = self
            .lanes
            .get_mut(index)
            .is_none_or(LaneState::post_waiting);
        Ok((self.lane(context)?, posted))
    }

    /// Notes a way that has failed although the PE lives.
    fn note_cut(&mut self, context: usize, error: &oxshmem_transport::Error) {
        let index = self.index(context);
        if let Some(state) = self.lanes.get_mut(index) {
            state.note_cut(error);
        }
    }

    fn lane(&mut self, context: usize) -> Result<&mut dyn Lane, String> {
        let index = self.index(context);
        match self.lanes.get_mut(index) {
            Some(LaneState {
                lane: Some(lane), ..
            }) => Ok(lane.as_mut()),
            Some(state) => Err(state.failure.clone()),
            None => Err("not opened".into()),
        }
    }
}

impl ContextState {
    /// What is outstanding towards a PE, if anything.
    fn dirt(&self, pe: usize) -> Option<&Dirty> {
        self.dirty.get(pe).filter(|dirty| dirty.listed)
    }

    fn note(&mut self, pes: usize, pe: usize, updates: Classes, ordered: Classes) {
        if self.dirty.is_empty() {
            self.dirty.resize(pes, Dirty::default());
        }
        if let Some(dirty) = self.dirty.get_mut(pe) {
            if !dirty.listed {
                dirty.listed = true;
                let place = self.list.partition_point(|listed| *listed < pe);
                self.list.insert(place, pe);
            }
            dirty.reads |= updates.is_empty();
            dirty.all.add(updates);
            dirty.classes.add(ordered);
        }
    }

    fn clean(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe)
            && dirty.listed
        {
            *dirty = Dirty::default();
            if let Ok(place) = self.list.binary_search(&pe) {
                self.list.remove(place);
            }
        }
    }

    fn clean_all(&mut self) {
        for pe in self.list.drain(..) {
            if let Some(dirty) = self.dirty.get_mut(pe) {
                *dirty = Dirty::default();
            }
        }
    }
}

impl Pieces {
    fn new(first: u32) -> Self {
        Pieces {
            extents: Extents::whole(0),
            first,
            regions: RefCell::default(),
            imported: RefCell::default(),
            shared_with: RefCell::default(),
        }
    }

    /// The registered pieces of this PE's heap.
    pub(crate) fn regions(&self) -> Ref<'_, Vec<Box<dyn Region>>> {
        self.regions.borrow()
    }

    /// The region number of a piece, which is the same on every PE.
    #[inline]
    pub(crate) fn id(&self, piece: u32) -> RegionId {
        RegionId(self.first + piece)
    }

    /// Bytes of the piece with this region number.
    pub(crate) fn len_of(&self, id: RegionId) -> u64 {
        let piece = id.0.saturating_sub(self.first);
        self.extents.end(piece) - self.extents.start(piece)
    }

    /// The byte of a heap as it is named towards its PE, and how many bytes its piece has from there.
    #[inline]
    pub(crate) fn locate(&self, offset: u64) -> (Remote, usize) {
        let (piece, offset, rest) = self.extents.locate(offset);
        let region = self.id(piece);
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        (Remote { region, offset }, rest)
    }

    /// One more piece is registered.
    pub(crate) fn grow(&self, region: Box<dyn Region>) {
        self.regions.borrow_mut().push(region);
    }

    /// Ends the registration of all pieces but the first `count`.
    pub(crate) fn shrink(&self, count: usize) {
        self.regions.borrow_mut().truncate(count);
    }

    /// The key of the piece of this PE's heap in which a byte lies, and how far that reaches.
    #[inline]
    pub(super) fn local_key(&self, offset: u64) -> Option<(LocalKey, usize)> {
        let (piece, _, rest) = self.extents.locate(offset);
        let regions = self.regions.borrow();
        let region = regions.get(piece as usize)?;
        let rest = usize::try_from(rest).unwrap_or(usize::MAX);
        Some((region.local_key(), rest))
    }

    /// A PE's heap is imported, and so will be what it grows by.
    pub(crate) fn imports_from(&self, peer: &Peer) {
        let mut imported = self.imported.borrow_mut();
        if !imported.iter().any(|known| known.pe == peer.pe) {
            imported.push(peer.clone());
        }
    }
}

impl Opened {
    /// For a job of `pes` PEs.
    pub(crate) fn new(name: &'static str, domain: Arc<dyn Domain>, pes: usize) -> Self {
        let lanes = Lanes {
            pes,
            ..Lanes::default()
        };
        // Nothing, where it does not say.
        let promised = |kind| domain.guarantees(kind).unwrap_or(Guarantees::NONE);
        Opened {
            name,
            caps: domain.capabilities().clone(),
            guarantees: MemoryKind::ALL.map(promised),
            domain,
            lanes: RefCell::new(lanes),
            host: Pieces::new(0),
            gpu: Pieces::new(MOST),
            retired: Cell::new(false),
        }
    }

    /// Whether it registers the heap piece by piece.
    pub(crate) fn pins(&self) -> bool {
        self.caps.pins
    }

    /// Nothing will go by it: its registrations end.
    pub(crate) fn retire(&self) {
        self.retired.set(true);
        self.host.shrink(0);
        self.gpu.shrink(0);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.get()
    }

    /// The pieces of a heap of this kind.
    #[inline]
    pub(crate) fn pieces(&self, kind: MemoryKind) -> &Pieces {
        match kind {
            MemoryKind::Host => &self.host,
            _ => &self.gpu,
        }
    }

    /// Whether lanes must be connected with each PE.
    fn is_wired(&self) -> bool {
        self.caps.wire_up == WireUp::PerLane
    }

    /// Opens the default context's lane.
    pub(crate) fn open_lane(&self) -> Result<()> {
        self.open_context(0)
    }

    /// Opens a context's lane, if operations take lanes of this transport at all.
    pub(crate) fn open_context(&self, context: usize) -> Result<()> {
        let mut lanes = self.lanes.borrow_mut();
        if context > 0 && lanes.lanes.is_empty() {
            return Ok(());
        }
        let usable = |lane: &LaneState| {
            let sound = lane.cut.is_empty() && lane.refused.is_empty();
            lane.vacant && lane.lane.is_some() && sound
        };
        let place = match lanes.lanes.iter().position(usable) {
            // Its connections are worth keeping.
            Some(place) => place,
            None => {
                let state = LaneState {
                    lane: Some(self.domain.lane()?),
                    connected: Vec::new(),
                    vacant: false,
                    failure: String::new(),
                    waiting: Waiting::default(),
                    refused: Vec::new(),
                    cut: Vec::new(),
                };
                lanes.lanes.push(state);
                lanes.lanes.len() - 1
            }
        };
        if let Some(lane) = lanes.lanes.get_mut(place) {
            lane.vacant = false;
        }
        while lanes.contexts.len() <= context {
            lanes.contexts.push(ContextState::default());
        }
        if let Some(slot) = lanes.contexts.get_mut(context) {
            *slot = ContextState {
                lane: place,
                ..ContextState::default()
            };
        }
        Ok(())
    }

    /// Ends a context. If all it issued has completed, the next one may have its lane; else that is
    /// dropped, which waits until nothing outstanding touches local memory.
    pub(crate) fn close_context(&self, context: usize, completed: bool) {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        if index > 0
            && let Some(state) = lanes.lanes.get_mut(index)
        {
            state.vacant = true;
            if !completed {
                state.waiting = Waiting::default();
                state.lane = None;
                state.refused.clear();
                state.failure = "its context was not completed".into();
            }
        }
        // The caller has told what had not completed.
        if !completed && let Some(state) = lanes.contexts.get_mut(context) {
            state.clean_all();
        }
    }

    pub(crate) fn contexts(&self) -> usize {
        self.lanes.borrow().contexts.len()
    }

    /// Whether a context's lane has yet to be connected with a PE.
    #[inline]
    pub(super) fn needs_connection(&self, context: usize, pe: usize) -> bool {
        if !self.is_wired() {
            return false;
        }
        let lanes = self.lanes.borrow();
        let lane = lanes.lanes.get(lanes.index(context));
        lane.is_none_or(|lane| lane.connected.get(pe) != Some(&true))
    }

    /// This side's endpoint of a context's lane towards `pe`.
    pub(super) fn endpoint(
        &self,
        call: &'static str,
        context: usize,
        pe: usize,
    ) -> Result<Vec<u8>> {
        let mut lanes = self.lanes.borrow_mut();
        let lane = lanes.lane(context).map_err(|why| self.failed(call, why))?;
        Ok(lane.endpoint(Pe(pe as u32))?)
    }

    /// Connects a context's lane with `pe`, which answered.
    pub(super) fn connect(
        &self,
        call: &'static str,
        context: usize,
        pe: usize,
        answer: &[u8],
    ) -> Result<()> {
        let mut lanes = self.lanes.borrow_mut();
        let lane = lanes.lane(context).map_err(|why| self.failed(call, why))?;
        lane.connect(Pe(pe as u32), answer)?;
        let (index, pes) = (lanes.index(context), lanes.pes);
        if let Some(state) = lanes.lanes.get_mut(index) {
            state.connected.resize(pes, false);
            if let Some(connected) = state.connected.get_mut(pe) {
                *connected = true;
            }
        }
        Ok(())
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
        let mut lanes = self.lanes.borrow_mut();
        let (lane, ready) = lanes.ready(context)?;
        if !ready {
            return Ok((Status::Full, 0));
        }
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, &[op]) };
        let count = lane.counters(to).posted;
        if let Status::Refused(error) = &posted.status {
            lanes.note_cut(context, error);
        }
        Ok((posted.status, count))
    }

    /// Takes an operation to post together with others, if the transport gains by that and there is
    /// room.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`], from now on.
    pub(super) unsafe fn put_off(&self, context: usize, pe: usize, op: Op) -> bool {
        let most = self.caps.batch as usize;
        if most < 2 {
            return false;
        }
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        let Some(state) = lanes.lanes.get_mut(index) else {
            return false;
        };
        // Who was refused is to be told so.
        if state.lane.is_none() || state.refused.iter().any(|(whom, _)| *whom == pe) {
            return false;
        }
        let other = state.waiting.pe != pe;
        if (other || state.waiting.ops.len() >= most) && !state.post_waiting() {
            return false;
        }
        let waiting = &mut state.waiting;
        waiting.ops.reserve(most);
        waiting.pe = pe;
        waiting.ops.push(op);
        if waiting.ops.len() == most {
            state.post_waiting();
        }
        true
    }

    /// Posts what was put off in a context. Gives whether nothing of it waits that goes to `pe`.
    pub(super) fn post_waiting(&self, context: usize, pe: usize) -> bool {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        let Some(state) = lanes.lanes.get_mut(index) else {
            return true;
        };
        state.post_waiting() || state.waiting.pe != pe
    }

    /// Why something that was put off was refused by `pe`, once.
    pub(super) fn take_refusal(
        &self,
        context: usize,
        pe: usize,
    ) -> Option<oxshmem_transport::Error> {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        let refused = &mut lanes.lanes.get_mut(index)?.refused;
        let mut first = None;
        // The others of that PE have the same cause.
        for (whom, error) in std::mem::take(refused) {
            match whom == pe {
                true => first = first.or(Some(error)),
                false => refused.push((whom, error)),
            }
        }
        first
    }

    /// Whether the lane that carried a context's operations is gone, and why.
    pub(super) fn gone(&self, context: usize) -> Option<String> {
        self.lanes.borrow_mut().lane(context).err()
    }

    /// Forgets everything towards a PE.
    pub(super) fn forget(&self, pe: usize) {
        let mut lanes = self.lanes.borrow_mut();
        for state in &mut lanes.lanes {
            if state.waiting.pe == pe {
                state.waiting.ops.clear();
            }
            state.refused.retain(|(whom, _)| *whom != pe);
        }
        lanes.contexts.iter_mut().for_each(|state| state.clean(pe));
    }

    pub(super) fn counters(&self, context: usize, to: Pe) -> Result<Counters, String> {
        Ok(self.lanes.borrow_mut().lane(context)?.counters(to))
    }

    /// Drives every lane a step. Gives the PEs to which a way has failed just now.
    pub(super) fn progress(&self) -> Vec<Pe> {
        // Does not allocate while it is empty.
        let mut failed = Vec::new();
        for state in &mut self.lanes.borrow_mut().lanes {
            state.post_waiting();
            failed.extend(state.step());
        }
        failed
    }

    /// Completions of what was posted to a PE are about to be waited for.
    pub(super) fn awaited(&self, context: usize, pe: Pe) {
        if let Ok(lane) = self.lanes.borrow_mut().lane(context) {
            lane.awaited(pe);
        }
    }

    /// Posts one operation and drives the lane alone until it has completed, for some rounds at most;
    /// nothing, if the lane does not take it at once. Gives also how many it has then taken.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    #[inline]
    pub(super) unsafe fn perform(
        &self,
        context: usize,
        to: Pe,
        op: &Op,
        (updates, rounds): (bool, u32),
    ) -> Option<(u64, Looked)> {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        let state = lanes.lanes.get_mut(index)?;
        let connected = !self.is_wired() || state.connected.get(to.index()) == Some(&true);
        if !connected || !state.waiting.ops.is_empty() || !state.cut.is_empty() {
            return None;
        }
        let lane = state.lane.as_mut()?;
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, std::slice::from_ref(op)) };
        // What is full now may not be soon; what is refused is so again.
        let Status::All = posted.status else {
            return None;
        };
        let target = lane.counters(to).posted;
        if updates {
            lane.awaited(to);
        }
        Some((target, state.look_for(to, target, rounds)))
    }

    /// Drives a context's lane alone until so many operations towards a PE have completed, for some
    /// rounds at most.
    pub(super) fn look_for(&self, context: usize, pe: Pe, target: u64, rounds: u32) -> Looked {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        match lanes.lanes.get_mut(index) {
            Some(state) => state.look_for(pe, target, rounds),
            None => Looked::NotYet,
        }
    }

    /// Why a context's way to a PE has failed, if it has, although the PE lives.
    pub(super) fn cut(&self, context: usize, pe: usize) -> Option<String> {
        let lanes = self.lanes.borrow();
        let state = lanes.lanes.get(lanes.index(context))?;
        let cut = state.cut.iter().find(|(whom, _)| *whom == pe)?;
        Some(cut.1.clone())
    }

    /// Drops a context's lane, which waits until nothing outstanding touches local memory. What it
    /// had not completed stays noted, so that the next quiet says so.
    pub(super) fn fail(&self, context: usize, why: &Error) {
        let mut lanes = self.lanes.borrow_mut();
        let index = lanes.index(context);
        if let Some(state) = lanes.lanes.get_mut(index)
            && state.lane.take().is_some()
        {
            state.waiting = Waiting::default();
            state.failure = why.to_string();
        }
    }

    /// Notes something outstanding: `updates`, none of them if it only reads, of which a fence orders
    /// `ordered`.
    #[inline]
    pub(super) fn note(&self, context: usize, pe: usize, updates: Classes, ordered: Classes) {
        let mut lanes = self.lanes.borrow_mut();
        let pes = lanes.pes;
        if let Some(state) = lanes.contexts.get_mut(context) {
            state.note(pes, pe, updates, ordered);
        }
    }

    /// How many operations towards a PE a flush must see completed; none if nothing is outstanding.
    /// An error is told once: what the lane had not completed is lost with it.
    pub(super) fn outstanding(&self, context: usize, pe: Pe) -> Option<Result<u64, String>> {
        let mut lanes = self.lanes.borrow_mut();
        lanes.contexts.get(context)?.dirt(pe.index())?;
        match lanes.lane(context) {
            Ok(lane) => Some(Ok(lane.counters(pe).posted)),
            Err(why) => {
                if let Some(state) = lanes.contexts.get_mut(context) {
                    state.clean_all();
                }
                Some(Err(why))
            }
        }
    }

    /// All updates outstanding towards a PE.
    pub(super) fn dirt(&self, context: usize, pe: usize) -> Classes {
        let lanes = self.lanes.borrow();
        let state = lanes.contexts.get(context);
        let dirty = state.and_then(|state| state.dirt(pe));
        dirty.copied().unwrap_or_default().all
    }

    /// Whether nothing but messages is outstanding towards a PE.
    pub(super) fn only_messages(&self, context: usize, pe: usize) -> bool {
        let lanes = self.lanes.borrow();
        let dirty = lanes.contexts.get(context).and_then(|state| state.dirt(pe));
        dirty.is_some_and(|dirty| !dirty.reads && dirty.all.only_messages())
    }

    /// Whether completion means placement for all of these.
    pub(super) fn places(&self, classes: Classes) -> bool {
        self.kinds(classes)
            .all(|kind| self.guarantees(kind).completion == Completion::Placed)
    }

    /// Whether it knows this PE's GPU heap.
    pub(crate) fn carries_gpu(&self) -> bool {
        !self.gpu.regions().is_empty()
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
        let index = MemoryKind::ALL.iter().position(|known| *known == kind);
        index.map_or(Guarantees::NONE, |index| self.guarantees[index])
    }

    /// Whether the lane itself performs all of `earlier` before any of `later`.
    pub(super) fn keeps(&self, earlier: Classes, later: Classes) -> bool {
        keeps(|kind| self.guarantees(kind), earlier, later)
    }

    /// The first PE from `from` on with anything outstanding; by PE, whatever is cleaned meanwhile.
    pub(super) fn next_dirty(&self, context: usize, from: usize) -> Option<usize> {
        let lanes = self.lanes.borrow();
        let list = &lanes.contexts.get(context)?.list;
        let place = list.partition_point(|listed| *listed < from);
        list.get(place).copied()
    }

    /// All of them, in order.
    pub(super) fn dirty(&self, context: usize) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let pe = self.next_dirty(context, from)?;
            from = pe + 1;
            Some(pe)
        })
    }

    /// What the next fence orders of what is outstanding towards a PE.
    pub(super) fn to_order(&self, context: usize, pe: usize) -> Classes {
        let lanes = self.lanes.borrow();
        let state = lanes.contexts.get(context);
        let dirty = state.and_then(|state| state.dirt(pe));
        dirty.copied().unwrap_or_default().classes
    }

    pub(super) fn is_clean(&self) -> bool {
        self.lanes
            .borrow()
            .contexts
            .iter()
            .all(|c| c.list.is_empty())
    }

    pub(super) fn clean(&self, context: usize, pe: usize) {
        if let Some(state) = self.lanes.borrow_mut().contexts.get_mut(context) {
            state.clean(pe);
        }
    }

    pub(super) fn clean_all(&self, context: usize) {
        if let Some(state) = self.lanes.borrow_mut().contexts.get_mut(context) {
            state.clean_all();
        }
    }

    /// What is outstanding towards a PE comes before what other lanes are given later.
    pub(super) fn fence(&self, context: usize, pe: usize) {
        let mut lanes = self.lanes.borrow_mut();
        let state = lanes.contexts.get_mut(context);
        if let Some(dirty) = state.and_then(|state| state.dirty.get_mut(pe))
            && dirty.listed
        {
            dirty.fenced = true;
        }
    }

    pub(super) fn is_fenced(&self, context: usize, pe: usize) -> bool {
        let lanes = self.lanes.borrow();
        let state = lanes.contexts.get(context);
        state.and_then(|s| s.dirt(pe)).is_some_and(|d| d.fenced)
    }
}
