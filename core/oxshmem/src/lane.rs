//! The slow branch: operations towards PEs that are not mapped, on their transports' lanes.
//!
//! One lane per transport and [context](crate::Context), which its thread alone uses. Posting never blocks: a
//! full lane is progressed and tried again under the waiting rules of [`crate::wait`].

mod am;
mod amo;
mod bounce_pool;
mod endpoint;
mod extents;
mod in_flight;
mod local_buffer;
mod rail;
mod rma;
mod staged;
mod strided_get;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use oxshmem_transport::{MemoryKind, Op, Pe, Remote, Status};

pub(crate) use self::am::PendingReplies;
pub(crate) use self::bounce_pool::BouncePool;
pub(crate) use self::endpoint::Endpoint;
use self::endpoint::{Failed, PollOutcome};
pub(crate) use self::extents::Extents;
use self::in_flight::Issued;
pub(crate) use self::local_buffer::{LocalBuffer, MrKey};
pub(crate) use self::rail::Rail;
pub(crate) use self::rma::Signal;
use crate::control::{ControlRequest, Message};
use crate::hang::WaitedFor;
use crate::order::{FenceSite, OpKind, OpSet};
use crate::route::{Path, PeerPaths};
use crate::shared::Shared;
use crate::simulated::HostSpan;
use crate::trace::Trace;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

/// All lanes of a context.
pub(crate) struct Lanes {
    /// By transport.
    channels: Box<[Endpoint]>,
    /// Whether an operation may be outstanding on some lane, or fences and quiets have more to do
    /// than a mapped world's for another reason ([`Wire::always`]).
    busy: Cell<bool>,
    /// Memory is simulated, or there is GPU memory: every fence and quiet comes to the slow branch.
    always: bool,
    /// Some lane has operations that a fence put before what other lanes are given later.
    fenced: Cell<bool>,
    /// The PEs whose GPUs have to be told before a quiet ends (M27): a flush of the lane does not do
    /// that.
    gpus_due: RefCell<BTreeSet<usize>>,
    /// Whether nonblocking gets into this PE's own GPU memory are under way that need a flush here.
    got_to_gpu: Cell<bool>,
    /// Whether slices of cudarc's are lent to nonblocking operations.
    #[cfg(feature = "cuda")]
    pub(crate) slices_lent: Cell<bool>,
    /// How often the program had acknowledged losses when this context last forgot the lost.
    acknowledgements: Cell<u32>,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.channels).finish()
    }
}

/// Looks at one lane for its completions, where PEs have CPUs enough, before a wait looks at all else.
const LOOKS: u32 = 256;
/// How much later than a transport the bootstrap may hear of a PE's death.
const HEARSAY: Duration = Duration::from_secs(1);
/// Up to this many bytes nonblocking transfers are posted together.
const TOGETHER: usize = 4096;

/// Memory that a call has lent to a lane. Dropped only where the call panics: then the lane is, too.
struct Lent<'a> {
    context: &'a Context<'a>,
    via: &'a Endpoint,
    pe: usize,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let panicked = self.via.failed("a call", "a call on it panicked".into());
        let _ = self
            .context
            .fail_or_complete(self.via, self.pe, Err(panicked));
    }
}

/// How far a posted operation must have come before the call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Accepted by the lane.
    Posted,
    /// Completed, as the transport counts it.
    Completed,
}

/// What an operation leaves for a later fence or quiet.
#[derive(Clone, Copy)]
enum Effect {
    /// Nothing: it reads, and has read when it returns.
    Nothing,
    /// Updates that a fence orders.
    Update(OpSet),
    /// Nonblocking updates.
    Nonblocking(OpSet),
    /// What comes here nonblocking, and the updates of what does; none of a get.
    Brings(OpSet),
}

impl Effect {
    fn updates(self) -> OpSet {
        match self {
            Effect::Nothing => OpSet::NONE,
            Effect::Update(updates) | Effect::Nonblocking(updates) | Effect::Brings(updates) => {
                updates
            }
        }
    }
}

/// Who performs the atomics on a word that is reached by a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicsBy {
    /// The transport, as a CPU does.
    Lane,
    /// The NIC of the PE that has it.
    Nic,
    /// The CPU of the PE that has it, which a message asks.
    Target,
}

/// A place in a PE's symmetric memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteTarget {
    pub pe: usize,
    pub kind: MemoryKind,
    /// Bytes from the start of its heap of that kind.
    pub offset: u64,
    /// Who performs the atomics on it (M29).
    pub atomics: AtomicsBy,
}

impl RemoteTarget {
    /// The byte that is `further` on, as a transport names it, and how many bytes its region has from
    /// there: every PE registers the same heaps in the same pieces, under the same numbers.
    #[inline]
    fn locate(self, via: &Endpoint, further: usize) -> (Remote, usize) {
        via.pieces(self.kind).locate(self.offset + further as u64)
    }

    /// [`locate`](Self::locate) of what lies in one region surely: a word, which is aligned.
    fn word(self, via: &Endpoint) -> Remote {
        self.locate(via, 0).0
    }
}

/// How the slow branch reaches a place.
pub(crate) enum AccessPath<'w> {
    /// By this PE's CPU.
    Mapped(HostSpan<'w>),
    /// By a lane of this transport.
    Lane(&'w Endpoint, RemoteTarget),
    /// By way of host memory, and the process of the PE: GPU memory only.
    Staged(RemoteTarget),
}

impl Lanes {
    /// A context's lanes of these transports, in a job of `pes` PEs.
    pub(crate) fn open(transports: &[Arc<Rail>], pes: usize, always: bool) -> Result<Self> {
        let open = |(index, via)| Endpoint::open(via, index, pes);
        let channels = transports.iter().enumerate().map(open);
        Ok(Lanes {
            channels: channels.collect::<Result<_>>()?,
            busy: Cell::new(always),
            always,
            fenced: Cell::new(false),
            gpus_due: RefCell::default(),
            got_to_gpu: Cell::new(false),
            #[cfg(feature = "cuda")]
            slices_lent: Cell::new(false),
            acknowledgements: Cell::new(0),
        })
    }

    /// The lanes of the context with this number are shown in a trace.
    pub(crate) fn trace(&mut self, trace: Option<&Arc<Trace>>, context: u64) {
        let Some(trace) = trace else {
            return;
        };
        trace.name_context(context);
        for channel in &mut self.channels {
            channel.tally = Some(channel.tally(trace, context));
        }
    }

    /// Has a trace show what lanes have done so far.
    pub(crate) fn tell_trace(&self) {
        let tallies = self.channels.iter().flat_map(|via| &via.tally);
        tallies.for_each(|tally| tally.tell());
    }

    /// The context ends; `completed` says whether all that it has issued has.
    pub(crate) fn close(&mut self, completed: bool) {
        for channel in &mut self.channels {
            channel.close(completed);
        }
    }

    /// The world ends.
    pub(crate) fn retire(&mut self) {
        self.channels.iter_mut().for_each(Endpoint::retire_lane);
    }

    /// Something in a GPU's memory is updated: its PE has to be asked where the transport needs it.
    fn gpu_due(&self, via: &Endpoint, far: RemoteTarget) {
        if far.kind != MemoryKind::Host && via.needs_gpu_flush(far.kind) {
            self.gpus_due.borrow_mut().insert(far.pe);
        }
    }

    fn rest(&self) {
        self.busy.set(self.always);
    }
}

impl Shared {
    #[inline]
    pub(crate) fn ways(&self, pe: usize) -> &PeerPaths {
        self.routes.ways.get(pe).unwrap_or(&PeerPaths::NONE)
    }

    /// What later operations towards a PE may go down this transport's lane.
    fn may_follow(&self, transport: usize, pe: usize) -> OpSet {
        let ways = self.ways(pe);
        let mut classes = OpSet::NONE;
        for kind in MemoryKind::ALL {
            if ways.copies(kind).transport() == Some(transport) {
                classes.add(OpSet::of(OpKind::Put, kind));
            }
            let atomics = ways.atomics(kind);
            if atomics.transport() == Some(transport) {
                let class = match atomics {
                    Path::Message(_) => OpKind::Message,
                    _ => OpKind::Atomic,
                };
                classes.add(OpSet::of(class, kind));
            }
        }
        if ways.nic.transport() == Some(transport) {
            classes.add(OpSet::of(OpKind::Atomic, MemoryKind::Host));
        }
        classes
    }

    /// Whether something towards a PE does not go down this transport's lane; and if so, whether
    /// some of it is stored by this PE's CPU.
    fn other_ways(&self, transport: usize, pe: usize, mapped: bool) -> (bool, bool) {
        let ways = self.ways(pe);
        let all = ways.each();
        let by_cpu = |way: &Path| way.is_mapped() && (mapped || way.transport().is_none());
        let others = |way: &Path| *way != Path::None && way.transport() != Some(transport);
        // A PE's own memory is its CPU's, whatever a lane could do.
        let own = pe == self.me && ways.host != Path::None;
        let cpu = own || all.iter().any(by_cpu);
        (cpu || all.iter().any(others), cpu)
    }
}

impl Context<'_> {
    /// Whether nothing is outstanding on any lane: no operation since the last quiet but those that were
    /// complete when their call returned.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.state.wire.busy.get()
    }

    /// The kind of memory that a handle of this world names, if it is one.
    #[inline]
    pub(crate) fn kind_of<T: Pod>(&self, sym: Sym<T>) -> Option<MemoryKind> {
        sym.kind_in(self.tag)
    }

    /// How an object is reached by the slow branch at a PE, by its number in the world. The caller has
    /// checked both.
    pub(crate) fn path<T: Pod>(
        &self,
        call: &'static str,
        class: OpKind,
        sym: Sym<T>,
        pe: usize,
    ) -> Result<AccessPath<'_>> {
        // Pairs with the Release in Losses::lose: a base that was found null has its reason in view.
        fence(Ordering::Acquire);
        if self.shared.liveness.is_lost(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        let Some(kind) = self.kind_of(sym) else {
            return Err(Error::Foreign { call });
        };
        let ways = self.shared.ways(pe);
        let nic = class == OpKind::Atomic && sym.is_nic() && size_of::<T>() == size_of::<u64>();
        let way = match class {
            OpKind::Put => ways.copies(kind),
            _ if nic => ways.nic,
            _ => ways.atomics(kind),
        };
        let own = pe == self.shared.me && way != Path::None;
        if kind == MemoryKind::Host && !nic && (own || way.is_mapped()) {
            let simulation = self.shared.simulation.as_ref();
            let (offset, bytes) = (sym.offset(), sym.bytes());
            if let Some(place) = simulation.and_then(|s| s.at(class, pe, offset, bytes)) {
                return Ok(AccessPath::Mapped(HostSpan::Simulated(place)));
            }
            let span = match class {
                OpKind::Put => self.peers.span_of(sym, pe),
                _ => self.peers.word_of(sym, pe),
            };
            if let Some(span) = span {
                return Ok(AccessPath::Mapped(HostSpan::Mapped(span)));
            }
            // A PE's own memory needs no transport: what lanes do to it is coherent with its CPU.
            if own {
                return Ok(AccessPath::Mapped(self.own(sym)));
            }
        }
        let far = RemoteTarget {
            pe,
            kind,
            offset: sym.offset(),
            atomics: match way {
                _ if nic => AtomicsBy::Nic,
                Path::Message(_) => AtomicsBy::Target,
                _ => AtomicsBy::Lane,
            },
        };
        if way == Path::Staged {
            return Ok(AccessPath::Staged(far));
        }
        let transport = way.transport();
        match transport.and_then(|index| self.state.wire.channels.get(index)) {
            Some(via) => Ok(AccessPath::Lane(via, far)),
            None => Err(self.no_way(call, class, kind, pe)),
        }
    }

    #[cold]
    fn no_way(&self, call: &'static str, class: OpKind, kind: MemoryKind, pe: usize) -> Error {
        Error::Unreachable {
            call,
            from: self.shared.me,
            pe,
            why: match (kind, class) {
                (MemoryKind::Host, OpKind::Put) => {
                    let route = self.shared.routes.get(pe);
                    route.map(|r| r.refusals()).unwrap_or_default()
                }
                (kind, OpKind::Put) => {
                    let route = self.shared.routes.explain(pe).and_then(|told| told.gpu);
                    let why = route.map(|route| route.refusals()).unwrap_or_default();
                    format!("no transport here carries {kind} memory to it: {why}")
                }
                (kind, _) => {
                    format!("no transport here performs atomics on its {kind} memory as a CPU does")
                }
            },
        }
    }

    /// Posts one operation and waits as told.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`]; with [`Until::Completed`] the local memory need only be
    /// valid during this call: if it fails, the lane has been dropped or has given the operations up.
    unsafe fn post(
        &self,
        call: &'static str,
        via: &Endpoint,
        pe: usize,
        op: Op,
        until: Until,
        leaves: Effect,
    ) -> Result<()> {
        let _traced = via.traced(&op, pe, until == Until::Completed, leaves);
        self.before_posting(call, via, pe)?;
        let to = Pe(pe as u32);
        let updates = !leaves.updates().is_empty();
        let rounds = self.lane_rounds();
        if until == Until::Completed && rounds > 0 {
            // SAFETY: the caller's promise.
            let performed = unsafe { via.perform(to, &op, (updates, rounds)) };
            if let Some((target, looked)) = performed {
                if updates || looked != PollOutcome::Completed {
                    self.state.wire.busy.set(true);
                }
                self.leave(via, pe, leaves);
                return match looked {
                    PollOutcome::Completed => Ok(()),
                    looked => {
                        self.note_failed(looked);
                        let completed = self.await_completions(call, via, pe, target);
                        self.fail_or_complete(via, pe, completed)
                    }
                };
            }
        }
        if via.needs_connection(pe) {
            self.connect(call, via, pe)?;
        }
        let mut target = 0;
        let tell = || {
            (
                WaitedFor::Lane(pe),
                format!("room on the {} lane", via.name),
            )
        };
        let full = WaitReason {
            call,
            needs: WaitsOn::Lane(pe),
            describe: &tell,
        };
        let posted = self.wait(&full, None, || {
            // SAFETY: the caller's promise.
            let posted = unsafe { via.post(to, op) };
            // A full lane has others to be driven for.
            self.state.wire.busy.set(true);
            match posted {
                Err(why) => Some(Err(via.failed(call, why))),
                Ok((Status::All, posted)) => {
                    target = posted;
                    Some(Ok(()))
                }
                Ok((Status::Full, _)) => self.failure_of(call, via, pe).map(Err),
                Ok((Status::Refused(error), _)) => Some(Err(self.refusal(call, pe, error))),
            }
        });
        // What was not accepted touches nothing; callers post one operation at a time.
        posted.and_then(|inner| inner)?;
        self.leave(via, pe, leaves);
        match until {
            Until::Posted => Ok(()),
            Until::Completed => {
                // What only reads is told of without.
                if updates {
                    via.request_completion(to);
                }
                let completed = self.await_completions(call, via, pe, target);
                self.fail_or_complete(via, pe, completed)
            }
        }
    }

    /// Connects a lane with a PE, which answers by its bootstrap's service.
    #[cold]
    fn connect(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        self.try_connect(call, via, pe)
            .map_err(|error| match error {
                // A PE that is about to end refuses; and what one that has ended meanwhile had answered fits
                // nothing any more.
                Error::Transport(_) | Error::FailedElsewhere { .. }
                    if pe != self.shared.me && self.exit_was_reported(pe) =>
                {
                    Error::PeerLost { call, pe }
                }
                Error::Transport(error) => self.refusal(call, pe, error),
                error => error,
            })
    }

    fn try_connect(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        let endpoint = via.endpoint(call, pe)?;
        let answer = if pe == self.shared.me {
            via.domain.accept(Pe(pe as u32), &endpoint)?
        } else {
            let question = ControlRequest::Connect {
                transport: via.name.into(),
                endpoint,
            };
            let what = format!("its answer to a {} lane", via.name);
            self.call(call, pe, question, &what)?
        };
        via.connect(call, pe, &answer)
    }

    /// What must have happened before an operation is posted: this PE's own stores, which the NIC
    /// may be about to read or to overtake, and what a fence left on other lanes.
    fn before_posting(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        self.cpu_fence(FenceSite::Doorbell);
        self.flush_fenced(call, pe, Some(via))
    }

    /// Flushes the lanes that a fence left something on towards a PE, but the one that keeps the order
    /// itself.
    fn flush_fenced(&self, call: &'static str, pe: usize, but: Option<&Endpoint>) -> Result<()> {
        if !self.state.wire.fenced.get() {
            return Ok(());
        }
        for other in &self.state.wire.channels {
            let itself = but.is_some_and(|via| std::ptr::eq(other, via));
            if !itself && other.is_fenced(pe) {
                self.flush(call, other, pe)?;
            }
        }
        Ok(())
    }

    /// Posts what was put off towards a PE, before something is waited for; tells if it was refused.
    fn post_waiting(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        let tell = || {
            (
                WaitedFor::Lane(pe),
                format!("room on the {} lane", via.name),
            )
        };
        let full = WaitReason {
            call,
            needs: WaitsOn::Lane(pe),
            describe: &tell,
        };
        let posted = self.wait(&full, None, || match via.post_waiting(pe) {
            true => Some(Ok(())),
            false => self.failure_of(call, via, pe).map(Err),
        });
        posted.and_then(|posted| posted)?;
        let Some(refusal) = via.take_refusal(pe) else {
            return Ok(());
        };
        if via.failure_towards(pe).is_some() {
            // Before it is forgotten what it may wait for.
            self.notify_stranded_peers(via);
            // Told once: what was outstanding is lost with the way.
            via.give_up(pe);
        }
        Err(self.refusal(call, pe, refusal))
    }

    /// The error of what a transport has refused towards a PE.
    #[cold]
    fn refusal(&self, call: &'static str, pe: usize, error: oxshmem_transport::Error) -> Error {
        match error {
            oxshmem_transport::Error::PeerLost { .. } => {
                self.report_unreachable(pe);
                Error::PeerLost { call, pe }
            }
            error => error.into(),
        }
    }

    /// Tells the PEs that may wait for what is outstanding on a way which has failed, though both live, that it
    /// does not come: this PE is lost to them.
    #[cold]
    fn notify_stranded_peers(&self, via: &Endpoint) {
        for pe in via
            .undelivered_peers()
            .into_iter()
            .filter(|pe| *pe != self.shared.me)
        {
            // Who is gone waits for nothing.
            let _ = self.send("progress", pe, &Message::Disconnect);
        }
    }

    /// Why a collective call that needs these PEs cannot come to its end: what went to one of them, the
    /// call's own words perhaps, is outstanding on a way that has failed.
    #[cold]
    pub(crate) fn blocked_by_failed_lane(
        &self,
        call: &'static str,
        needs: WaitsOn<'_>,
    ) -> Option<Error> {
        let losses = &self.shared.liveness;
        let needed = |pe: usize| match needs {
            WaitsOn::Members(members) => members.rank_of(pe).is_some(),
            // Who has left in order has heard what it had to.
            WaitsOn::Finalizing => !self.exit_was_reported(pe) || losses.has_died(pe),
            _ => false,
        };
        let mut channels = self.state.wire.channels.iter();
        let (via, (pe, why)) = channels.find_map(|via| Some((via, via.stranded_of(needed)?)))?;
        // Its end may be the reason.
        Some(match self.exit_was_reported(pe) {
            true => Error::PeerLost { call, pe },
            false => via.failed(call, why),
        })
    }

    /// Posts an operation that a later quiet completes: together with others, if it is small.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    unsafe fn post_nbi(
        &self,
        call: &'static str,
        via: &Endpoint,
        pe: usize,
        op: Op,
        (len, leaves): (usize, Effect),
    ) -> Result<()> {
        match len <= TOGETHER {
            // SAFETY: the caller's promise.
            true => unsafe { self.post_together(call, via, pe, op, leaves) },
            // SAFETY: as above.
            false => unsafe { self.post(call, via, pe, op, Until::Posted, leaves) },
        }
    }

    /// Posts an operation together with others, if the lane gains by that.
    ///
    /// # Safety
    ///
    /// As [`oxshmem_transport::Lane::post`].
    unsafe fn post_together(
        &self,
        call: &'static str,
        via: &Endpoint,
        pe: usize,
        op: Op,
        leaves: Effect,
    ) -> Result<()> {
        if !via.needs_connection(pe) {
            self.before_posting(call, via, pe)?;
            // SAFETY: the caller's promise.
            if unsafe { via.defer(pe, op) } {
                drop(via.traced(&op, pe, false, leaves));
                self.state.wire.busy.set(true);
                self.leave(via, pe, leaves);
                return Ok(());
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.post(call, via, pe, op, Until::Posted, leaves) }
    }

    /// Notes what an operation leaves for a later fence or quiet.
    fn leave(&self, via: &Endpoint, pe: usize, leaves: Effect) {
        let updates = leaves.updates();
        let ordered = match leaves {
            Effect::Nothing => return,
            Effect::Update(_) => updates,
            // Only the ordered model's fence orders what is nonblocking (M18).
            Effect::Nonblocking(_) | Effect::Brings(_) if self.ordered => updates,
            Effect::Nonblocking(_) | Effect::Brings(_) => OpSet::NONE,
        };
        let noted = Issued {
            updates,
            ordered,
            brings: matches!(leaves, Effect::Brings(_)),
        };
        via.note(pe, noted);
    }

    /// After a failure operations may be outstanding on memory that is about to be reused. A lane gives
    /// up those towards a PE that was lost with its next step; else it is dropped, and waits for them.
    pub(crate) fn fail_or_complete(
        &self,
        via: &Endpoint,
        pe: usize,
        result: Result<()>,
    ) -> Result<()> {
        match &result {
            Ok(()) => {}
            Err(Error::PeerLost { pe: lost, .. }) if *lost == pe => self.step(via),
            // The transport has ended that way, and with it what was outstanding there.
            Err(_) if via.failure_towards(pe).is_some() => {}
            Err(error) => via.fail(error),
        }
        if result.is_err() {
            self.notify_stranded_peers(via);
        }
        result
    }

    /// Runs what lends the caller's memory to a lane, which touches it no more when this returns, nor when a panic leaves it.
    #[inline]
    fn lending<R>(&self, via: &Endpoint, pe: usize, run: impl FnOnce() -> Result<R>) -> Result<R> {
        let lent = Lent {
            context: self,
            via,
            pe,
        };
        let done = run();
        std::mem::forget(lent);
        done
    }

    /// How often a lane is looked at before all else is: not where PEs share CPUs or are scheduled.
    #[inline]
    fn lane_rounds(&self) -> u32 {
        match self.shared.schedule {
            None => self.shared.lane_spin.min(LOOKS),
            Some(_) => 0,
        }
    }

    fn note_failed(&self, looked: PollOutcome) {
        if let PollOutcome::Failed(pe) = looked {
            self.report_unreachable(pe.index());
        }
    }

    fn await_completions(
        &self,
        call: &'static str,
        via: &Endpoint,
        pe: usize,
        target: u64,
    ) -> Result<()> {
        let rounds = self.lane_rounds();
        if rounds > 0 {
            let looked = via.look_for(Pe(pe as u32), target, rounds);
            if looked == PollOutcome::Completed {
                return Ok(());
            }
            self.note_failed(looked);
        }
        let tell = || {
            (
                WaitedFor::Lane(pe),
                format!("{target} completions on the {} lane", via.name),
            )
        };
        let reason = WaitReason {
            call,
            needs: WaitsOn::Lane(pe),
            describe: &tell,
        };
        self.wait(&reason, None, || match via.counters(Pe(pe as u32)) {
            Ok(counters) if counters.completed >= target => Some(Ok(())),
            Ok(_) => self.failure_of(call, via, pe).map(Err),
            Err(why) => Some(Err(via.failed(call, why))),
        })?
    }

    /// Drives what is under way on this context's lanes, as waits on it do. For who waits on one context for what
    /// depends on another.
    pub fn progress(&self) {
        if !self.is_idle() {
            self.state
                .wire
                .channels
                .iter()
                .for_each(|via| self.step(via));
        }
    }

    /// Drives one lane a step. It has then given up what was outstanding towards every PE whose loss this
    /// PE knew of before.
    fn step(&self, via: &Endpoint) {
        match via.progress() {
            None => {}
            Some(Failed::Peer(pe)) => self.report_unreachable(pe.index()),
            Some(Failed::Way) => self.notify_stranded_peers(via),
        }
    }

    /// A PE does not answer a lane any more. That it died or left the bootstrap tells at about the same
    /// time; if it does not, that PE is lost to this one, and is told so: neither waits for the other,
    /// and a collective call, which needs them all, ends for all.
    #[cold]
    fn report_unreachable(&self, pe: usize) {
        if !self.shared.liveness.is_lost(pe) && !self.exit_was_reported(pe) {
            (self.shared.report_lost)(pe as u32);
        }
    }

    /// Whether the bootstrap tells of the PE's end, too, not only a transport; it may take a moment. Then that PE is lost
    /// when this returns.
    #[cold]
    pub(crate) fn exit_was_reported(&self, pe: usize) -> bool {
        let losses = &self.shared.liveness;
        let until = Instant::now() + HEARSAY;
        while !losses.exit_is_known(pe) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Who has told is ending what leads there.
        while losses.exit_is_known(pe) && !losses.is_lost(pe) {
            std::thread::sleep(Duration::from_millis(1));
        }
        losses.exit_is_known(pe)
    }

    /// The error of a way to a PE that has failed although the PE lives.
    fn failure_of(&self, call: &'static str, via: &Endpoint, pe: usize) -> Option<Error> {
        let why = via.failure_towards(pe)?;
        self.notify_stranded_peers(via);
        Some(via.failed(call, why))
    }

    /// Waits until all that was posted to `pe` in this context is placed (M27).
    fn flush(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        let flushed = self.try_flush(call, via, pe);
        if flushed.is_err() {
            self.give_messages_up();
        }
        flushed
    }

    fn try_flush(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        self.post_waiting(call, via, pe)?;
        let Some(target) = via.outstanding(Pe(pe as u32)) else {
            return Ok(());
        };
        let target = target.map_err(|why| via.failed(call, why))?;
        if let Some(error) = self.failure_of(call, via, pe) {
            // Told once: what was outstanding is lost with the way.
            via.give_up(pe);
            return Err(error);
        }
        if via.is_unanswered(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        let dirt = via.updates(pe);
        if dirt.has(OpKind::Message, MemoryKind::Host) {
            // Puts may be under way from what the caller is about to reuse.
            let answered = self.await_answers(call, pe);
            self.fail_or_complete(via, pe, answered)?;
        }
        if via.only_messages(pe) {
            // What was answered is done.
        } else if via.places(dirt) {
            via.request_completion(Pe(pe as u32));
            let result = self.await_completions(call, via, pe, target);
            self.fail_or_complete(via, pe, result)?;
        } else {
            // SAFETY: a flush has no local memory.
            unsafe { self.post(call, via, pe, Op::Flush, Until::Completed, Effect::Nothing)? };
        }
        via.clean(pe);
        Ok(())
    }

    /// Fence for lanes (M17). What a lane itself keeps before everything that may follow costs
    /// nothing; what it keeps before its own later operations only is flushed now if this PE's CPU
    /// may store to the same PE, and when another lane is next used for it otherwise.
    pub(crate) fn fence_lanes(&self, call: &'static str) -> Result<()> {
        self.forget_lost();
        let wire = &self.state.wire;
        let mapped = self.shared.simulation.is_some() || !self.shared.config.check;
        for (index, via) in wire.channels.iter().enumerate() {
            for pe in via.peers_in_flight() {
                let classes = via.to_order(pe);
                if classes.is_empty() {
                    continue;
                }
                if !via.preserves_order(classes, self.shared.may_follow(index, pe)) {
                    if self.inserts(FenceSite::FenceLane) {
                        self.flush(call, via, pe)?;
                    }
                    continue;
                }
                match self.shared.other_ways(index, pe, mapped) {
                    (false, _) => {}
                    _ if !self.inserts(FenceSite::FenceOtherWay) => {}
                    (true, true) => self.flush(call, via, pe)?,
                    (true, false) => {
                        via.fence(pe);
                        wire.fenced.set(true);
                    }
                }
            }
        }
        self.end_under_way()
    }

    /// Quiet for lanes, towards `only` or all.
    pub(crate) fn quiet_lanes(&self, call: &'static str, only: Option<&[usize]>) -> Result<()> {
        self.forget_lost();
        let wire = &self.state.wire;
        let mut first = Ok(());
        for via in &wire.channels {
            for pe in via.peers_in_flight() {
                if only.is_some_and(|list| !list.contains(&pe)) {
                    continue;
                }
                if !self.inserts(FenceSite::QuietLane) {
                    self.leave_unflushed(call, via, pe)?;
                    continue;
                }
                // One that fails keeps none of the others from being completed.
                let flushed = self.flush(call, via, pe);
                if flushed.is_err() {
                    via.failure_was_reported(pe);
                }
                first = first.and(flushed);
            }
            while let Some(pe) = via.missing(only) {
                via.failure_was_reported(pe);
                first = first.and(Err(self.never_came(call, via, pe)));
            }
        }
        if self.ordered && self.inserts(FenceSite::QuietGpu) {
            let asked = self.flush_gpus(call, only);
            first = first.and(asked);
        }
        if wire.got_to_gpu.get() {
            first = first.and(self.see_gpu_data());
        }
        let ended = self.end_under_way();
        first.and(ended)?;
        if wire.channels.iter().all(Endpoint::is_clean) {
            wire.rest();
            wire.fenced.set(false);
            wire.got_to_gpu.set(false);
        }
        Ok(())
    }

    /// The error of what was to come from a PE and was given up.
    #[cold]
    fn never_came(&self, call: &'static str, via: &Endpoint, pe: usize) -> Error {
        match via.gone().or_else(|| via.failure_towards(pe)) {
            Some(why) => via.failed(call, why),
            None => Error::PeerLost { call, pe },
        }
    }

    /// Has the GPUs that are due see what was placed in their memory (M27).
    fn flush_gpus(&self, call: &'static str, only: Option<&[usize]>) -> Result<()> {
        let wire = &self.state.wire;
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        let due: Vec<usize> = {
            let due = wire.gpus_due.borrow();
            due.iter().copied().filter(wanted).collect()
        };
        let mut first = Ok(());
        for pe in due {
            match self.ask_gpu_flush(call, pe) {
                Ok(()) => {
                    wire.gpus_due.borrow_mut().remove(&pe);
                }
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// What is left of a quiet without its flush, in a mutation check: completions are waited for, so
    /// that nothing touches local memory afterwards.
    fn leave_unflushed(&self, call: &'static str, via: &Endpoint, pe: usize) -> Result<()> {
        self.post_waiting(call, via, pe)?;
        if let Some(target) = via.outstanding(Pe(pe as u32)) {
            let target = target.map_err(|why| via.failed(call, why))?;
            via.request_completion(Pe(pe as u32));
            self.await_completions(call, via, pe, target)?;
            via.clean(pe);
        }
        Ok(())
    }

    /// Completes what is outstanding towards PEs that have not left.
    pub(crate) fn drain_lanes(&self, call: &'static str) -> Result<()> {
        let losses = &self.shared.liveness;
        let mut first = Ok(());
        for via in &self.state.wire.channels {
            for pe in via.peers_in_flight() {
                let flushed = self.flush(call, via, pe);
                // Who has left in order has heard what it had to.
                let left = || self.exit_was_reported(pe) && !losses.has_died(pe);
                if flushed.is_err() && !left() {
                    first = first.and(flushed);
                }
            }
        }
        first
    }

    /// Drops every lane of this context with something outstanding towards `only` or any PE, so that none of
    /// that touches local memory any more.
    pub(crate) fn abandon_lanes(&self, why: &Error, only: Option<&[usize]>) {
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        for via in &self.state.wire.channels {
            // Operations on a way that has failed were given up by the transport, and those to a lost PE
            // are with its lane's next step.
            let lost = |pe: usize| self.shared.liveness.is_lost(pe);
            let mut dirty = via.peers_in_flight().filter(wanted);
            if dirty.any(|pe| !lost(pe) && via.failure_towards(pe).is_none()) {
                via.fail(why);
                // Before it is forgotten what they may wait for.
                self.notify_stranded_peers(via);
                // The caller gets `why`. What went with the lane to other PEs the next quiet tells.
                via.peers_in_flight().filter(wanted).for_each(|pe| {
                    via.failure_was_reported(pe);
                    via.give_up(pe);
                });
            } else if via.peers_in_flight().filter(wanted).any(lost) {
                self.step(via);
            }
        }
    }

    /// The context ends and has not completed what it has issued: who may wait for that is told so.
    pub(crate) fn end_lanes(&self, why: &Error) {
        let channels = self.state.wire.channels.iter();
        for via in channels.filter(|via| !via.is_clean()) {
            via.fail(why);
            self.notify_stranded_peers(via);
        }
    }

    /// Forgets what was outstanding towards PEs whose loss was acknowledged since it last did so. Of what
    /// was to come from them the next quiet tells.
    pub(crate) fn forget_lost(&self) {
        let (wire, losses) = (&self.state.wire, &self.shared.liveness);
        let now = losses.acknowledgements();
        if wire.acknowledgements.replace(now) == now {
            return;
        }
        // Nothing of theirs touches local memory after this: no call will wait for it.
        wire.channels.iter().for_each(|via| self.step(via));
        self.give_messages_up();
        for pe in (0..self.shared.n_pes()).filter(|&pe| losses.is_acknowledged(pe)) {
            wire.channels.iter().for_each(|via| via.forget(pe));
            wire.gpus_due.borrow_mut().remove(&pe);
        }
    }
}
