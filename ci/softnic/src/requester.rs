//! The requester's half of a queue pair: it sends requests in segments, sends them again when no answer
//! comes, and completes them in order.

use crate::abi::sys::{
    ibv_access_flags, ibv_qp_state, ibv_wc_status as status, ibv_wr_opcode as op,
};
use crate::counters::COUNTERS;
use crate::device::{pause, time_out};
use crate::failure::Fetched;
use crate::keys::Keys;
use crate::pair::{Pair, Segment};
use crate::send_queue::Request;
use crate::wire::{Body, Packet, Position, Refusal, Remote, SEGMENT};
use crate::world::{Timer, World};

/// Segments of a queue pair without an answer, at most.
const WINDOW: usize = 32;
/// A number of retries that means no end, for pauses alone.
const FOR_EVER: u8 = 7;

const FENCE: u32 = 1;
const SOLICITED: u32 = 4;

fn is_atomic(request: &Request) -> bool {
    matches!(
        request.opcode,
        op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD
    )
}

/// Whether it waits for an answer with data.
fn is_read(request: &Request) -> bool {
    request.opcode == op::IBV_WR_RDMA_READ || is_atomic(request)
}

/// A request's buffers as far as the device checks them before it sends.
fn check(pair: &Pair, keys: &Keys, request: &Request) -> Result<(), status::Type> {
    if request.inline.is_some() {
        return Ok(());
    }
    let needed = match is_read(request) {
        true => ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0,
        false => 0,
    };
    if is_atomic(request) && request.len() != 8 {
        return Err(status::IBV_WC_LOC_LEN_ERR);
    }
    let all = request.buffers.iter().filter(|one| one.length > 0);
    for one in all {
        keys.own(pair.owner, one, needed)
            .map_err(|_| status::IBV_WC_LOC_PROT_ERR)?;
    }
    Ok(())
}

/// The contents of a segment, from the buffers as they are now.
fn body(
    pair: &Pair,
    keys: &Keys,
    request: &Request,
    segment: Segment,
) -> Result<Body, status::Type> {
    let remote = Remote {
        addr: request.remote.wrapping_add(if is_atomic(request) {
            0
        } else {
            segment.offset
        }),
        key: request.key,
    };
    let with_immediate = matches!(
        request.opcode,
        op::IBV_WR_SEND_WITH_IMM | op::IBV_WR_RDMA_WRITE_WITH_IMM
    );
    let total = request.len();
    let last = segment.offset + segment.len == total;
    let position = Position {
        offset: segment.offset,
        total,
        last,
        immediate: (last && with_immediate).then_some(request.immediate),
        solicited: request.flags & SOLICITED != 0,
    };
    let data = || -> Result<Vec<u8>, status::Type> {
        let part = segment.offset..segment.offset + segment.len;
        if let Some(inline) = &request.inline {
            return Ok(inline[part.start as usize..part.end as usize].to_vec());
        }
        let mut data = Vec::new();
        keys.gather(pair.owner, &request.buffers, part, &mut data)
            .map_err(|_| status::IBV_WC_LOC_PROT_ERR)?;
        Ok(data)
    };
    Ok(match request.opcode {
        op::IBV_WR_RDMA_READ => Body::Read(remote, segment.len as u32),
        op::IBV_WR_ATOMIC_CMP_AND_SWP => Body::Atomic(remote, true, request.operands),
        op::IBV_WR_ATOMIC_FETCH_AND_ADD => Body::Atomic(remote, false, request.operands),
        op::IBV_WR_SEND | op::IBV_WR_SEND_WITH_IMM => Body::Send(position, data()?),
        _ => Body::Write(remote, position, data()?),
    })
}

/// The next request of which something is to be sent, if it may be.
fn next(pair: &Pair) -> Option<usize> {
    let at = pair.ask.requests.iter().position(|one| !one.complete)?;
    let sending = &pair.ask.requests[at];
    let stopped = pair
        .ask
        .requests
        .iter()
        .take(at + 1)
        .any(|one| one.failed.is_some());
    let reads = pair.ask.reads;
    let fenced = !sending.started && sending.request.flags & FENCE != 0 && reads > 0;
    let full = !sending.started
        && is_read(&sending.request)
        && reads >= u32::from(pair.attr.max_rd_atomic.max(1));
    (!stopped && !fenced && !full).then_some(at)
}

impl World {
    /// Sends what may be sent.
    pub(crate) fn advance(&mut self, number: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if pair.state == ibv_qp_state::IBV_QPS_ERR {
            return self.flush(number);
        }
        pair.send.take(&mut Fetched(&mut pair.ask.requests));
        self.cues(number);
        while let Some(pair) = self.pairs.get_mut(&number)
            && pair.state == ibv_qp_state::IBV_QPS_RTS
            && pair.ask.paused.is_none()
            && pair.ask.segments.len() < WINDOW
            && let Some(at) = next(pair)
        {
            let first = !pair.ask.requests[at].started;
            pair.ask.requests[at].started = true;
            if first {
                let checked = check(pair, &self.keys, &pair.ask.requests[at].request);
                if let Err(failed) = checked {
                    pair.ask.requests[at].failed = Some(failed);
                    break;
                }
                let request = &mut pair.ask.requests[at].request;
                if request.flags & FENCE != 0 {
                    // It has waited for those answers, as a program waits for completions.
                    request.clock = request.clock.max(pair.ask.read_clock);
                }
                if is_read(request) {
                    pair.ask.reads += 1;
                }
            }
            self.send_segment(number, at);
        }
        self.arm(number);
        self.settle(number);
    }

    fn send_segment(&mut self, number: u32, at: usize) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let sending = &mut pair.ask.requests[at];
        let total = sending.request.len();
        let segment = Segment {
            sequence: pair.ask.next,
            request: sending.request.index,
            offset: sending.sent,
            len: (total - sending.sent).min(SEGMENT as u64),
            answered: false,
        };
        sending.sent += segment.len;
        sending.complete = sending.sent == total;
        sending.unanswered += 1;
        pair.ask.next += 1;
        pair.ask.segments.push_back(segment);
        self.transmit(number, segment);
    }

    /// Sends a segment, once more maybe.
    fn transmit(&mut self, number: u32, segment: Segment) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let Some(first) = pair.ask.requests.front().map(|one| one.request.index) else {
            return;
        };
        let at = (segment.request - first) as usize;
        let Some(sending) = pair.ask.requests.get(at) else {
            return;
        };
        match body(pair, &self.keys, &sending.request, segment) {
            Ok(body) => {
                let clock = sending.request.clock + 1;
                let packet = pair.packet(&self.devices[pair.device], segment.sequence, clock, body);
                self.send(packet);
            }
            Err(failed) => pair.ask.requests[at].failed = Some(failed),
        }
    }

    /// Starts the timer for an answer, if one is due.
    fn arm(&mut self, number: u32) {
        let scale = self.settings.time_scale;
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if pair.ask.segments.is_empty() {
            pair.ask.deadline = None;
            return;
        }
        if pair.ask.deadline.is_none()
            && let Some(time) = time_out(pair.attr.timeout, scale)
        {
            pair.ask.deadline = Some(self.now + time);
            if !pair.ask.timed {
                pair.ask.timed = true;
                self.after(time, Timer::Answer(number));
            }
        }
    }

    /// Handles the end of a time for an answer: all that is unanswered is sent again, as often as the program wants.
    pub(crate) fn unanswered(&mut self, number: u32) {
        let (scale, now) = (self.settings.time_scale, self.now);
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        pair.ask.timed = false;
        let (Some(deadline), Some(time)) = (pair.ask.deadline, time_out(pair.attr.timeout, scale))
        else {
            return;
        };
        if deadline > now {
            pair.ask.timed = true;
            return self.after(deadline - now, Timer::Answer(number));
        }
        if pair.ask.retries == 0 {
            return self.give_up(number, status::IBV_WC_RETRY_EXC_ERR);
        }
        pair.ask.retries -= 1;
        pair.ask.deadline = Some(now + time);
        pair.ask.timed = true;
        self.after(time, Timer::Answer(number));
        self.resend(number);
    }

    fn resend(&mut self, number: u32) {
        let Some(pair) = self.pairs.get(&number) else {
            return;
        };
        let again: Vec<Segment> = pair
            .ask
            .segments
            .iter()
            .filter(|one| !one.answered)
            .copied()
            .collect();
        COUNTERS.resent.add(again.len() as u64);
        for segment in again {
            self.transmit(number, segment);
        }
    }

    /// Handles the end of a pause.
    pub(crate) fn resume(&mut self, number: u32) {
        let now = self.now;
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if pair.ask.paused.is_none_or(|until| until > now) {
            return;
        }
        pair.ask.paused = None;
        self.resend(number);
        self.advance(number);
    }

    /// Fails the oldest unanswered request.
    fn give_up(&mut self, number: u32, failed: status::Type) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let oldest = pair
            .ask
            .segments
            .iter()
            .find(|one| !one.answered)
            .map(|one| one.request);
        let found = pair
            .ask
            .requests
            .iter_mut()
            .find(|one| Some(one.request.index) == oldest);
        if let Some(sending) = found {
            sending.failed = Some(failed);
        }
        self.settle(number);
    }

    /// Handles an answer.
    pub(crate) fn answered(&mut self, packet: Packet) {
        let number = packet.to;
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let up = self.devices[pair.device]
            .port(pair.attr.port_num)
            .is_some_and(|port| port.up);
        let sends = matches!(
            pair.state,
            ibv_qp_state::IBV_QPS_RTS | ibv_qp_state::IBV_QPS_SQD
        );
        if !up || !sends || packet.from != pair.attr.dest_qp_num {
            COUNTERS.dropped.add(1);
            return;
        }
        let Some(oldest) = pair.ask.segments.front().map(|one| one.sequence) else {
            return;
        };
        let Some(at) = packet.sequence.checked_sub(oldest) else {
            return;
        };
        let Some(segment) = pair
            .ask
            .segments
            .get_mut(at as usize)
            .filter(|one| !one.answered)
        else {
            return;
        };
        let request = segment.request;
        let first = pair.ask.requests.front().map_or(0, |one| one.request.index);
        let Some(sending) = pair.ask.requests.get_mut((request - first) as usize) else {
            return;
        };
        let scattered = match &packet.body {
            Body::NotReady(timer) => return self.not_ready(number, *timer),
            Body::Refused(why) => {
                sending.failed = Some(match why {
                    Refusal::Invalid => status::IBV_WC_REM_INV_REQ_ERR,
                    Refusal::Access => status::IBV_WC_REM_ACCESS_ERR,
                    Refusal::Operation => status::IBV_WC_REM_OP_ERR,
                });
                return self.settle(number);
            }
            Body::Data(data) => {
                let buffers = &sending.request.buffers;
                self.keys.scatter(pair.owner, buffers, segment.offset, data)
            }
            _ => Ok(Vec::new()),
        };
        let late = scattered.unwrap_or_else(|_| {
            sending.failed = Some(status::IBV_WC_LOC_PROT_ERR);
            Vec::new()
        });
        segment.answered = true;
        sending.unanswered -= 1;
        sending.clock = sending.clock.max(packet.clock);
        if sending.complete && sending.unanswered == 0 && is_read(&sending.request) {
            pair.ask.reads -= 1;
            pair.ask.read_clock = pair.ask.read_clock.max(sending.clock);
        }
        (pair.ask.retries, pair.ask.pauses) = (pair.attr.retry_cnt, pair.attr.rnr_retry);
        pair.ask.deadline = None;
        self.enter_bus_late(number, late);
        // First: its room is that of what follows.
        self.settle(number);
        self.advance(number);
    }

    fn not_ready(&mut self, number: u32, timer: u8) {
        let delay = pause(timer, self.settings.time_scale);
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        if pair.ask.paused.is_some() {
            return;
        }
        if pair.attr.rnr_retry != FOR_EVER {
            if pair.ask.pauses == 0 {
                return self.give_up(number, status::IBV_WC_RNR_RETRY_EXC_ERR);
            }
            pair.ask.pauses -= 1;
        }
        pair.ask.paused = Some(self.now + delay);
        pair.ask.deadline = None;
        self.after(delay, Timer::Pause(number));
    }

    /// Completes requests from the oldest on, as far as they are answered, or failed.
    fn settle(&mut self, number: u32) {
        loop {
            let Some(pair) = self.pairs.get_mut(&number) else {
                return;
            };
            while pair.ask.segments.front().is_some_and(|one| one.answered) {
                pair.ask.segments.pop_front();
            }
            let Some(oldest) = pair.ask.requests.front() else {
                return;
            };
            let answered = oldest.complete && oldest.unanswered == 0;
            let failed = oldest.failed;
            if !answered && failed.is_none() {
                return;
            }
            let Some(done) = pair.ask.requests.pop_front() else {
                return;
            };
            match failed {
                None => self.finish(number, &done, status::IBV_WC_SUCCESS),
                Some(failed) => {
                    self.finish(number, &done, failed);
                    return self.fail(number, None);
                }
            }
        }
    }
}
