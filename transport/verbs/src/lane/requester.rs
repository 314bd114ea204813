//! One queue pair of a lane, with its send queue: the requester's side.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Pe, Result};

use super::bounce_pool::BouncePool;
use super::nics::{CompletionRoom, LaneNic, further_at};
use super::put_keys::PutKeys;
use super::send_queue::{SendQueue, Sent};
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, ReceiveSource};
use crate::pair_watch::PairWatch;
use crate::port::Path;
use crate::port_state::{LEAST_DEPTH, PortState, bad_peer_data, requests};
use crate::rails::Rails;
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
    /// The device's word that it has failed.
    pub(super) watch: PairWatch,
    /// The number of its NIC.
    pub(crate) rail: u8,
    /// The number of the peer's NIC.
    pub(crate) peer_rail: u8,
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
    /// Whether a message was sent, whose reply may be on its way.
    pub(crate) has_sent_messages: bool,
    /// Whether this side's device adds, compares and swaps.
    pub(crate) has_atomics: bool,
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
    pub(super) endpoint: Endpoint,
}

/// The two NICs of a connected queue pair, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NicPair {
    pub(crate) here: u8,
    pub(crate) there: u8,
}

/// The use of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// All operations, or all but long transfers.
    Primary,
    /// Long transfers, whose data never goes with the request.
    Bulk,
}

/// The endpoint that a queue pair takes over from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    pub(super) nonce: u64,
    pub(super) attempt: u32,
}

/// The making of the queue pairs of one connection, with all that they have in common.
pub(super) struct Making<'a> {
    pub(super) rails: &'a Rails,
    pub(super) pe: Pe,
    /// The completions of requests at the first NIC.
    pub(super) first: &'a CompletionRoom,
    /// The further NICs that the lane uses.
    pub(super) further: &'a [LaneNic],
    /// Requests of each.
    pub(super) capacity: u32,
    /// The lane's blocks, which each keeps.
    pub(super) blocks: Arc<dyn Any + Send + Sync>,
}

impl Making<'_> {
    /// The NIC of this number, if the lane uses it.
    pub(super) fn nic(&self, rail: u8) -> Option<(&PortState, &Arc<CompletionQueue>)> {
        if rail == 0 {
            return Some((&*self.rails.primary, &self.first.queue));
        }
        let nic = further_at(self.further, rail)?;
        Some((&*nic.port_state, &nic.room.queue))
    }

    /// Creates a primary queue pair at a NIC; `kept` requests are to find room there.
    pub(super) fn primary(
        &self,
        rail: u8,
        before: Option<Predecessor>,
        kept: usize,
    ) -> Result<Requester> {
        let nic = self.nic(rail);
        let nic = nic.unwrap_or((&*self.rails.primary, &self.first.queue));
        self.requester(nic, Role::Primary, before, kept)
    }

    /// Creates the bulk queue pair at this place. None where its NIC cannot be used: the first one is left out only if it is
    /// lost, or if the connection is made again.
    pub(super) fn bulk(&self, at: usize, before: Option<Predecessor>) -> Result<Option<Requester>> {
        let rail = self.rails.of_bulk_queue(at);
        let Some(nic) = self.nic(rail) else {
            return Ok(None);
        };
        let (port_state, _) = nic;
        port_state.events();
        let is_usable = match (rail, before) {
            (0, None) => port_state.is_alive(),
            _ => port_state.is_usable(),
        };
        if !is_usable {
            return Ok(None);
        }
        let made = self.requester(nic, Role::Bulk, before, 0);
        if rail == 0 {
            return made.map(Some);
        }
        let made = made.inspect_err(|error| {
            let (pe, port) = (self.pe, port_state.port.name());
            tracing::warn!(%pe, %port, %error, "a NIC is not used with a PE");
        });
        Ok(made.ok())
    }

    fn requester(
        &self,
        (port_state, completions): (&PortState, &Arc<CompletionQueue>),
        role: Role,
        before: Option<Predecessor>,
        kept: usize,
    ) -> Result<Requester> {
        let (port, here) = (&port_state.port, port_state.addressing());
        let sizes = QueueSizes {
            depth: self.capacity,
            least_depth: requests(LEAST_DEPTH).max(kept as u32).min(self.capacity),
            inline: match role {
                Role::Primary => port_state.settings.inline,
                Role::Bulk => 0,
            },
            max_pairs: port.limits.queue_pairs,
        };
        let domain = &port_state.protection_domain;
        let mut pair =
            QueuePair::new(domain, completions, completions, ReceiveSource::None, sizes)?;
        pair.keep(Arc::clone(&self.blocks));
        pair.prepare(port.number, here.partition)?;
        let (nonce, attempt) = match before {
            None => (wire::first_nonce(port_state.next_nonce()), 0),
            Some(before) => (wire::next_nonce(before.nonce), before.attempt),
        };
        let endpoint = Endpoint {
            from: port_state.published.job.me.0,
            to: self.pe.0,
            nonce,
            queue_pair: pair.number(),
            sequence: (port_state.next_nonce() >> 40) as u32,
            reads: port.limits.reads_out.clamp(1, READS),
            ece: pair.ece(),
            rail: port_state.rail,
            port: here.address(),
            networks: port_state.networks.clone(),
        };
        Ok(Requester {
            max_inline: match role {
                Role::Primary => pair.inline(),
                Role::Bulk => 0,
            },
            send_queue: SendQueue::new(pair.depth()),
            watch: port_state.watched_pairs.watch(pair.number()),
            pair,
            rail: port_state.rail,
            peer_rail: 0,
            has_sent_messages: false,
            has_atomics: port_state.has_atomics(),
            last_read: None,
            last_atomic: None,
            // Puts must not pass those of the queue pair before it, if a fence was between them.
            put_keys: match before {
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
        })
    }
}

/// Whether a call failed because the device is gone: Linux then has ended all that it had, and answers so to each call.
fn is_gone(error: &Error) -> bool {
    let Error::Os { source, .. } = error else {
        return false;
    };
    matches!(source.raw_os_error(), Some(libc::EIO | libc::ENODEV))
}

/// Destroys a queue pair with these requests outstanding. Gives whether it has ended: else its completions may still come, and the
/// lane's blocks of it are leaked. Ends the process if it can be stopped in no way, and may access memory that is not the
/// lane's. `sink`: where reads go whose data nobody wants.
fn destroyed(pair: QueuePair, sent: impl Iterator<Item = Sent>, sink: *mut u8) -> bool {
    // First, so that it does nothing more even if it cannot be destroyed.
    let stopped = pair.fail();
    // It writes nothing after this.
    let (stopped, error) = match (stopped, pair.destroy()) {
        (_, Ok(())) => return true,
        (Err(first), Err(error)) if is_gone(&first) && is_gone(&error) => {
            tracing::warn!(%error, "a queue pair of a device that is gone");
            return true;
        }
        (stopped, Err(error)) => (stopped.is_ok(), error),
    };
    let in_place = sent.filter(|sent| sent.is_in_place(sink)).count();
    tracing::error!(%error, in_place, "a queue pair could not be destroyed: the lane's blocks of it are leaked");
    if !stopped && in_place > 0 {
        tracing::error!(
            "nor can it be stopped, so that it may access memory of the program that is used again: \
             the process ends; see whether the device has failed"
        );
        std::process::abort();
    }
    false
}

impl Requester {
    /// Whether this reply, or some part of it, is to another endpoint or wants more than was offered.
    pub(super) fn check(&self, rails: &Rails, reply: &EndpointReply) -> Result<(), String> {
        let port_state = rails.get(self.rail).unwrap_or(&rails.primary);
        if reply.nonce != self.endpoint.nonce {
            return Err("it answers another endpoint".into());
        }
        if reply.mtu > self.endpoint.port.mtu || reply.reads > self.endpoint.reads {
            return Err("it wants more than was offered".into());
        }
        if port_state.port.attributes.ethernet && reply.route.is_none() {
            return Err("on RoCE a route is needed".into());
        }
        Ok(())
    }

    /// Connects one queue pair by the reply to its endpoint.
    pub(super) fn connect(&mut self, rails: &Rails, pe: Pe, reply: EndpointReply) -> Result<()> {
        let port_state = rails.get(self.rail).unwrap_or(&rails.primary);
        let bad = |why: String| bad_peer_data("the answer to a lane's endpoint", pe, why);
        self.check(rails, &reply).map_err(bad)?;
        let path = Path {
            mtu: reply.mtu,
            route: reply.route,
        };
        let sequences = (self.endpoint.sequence, reply.sequence);
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
            self.pair.take_ece(ece);
        }
        self.pair.connect(&attributes)?;
        self.packet_bytes = 128 << reply.mtu;
        self.order = reply.order;
        if !self.has_atomics {
            // This side's device has none to perform on it.
            self.order.flush_word = None;
        }
        self.description = attributes.description;
        self.peer_rail = reply.rail;
        Ok(())
    }

    /// Destroys the queue pair, then releases the blocks of its requests. Gives the number of completions that the queue may
    /// still hold of it.
    pub(super) fn end(self, pool: &mut BouncePool) -> u32 {
        let Requester {
            pair,
            mut send_queue,
            ..
        } = self;
        let outstanding = send_queue.outstanding();
        if !destroyed(pair, send_queue.iter(), pool.sink()) {
            return 0;
        }
        let blocks = send_queue.drain().filter_map(|request| request.block);
        blocks.for_each(|block| pool.release(block));
        outstanding
    }

    /// Destroys the queue pair, for others to carry out its requests: gives them in order; none if it could not be destroyed.
    pub(super) fn take_requests(mut self, sink: *mut u8) -> Option<Vec<Sent>> {
        let sent = self.send_queue.take_all();
        destroyed(self.pair, sent.iter().copied(), sink).then_some(sent)
    }

    /// Its NICs.
    pub(super) fn nics(&self) -> NicPair {
        NicPair {
            here: self.rail,
            there: self.peer_rail,
        }
    }

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
