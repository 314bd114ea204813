//! The verbs lane: per connected PE one queue pair, for all of them one completion queue and one bounce
//! pool.
//!
//! # Signaling
//!
//! An unsignaled request makes no completion of its own; the next signaled one behind it completes it
//! too. So a batch's last request is signaled where the batch fetches something or flushes, where it sends
//! from memory in place and no completion is due, and otherwise once a quarter of the queue pair's requests
//! or of the window would be unsignaled. Puts that nothing follows are completed by an empty signaled write,
//! which `progress` sends when their completion is requested, or after a while in which it found nothing
//! else to do.
//!
//! # Long transfers
//!
//! Where a connection has [bulk queue pairs](stripes), the parts of long transfers go over these.
//!
//! # Failure
//!
//! A peer that is silent while nothing is in doubt, such as a short put, interrupts its [connection](interruption), which is made
//! again, at [another NIC](failover) if there is one. Any other failed completion, or the loss of a PE, destroys its queue pair at once, and with it every access to
//! local memory. The flushed completions that its queue still holds are taken out before their credits are
//! used again.

mod atomics;
pub(crate) mod batch;
mod bounce_pool;
mod buffers;
mod completions;
mod connection;
mod disconnect;
mod failed_pairs;
mod failover;
mod interruption;
mod kept;
mod long_operations;
mod long_post;
mod lost_queue;
mod nics;
mod put_keys;
mod refused;
mod repeats;
pub(crate) mod request_id;
mod requester;
mod send_mode;
mod send_queue;
mod signaling;
mod stripes;
mod wqe_builder;
mod write_order;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam::utils::CachePadded;
use oxshmem_transport::{Counters, Error, Lane, Op, Pe, Posted, Result};

use self::batch::{Batch, LONGEST};
use self::bounce_pool::BouncePool;
use self::buffers::moved_keys;
use self::connection::{Connection, ConnectionState, regions_of};
use self::nics::{CompletionRoom, Flushed, LaneNic, credits_at};
use self::request_id::MOST_PES;
use self::requester::Making;
use self::wqe_builder::{Blocked, MAX_REQUESTS, WqeBuilder};
use crate::completion_error::CompletionError;
use crate::ibv::Completion;
use crate::limits::NAME;
use crate::port_state::{EVENTS, PortState, requests};
use crate::rails::Rails;
use crate::remote_region::BoxedError;
use crate::statistics::Counts;

/// Completions taken with one poll.
const POLL: usize = 32;

/// Calls of `progress` that find nothing before unsignaled requests are completed by an empty write.
const IDLE: u32 = 4096;

/// Bytes in flight towards one PE, beyond which a lane of a software device is full: such a device does
/// not put its retransmission off while acknowledgements come, and sends again what takes longer than the
/// timeout to arrive, until its retries are used up.
const WINDOW: u64 = 2 << 20;

/// Calls of `progress` between two checks for stalled requests.
const STALL_CHECKS: u32 = 64;

#[derive(Debug)]
pub(crate) struct VerbsLane {
    // Before the blocks that their queue pairs use.
    connections: Vec<Connection>,
    pool: BouncePool,
    batch: Batch,
    completions: [Completion; POLL],
    /// Completions that were taken and not looked at, each with its NIC: they made room for requests.
    held: Vec<(u8, Completion)>,
    /// At the first NIC.
    room: CompletionRoom,
    /// Of the others, those that can be used.
    further: Vec<LaneNic>,
    /// Whether completions of destroyed queue pairs may come.
    has_flushed: bool,
    /// Operations in flight towards one PE at most.
    depth: u32,
    /// Requests in flight towards one PE at most.
    max_requests: u32,
    /// Bytes in flight towards one PE before the lane is full.
    window: u64,
    /// Whether the device is made of software.
    software: bool,
    /// The longest transfer, in bytes.
    max_transfer: u64,
    /// PEs towards which the last request is unsignaled.
    unsignaled: Vec<Pe>,
    /// Whether the completion of some of those was requested.
    wants_signal: bool,
    idle: u32,
    /// Calls of `progress`.
    calls: u32,
    /// Whether an operation waits for a block, a credit, or the operations before it.
    is_blocked: bool,
    /// PEs towards which something is due: signals whose data is placed, requests of lost queue pairs, or those of a connection
    /// that is held back.
    due: Vec<Pe>,
    /// From this size on puts and gets go over the bulk queue pairs.
    stripe: u64,
    errors: VecDeque<Error>,
    generation: u64,
    closed: bool,
    /// The NICs whose ports are down, as a set of bits by their numbers.
    down_rails: u8,
    counts: Arc<CachePadded<Counts>>,
    rails: Arc<Rails>,
    /// That of the first NIC.
    port_state: Arc<PortState>,
}

// SAFETY: the raw pointers in outstanding requests are the poster's, who promised their validity
// until the lane is done with them, wherever the lane is moved to.
unsafe impl Send for VerbsLane {}

impl VerbsLane {
    pub(crate) fn new(rails: &Arc<Rails>) -> Result<VerbsLane> {
        let port_state = &rails.primary;
        let port = &port_state.port;
        let depth = port_state.depth;
        let max_requests = requests(depth);
        let size = port_state.published.job.size;
        if size > MOST_PES {
            return Err(Error::Unsupported {
                transport: NAME,
                what: format!("a job of {size} PEs: a lane has room for {MOST_PES}"),
            });
        }
        let entries = |state: &PortState| {
            let requests = max_requests * rails.queues_at(state.rail);
            (requests * size.min(4)).min(state.port.limits.completions)
        };
        let mut pool = BouncePool::new(&port_state.protection_domain, port_state.settings.bounce)?;
        let mut further = Vec::new();
        for state in rails.further.iter().filter(|state| state.is_usable()) {
            let room = CompletionRoom::new(&state.port.context, entries(state));
            let room = room.and_then(|room| {
                pool.register(state.rail, &state.protection_domain)?;
                Ok(room)
            });
            match room {
                Ok(room) => further.push(LaneNic {
                    room,
                    port_state: Arc::clone(state),
                }),
                Err(error) => {
                    let port = state.port.name();
                    tracing::warn!(%port, %error, "a lane does without one of the NICs");
                }
            }
        }
        let mut lane = VerbsLane {
            connections: (0..size).map(|_| Connection::new()).collect(),
            pool,
            batch: Batch::new(),
            completions: [Completion::none(); POLL],
            held: Vec::new(),
            room: CompletionRoom::new(&port.context, entries(port_state))?,
            further,
            has_flushed: false,
            depth,
            max_requests,
            window: if port.software { WINDOW } else { u64::MAX },
            software: port.software,
            max_transfer: u64::from(port.attributes.largest_message).min(1 << 30),
            unsignaled: Vec::with_capacity(size as usize),
            wants_signal: false,
            idle: 0,
            calls: 0,
            is_blocked: false,
            due: Vec::new(),
            stripe: rails.ordered().saturating_add(1),
            errors: VecDeque::new(),
            generation: 0,
            closed: false,
            down_rails: 0,
            counts: port_state.totals.enter(),
            rails: Arc::clone(rails),
            port_state: Arc::clone(port_state),
        };
        lane.refresh();
        Ok(lane)
    }

    /// Copies the domain's state, and fails the connections with lost PEs.
    #[cold]
    fn refresh(&mut self) {
        let (generation, state) = self.port_state.published.copy();
        self.generation = generation;
        (self.closed, self.down_rails) = (state.closed, state.down_rails);
        let known = state.imported.into_iter().zip(state.further);
        let known = known.zip(state.lost);
        let mut flushed = Flushed::default();
        for (connection, ((regions, further), lost)) in self.connections.iter_mut().zip(known) {
            (connection.regions, connection.further) = (regions, further);
            if lost {
                flushed += connection.fail(CompletionError::Lost, &mut self.pool);
                connection.state = ConnectionState::Failed(CompletionError::Lost);
            }
        }
        self.note_flushed(flushed);
        match state.failed {
            Some(why) => self.fail_all(&why),
            None if state.failed_rails != 0 => self.lose_nics(state.failed_rails),
            None => {}
        }
        self.replace_failed_pairs();
        if self.has_flushed {
            self.reclaim_flushed_cqes();
        }
    }

    #[inline]
    fn refresh_if_changed(&mut self) {
        if self.port_state.published.generation() != self.generation {
            self.refresh();
        }
    }

    /// Checks that the lane is open and `pe` is of the job and not lost.
    fn check(&mut self, pe: Pe) -> Result<()> {
        self.refresh_if_changed();
        self.port_state.published.check(pe)
    }

    /// Enlarges the completion queues for one more connection, if the devices can.
    fn reserve_completions(&mut self) {
        let used = |connection: &&Connection| {
            matches!(
                connection.state,
                ConnectionState::Created(_) | ConnectionState::Connected(_)
            )
        };
        let count = self.connections.iter().filter(used).count() as u32 + 1;
        let requests = |rail| count.saturating_mul(self.max_requests * self.rails.queues_at(rail));
        let limit = self.port_state.port.limits.completions;
        self.room.reserve(requests(0), limit);
        for nic in &mut self.further {
            let limit = nic.port_state.port.limits.completions;
            nic.room.reserve(requests(nic.port_state.rail), limit);
        }
    }

    /// Posts the batch. If that fails, so does the connection.
    ///
    /// # Safety
    ///
    /// As for [`Batch::post`].
    #[inline(always)]
    unsafe fn submit(&mut self, pe: Pe, wants_completion: bool) -> Result<(), BoxedError> {
        let count = self.batch.len();
        if count == 0 {
            return Ok(());
        }
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return Ok(());
        };
        let ConnectionState::Connected(queues) = &mut connection.state else {
            self.batch.clear();
            return Ok(());
        };
        let requester = &mut queues.primary;
        let queue = &mut requester.send_queue;
        let many = queue.unsignaled() >= queue.capacity() / 4;
        if wants_completion || many || queue.unsignaled_bytes() >= self.window / 4 {
            self.batch.signal_last();
            queue.mark_signaled();
        } else if !connection.is_listed {
            connection.is_listed = true;
            self.unsignaled.push(pe);
        }
        self.counts.posted(count as u64);
        // SAFETY: the batch's requests are valid, as this function's caller promises.
        match unsafe { self.batch.post(&requester.pair) } {
            Ok(()) => Ok(()),
            // SAFETY: as above.
            Err(refusal) => match unsafe { self.post_rest(pe, 0, refusal) } {
                Ok(()) => Ok(()),
                Err(refusal) => Err(self.refused_by_device(pe, refusal)),
            },
        }
    }

    /// Builds the requests of the first operations, as far as the batch and the queue pair have room. The batch is empty
    /// before.
    ///
    /// # Safety
    ///
    /// As for [`post`](Lane::post).
    #[inline(always)]
    unsafe fn stage(&mut self, pe: Pe, ops: &[Op]) -> Staged {
        debug_assert_eq!(self.batch.len(), 0);
        let mut staged = Staged {
            count: 0,
            wants_completion: false,
            stop: None,
        };
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            let error = self.port_state.published.check(pe).err();
            let error = error.unwrap_or(Error::Closed { transport: NAME });
            staged.stop = Some(Blocked::Refused(Box::new(error)));
            return staged;
        };
        let ConnectionState::Connected(queues) = &mut connection.state else {
            staged.stop = Some(connection.not_posted(pe));
            return staged;
        };
        let requester = &mut queues.primary;
        let (rail, first) = (requester.rail, requester.send_queue.newest());
        let credits = credits_at(&self.room, &self.further, rail);
        let in_flight = connection.counters.posted - connection.counters.completed;
        let most = u64::from(self.depth).saturating_sub(in_flight);
        let mut builder = WqeBuilder {
            pe,
            queue: 0,
            regions: regions_of(
                &connection.regions,
                &connection.further,
                requester.peer_rail,
            ),
            requester,
            batch: &mut self.batch,
            pool: &mut self.pool,
            max_transfer: self.max_transfer,
            moved_keys: moved_keys(&self.rails, 0, rail),
            has_fences: !self.software,
            wants_completion: false,
        };
        for op in ops {
            let queue = &builder.requester.send_queue;
            let left = credits.saturating_sub(queue.since(first));
            let is_long = queue.bytes() >= self.window;
            let free = queue.free().min(left);
            if staged.count as u64 >= most || free < MAX_REQUESTS as u32 || is_long {
                // Unsignaled requests towards others may hold the missing credits.
                self.is_blocked |= left < MAX_REQUESTS as u32;
                staged.stop = Some(Blocked::Full);
                break;
            }
            if builder.batch.len() + MAX_REQUESTS > LONGEST {
                break;
            }
            // SAFETY: the operation's local memory is valid, as this function's caller promises.
            match unsafe { builder.build(op) } {
                Ok(()) => staged.count += 1,
                Err(blocked) => {
                    // The requests that it waits for may be unsignaled.
                    self.is_blocked |= matches!(blocked, Blocked::NoBlock | Blocked::Unfenced);
                    staged.stop = Some(blocked);
                    break;
                }
            }
        }
        staged.wants_completion = builder.wants_completion;
        let entered = builder.requester.send_queue.since(first);
        self.take_credits(rail, entered);
        staged
    }

    #[inline]
    fn count_posted(&mut self, pe: Pe, count: usize) {
        if let Some(connection) = self.connections.get_mut(pe.index()) {
            connection.counters.posted += count as u64;
        }
    }
}

/// Operations whose requests are in the batch.
struct Staged {
    count: usize,
    /// Whether the last request is to be signaled.
    wants_completion: bool,
    /// The reason why the operation after them was not taken, if it was tried.
    stop: Option<Blocked>,
}

impl Lane for VerbsLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.check(pe)?;
        let connection = self.connections.get(pe.index());
        if connection.is_some_and(|c| matches!(c.state, ConnectionState::Unused)) {
            self.reserve_completions();
        }
        let making = Making {
            rails: &self.rails,
            pe,
            first: &self.room,
            further: &self.further,
            capacity: self.max_requests,
            blocks: self.pool.memory(),
        };
        match self.connections.get_mut(pe.index()) {
            Some(connection) => connection.endpoint(&making),
            None => Ok(Vec::new()),
        }
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        self.check(pe)?;
        let connection = self.connections.get(pe.index());
        let is_again = connection.is_some_and(|connection| connection.kept.is_some());
        if is_again {
            // The completion queue holds nothing of the old queue pair then.
            self.reclaim_flushed_cqes();
        }
        let Some(connection) = self.connections.get_mut(pe.index()) else {
            return Ok(());
        };
        connection.connect(&self.rails, pe, endpoint)?;
        if connection.awaits_late_packets() {
            self.note_due(pe);
            return Ok(());
        }
        self.resume(pe)
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        self.refresh_if_changed();
        if self.closed {
            return Posted::refused(0, Error::Closed { transport: NAME });
        }
        if self.down_rails != 0 && self.leaves_down_port(pe) {
            return Posted::full(0);
        }
        let mut posted = 0;
        loop {
            let rest = ops.get(posted..).unwrap_or_default();
            let plain = self.before_parts(pe, rest);
            let Some((op, plain)) = rest.first().zip(rest.get(..plain)) else {
                return Posted::all(posted);
            };
            if plain.is_empty() {
                // SAFETY: the caller's promise about the operation.
                if let Some(stopped) = unsafe { self.post_in_parts(pe, op, posted) } {
                    return stopped;
                }
                posted += 1;
                continue;
            }
            // SAFETY: the caller's promise about the operations.
            let staged = unsafe { self.stage(pe, plain) };
            // SAFETY: as above.
            if let Err(error) = unsafe { self.submit(pe, staged.wants_completion) } {
                return Posted::refused(posted, *error);
            }
            self.count_posted(pe, staged.count);
            posted += staged.count;
            match staged.stop {
                None if posted == ops.len() => return Posted::all(posted),
                None => {}
                Some(Blocked::Refused(error)) => return Posted::refused(posted, *error),
                Some(_) => return Posted::full(posted),
            }
        }
    }

    fn progress(&mut self) -> Result<()> {
        self.refresh_if_changed();
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        self.calls = self.calls.wrapping_add(1);
        // Relaxed: an old value only moves the check from the inbox's thread to this one or back.
        if self.calls.is_multiple_of(EVENTS) {
            if !self.port_state.inbox_taken.load(Relaxed) {
                self.port_state.events();
            }
            self.further.iter().for_each(|nic| nic.port_state.events());
        }
        let count = self.poll()?;
        if self.has_flushed {
            self.reclaim_flushed_cqes();
        }
        if !self.due.is_empty() {
            self.post_due();
        }
        if count > 0 {
            self.idle = 0;
        } else if !self.unsignaled.is_empty() {
            self.idle += 1;
        }
        if self.software && count == 0 && self.calls.is_multiple_of(STALL_CHECKS) {
            self.wake_stalled();
        }
        // An operation that waits for a block may wait for one of an unsignaled request, whatever else
        // completes.
        if self.is_blocked || self.wants_signal || self.idle >= IDLE {
            (self.idle, self.is_blocked, self.wants_signal) = (0, false, false);
            self.signal_pending();
        }
        match self.errors.pop_front() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.connections
            .get(pe.index())
            .map(|connection| connection.counters)
            .unwrap_or_default()
    }

    fn fence(&mut self, pe: Pe) {
        if let Some(connection) = self.connections.get_mut(pe.index())
            && let ConnectionState::Connected(queues) = &mut connection.state
        {
            queues.primary.put_keys.fence();
        }
    }

    fn request_completion(&mut self, pe: Pe) {
        if let Some(connection) = self.connections.get_mut(pe.index())
            && connection.is_listed
        {
            (connection.wants_signal, self.wants_signal) = (true, true);
        }
    }
}

#[cfg(test)]
mod tests;
