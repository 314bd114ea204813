//! One queue pair that answers a peer's lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use oxshmem_transport::{Pe, Result};

use crate::domain::{Opened, bad};
use crate::ibv::sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};
use crate::ibv::{CompletionQueue, QueuePair, QueueSizes, SharedReceiveQueue, rdma_t};
use crate::port::path;
use crate::region::Arena;
use crate::shared::Far;
use crate::wire::{Answer, Endpoint};

/// Requests that the inbox may have outstanding towards one lane: two for each answer.
const ANSWER_REQUESTS: u32 = 32;

/// Bytes of an answer's two words.
const WORDS: usize = 16;

#[derive(Debug)]
pub(crate) struct PassivePair {
    pub(crate) pe: Pe,
    /// Never another's, as the queue pair's number may be: answers' requests carry it.
    pub(crate) serial: u64,
    // Before the words that it sends.
    pub(crate) pair: QueuePair,
    /// The words of answers, where requests cannot carry them.
    words: Option<Arena>,
    /// Answers posted, and requests of them outstanding. The inbox's alone, of which there is one.
    answers: AtomicU32,
    outstanding: AtomicU32,
    ended: AtomicBool,
    pub(crate) endpoint: Endpoint,
    pub(crate) answer: Answer,
}

impl PassivePair {
    /// Connected with `endpoint`.
    pub(crate) fn new(
        opened: &Opened,
        (send, receive): (&Arc<CompletionQueue>, &Arc<CompletionQueue>),
        buffers: &Arc<SharedReceiveQueue>,
        pe: Pe,
        endpoint: Endpoint,
        serial: u64,
    ) -> Result<PassivePair> {
        let bad = |why| bad("the endpoint of a lane", pe, why);
        let port = &opened.port;
        let path = path(&port.place(), &endpoint.place, opened.route_needed()).map_err(bad)?;
        let sizes = QueueSizes {
            depth: ANSWER_REQUESTS,
            inline: opened.settings.inline.min(8),
            most_pairs: port.limits.queue_pairs,
        };
        let pair = QueuePair::new(&opened.domain, send, receive, Some(buffers), sizes)?;
        let words = match pair.inline() {
            8.. => None,
            _ => Some(Arena::new(
                &opened.domain,
                ANSWER_REQUESTS as usize / 2 * WORDS,
            )?),
        };
        let nonce = opened.nonce();
        let answer = Answer {
            nonce: endpoint.nonce,
            queue_pair: pair.number(),
            sequence: (nonce >> 40) as u32,
            reads: endpoint.reads.min(port.limits.reads_in).max(1),
            mtu: path.mtu,
            lid: port.state.lid,
            route: path.route.map(|(ours, theirs)| (theirs, ours)),
        };
        let connect = opened
            .connection(
                &path,
                endpoint.place.lid,
                endpoint.queue_pair,
                (answer.sequence, endpoint.sequence),
                (1, answer.reads),
            )
            .map_err(bad)?;
        pair.prepare(port.number, port.partition)?;
        pair.connect(&connect)?;
        Ok(PassivePair {
            pe,
            serial,
            pair,
            words,
            answers: AtomicU32::new(0),
            outstanding: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            endpoint,
            answer,
        })
    }

    /// Has it take and send nothing from now on: its peer's requests fail.
    pub(crate) fn stop(&self) {
        // Release: who sees it ended leaves it alone.
        self.ended.store(true, Ordering::Release);
        if let Err(error) = self.pair.fail() {
            let pe = self.pe;
            tracing::error!(%pe, %error, "a queue pair cannot be stopped; it ends when it is dropped");
        }
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Requests of answers outstanding.
    pub(crate) fn outstanding(&self) -> u32 {
        // Relaxed, here and below: one inbox at a time uses the counters, which hands them on with
        // the right to be it.
        self.outstanding.load(Ordering::Relaxed)
    }

    /// Whether another answer may be posted.
    pub(crate) fn has_room(&self) -> bool {
        self.outstanding() + 2 <= ANSWER_REQUESTS
    }

    /// Notes that the oldest answer outstanding is through.
    pub(crate) fn answered(&self) {
        let left = self.outstanding().saturating_sub(2);
        self.outstanding.store(left, Ordering::Relaxed);
    }

    /// Posts both writes of an answer, each a place and what goes there, with one doorbell. There must
    /// be [room](Self::has_room). Whether it could.
    pub(crate) fn post(&self, writes: [(Far, u64); 2]) -> bool {
        let carried = writes.map(|(_, word)| word);
        let turn = self.answers.load(Ordering::Relaxed);
        self.answers.store(turn.wrapping_add(1), Ordering::Relaxed);
        let (words, lkey, inline) = match &self.words {
            None => (carried.as_ptr(), 0, flags::IBV_SEND_INLINE.0),
            Some(arena) => {
                let slot = turn % (ANSWER_REQUESTS / 2);
                let at = arena.at(slot as usize * WORDS).cast::<u64>();
                // SAFETY: two aligned words of the arena. The answer that used them last is through:
                // answers are through in order, and at most as many are outstanding as there are
                // slots.
                unsafe { at.cast::<[u64; 2]>().write(carried) };
                (at.cast_const(), arena.lkey(), 0)
            }
        };
        let mut pieces = [ibv_sge {
            addr: 0,
            length: 8,
            lkey,
        }; 2];
        // SAFETY: integers and null pointers, for which zero is a value.
        let mut requests: [ibv_send_wr; 2] = unsafe { std::mem::zeroed() };
        for (at, (far, _)) in writes.iter().enumerate() {
            pieces[at].addr = words.wrapping_add(at).addr() as u64;
            let request = &mut requests[at];
            request.wr_id = self.serial;
            request.sg_list = &raw mut pieces[at];
            request.num_sge = 1;
            request.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
            request.send_flags = inline;
            request.wr.rdma = rdma_t {
                remote_addr: far.addr,
                rkey: far.strict,
            };
        }
        requests[1].send_flags |= flags::IBV_SEND_SIGNALED.0;
        requests[0].next = &raw mut requests[1];
        // SAFETY: two sound requests, whose data is copied by the call if it is inline, else lies in
        // registered memory that lives as long as the queue pair and is left alone until they are
        // through.
        let posted = unsafe { self.pair.post(&raw mut requests[0]) }.is_ok();
        if posted {
            let now = self.outstanding() + 2;
            self.outstanding.store(now, Ordering::Relaxed);
        }
        posted
    }
}
