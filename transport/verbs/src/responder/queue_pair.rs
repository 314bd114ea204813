//! One queue pair of the responder, which serves a peer's lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use oxshmem_transport::{Pe, Result};

use crate::arena::Arena;
use crate::ibv::sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, rdma_t};
use crate::port::path;
use crate::port_state::{PortState, bad_peer_data};
use crate::remote_region::RemoteAddress;
use crate::responder::receives::{PairReceives, Ring};
use crate::wire::{Endpoint, EndpointReply, TargetOrder};

/// Replies that the inbox may have outstanding towards one lane, of one request each.
const MAX_REPLIES: u32 = 32;

/// The words of a reply: the value, and then the number.
pub(crate) type ReplyWords = [u64; 2];

/// Bytes of those.
const REPLY_BYTES: u32 = size_of::<ReplyWords>() as u32;

/// The use of a queue pair of a peer's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// All operations, or all but long transfers.
    Primary,
    /// Long transfers.
    Bulk,
}

/// A queue pair connected with a peer's lane. It also sends the replies to that lane's messages.
#[derive(Debug)]
pub(crate) struct ResponderQueuePair {
    pub(crate) pe: Pe,
    /// Unique, unlike the queue pair's number, which may be another's later: the requests of replies carry it.
    pub(crate) serial: u64,
    pub(crate) role: Role,
    // Before the words that it sends, and the buffers that it fills.
    pub(crate) pair: QueuePair,
    /// Its receives, if they are its own.
    pub(crate) ring: Option<Arc<Ring>>,
    /// The words of replies, where requests cannot carry them inline.
    words: Option<Arc<Arena>>,
    /// The number of replies posted. The inbox alone uses this and `outstanding`, and there is one inbox.
    replies: AtomicU32,
    /// Replies that are outstanding.
    outstanding: AtomicU32,
    ended: AtomicBool,
    /// Whether its lane said that it sends nothing more.
    is_disconnected: AtomicBool,
    pub(crate) endpoint: Endpoint,
    pub(crate) reply: EndpointReply,
}

impl ResponderQueuePair {
    /// Connected with `endpoint`.
    pub(crate) fn new(
        port_state: &PortState,
        send: &Arc<CompletionQueue>,
        receives: PairReceives,
        (pe, endpoint): (Pe, Endpoint),
        (serial, role): (u64, Role),
        order: TargetOrder,
    ) -> Result<ResponderQueuePair> {
        let bad = |why| bad_peer_data("the endpoint of a lane", pe, why);
        let port = &port_state.port;
        let here = port_state.addressing();
        let path = path(&here.address(), &endpoint.port, port_state.route_needed()).map_err(bad)?;
        let sizes = QueueSizes {
            depth: MAX_REPLIES,
            least_depth: MAX_REPLIES,
            inline: port_state.settings.inline.min(REPLY_BYTES),
            max_pairs: port.limits.queue_pairs,
        };
        let mut pair = QueuePair::new(
            &port_state.protection_domain,
            send,
            receives.completions(),
            receives.source(),
            sizes,
        )?;
        pair.keep(receives.memory());
        port_state.forget_drained(pair.number());
        let words = match pair.inline() {
            REPLY_BYTES.. => None,
            _ => {
                let bytes = (MAX_REPLIES * REPLY_BYTES) as usize;
                Some(Arc::new(Arena::new(&port_state.protection_domain, bytes)?))
            }
        };
        if let Some(words) = &words {
            pair.keep(Arc::clone(words) as _);
        }
        let nonce = port_state.next_nonce();
        let mut reply = EndpointReply {
            nonce: endpoint.nonce,
            rail: port_state.rail,
            queue_pair: pair.number(),
            sequence: (nonce >> 40) as u32,
            reads: endpoint.reads.min(port.limits.reads_in).max(1),
            mtu: path.mtu,
            lid: here.lid,
            route: path.route.map(|(ours, theirs)| (theirs, ours)),
            order,
            ece: None,
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
        pair.prepare(port.number, here.partition)?;
        receives.fill(&pair)?;
        let takes = endpoint.ece.is_some_and(|ece| pair.take_ece(ece));
        pair.connect(&attributes)?;
        port_state.check_order(pe, &pair)?;
        // The device may have taken only some of them.
        reply.ece = pair.ece().filter(|_| takes);
        Ok(ResponderQueuePair {
            pe,
            serial,
            role,
            pair,
            ring: receives.into_ring(),
            words,
            replies: AtomicU32::new(0),
            outstanding: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            is_disconnected: AtomicBool::new(false),
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

    /// Notes that its lane sends nothing more.
    pub(crate) fn note_disconnect(&self) {
        // Relaxed, here and below: only the device's use of buffers depends on it.
        self.is_disconnected.store(true, Ordering::Relaxed);
    }

    /// Whether the device may have begun to fill a shared buffer for it when it was stopped.
    pub(crate) fn may_hold_buffers(&self) -> bool {
        self.ring.is_none() && !self.is_disconnected.load(Ordering::Relaxed)
    }

    /// Replies that are outstanding.
    pub(crate) fn outstanding(&self) -> u32 {
        // Relaxed, here and below: one inbox at a time uses the counters, and the claim of the inbox hands
        // them on.
        self.outstanding.load(Ordering::Relaxed)
    }

    /// Whether another reply may be posted.
    pub(crate) fn has_credit(&self) -> bool {
        self.outstanding() < MAX_REPLIES
    }

    /// Notes that the oldest outstanding reply has completed.
    pub(crate) fn reply_completed(&self) {
        let left = self.outstanding().saturating_sub(1);
        self.outstanding.store(left, Ordering::Relaxed);
    }

    /// Posts a reply, whose words go to an address at a multiple of their size. One write carries both: a packet and a
    /// line of memory hold it, so that they arrive together, in whatever order a device places writes. There must be
    /// [credit](Self::has_credit). Gives whether the device took it.
    pub(crate) fn post(&self, to: RemoteAddress, words: ReplyWords) -> bool {
        let turn = self.replies.load(Ordering::Relaxed);
        self.replies.store(turn.wrapping_add(1), Ordering::Relaxed);
        let (from, lkey, inline) = match &self.words {
            None => (words.as_ptr(), 0, flags::IBV_SEND_INLINE.0),
            Some(arena) => {
                let slot = (turn % MAX_REPLIES) as usize;
                let at = arena.at(slot * REPLY_BYTES as usize).cast::<u64>();
                // SAFETY: two aligned words of the arena. The reply that used them last has completed:
                // replies complete in order, and at most as many are outstanding as there are slots.
                unsafe { at.cast::<ReplyWords>().write(words) };
                (at.cast_const(), arena.lkey(), 0)
            }
        };
        let mut sge = ibv_sge {
            addr: from.addr() as u64,
            length: REPLY_BYTES,
            lkey,
        };
        // SAFETY: integers and null pointers, for which zero is a value.
        let mut request: ibv_send_wr = unsafe { std::mem::zeroed() };
        request.wr_id = self.serial;
        request.sg_list = &raw mut sge;
        request.num_sge = 1;
        request.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
        request.send_flags = inline | flags::IBV_SEND_SIGNALED.0;
        request.wr.rdma = rdma_t {
            remote_addr: to.addr,
            rkey: to.strict_rkey,
        };
        // SAFETY: a sound request, whose data is copied by the call if it is inline, else lies in
        // registered memory that lives as long as the queue pair and is left alone until it has
        // completed.
        let posted = unsafe { self.pair.post(&raw mut request) }.is_ok();
        if posted {
            let now = self.outstanding() + 1;
            self.outstanding.store(now, Ordering::Relaxed);
        }
        posted
    }
}
