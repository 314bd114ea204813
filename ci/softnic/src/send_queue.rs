//! Send queues between the programs that post requests and the engine that performs them.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::abi::sys::{ibv_sge, ibv_wr_opcode};
use crate::sync::lock;

/// A posted request, copied.
#[derive(Clone)]
pub(crate) struct Request {
    /// Its number in the queue.
    pub(crate) index: u64,
    pub(crate) id: u64,
    pub(crate) opcode: ibv_wr_opcode::Type,
    pub(crate) flags: u32,
    pub(crate) immediate: u32,
    pub(crate) remote: u64,
    pub(crate) key: u32,
    pub(crate) operands: [u64; 2],
    pub(crate) buffers: Vec<ibv_sge>,
    pub(crate) inline: Option<Vec<u8>>,
    /// The program's time on the clock of round trips.
    pub(crate) clock: u64,
}

impl Request {
    /// The bytes of its message.
    pub(crate) fn len(&self) -> u64 {
        match &self.inline {
            Some(data) => data.len() as u64,
            None => self.buffers.iter().map(|one| u64::from(one.length)).sum(),
        }
    }
}

#[derive(Debug)]
struct Waiting {
    /// The error of those that post in the state that the queue pair has.
    refused: Option<c_int>,
    posted: u64,
    requests: VecDeque<Request>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({:#x}, opcode {})", self.id, self.opcode)
    }
}

/// The limits of a send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) depth: u32,
    pub(crate) buffers: u32,
    pub(crate) inline: u32,
    pub(crate) message: u32,
    /// The operations of its requests, as `ibv_qp_create_send_ops_flags` numbers them.
    pub(crate) operations: u64,
}

/// A send queue. A slot is free again when the completion of its request, or of a later one, was polled.
#[derive(Debug)]
pub(crate) struct SendQueue {
    pub(crate) limits: Limits,
    pub(crate) signal_all: bool,
    pub(crate) atomics: bool,
    waiting: Mutex<Waiting>,
    freed: AtomicU64,
    rung: AtomicBool,
}

impl SendQueue {
    pub(crate) fn new(limits: Limits, signal_all: bool, atomics: bool) -> SendQueue {
        SendQueue {
            limits,
            signal_all,
            atomics,
            waiting: Mutex::new(Waiting {
                refused: Some(libc::EINVAL),
                posted: 0,
                requests: VecDeque::new(),
            }),
            freed: AtomicU64::new(0),
            rung: AtomicBool::new(false),
        }
    }

    /// Has posts be taken, or refused with an error.
    pub(crate) fn accept(&self, refused: Option<c_int>) {
        lock(&self.waiting).refused = refused;
    }

    /// Forgets all, as a queue pair does that is reset.
    pub(crate) fn reset(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.requests.clear();
        waiting.refused = Some(libc::EINVAL);
        // Relaxed: read under the lock.
        self.freed.store(waiting.posted, Ordering::Relaxed);
    }

    /// Adds a request.
    pub(crate) fn post(&self, mut request: Request) -> Result<(), c_int> {
        let mut waiting = lock(&self.waiting);
        if let Some(error) = waiting.refused {
            return Err(error);
        }
        // Relaxed: a slot that is seen as taken for a moment longer is no harm.
        if waiting.posted - self.freed.load(Ordering::Relaxed) >= u64::from(self.limits.depth) {
            return Err(libc::ENOMEM);
        }
        request.index = waiting.posted;
        waiting.posted += 1;
        waiting.requests.push_back(request);
        Ok(())
    }

    /// Frees the slots up to that of request `index`.
    pub(crate) fn free(&self, index: u64) {
        // Relaxed: as in `post`.
        self.freed.fetch_max(index + 1, Ordering::Relaxed);
    }

    /// Takes the requests that were posted since the last call.
    pub(crate) fn take(&self, into: &mut impl Extend<Request>) {
        // Before the requests are taken: those posted later ring again.
        self.rung.store(false, Ordering::SeqCst);
        into.extend(lock(&self.waiting).requests.drain(..));
    }

    /// Whether the engine must be told; not if it was, and has not yet looked.
    pub(crate) fn ring(&self) -> bool {
        !self.rung.swap(true, Ordering::SeqCst)
    }
}
