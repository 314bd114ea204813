//! The error state of queue pairs: what is outstanding completes as flushed, and peers hear nothing more.

use std::sync::Arc;

use crate::abi::sys::{ibv_event_type, ibv_qp_state, ibv_wc_opcode, ibv_wc_status, ibv_wr_opcode};
use crate::completion::Entry;
use crate::pair::Sending;
use crate::send_queue::Request;
use crate::world::{Element, Timer, World, empty_wc};

const SIGNALED: u32 = 2;

/// The opcode of a request's completion.
fn opcode(request: &Request) -> ibv_wc_opcode::Type {
    match request.opcode {
        ibv_wr_opcode::IBV_WR_SEND | ibv_wr_opcode::IBV_WR_SEND_WITH_IMM => {
            ibv_wc_opcode::IBV_WC_SEND
        }
        ibv_wr_opcode::IBV_WR_RDMA_READ => ibv_wc_opcode::IBV_WC_RDMA_READ,
        ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP => ibv_wc_opcode::IBV_WC_COMP_SWAP,
        ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD => ibv_wc_opcode::IBV_WC_FETCH_ADD,
        _ => ibv_wc_opcode::IBV_WC_RDMA_WRITE,
    }
}

/// An error code of a vendor, which programs may print and not understand.
const VENDOR_ERROR: u32 = 0x5f;

impl World {
    /// Completes a request that has left its queue, if it is to be told of.
    pub(crate) fn finish(&mut self, number: u32, done: &Sending, status: ibv_wc_status::Type) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let ok = status == ibv_wc_status::IBV_WC_SUCCESS;
        if ok && !pair.send.signal_all && done.request.flags & SIGNALED == 0 {
            return;
        }
        let mut wc = empty_wc();
        (wc.wr_id, wc.status, wc.qp_num) = (done.request.id, status, number);
        if ok {
            wc.opcode = opcode(&done.request);
            wc.byte_len = done.request.len() as u32;
        } else {
            // Other fields mean nothing after an error: programs that read them get nonsense.
            (wc.opcode, wc.byte_len, wc.wc_flags) = (0x5a5a, 0xdead_beef, !0);
            wc.vendor_err = VENDOR_ERROR;
        }
        let entry = Entry {
            wc,
            frees: Some((Arc::clone(&pair.send), done.request.index)),
            clock: done.clock,
            solicited: false,
        };
        let (card, queue) = (pair.card, Arc::clone(&pair.send_completions));
        self.complete(card, &queue, entry);
    }

    /// Completes a receive buffer with an error.
    pub(crate) fn fail_buffer(&mut self, number: u32, id: u64, status: ibv_wc_status::Type) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let mut wc = empty_wc();
        (wc.wr_id, wc.status, wc.qp_num) = (id, status, number);
        (wc.opcode, wc.byte_len, wc.wc_flags) = (0x5a5a, 0xdead_beef, !0);
        wc.vendor_err = VENDOR_ERROR;
        let entry = Entry {
            wc,
            frees: None,
            clock: 0,
            solicited: false,
        };
        let (card, queue) = (pair.card, Arc::clone(&pair.receive_completions));
        self.complete(card, &queue, entry);
    }

    /// Puts a queue pair into the error state, and flushes it. `event`: by which the program is told.
    pub(crate) fn fail(&mut self, number: u32, event: Option<ibv_event_type::Type>) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let entered = pair.state != ibv_qp_state::IBV_QPS_ERR;
        pair.state = ibv_qp_state::IBV_QPS_ERR;
        pair.attr.qp_state = pair.state;
        let (card, shared) = (pair.card, pair.shared.is_some());
        let late = self.late_flush.filter(|_| shared && entered);
        if late.is_some() {
            pair.answer.flushes_late = true;
            if pair.answer.buffer.is_none() {
                let taken = pair.receive.take();
                pair.answer.buffer = taken.map(|(buffer, _)| Arc::new(buffer));
            }
        }
        // Posts are taken, and flushed.
        pair.send.accept(None);
        if !shared {
            pair.receive.flush_all();
        }
        self.flush(number);
        if !entered {
            return;
        }
        if let Some(kind) = event {
            self.event(card, kind, Element::Pair(number));
        }
        match late {
            Some(late) => self.after(late, Timer::Flush(number)),
            None if shared => self.last_buffer(card, number),
            None => {}
        }
    }

    /// Tells that a queue pair has completed the last of the shared buffers that it took.
    fn last_buffer(&mut self, card: u32, number: u32) {
        let last = ibv_event_type::IBV_EVENT_QP_LAST_WQE_REACHED;
        self.event(card, last, Element::Pair(number));
    }

    /// Flushes the buffer that was left, and tells of that. The buffer of a queue pair that is destroyed before is lost.
    pub(crate) fn flush_late(&mut self, number: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let card = pair.card;
        if std::mem::take(&mut pair.answer.flushes_late) {
            self.flush(number);
            self.last_buffer(card, number);
        }
    }

    /// Completes all that is outstanding on a queue pair in the error state as flushed.
    pub(crate) fn flush(&mut self, number: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let (ask, answer) = (&mut pair.ask, &mut pair.answer);
        pair.send.take(&mut Fetched(&mut ask.requests));
        ask.segments.clear();
        (ask.reads, ask.paused, ask.deadline) = (0, None, None);
        let outstanding: Vec<Sending> = ask.requests.drain(..).collect();
        let begun = match answer.flushes_late {
            true => None,
            false => answer.buffer.take(),
        };
        let mut buffers: Vec<u64> = begun.iter().map(|one| one.id).collect();
        if pair.shared.is_none() {
            while let Some((buffer, _)) = pair.receive.take() {
                buffers.push(buffer.id);
            }
        }
        for done in outstanding {
            self.finish(
                number,
                &done,
                done.failed.unwrap_or(ibv_wc_status::IBV_WC_WR_FLUSH_ERR),
            );
        }
        for id in buffers {
            self.fail_buffer(number, id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        }
    }
}

/// Requests as they come from the queue, on their way.
pub(crate) struct Fetched<'a>(pub(crate) &'a mut std::collections::VecDeque<Sending>);

impl Extend<Request> for Fetched<'_> {
    fn extend<T: IntoIterator<Item = Request>>(&mut self, requests: T) {
        self.0.extend(requests.into_iter().map(|request| Sending {
            clock: request.clock,
            request,
            sent: 0,
            started: false,
            counted: false,
            complete: false,
            unanswered: 0,
            failed: None,
        }));
    }
}
