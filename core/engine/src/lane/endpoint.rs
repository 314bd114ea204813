//! One context's lane of one transport, and its operations in flight. One owner at a time uses it: the
//! context's thread.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_transport::{Counters, MemoryKind, Op, Pe, Sleep, Status};

use crate::control::pending::PendingCall;
use crate::error::{Error, Result};
use crate::lane::in_flight::{Effect, InFlight, Issued, PeerInFlight, Until};
use crate::lane::lane_state::{Deferred, LaneState, PollOutcome, count};
use crate::lane::rail::{IdleLane, Rail};
use crate::lane::reconnections::Outcome;
use crate::order::op_set::{OpKind, OpSet};
use crate::peer::pe_set::Towards;
use crate::trace::lane_counters::{LaneCounters, Operation};
use crate::trace::timeline::Trace;

/// One context's lane of one transport.
pub struct Endpoint {
    rail: Arc<Rail>,
    /// The index of its transport.
    pub(crate) index: usize,
    /// Number of PEs in the world.
    pes: usize,
    // Dropped before the registrations that its operations use.
    lane: RefCell<LaneState>,
    in_flight: RefCell<InFlight>,
    /// The counters for a trace, if there is one. Boxed, which keeps the endpoint small without one.
    pub(crate) trace: Option<Box<LaneCounters>>,
}

impl Deref for Endpoint {
    type Target = Rail;
    fn deref(&self) -> &Rail {
        &self.rail
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The extent of a lane's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneFailure {
    /// Towards this PE, which does not answer any more.
    Peer(Pe),
    /// Towards some PE that lives, or as a whole: [`Endpoint::undelivered_peers`] gives the PEs that it concerns.
    Connection,
    /// Towards this PE, with nothing in doubt: the connection is to be made again.
    Interrupted(Pe),
    /// Towards some PEs, whose connections are being made again.
    Reconnecting,
}

impl Endpoint {
    /// A context's, in a job of `pes` PEs.
    pub(crate) fn open(rail: &Arc<Rail>, index: usize, pes: usize) -> Result<Self> {
        let (lane, connected) = match rail.acquire_lane()? {
            Some(IdleLane { lane, connected }) => (Some(lane), connected),
            None => (None, Vec::new()),
        };
        Ok(Endpoint {
            rail: Arc::clone(rail),
            index,
            pes,
            lane: RefCell::new(LaneState::new(lane, connected)),
            in_flight: RefCell::default(),
            trace: None,
        })
    }

    /// The counters that show the lane in a trace as that of a context.
    pub(crate) fn trace_counters(&self, trace: &Arc<Trace>, context: u64) -> Box<LaneCounters> {
        Box::new(LaneCounters::new(trace, context, self.index, self.name))
    }

    /// The trace of an operation that is given to the lane. An `awaited` one lasts until it is dropped.
    #[inline]
    pub(crate) fn traced(
        &self,
        op: &Op,
        pe: usize,
        awaited: bool,
        effect: Effect,
    ) -> Option<Operation<'_>> {
        let stays = !matches!(effect, Effect::Read);
        self.trace.as_ref()?.operation(op, pe, awaited, stays)
    }

    fn trace_completed(&self) {
        if let Some(trace) = self.trace.as_ref().filter(|_| self.is_clean()) {
            trace.completed();
        }
    }

    /// Ends the context's use of the lane. If all that it issued has completed, the lane is left to the next context;
    /// else it is dropped, which waits until nothing in flight touches local memory.
    pub(crate) fn close(&mut self, completed: bool) {
        let state = self.lane.get_mut();
        let Some(lane) = state.lane.take() else {
            return;
        };
        if completed && state.is_reusable() {
            let mut connected = std::mem::take(&mut state.connected);
            // The next context makes those connections again.
            let interrupted = state.interrupted.drain(..).map(Pe::index);
            for pe in interrupted.chain(state.reconnections.cancel()) {
                if let Some(connected) = connected.get_mut(pe) {
                    *connected = false;
                }
            }
            self.rail.release_lane(IdleLane { lane, connected });
        }
    }

    /// Leaves the lane to be dropped with its transport, after the bootstrap: for the end of the world.
    pub(crate) fn retire_lane(&mut self) {
        let state = self.lane.get_mut();
        if let Some(lane) = state.lane.take() {
            let connected = Vec::new();
            self.rail.release_lane(IdleLane { lane, connected });
        }
    }

    /// Whether the lane has yet to be connected with a PE.
    #[inline]
    pub(crate) fn needs_connection(&self, pe: usize) -> bool {
        self.connects_lanes() && self.lane.borrow().connected.get(pe) != Some(&true)
    }

    /// The address of this side of the lane, for `pe` to connect with.
    pub(crate) fn local_address(&self, call: &'static str, pe: usize) -> Result<Vec<u8>> {
        let mut state = self.lane.borrow_mut();
        let lane = state.lane().map_err(|why| self.failed(call, why))?;
        Ok(lane.endpoint(Pe(pe as u32))?)
    }

    /// Connects the lane with `pe` at the address that it replied.
    pub(crate) fn connect(&self, call: &'static str, pe: usize, address: &[u8]) -> Result<()> {
        let mut state = self.lane.borrow_mut();
        let lane = state.lane().map_err(|why| self.failed(call, why))?;
        lane.connect(Pe(pe as u32), address)?;
        state.connected.resize(self.pes, false);
        if let Some(connected) = state.connected.get_mut(pe) {
            *connected = true;
        }
        Ok(())
    }

    /// The error of a lane that has failed.
    pub(crate) fn failed(&self, call: &'static str, why: String) -> Error {
        Error::LaneFailed {
            call,
            transport: self.name,
            why,
        }
    }

    /// Posts one operation; gives how many the lane has then accepted towards the PE.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    pub(crate) unsafe fn post(&self, to: Pe, op: Op) -> Result<(Status, u64), String> {
        let mut state = self.lane.borrow_mut();
        let (lane, ready) = state.ready()?;
        if !ready {
            return Ok((Status::Full, 0));
        }
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, &[op]) };
        let count = lane.counters(to).posted;
        if let Status::Refused(error) = &posted.status {
            state.note_failed_connection(error);
        }
        Ok((posted.status, count))
    }

    /// Defers an operation, to post it together with others, if the transport gains by that and there are
    /// credits.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`], from now on.
    pub(crate) unsafe fn defer(&self, pe: usize, op: Op) -> bool {
        let most = self.caps.batch as usize;
        if most < 2 {
            return false;
        }
        let state = &mut *self.lane.borrow_mut();
        // A PE whose operation was refused is to be reported first.
        if state.lane.is_none() || state.refused.iter().any(|(whom, _)| *whom == pe) {
            return false;
        }
        let other = state.deferred.pe != pe;
        if (other || state.deferred.ops.len() >= most) && !state.post_deferred() {
            return false;
        }
        let deferred = &mut state.deferred;
        deferred.ops.reserve(most);
        deferred.pe = pe;
        deferred.ops.push(op);
        if deferred.ops.len() == most {
            state.post_deferred();
        }
        true
    }

    /// Posts the deferred operations. Gives whether none is left that goes to `pe`.
    pub(crate) fn post_deferred(&self, pe: usize) -> bool {
        let mut state = self.lane.borrow_mut();
        state.post_deferred() || state.deferred.pe != pe
    }

    /// The reason why `pe` refused a deferred operation, once.
    pub(crate) fn take_refusal(&self, pe: usize) -> Option<oxshmem_transport::Error> {
        let refused = &mut self.lane.borrow_mut().refused;
        if refused.is_empty() {
            return None;
        }
        let mut first = None;
        // One error is enough: the other refusals of that PE have the same cause.
        for (whom, error) in std::mem::take(refused) {
            if whom == pe {
                first = first.or(Some(error));
            } else {
                refused.push((whom, error));
            }
        }
        first
    }

    /// The reason why there is no lane any more, if there is none.
    pub fn lane_failure(&self) -> Option<String> {
        self.lane.borrow_mut().lane().err()
    }

    /// Forgets everything towards a PE that was lost, after the lane's first step since: operations that have not
    /// completed are cancelled.
    pub(crate) fn forget(&self, pe: usize) {
        let state = &mut *self.lane.borrow_mut();
        let mut completed = true;
        if state.deferred.pe == pe && !state.deferred.ops.is_empty() {
            state.deferred.ops.clear();
            completed = false;
        }
        state.refused.retain(|(whom, _)| {
            completed &= *whom != pe;
            *whom != pe
        });
        let counters = state.lane().map(|lane| lane.counters(Pe(pe as u32)));
        if counters.is_ok_and(|now| completed && now.completed >= now.posted) {
            self.complete(pe);
        } else {
            self.cancel(pe);
        }
    }

    pub(crate) fn counters(&self, to: Pe) -> Result<Counters, String> {
        Ok(self.lane.borrow_mut().lane()?.counters(to))
    }

    /// The number of operations towards a PE that have come so far.
    pub(crate) fn count(&self, to: Pe, until: Until) -> Result<u64, String> {
        Ok(count(self.lane.borrow_mut().lane()?, to, until))
    }

    /// Drives the lane a step. Gives the failure that it found.
    pub(crate) fn progress(&self) -> Option<LaneFailure> {
        let state = &mut *self.lane.borrow_mut();
        state.post_deferred();
        let lost = state.progress().map(LaneFailure::Peer);
        let news = lost.or(state.has_news.then_some(LaneFailure::Connection));
        let interrupted = || state.interrupted.pop().map(LaneFailure::Interrupted);
        news.or_else(interrupted).or_else(|| {
            let is_reconnecting = !state.reconnections.is_empty();
            is_reconnecting.then_some(LaneFailure::Reconnecting)
        })
    }

    /// A request was sent that makes an interrupted connection again.
    pub(crate) fn begin_reconnection(&self, request: PendingCall) {
        let reconnections = &mut self.lane.borrow_mut().reconnections;
        reconnections.begin(request, Instant::now());
    }

    /// A PE whose connection is being made again, and the end of the request to it.
    pub(crate) fn ended_reconnection(
        &self,
        is_lost: impl Fn(usize) -> bool,
    ) -> Option<(usize, Outcome)> {
        let reconnections = &mut self.lane.borrow_mut().reconnections;
        reconnections.take_ended(Instant::now(), is_lost)
    }

    /// Sleeps until data may have arrived on the lane, at most so long.
    pub(crate) fn sleep(&self, longest: Duration) -> Sleep {
        let lane = &mut self.lane.borrow_mut().lane;
        let slept = lane.as_mut().map(|lane| lane.sleep(longest));
        slept.unwrap_or(Sleep::Unsupported)
    }

    /// The live PEs that may wait for operations in flight on a connection that has failed, and the reason: PEs with
    /// puts to host memory in flight, since the signals of collective calls are such puts.
    fn stranded(&self) -> Vec<(usize, String)> {
        let state = self.lane.borrow();
        if state.lane.is_some() && state.failed_connections.is_empty() {
            return Vec::new();
        }
        let why = |pe: usize| match &state.lane {
            Some(_) => state.failure_towards(pe),
            None => Some(state.failure.clone()),
        };
        let words = |pe: &usize| self.updates(*pe).has(OpKind::Put, MemoryKind::Host);
        let stranded = self.peers_in_flight().filter(words);
        stranded.filter_map(|pe| Some((pe, why(pe)?))).collect()
    }

    /// One of these PEs that may wait for operations in flight on a connection that has failed, and the reason.
    pub(crate) fn stranded_peer(&self, which: impl Fn(usize) -> bool) -> Option<(usize, String)> {
        self.stranded().into_iter().find(|(pe, _)| which(*pe))
    }

    /// The PEs that may wait for operations in flight on a connection that has failed, and the reason; each PE once.
    pub(crate) fn undelivered_peers(&self) -> Vec<(usize, String)> {
        if !std::mem::take(&mut self.lane.borrow_mut().has_news) {
            return Vec::new();
        }
        let mut undelivered = self.stranded();
        let notified = &mut self.lane.borrow_mut().notified;
        undelivered.retain(|(pe, _)| !notified.contains(pe));
        notified.extend(undelivered.iter().map(|(pe, _)| pe));
        undelivered
    }

    /// Has the lane order the puts issued to a PE before those issued later. Gives whether it does: not if there is none any
    /// more, or no room for those that are deferred.
    pub(crate) fn fence(&self, pe: Pe) -> bool {
        self.post_deferred(pe.index())
            && match self.lane.borrow_mut().lane() {
                Ok(lane) => {
                    lane.fence(pe);
                    true
                }
                Err(_) => false,
            }
    }

    /// A wait for completions of the operations posted to a PE is about to begin.
    pub(crate) fn request_completion(&self, pe: Pe) {
        if let Ok(lane) = self.lane.borrow_mut().lane() {
            lane.request_completion(pe);
        }
    }

    /// Posts one operation and drives the lane alone until it has come as far as `until` says, for some rounds at most;
    /// nothing, if there is no room or no connection. Gives also how many it has then accepted, unless `until` is
    /// [`Until::Posted`].
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    #[inline]
    pub(crate) unsafe fn post_and_poll(
        &self,
        to: Pe,
        op: &Op,
        (until, updates): (Until, bool),
        rounds: u32,
    ) -> Result<Option<(u64, PollOutcome)>, oxshmem_transport::Error> {
        let state = &mut *self.lane.borrow_mut();
        let connected = !self.connects_lanes() || state.connected.get(to.index()) == Some(&true);
        let deferred = !state.deferred.ops.is_empty();
        if !connected || deferred || !state.failed_connections.is_empty() {
            return Ok(None);
        }
        let Some(lane) = &mut state.lane else {
            return Ok(None);
        };
        // SAFETY: the caller's promise.
        let posted = unsafe { lane.post(to, std::slice::from_ref(op)) };
        match posted.status {
            Status::All => {}
            Status::Full => return Ok(None),
            Status::Refused(error) => {
                state.note_failed_connection(&error);
                return Err(error);
            }
        }
        if until == Until::Posted {
            return Ok(Some((0, PollOutcome::Reached)));
        }
        let target = lane.counters(to).posted;
        if updates {
            lane.request_completion(to);
        }
        let outcome = state.poll_until(to, (target, until), rounds);
        Ok(Some((target, outcome)))
    }

    /// Drives the lane alone until `target` operations towards a PE have come so far, for some rounds at most.
    pub(crate) fn poll_until(&self, pe: Pe, target: (u64, Until), rounds: u32) -> PollOutcome {
        self.lane.borrow_mut().poll_until(pe, target, rounds)
    }

    /// The reason why the connection to a PE has failed, if it has, although the PE lives.
    pub fn failure_towards(&self, pe: usize) -> Option<String> {
        self.lane.borrow().failure_towards(pe)
    }

    /// Drops the lane, which waits until nothing in flight touches local memory. Its operations that have not
    /// completed stay noted, so that the next quiet reports them.
    pub fn fail(&self, why: &dyn fmt::Display) {
        let state = &mut *self.lane.borrow_mut();
        if state.lane.take().is_some() {
            state.deferred = Deferred::default();
            state.failure = why.to_string();
            state.has_news = true;
        }
    }

    /// Notes an operation in flight.
    #[inline]
    pub(crate) fn note_issued(&self, pe: usize, issued: Issued) {
        self.in_flight.borrow_mut().add(self.pes, pe, issued);
    }

    /// The number of operations towards a PE that a flush must see completed; none if nothing is in flight.
    /// An error is given once for each PE: its operations failed with the lane.
    pub(crate) fn flush_target(&self, pe: Pe) -> Option<Result<u64, String>> {
        let mut in_flight = self.in_flight.borrow_mut();
        in_flight.to_peer(pe.index())?;
        let target = self.counters(pe).map(|counters| counters.posted);
        if target.is_err() {
            in_flight.cancel(pe.index());
        }
        drop(in_flight);
        self.trace_completed();
        Some(target)
    }

    /// The operations in flight to a PE.
    #[inline]
    fn to_peer(&self, pe: usize) -> Option<PeerInFlight> {
        self.in_flight.borrow().to_peer(pe).copied()
    }

    /// Whether nothing but words of collective calls is in flight to a PE.
    pub(crate) fn has_only_sync_words(&self, pe: usize) -> bool {
        self.in_flight.borrow().has_only_sync_words(pe)
    }

    /// The operations in flight to a PE are such words.
    pub(crate) fn mark_sync_words(&self, pe: usize) {
        self.in_flight.borrow_mut().mark_sync_words(pe);
    }

    /// Whether a barrier may leave the operations in flight to a PE as they are: words of collective calls that complete by
    /// themselves, and of whose failure nothing is known.
    pub(crate) fn stays_in_flight(&self, pe: usize) -> bool {
        // In the order of puts, so that no word passes a later one for the same place.
        let in_order = self.guarantees(pe, MemoryKind::Host).put_put;
        if !self.caps.acknowledges || !in_order || !self.has_only_sync_words(pe) {
            return false;
        }
        let Ok(counters) = self.counters(Pe(pe as u32)) else {
            return false;
        };
        let placed = self.completion_is_placement(pe, self.updates(pe));
        if placed && counters.completed == counters.posted {
            self.complete(pe);
            return true;
        }
        self.failure_towards(pe).is_none()
    }

    /// All updates in flight to a PE.
    pub(crate) fn updates(&self, pe: usize) -> OpSet {
        self.to_peer(pe).unwrap_or_default().updates
    }

    /// Whether puts are in flight to a PE that keep no order.
    #[inline]
    pub(crate) fn has_long_puts(&self, pe: usize) -> bool {
        self.has_long_operations() && self.updates(pe).has_long()
    }

    /// Whether a get of `len` bytes from a PE would read before the updates in flight there.
    #[inline]
    pub(crate) fn get_overtakes(&self, pe: usize, kind: MemoryKind, len: usize) -> bool {
        let is_long = self.caps.get.is_long(len as u64);
        !self.guarantees(pe, kind).put_get || is_long || self.has_long_puts(pe)
    }

    /// Whether the lane keeps no order between an operation and those before it.
    pub(crate) fn is_long(&self, op: &Op) -> bool {
        match op {
            Op::Put { from, .. } | Op::PutSignal { from, .. } => {
                self.caps.put.is_long(from.len as u64)
            }
            Op::Get { into, .. } => self.caps.get.is_long(into.len as u64),
            _ => false,
        }
    }

    /// Whether messages are in flight to a PE, and nothing else.
    pub(crate) fn only_messages(&self, pe: usize) -> bool {
        let peer = self.to_peer(pe);
        peer.is_some_and(|peer| !peer.fetches && peer.updates.only_messages())
    }

    /// The PEs with operations in flight, in order.
    #[inline]
    pub(crate) fn peers_in_flight(&self) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let pe = self.in_flight.borrow().next(from)?;
            from = pe + 1;
            Some(pe)
        })
    }

    /// The updates in flight to a PE that the next fence orders.
    pub(crate) fn to_order(&self, pe: usize) -> OpSet {
        self.to_peer(pe).unwrap_or_default().ordered
    }

    /// Whether nothing is in flight, nor to be reported.
    pub(crate) fn is_clean(&self) -> bool {
        self.in_flight.borrow().is_empty()
    }

    /// The operations in flight to a PE have completed.
    pub(crate) fn complete(&self, pe: usize) {
        self.in_flight.borrow_mut().complete(pe);
        self.trace_completed();
    }

    /// The operations in flight to a PE are cancelled: if some fetch, a quiet reports that.
    pub(crate) fn cancel(&self, pe: usize) {
        self.in_flight.borrow_mut().cancel(pe);
        self.trace_completed();
    }

    /// The messages in flight to a PE are cancelled.
    pub(crate) fn cancel_messages(&self, pe: usize) {
        self.in_flight.borrow_mut().cancel_messages(pe);
    }

    /// Whether messages to a PE were cancelled.
    pub(crate) fn has_cancelled_messages(&self, pe: usize) -> bool {
        self.to_peer(pe).is_some_and(|peer| peer.messages_cancelled)
    }

    /// A PE among these whose fetches were cancelled and not yet reported by a quiet.
    pub(crate) fn cancelled_fetch(&self, among: &Towards<'_>) -> Option<usize> {
        let in_flight = self.in_flight.borrow();
        let mut cancelled = in_flight.cancelled_fetches().iter().copied();
        cancelled.find(|pe| among.has(*pe))
    }

    /// A quiet has reported that the data fetched from a PE do not arrive.
    pub(crate) fn failure_was_reported(&self, pe: usize) {
        self.in_flight.borrow_mut().failure_was_reported(pe);
        self.trace_completed();
    }

    /// A fence orders the operations in flight to a PE before later ones on other endpoints.
    pub(crate) fn mark_fenced(&self, pe: usize) {
        self.in_flight.borrow_mut().mark_fenced(pe);
    }

    /// Whether a fence has ordered the operations in flight to a PE before later ones on other endpoints.
    pub(crate) fn is_fenced(&self, pe: usize) -> bool {
        self.to_peer(pe).is_some_and(|peer| peer.fenced)
    }

    /// Wraps the lane, for a test that watches it.
    #[cfg(feature = "testing")]
    pub fn wrap(
        &self,
        wrap: impl FnOnce(Box<dyn oxshmem_transport::Lane>) -> Box<dyn oxshmem_transport::Lane>,
    ) {
        let lane = &mut self.lane.borrow_mut().lane;
        *lane = lane.take().map(wrap);
    }
}
