//! One queue pair of the responder, which serves a peer's lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use oxshmem_transport::{Pe, Result};

use crate::arena::Arena;
use crate::ibv::sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, SharedReceiveQueue, rdma_t};
use crate::port::path;
use crate::port_state::{PortState, bad_peer_data};
use crate::remote_region::RemoteAddress;
use crate::wire::{Endpoint, EndpointReply};

/// Requests that the inbox may have outstanding towards one lane: two for each reply.
const REPLY_REQUESTS: u32 = 32;

/// Bytes of a reply's two words.
const WORDS: usize = 16;

/// A queue pair connected with a peer's lane. It also sends the replies to that lane's messages.
#[derive(Debug)]
pub(crate) struct ResponderQueuePair {
    pub(crate) pe: Pe,
    /// Unique, unlike the queue pair's number, which may be another's later: the requests of replies carry it.
    pub(crate) serial: u64,
    // Before the words that it sends.
    pub(crate) pair: QueuePair,
    /// The words of replies, where requests cannot carry them inline.
    words: Option<Arena>,
    /// The number of replies posted. The inbox alone uses this and `outstanding`, and there is one inbox.
    replies: AtomicU32,
    /// Requests of replies that are outstanding.
    outstanding: AtomicU32,
    ended: AtomicBool,
    pub(crate) endpoint: Endpoint,
    pub(crate) reply: EndpointReply,
}

impl ResponderQueuePair {
    /// Connected with `endpoint`.
    pub(crate) fn new(
        port_state: &PortState,
        (send, receive): (&Arc<CompletionQueue>, &Arc<CompletionQueue>),
        buffers: &Arc<SharedReceiveQueue>,
        pe: Pe,
        endpoint: Endpoint,
        serial: u64,
    ) -> Result<ResponderQueuePair> {
        let bad = |why| bad_peer_data("the endpoint of a lane", pe, why);
        let port = &port_state.port;
        let path = path(&port.address(), &endpoint.port, port_state.route_needed()).map_err(bad)?;
        let sizes = QueueSizes {
            depth: REPLY_REQUESTS,
            inline: port_state.settings.inline.min(8),
            max_pairs: port.limits.queue_pairs,
        };
        let pair = QueuePair::new(
            &port_state.protection_domain,
            send,
            receive,
            Some(buffers),
            sizes,
        )?;
        let words = match pair.inline() {
            8.. => None,
            _ => Some(Arena::new(
                &port_state.protection_domain,
                REPLY_REQUESTS as usize / 2 * WORDS,
            )?),
        };
        let nonce = port_state.next_nonce();
        let reply = EndpointReply {
            nonce: endpoint.nonce,
            queue_pair: pair.number(),
            sequence: (nonce >> 40) as u32,
            reads: endpoint.reads.min(port.limits.reads_in).max(1),
            mtu: path.mtu,
            lid: port.attributes.lid,
            route: path.route.map(|(ours, theirs)| (theirs, ours)),
        };
        let attributes = port_state
            .connect_attributes(
                &path,
                endpoint.port.lid,
                endpoint.queue_pair,
                (reply.sequence, endpoint.sequence),
                (1, reply.reads),
            )
            .map_err(bad)?;
        pair.prepare(port.number, port.partition)?;
        pair.connect(&attributes)?;
        Ok(ResponderQueuePair {
            pe,
            serial,
            pair,
            words,
            replies: AtomicU32::new(0),
            outstanding: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            endpoint,
            reply,
        })
    }

    /// Puts it into the error state: it receives and sends nothing from now on, and its peer's requests fail.
    pub(crate) fn stop(&self) {
        // Release: a reader that sees it ended leaves it alone.
        self.ended.store(true, Ordering::Release);
        if let Err(error) = self.pair.fail() {
            let pe = self.pe;
            tracing::error!(%pe, %error, "a queue pair cannot be stopped; it ends when it is dropped");
        }
    }

    /// Whether it was [stopped](Self::stop).
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Requests of replies that are outstanding.
    pub(crate) fn outstanding(&self) -> u32 {
        // Relaxed, here and below: one inbox at a time uses the counters, and the claim of the inbox hands
        // them on.
        self.outstanding.load(Ordering::Relaxed)
    }

    /// Whether another reply may be posted.
    pub(crate) fn has_credit(&self) -> bool {
        self.outstanding() + 2 <= REPLY_REQUESTS
    }

    /// Notes that the oldest outstanding reply has completed.
    pub(crate) fn reply_completed(&self) {
        let left = self.outstanding().saturating_sub(2);
        self.outstanding.store(left, Ordering::Relaxed);
    }

    /// Posts both writes of a reply, each an address and the word for it, with one doorbell. There must
    /// be [credit](Self::has_credit). Gives whether the device took them.
    pub(crate) fn post(&self, writes: [(RemoteAddress, u64); 2]) -> bool {
        let values = writes.map(|(_, word)| word);
        let turn = self.replies.load(Ordering::Relaxed);
        self.replies.store(turn.wrapping_add(1), Ordering::Relaxed);
        let (words, lkey, inline) = match &self.words {
            None => (values.as_ptr(), 0, flags::IBV_SEND_INLINE.0),
            Some(arena) => {
                let slot = turn % (REPLY_REQUESTS / 2);
                let at = arena.at(slot as usize * WORDS).cast::<u64>();
                // SAFETY: two aligned words of the arena. The reply that used them last has completed:
                // replies complete in order, and at most as many are outstanding as there are slots.
                unsafe { at.cast::<[u64; 2]>().write(values) };
                (at.cast_const(), arena.lkey(), 0)
            }
        };
        let mut sges = [ibv_sge {
            addr: 0,
            length: 8,
            lkey,
        }; 2];
        // SAFETY: integers and null pointers, for which zero is a value.
        let mut requests: [ibv_send_wr; 2] = unsafe { std::mem::zeroed() };
        for (at, (remote, _)) in writes.iter().enumerate() {
            sges[at].addr = words.wrapping_add(at).addr() as u64;
            let request = &mut requests[at];
            request.wr_id = self.serial;
            request.sg_list = &raw mut sges[at];
            request.num_sge = 1;
            request.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
            request.send_flags = inline;
            request.wr.rdma = rdma_t {
                remote_addr: remote.addr,
                rkey: remote.strict_rkey,
            };
        }
        requests[1].send_flags |= flags::IBV_SEND_SIGNALED.0;
        requests[0].next = &raw mut requests[1];
        // SAFETY: two sound requests, whose data is copied by the call if it is inline, else lies in
        // registered memory that lives as long as the queue pair and is left alone until they have
        // completed.
        let posted = unsafe { self.pair.post(&raw mut requests[0]) }.is_ok();
        if posted {
            let now = self.outstanding() + 2;
            self.outstanding.store(now, Ordering::Relaxed);
        }
        posted
    }
}
