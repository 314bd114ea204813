//! One queue pair of a lane, with its send queue: the requester's side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem_transport::{Pe, Result};

use super::bounce_pool::BouncePool;
use super::put_keys::PutKeys;
use super::send_queue::SendQueue;
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, ReceiveSource};
use crate::port::Path;
use crate::port_state::{LEAST_DEPTH, PortState, bad_peer_data, requests};
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
    pub(super) endpoint: Endpoint,
    pub(super) reply: Option<EndpointReply>,
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
    pub(super) port_state: &'a PortState,
    pub(super) pe: Pe,
    pub(super) completions: &'a Arc<CompletionQueue>,
    /// Requests of each.
    pub(super) capacity: u32,
}

impl Making<'_> {
    /// Creates a queue pair; `kept` requests are to find room there.
    pub(super) fn requester(
        &self,
        role: Role,
        before: Option<Predecessor>,
        kept: usize,
    ) -> Result<Requester> {
        let port_state = self.port_state;
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
        let (domain, completions) = (&port_state.protection_domain, self.completions);
        let pair = QueuePair::new(domain, completions, completions, ReceiveSource::None, sizes)?;
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
            port: here.address(),
        };
        Ok(Requester {
            max_inline: match role {
                Role::Primary => pair.inline(),
                Role::Bulk => 0,
            },
            send_queue: SendQueue::new(pair.depth()),
            pair,
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
            reply: None,
        })
    }
}

/// Destroys a queue pair, with so many requests outstanding. Gives whether they access local memory no more.
fn destroyed(pair: QueuePair, outstanding: u32) -> bool {
    // First, so that it does nothing more even if it cannot be destroyed.
    if let Err(error) = pair.fail() {
        tracing::debug!(%error, "a queue pair that ends");
    }
    // It writes nothing after this.
    let destroyed = pair.destroy();
    if let Err(error) = &destroyed {
        tracing::error!(%error, outstanding, "a queue pair could not be destroyed: what was \
             outstanding may still access its local memory; the lane's blocks of it are leaked");
    }
    destroyed.is_ok()
}

impl Requester {
    /// Whether this reply, or some part of it, is to another endpoint or wants more than was offered.
    pub(super) fn check(
        &self,
        port_state: &PortState,
        reply: &EndpointReply,
    ) -> Result<(), String> {
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
    pub(super) fn connect(
        &mut self,
        port_state: &PortState,
        pe: Pe,
        reply: EndpointReply,
    ) -> Result<()> {
        let bad = |why: String| bad_peer_data("the answer to a lane's endpoint", pe, why);
        self.check(port_state, &reply).map_err(bad)?;
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
        if !port_state.has_atomics() {
            // This side's device has none to perform on it.
            self.order.flush_word = None;
        }
        self.description = attributes.description;
        self.reply = Some(reply);
        Ok(())
    }

    /// Destroys the queue pair, then releases the blocks of its requests. Gives the number of those outstanding.
    pub(super) fn end(self, pool: &mut BouncePool) -> u32 {
        let Requester {
            mut pair,
            mut send_queue,
            ..
        } = self;
        pair.keep(pool.memory());
        let outstanding = send_queue.outstanding();
        if destroyed(pair, outstanding) {
            let blocks = send_queue.drain().filter_map(|request| request.block);
            blocks.for_each(|block| pool.release(block));
        }
        outstanding
    }

    /// Destroys the queue pair, whose requests were taken. Gives whether they access local memory no more.
    pub(super) fn destroy(self) -> bool {
        let outstanding = self.send_queue.outstanding();
        destroyed(self.pair, outstanding)
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
