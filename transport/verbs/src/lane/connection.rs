//! A lane's connection with one PE: its queue pairs, the requests outstanding there, and its counters.

use std::time::Instant;

use oxshmem_transport::{Counters, Error, Pe, Result};

use super::batch::Operation;
use super::bounce_pool::BouncePool;
use super::kept::Kept;
use super::long_operations::LongOperations;
use super::nics::Flushed;
use super::requester::{Making, NicPair, Predecessor, Requester};
use super::send_queue::{Deliver, WorkRequest};
use super::stripes::{BulkQueue, Repeat, Stripes};
use super::wqe_builder::Blocked;
use crate::completion_error::CompletionError;
use crate::limits::NAME;
use crate::port_state::bad_peer_data;
use crate::rails::Rails;
use crate::remote_region::{Imported, Regions};
use crate::wire::{EndpointReplies, EndpointReply, Endpoints};

/// The first NICs of both sides.
const FIRST_NICS: NicPair = NicPair { here: 0, there: 0 };

/// The queue pairs of one connection.
#[derive(Debug)]
pub(crate) struct Queues {
    /// That of all operations, or of all but long transfers.
    pub(crate) primary: Requester,
    /// Others that the peer may choose in its place; none once connected.
    others: Vec<Requester>,
    /// Those of long transfers.
    pub(crate) stripes: Option<Stripes>,
    /// The reply by which they were connected.
    reply: Option<Box<[u8]>>,
}

impl Queues {
    /// The bulk queue pairs.
    pub(super) fn bulk(&self) -> impl Iterator<Item = &Requester> {
        let stripes = self.stripes.iter();
        stripes.flat_map(Stripes::alive)
    }

    /// All queue pairs, the primary one first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Requester> {
        std::iter::once(&self.primary).chain(self.bulk())
    }

    /// Requests outstanding.
    pub(super) fn outstanding(&self) -> u32 {
        self.all().map(|one| one.send_queue.outstanding()).sum()
    }

    /// The numbers of all queue pairs, lost ones among them.
    pub(super) fn numbers(&self) -> std::ops::Range<u8> {
        let bulk = self.stripes.as_ref();
        0..1 + bulk.map_or(0, |stripes| stripes.queues.len() as u8)
    }

    /// The queue pair of this number, as completions name it; none if it is lost.
    pub(super) fn get(&self, queue: u8) -> Option<&Requester> {
        match usize::from(queue) {
            0 => Some(&self.primary),
            queue => {
                let bulk = self.stripes.as_ref()?.queues.get(queue - 1)?;
                bulk.requester.as_ref()
            }
        }
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, queue: u8) -> Option<&mut Requester> {
        match queue {
            0 => Some(&mut self.primary),
            queue => {
                let bulk = self.stripes.as_mut()?.bulk_mut(queue)?;
                bulk.requester.as_mut()
            }
        }
    }

    /// The queue pairs among which the peer chooses the primary one.
    fn candidates(&self) -> impl Iterator<Item = &Requester> {
        std::iter::once(&self.primary).chain(&self.others)
    }

    /// All queue pairs of the endpoint, in its order.
    fn offered(&self) -> impl Iterator<Item = &Requester> {
        self.candidates().chain(self.bulk())
    }

    /// The endpoint's bytes.
    fn endpoint_bytes(&self) -> Vec<u8> {
        let endpoints = Endpoints {
            primaries: self.candidates().count() as u8,
            queues: self.offered().map(|one| one.endpoint.clone()).collect(),
        };
        endpoints.to_bytes()
    }

    /// Makes the candidate at this place the primary queue pair. Nothing was posted to the others, which end.
    fn choose(&mut self, at: usize) {
        if let Some(other) = at.checked_sub(1).and_then(|at| self.others.get_mut(at)) {
            std::mem::swap(&mut self.primary, other);
        }
        self.others.clear();
    }

    /// Connects one queue pair, or drops it if it is one of a further NIC that does not reach the peer.
    fn connect_one(
        &mut self,
        rails: &Rails,
        pe: Pe,
        queue: u8,
        reply: Option<EndpointReply>,
    ) -> Result<()> {
        let Some(one) = self.get_mut(queue) else {
            return Ok(());
        };
        let connected = match reply {
            Some(reply) => match one.connect(rails, pe, reply) {
                Err(error) if queue == 0 || one.rail == 0 => return Err(error),
                connected => connected.map_err(|error| error.to_string()),
            },
            None => Err("none of that PE's NICs reaches it".into()),
        };
        if let Err(why) = connected {
            let rail = one.rail;
            tracing::debug!(%pe, queue, rail, %why, "one of the NICs is not used with a PE");
            let stripes = self.stripes.as_mut();
            if let Some(bulk) = stripes.and_then(|stripes| stripes.bulk_mut(queue)) {
                // Nothing was posted to it.
                bulk.requester = None;
                bulk.is_dirty = false;
            }
        }
        Ok(())
    }

    /// Destroys them all, as [`Requester::end`].
    fn end(self, pool: &mut BouncePool) -> Flushed {
        let mut outstanding = Flushed::at(self.primary.rail, self.primary.end(pool));
        let Some(Stripes {
            queues, repeats, ..
        }) = self.stripes
        else {
            return outstanding;
        };
        for requester in queues.into_iter().filter_map(|bulk| bulk.requester) {
            outstanding.add(requester.rail, requester.end(pool));
        }
        let blocks = repeats.iter().filter_map(Repeat::block);
        blocks.for_each(|block| pool.release(block));
        outstanding
    }
}

/// How far a connection has come.
#[derive(Debug)]
pub(crate) enum ConnectionState {
    /// No queue pair was created yet.
    Unused,
    /// An endpoint that is not connected, or to which nothing is posted yet.
    Created(Box<Queues>),
    Connected(Box<Queues>),
    /// It failed or its PE is lost; nothing of it is outstanding.
    Failed(CompletionError),
}

/// A lane's side of the connection with one PE.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: ConnectionState,
    pub(crate) counters: Counters,
    /// As the peer's first NIC knows them.
    pub(crate) regions: Regions,
    /// As its further NICs know them.
    pub(crate) further: Vec<Regions>,
    /// Whether the lane's list of connections with unsignaled requests has it.
    pub(crate) is_listed: bool,
    /// Whether a caller waits for those requests.
    pub(crate) wants_signal: bool,
    /// The operations that go over the bulk queue pairs, if there are any, and the count of all operations.
    pub(super) operations: Option<Box<LongOperations>>,
    /// The parts of an interrupted connection that the next queue pair takes over.
    pub(super) kept: Option<Box<Kept>>,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            state: ConnectionState::Unused,
            counters: Counters::default(),
            regions: Regions::from(Vec::new()),
            further: Vec::new(),
            is_listed: false,
            wants_signal: false,
            operations: None,
            kept: None,
        }
    }

    /// The regions as one of the peer's NICs knows them.
    #[inline]
    pub(super) fn regions_at(&self, peer_rail: u8) -> &[Option<Imported>] {
        regions_of(&self.regions, &self.further, peer_rail)
    }

    /// A write without bytes, by a queue pair to this NIC of the peer. Some devices check its address and key all the same.
    /// Without a region there are none to give.
    #[cold]
    pub(super) fn write_of_nothing(&self, peer_rail: u8) -> Operation {
        let mut regions = self.regions_at(peer_rail).iter().flatten();
        let place = regions.find_map(Imported::first);
        let (addr, rkey) = place.map_or((0, 0), |place| (place.addr, place.strict_rkey));
        Operation::Write(addr, rkey)
    }

    /// The reason why nothing is posted where there is no connection. One that is being made again has no room.
    #[cold]
    pub(super) fn not_posted(&self, pe: Pe) -> Blocked {
        match (&self.state, &self.kept) {
            (ConnectionState::Unused | ConnectionState::Created(_), Some(_)) => Blocked::Full,
            _ => Blocked::Refused(Box::new(self.refusal(pe))),
        }
    }

    /// Outstanding requests that may have been performed or not.
    pub(super) fn in_doubt(&self) -> usize {
        match &self.state {
            ConnectionState::Connected(queues) => queues.all().map(Requester::in_doubt).sum(),
            _ => 0,
        }
    }

    /// The reason why nothing can be posted.
    #[cold]
    pub(crate) fn refusal(&self, pe: Pe) -> Error {
        match &self.state {
            ConnectionState::Failed(cause) => cause.error(pe),
            _ => Error::Unreachable {
                transport: NAME,
                pe,
                why: "this lane is not connected with it".into(),
            },
        }
    }

    /// The endpoint's bytes. The first call creates the queue pairs.
    pub(super) fn endpoint(&mut self, making: &Making<'_>) -> Result<Vec<u8>> {
        match &self.state {
            ConnectionState::Created(queues) | ConnectionState::Connected(queues) => {
                return Ok(queues.endpoint_bytes());
            }
            ConnectionState::Failed(cause) => return Err(cause.error(making.pe)),
            ConnectionState::Unused => {}
        }
        // They may say that the port has another address.
        making.rails.primary.events();
        // Queue pairs that are made again take all that those before them had outstanding.
        let kept = self.kept.as_ref();
        let attempt = kept.map_or(0, |kept| kept.attempt);
        let after = |nonce| Predecessor { nonce, attempt };
        let requests = kept.map_or(0, |kept| kept.requests.len());
        let before = kept.map(|kept| after(kept.nonce));
        let mut primaries = making.primaries(kept.map(|kept| &**kept), |rail| {
            making.primary(rail, before, requests)
        })?;
        let primary = primaries.remove(0);
        let bulk = (0..making.rails.bulk_queues() as usize).map(|at| {
            let nonce = kept.and_then(|kept| kept.bulk_nonces.get(at).copied().flatten());
            making.bulk(at, nonce.map(after))
        });
        let bulk = bulk.collect::<Result<Vec<_>>>()?;
        let mut stripes = (!bulk.is_empty()).then(|| Stripes::new(bulk));
        if let (Some(stripes), Some(kept)) = (&mut stripes, kept) {
            let places = (0..).zip(&mut stripes.queues);
            places.for_each(|(at, bulk)| {
                // One without a successor cannot be flushed: its NIC is lost.
                bulk.is_dirty = bulk.requester.is_some() && kept.dirty >> at & 1 == 1;
                bulk.lost_nonce = kept.bulk_nonces.get(at).copied().flatten();
            });
        }
        if stripes.is_some() {
            self.operations.get_or_insert_default();
        }
        let queues = Queues {
            primary,
            others: primaries,
            stripes,
            reply: None,
        };
        let bytes = queues.endpoint_bytes();
        self.state = ConnectionState::Created(Box::new(queues));
        Ok(bytes)
    }

    /// Connects with the reply of the peer's domain. The same reply twice is no error. [`open`](Self::open) follows.
    pub(crate) fn connect(&mut self, rails: &Rails, pe: Pe, reply: &[u8]) -> Result<()> {
        let bad = |why: String| bad_peer_data("the answer to a lane's endpoint", pe, why);
        let replies = EndpointReplies::from_bytes(reply).map_err(bad)?.0;
        let missing = |rail| lacks_regions(&self.regions, &self.further, rail);
        let queues = match &mut self.state {
            ConnectionState::Created(queues) | ConnectionState::Connected(queues) => queues,
            ConnectionState::Failed(cause) => return Err(cause.error(pe)),
            ConnectionState::Unused => {
                return Err(bad("this lane made no endpoint towards it".into()));
            }
        };
        match queues.reply.as_deref() {
            None => {}
            Some(known) if known == reply => return Ok(()),
            Some(_) => return Err(bad("this lane is connected already".into())),
        }
        let primaries = queues.candidates().count();
        let offered = queues.offered().count();
        if replies.len() != offered {
            return Err(bad(format!(
                "it is of {} queue pairs, and the endpoint of {offered}",
                replies.len()
            )));
        }
        for (one, reply) in queues.offered().zip(&replies) {
            if let Some(reply) = reply {
                one.check(rails, reply).map_err(bad)?;
            }
        }
        let (first, bulk) = replies.split_at(primaries);
        let chosen = first.iter().enumerate();
        let mut chosen = chosen.filter_map(|(at, reply)| Some((at, (*reply)?)));
        let (Some((at, first_reply)), None) = (chosen.next(), chosen.next()) else {
            return Err(bad(
                "it connects not one of the queue pairs for all operations".into(),
            ));
        };
        if missing(first_reply.rail) {
            return Err(Error::Unreachable {
                transport: NAME,
                pe,
                why: format!(
                    "its NIC {} has no keys of some of its memory",
                    first_reply.rail
                ),
            });
        }
        queues.choose(at);
        queues.connect_one(rails, pe, 0, Some(first_reply))?;
        let alive = queues.numbers().skip(1);
        let alive: Vec<u8> = alive.filter(|queue| queues.get(*queue).is_some()).collect();
        for (queue, one) in alive.into_iter().zip(bulk) {
            queues.connect_one(rails, pe, queue, *one)?;
        }
        let nics = queues.primary.nics();
        if nics != FIRST_NICS {
            let (here, there) = (nics.here, nics.there);
            tracing::info!(%pe, here, there, "another NIC has the connection for all operations with a PE");
        }
        queues.reply = Some(reply.into());
        Ok(())
    }

    /// Whether its queue pairs are connected, and nothing is posted to them yet.
    pub(super) fn is_held_back(&self) -> bool {
        matches!(&self.state, ConnectionState::Created(queues) if queues.reply.is_some())
    }

    /// Whether packets of the connection before may still come, by other NICs than the new one's.
    pub(super) fn awaits_late_packets(&self) -> bool {
        let (ConnectionState::Created(queues), Some(kept)) = (&self.state, &self.kept) else {
            return false;
        };
        let may_come = kept.not_before.is_some_and(|after| Instant::now() < after);
        may_come && queues.primary.nics() != kept.nics
    }

    /// Lets operations be posted, if its queue pairs are connected.
    pub(super) fn open(&mut self) {
        if self.is_held_back()
            && let ConnectionState::Created(queues) =
                std::mem::replace(&mut self.state, ConnectionState::Unused)
        {
            self.state = ConnectionState::Connected(queues);
        }
    }

    /// Retires the requests up to `number`, which have completed: delivers the data that they fetched,
    /// and counts. Gives the number of them.
    #[inline(always)]
    pub(crate) fn retire(&mut self, number: u32, pool: &mut BouncePool) -> u32 {
        let ConnectionState::Connected(queues) = &mut self.state else {
            return 0;
        };
        let requester = &mut queues.primary;
        let count = requester.send_queue.count_up_to(number);
        requester.ever_acked |= count > 0;
        let mut completed = 0;
        for _ in 0..count {
            let Some(request) = requester.send_queue.pop() else {
                break;
            };
            deliver(request, pool);
            completed += u64::from(request.is_last);
        }
        match &mut self.operations {
            None => self.counters.completed += completed,
            Some(operations) => {
                let queue = &requester.send_queue;
                operations.primaries_done(completed, |number| queue.contains(number));
                self.counters.completed = operations.completed();
            }
        }
        count
    }

    /// [Retires](Self::retire) requests of a bulk queue pair: the parts of long operations.
    pub(crate) fn retire_bulk(&mut self, queue: u8, number: u32, pool: &mut BouncePool) -> u32 {
        let ConnectionState::Connected(queues) = &mut self.state else {
            return 0;
        };
        let (Some(stripes), Some(operations)) = (&mut queues.stripes, &mut self.operations) else {
            return 0;
        };
        let Some(BulkQueue {
            requester: Some(requester),
            parts,
            ..
        }) = stripes.bulk_mut(queue)
        else {
            return 0;
        };
        let count = requester.send_queue.count_up_to(number);
        requester.ever_acked |= count > 0;
        for _ in 0..count {
            let Some(request) = requester.send_queue.pop() else {
                break;
            };
            deliver(request, pool);
            if request.is_last
                && let Some(part_of) = parts.pop_front()
            {
                operations.part_done(part_of);
            }
        }
        self.counters.completed = operations.completed();
        count
    }

    /// Whether signals are due, since their data is placed.
    pub(crate) fn has_due_signals(&self) -> bool {
        let operations = self.operations.as_ref();
        operations.is_some_and(|operations| operations.has_due())
    }

    /// Destroys the queue pairs, then releases the blocks of their requests. Gives the number of outstanding
    /// requests: the completion queue may still hold as many flushed completions.
    #[cold]
    pub(crate) fn fail(&mut self, cause: CompletionError, pool: &mut BouncePool) -> Flushed {
        if let Some(kept) = self.kept.take() {
            kept.discard(pool);
        }
        self.fail_queues(cause, pool)
    }

    fn fail_queues(&mut self, cause: CompletionError, pool: &mut BouncePool) -> Flushed {
        let queues = match std::mem::replace(&mut self.state, ConnectionState::Failed(cause)) {
            ConnectionState::Created(queues) | ConnectionState::Connected(queues) => queues,
            ConnectionState::Failed(first) => {
                self.state = ConnectionState::Failed(first);
                return Flushed::default();
            }
            ConnectionState::Unused => return Flushed::default(),
        };
        queues.end(pool)
    }
}

/// The regions as one of the peer's NICs knows them.
#[inline]
pub(super) fn regions_of<'a>(
    first: &'a Regions,
    further: &'a [Regions],
    peer_rail: u8,
) -> &'a [Option<Imported>] {
    match peer_rail {
        0 => first,
        rail => further
            .get(usize::from(rail) - 1)
            .map_or(&[][..], |regions| regions),
    }
}

/// Whether one of the peer's NICs lacks the keys of a region that its first one has.
fn lacks_regions(first: &Regions, further: &[Regions], peer_rail: u8) -> bool {
    let known = regions_of(first, further, peer_rail);
    let mut all = first.iter().enumerate();
    all.any(|(at, region)| region.is_some() && !matches!(known.get(at), Some(Some(_))))
}

/// Delivers the data that a completed request has fetched, and releases its block.
#[inline(always)]
fn deliver(request: &WorkRequest, pool: &mut BouncePool) {
    let Some(block) = request.block else {
        return;
    };
    match request.deliver {
        Deliver::Nothing => {}
        Deliver::Bytes(to, len) => {
            // SAFETY: the poster promised `len` bytes here until the operation is counted, which it
            // is after this; the block has as many, which its request has filled.
            unsafe { oxshmem_heap::copy::copy(to, pool.address(block), len as usize) };
        }
        Deliver::Word(to) => {
            // SAFETY: the block begins with a word that its request has filled.
            let word = unsafe { pool.address(block).cast::<u64>().read() };
            // SAFETY: 8 bytes, aligned (checked when posted), valid by the poster's promise.
            let to = unsafe { std::sync::atomic::AtomicU64::from_ptr(to) };
            to.store(word, std::sync::atomic::Ordering::Relaxed);
        }
    }
    pool.release(block);
}
