//! A lane's connection with one PE: its queue pair, the requests outstanding there, and its counters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_transport::{Counters, Error, Pe, Posted, Result};

use super::bounce_pool::BouncePool;
use super::kept::Kept;
use super::put_keys::PutKeys;
use super::send_queue::{Deliver, SendQueue, WorkRequest};
use crate::completion_error::CompletionError;
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, ReceiveSource};
use crate::limits::NAME;
use crate::port::Path;
use crate::port_state::{LEAST_DEPTH, PortState, bad_peer_data, requests};
use crate::remote_region::Regions;
use crate::wire::{self, Endpoint, EndpointReply, TargetOrder};

/// Reads and atomics that one connection has in flight at most.
const READS: u8 = 16;

/// The time after which a software device that has completed nothing is given one more request: rxe's
/// sender waits on flags that its receiving side clears without a lock (for a fence, for a read's turn, for
/// a retry), so that a wake-up can get lost, and only another request wakes it.
const STALL: Duration = Duration::from_millis(300);

/// The requester's queue pair, with its send queue.
#[derive(Debug)]
pub(crate) struct Requester {
    // First, so that it ends before the memory that it may still write to.
    pub(crate) pair: QueuePair,
    pub(crate) send_queue: SendQueue,
    /// Bytes that a request may carry inline.
    pub(crate) max_inline: u32,
    /// The number of the last get's or fetch's request.
    pub(crate) last_read: Option<u32>,
    /// The number of the last atomic's request.
    pub(crate) last_atomic: Option<u32>,
    /// The keys of puts.
    pub(crate) put_keys: PutKeys,
    /// Whether GPU memory was written since the last flush.
    pub(crate) gpu_written: bool,
    /// The order of writes at the target.
    pub(crate) order: TargetOrder,
    /// Bytes that one packet carries.
    pub(crate) packet_bytes: u32,
    /// The route of its packets, in words.
    pub(crate) description: String,
    /// Whether any request was ever completed.
    pub(crate) ever_acked: bool,
    /// The queue pairs since the peer last answered, this one included; 0 for a connection's first one.
    pub(super) attempt: u32,
    /// The oldest outstanding request at the last check for a stall, and since when it is the oldest.
    oldest: Option<(u32, Instant)>,
    endpoint: Endpoint,
    reply: Option<EndpointReply>,
}

impl Requester {
    /// Whether the peer has ever answered, an earlier queue pair of this connection perhaps.
    pub(super) fn was_ever_acked(&self) -> bool {
        self.ever_acked || self.attempt > 0
    }

    /// Outstanding requests that may have been performed or not, and are not to be performed twice.
    pub(super) fn in_doubt(&self) -> usize {
        let all = self.send_queue.iter();
        all.filter(|sent| !sent.request.may_be_repeated()).count()
    }

    /// The nonce of its endpoint.
    pub(super) fn nonce(&self) -> u64 {
        self.endpoint.nonce
    }

    /// Whether no completion that is due has arrived for [`STALL`]. The time starts again then.
    pub(crate) fn stalls(&mut self, now: Instant) -> bool {
        let expects = self.send_queue.expects_completion();
        let oldest = expects.then(|| self.send_queue.oldest());
        match (self.oldest, oldest) {
            (Some((known, since)), Some(oldest)) if known == oldest => {
                let stalls = now.duration_since(since) >= STALL;
                if stalls {
                    self.oldest = Some((oldest, now));
                }
                stalls
            }
            (_, oldest) => {
                self.oldest = oldest.map(|oldest| (oldest, now));
                false
            }
        }
    }
}

/// How far a connection has come.
#[derive(Debug)]
pub(crate) enum ConnectionState {
    /// No queue pair was created yet.
    Unused,
    /// An endpoint that is not connected.
    Created(Box<Requester>),
    Connected(Box<Requester>),
    /// It failed or its PE is lost; nothing of it is outstanding.
    Failed(CompletionError),
}

/// A lane's side of the connection with one PE.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: ConnectionState,
    pub(crate) counters: Counters,
    pub(crate) regions: Regions,
    /// Whether the lane's list of connections with unsignaled requests has it.
    pub(crate) is_listed: bool,
    /// Whether a caller waits for those requests.
    pub(crate) wants_signal: bool,
    /// The parts of an interrupted connection that the next queue pair takes over.
    pub(super) kept: Option<Box<Kept>>,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            state: ConnectionState::Unused,
            counters: Counters::default(),
            regions: Regions::from(Vec::new()),
            is_listed: false,
            wants_signal: false,
            kept: None,
        }
    }

    /// The outcome of a post where there is no connection; `posted` operations were posted before.
    #[cold]
    pub(super) fn not_posted(&self, pe: Pe, posted: usize) -> Posted {
        match (&self.state, &self.kept) {
            (ConnectionState::Unused | ConnectionState::Created(_), Some(_)) => {
                Posted::full(posted)
            }
            _ => Posted::refused(posted, self.refusal(pe)),
        }
    }

    /// Outstanding requests that may have been performed or not.
    pub(super) fn in_doubt(&self) -> usize {
        match &self.state {
            ConnectionState::Connected(requester) => requester.in_doubt(),
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

    /// The endpoint's bytes. The first call creates the queue pair, of `capacity` requests.
    pub(crate) fn endpoint(
        &mut self,
        port_state: &PortState,
        pe: Pe,
        completions: &Arc<CompletionQueue>,
        capacity: u32,
    ) -> Result<Vec<u8>> {
        match &self.state {
            ConnectionState::Created(requester) | ConnectionState::Connected(requester) => {
                return Ok(requester.endpoint.to_bytes());
            }
            ConnectionState::Failed(cause) => return Err(cause.error(pe)),
            ConnectionState::Unused => {}
        }
        // They may say that the port has another address.
        port_state.events();
        let (port, here) = (&port_state.port, port_state.addressing());
        // A queue pair that is made again takes all that the one before it had outstanding.
        let kept = self.kept.as_ref().map_or(0, |kept| kept.requests.len());
        let sizes = QueueSizes {
            depth: capacity,
            least_depth: requests(LEAST_DEPTH).max(kept as u32).min(capacity),
            inline: port_state.settings.inline,
            max_pairs: port.limits.queue_pairs,
        };
        let domain = &port_state.protection_domain;
        let pair = QueuePair::new(domain, completions, completions, ReceiveSource::None, sizes)?;
        pair.prepare(port.number, here.partition)?;
        let (nonce, attempt) = match &self.kept {
            None => (wire::first_nonce(port_state.next_nonce()), 0),
            Some(kept) => (wire::next_nonce(kept.nonce), kept.attempt),
        };
        let endpoint = Endpoint {
            from: port_state.published.job.me.0,
            to: pe.0,
            nonce,
            queue_pair: pair.number(),
            sequence: (port_state.next_nonce() >> 40) as u32,
            reads: port.limits.reads_out.clamp(1, READS),
            ece: pair.ece(),
            port: here.address(),
        };
        let bytes = endpoint.to_bytes();
        self.state = ConnectionState::Created(Box::new(Requester {
            max_inline: pair.inline(),
            send_queue: SendQueue::new(pair.depth()),
            pair,
            last_read: None,
            last_atomic: None,
            // Its puts must not pass those of the queue pair before it, if a fence was between them.
            put_keys: match self.kept {
                None => PutKeys::Relaxed,
                Some(_) => PutKeys::Strict,
            },
            gpu_written: false,
            order: TargetOrder::KEPT,
            packet_bytes: 128 << port.mtu,
            description: String::new(),
            ever_acked: false,
            attempt,
            oldest: None,
            endpoint,
            reply: None,
        }));
        Ok(bytes)
    }

    /// Connects with the reply of the peer's domain. The same reply twice is no error.
    pub(crate) fn connect(&mut self, port_state: &PortState, pe: Pe, reply: &[u8]) -> Result<()> {
        let bad = |why: String| bad_peer_data("the answer to a lane's endpoint", pe, why);
        let reply = EndpointReply::from_bytes(reply).map_err(bad)?;
        let requester = match &mut self.state {
            ConnectionState::Created(requester) => requester,
            ConnectionState::Connected(requester) if requester.reply == Some(reply) => {
                return Ok(());
            }
            ConnectionState::Connected(_) => {
                return Err(bad("this lane is connected already".into()));
            }
            ConnectionState::Failed(cause) => return Err(cause.error(pe)),
            ConnectionState::Unused => {
                return Err(bad("this lane made no endpoint towards it".into()));
            }
        };
        if reply.nonce != requester.endpoint.nonce {
            return Err(bad("it answers another endpoint".into()));
        }
        if reply.mtu > requester.endpoint.port.mtu || reply.reads > requester.endpoint.reads {
            return Err(bad("it wants more than was offered".into()));
        }
        if port_state.port.attributes.ethernet && reply.route.is_none() {
            return Err(bad("on RoCE a route is needed".into()));
        }
        let path = Path {
            mtu: reply.mtu,
            route: reply.route,
        };
        let sequences = (requester.endpoint.sequence, reply.sequence);
        let attributes = port_state
            .connect_attributes(
                &path,
                reply.lid,
                reply.queue_pair,
                sequences,
                (reply.reads, 1),
            )
            .map_err(bad)?;
        // Those of the offered options that the responder takes.
        if let Some(ece) = reply.ece {
            requester.pair.take_ece(ece);
        }
        requester.pair.connect(&attributes)?;
        requester.packet_bytes = 128 << reply.mtu;
        requester.order = reply.order;
        if !port_state.has_atomics() {
            // This side's device has none to perform on it.
            requester.order.flush_word = None;
        }
        requester.description = attributes.description;
        requester.reply = Some(reply);
        let created = std::mem::replace(&mut self.state, ConnectionState::Unused);
        if let ConnectionState::Created(requester) = created {
            self.state = ConnectionState::Connected(requester);
        }
        Ok(())
    }

    /// Retires the requests up to `number`, which have completed: delivers the data that they fetched,
    /// and counts. Gives the number of them.
    #[inline]
    pub(crate) fn retire(&mut self, number: u32, pool: &mut BouncePool) -> u32 {
        let ConnectionState::Connected(requester) = &mut self.state else {
            return 0;
        };
        let count = requester.send_queue.count_up_to(number);
        requester.ever_acked |= count > 0;
        for _ in 0..count {
            let Some(request) = requester.send_queue.pop() else {
                break;
            };
            deliver(&request, pool);
            self.counters.completed += u64::from(request.is_last);
        }
        count
    }

    /// Destroys the queue pair, then releases the blocks of its requests. Gives the number of outstanding
    /// requests: the completion queue may still hold as many flushed completions.
    #[cold]
    pub(crate) fn fail(&mut self, cause: CompletionError, pool: &mut BouncePool) -> u32 {
        let kept = self.kept.take();
        let kept = kept.map_or(0, |kept| kept.discard(pool));
        kept + self.fail_requester(cause, pool)
    }

    fn fail_requester(&mut self, cause: CompletionError, pool: &mut BouncePool) -> u32 {
        let requester = match std::mem::replace(&mut self.state, ConnectionState::Failed(cause)) {
            ConnectionState::Created(requester) | ConnectionState::Connected(requester) => {
                requester
            }
            ConnectionState::Failed(first) => {
                self.state = ConnectionState::Failed(first);
                return 0;
            }
            ConnectionState::Unused => return 0,
        };
        let Requester {
            pair,
            mut send_queue,
            ..
        } = *requester;
        let outstanding = send_queue.outstanding();
        // First, so that it does nothing more even if it cannot be destroyed.
        if let Err(error) = pair.fail() {
            tracing::debug!(%error, "a queue pair that ends");
        }
        // It writes nothing after this.
        if let Err(error) = pair.destroy() {
            tracing::error!(%error, outstanding, "a queue pair could not be destroyed: what was \
                 outstanding may still access its local memory; the lane's blocks of it are leaked");
            return outstanding;
        }
        send_queue
            .drain()
            .filter_map(|request| request.block)
            .for_each(|block| pool.release(block));
        outstanding
    }
}

/// Delivers the data that a completed request has fetched, and releases its block.
#[inline]
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
