//! The operations behind a context: posting, polling, and the wish to be woken.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::abi::sys::{
    ibv_cq, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_srq, ibv_wc, ibv_wr_opcode as op,
};
use crate::counters::COUNTERS;
use crate::engine;
use crate::faults::full_on_cue;
use crate::object::{Outcome, returned};
use crate::receive_queue::{Buffer, ReceiveQueue};
use crate::send_queue::{Request, SendQueue};
use crate::verbs::completions::CompletionQueue;
use crate::verbs::pairs::QueuePair;
use crate::verbs::receives::SharedQueue;

const INLINE: u32 = 8;

/// The buffers of a request.
///
/// # Safety
///
/// `list` has `count` elements.
unsafe fn buffers(list: *const ibv_sge, count: c_int, most: u32) -> Outcome<Vec<ibv_sge>> {
    let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
    if count > most as usize {
        return Err(libc::EINVAL);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let all = unsafe { std::slice::from_raw_parts(list, count) };
    // A length of 0 is one of 2 GiB, by the specification: no buffer here is that long.
    Ok(all.to_vec())
}

/// A copy of a posted request.
///
/// # Safety
///
/// The request is sound, its inline data are readable.
unsafe fn copy(queue: &SendQueue, posted: &ibv_send_wr, clock: u64) -> Outcome<Request> {
    let limits = queue.limits;
    // Opcodes and operations have the same numbers.
    if limits.operations.checked_shr(posted.opcode).unwrap_or(0) & 1 == 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    let buffers = unsafe { buffers(posted.sg_list, posted.num_sge, limits.buffers) }?;
    // SAFETY: all views of these unions are integers, of which all values are valid.
    let (rdma, atomic, immediate) = unsafe {
        (
            posted.wr.rdma,
            posted.wr.atomic,
            posted.__bindgen_anon_1.imm_data,
        )
    };
    let mut request = Request {
        index: 0,
        id: posted.wr_id,
        opcode: posted.opcode,
        flags: posted.send_flags,
        immediate,
        remote: rdma.remote_addr,
        key: rdma.rkey,
        operands: [0; 2],
        buffers,
        inline: None,
        clock,
    };
    let len = request.len();
    let inline = posted.send_flags & INLINE != 0;
    match posted.opcode {
        op::IBV_WR_RDMA_WRITE
        | op::IBV_WR_RDMA_WRITE_WITH_IMM
        | op::IBV_WR_SEND
        | op::IBV_WR_SEND_WITH_IMM => {
            if inline {
                if len > u64::from(limits.inline) {
                    return Err(libc::EINVAL);
                }
                let mut data = Vec::with_capacity(len as usize);
                for one in request.buffers.iter().filter(|one| one.length > 0) {
                    let from = std::ptr::with_exposed_provenance::<u8>(one.addr as usize);
                    // SAFETY: the caller's promise.
                    data.extend(unsafe { std::slice::from_raw_parts(from, one.length as usize) });
                }
                request.inline = Some(data);
            }
        }
        op::IBV_WR_RDMA_READ if !inline => {}
        op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD
            if !inline && queue.atomics =>
        {
            (request.remote, request.key) = (atomic.remote_addr, atomic.rkey);
            request.operands = [atomic.compare_add, atomic.swap];
            // As soft-RoCE does.
            if !request.remote.is_multiple_of(8) {
                return Err(libc::EINVAL);
            }
        }
        _ => return Err(libc::EINVAL),
    }
    if len > u64::from(limits.message) {
        return Err(libc::EINVAL);
    }
    Ok(request)
}

/// `ibv_post_send`.
///
/// # Safety
///
/// The queue pair lives, `first` begins a list of sound requests, `bad` is written.
pub(crate) unsafe extern "C" fn post_send(
    raw: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    let mut next = first;
    let mut count = 0;
    // SAFETY: the caller's promise.
    let inner = unsafe { &QueuePair::of(raw).inner };
    let code = returned("ibv_post_send", || {
        // Relaxed: a statistic.
        let clock = inner.clock.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: an element of the caller's list.
            let posted = unsafe { &*next };
            if full_on_cue() {
                return Err(libc::ENOMEM);
            }
            // SAFETY: the caller's promise.
            let request = unsafe { copy(&inner.send, posted, clock) }?;
            inner.send.post(request)?;
            count += 1;
            next = posted.next;
        }
        Ok(())
    });
    if count > 0 {
        COUNTERS.requests.add(count);
        COUNTERS.doorbells.add(1);
        if inner.send.ring() {
            engine::ring(inner.number);
        }
    }
    if code != 0 && !bad.is_null() {
        // SAFETY: the caller's promise.
        unsafe { bad.write(next) };
    }
    code
}

/// Posts a list of receive buffers.
///
/// # Safety
///
/// `first` begins a list of sound requests, `bad` is written.
unsafe fn post_receives(
    name: &str,
    queue: &ReceiveQueue,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    let mut next = first;
    let code = returned(name, || {
        while !next.is_null() {
            // SAFETY: an element of the caller's list.
            let posted = unsafe { &*next };
            queue.post(Buffer {
                id: posted.wr_id,
                // SAFETY: the caller's promise.
                parts: unsafe { buffers(posted.sg_list, posted.num_sge, queue.parts) }?,
            })?;
            COUNTERS.receives.add(1);
            next = posted.next;
        }
        Ok(())
    });
    COUNTERS.receive_doorbells.add(1);
    if code != 0 && !bad.is_null() {
        // SAFETY: the caller's promise.
        unsafe { bad.write(next) };
    }
    code
}

/// `ibv_post_recv`.
///
/// # Safety
///
/// The queue pair lives, `first` begins a list of sound requests, `bad` is written.
pub(crate) unsafe extern "C" fn post_recv(
    raw: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller's promise.
    let inner = unsafe { &QueuePair::of(raw).inner };
    if inner.shared {
        if !bad.is_null() {
            // SAFETY: the caller's promise.
            unsafe { bad.write(first) };
        }
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    let code = unsafe { post_receives("ibv_post_recv", &inner.receive, first, bad) };
    // In the error state the engine flushes them.
    if inner.receive.flushes() {
        engine::ring(inner.number);
    }
    code
}

/// `ibv_post_srq_recv`.
///
/// # Safety
///
/// The queue lives, `first` begins a list of sound requests, `bad` is written.
pub(crate) unsafe extern "C" fn post_srq_recv(
    raw: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller's promise.
    let queue = unsafe { &SharedQueue::of(raw).inner.queue };
    // SAFETY: the caller's promise.
    unsafe { post_receives("ibv_post_srq_recv", queue, first, bad) }
}

/// `ibv_poll_cq`.
///
/// # Safety
///
/// The queue lives, `room` completions may be written.
pub(crate) unsafe extern "C" fn poll_cq(raw: *mut ibv_cq, room: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's promise.
    let queue = unsafe { &CompletionQueue::of(raw).inner };
    let mut at = into;
    let taken = queue.poll(usize::try_from(room).unwrap_or(0), |wc| {
        // SAFETY: fewer than `room` were written.
        unsafe {
            at.write(wc);
            at = at.add(1);
        }
    });
    match taken {
        Ok(0) => {
            COUNTERS.empty_polls.add(1);
            engine::yield_to_engine();
            0
        }
        Ok(count) => count as c_int,
        Err(()) => -1,
    }
}

/// `ibv_req_notify_cq`.
///
/// # Safety
///
/// The queue lives.
pub(crate) unsafe extern "C" fn req_notify_cq(raw: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let queue = unsafe { &CompletionQueue::of(raw).inner };
    queue.arm(solicited_only != 0);
    0
}
