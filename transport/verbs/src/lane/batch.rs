//! A batch of send requests in the form of `ibv_send_wr`, posted with one doorbell.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

use super::request_id::RequestId;
use crate::ibv::sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode as opcode};
use crate::ibv::{QueuePair, Refusal, atomic_t, rdma_t, wr_t};

/// Requests per doorbell at most.
pub(crate) const LONGEST: usize = 64;

/// The local buffer of a request, as its scatter/gather entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocalBuffer {
    /// No bytes.
    Empty,
    /// Bytes that the post copies into the request.
    Inline(*const u8, u32),
    /// As `Inline`, for a word that the batch keeps until the post.
    InlineWord(u64),
    /// Registered bytes: address, length, key.
    Registered(*mut u8, u32, u32),
}

impl LocalBuffer {
    /// Its length in bytes.
    #[inline]
    pub(crate) fn len(self) -> u32 {
        match self {
            LocalBuffer::Empty => 0,
            LocalBuffer::InlineWord(_) => 8,
            LocalBuffer::Inline(_, len) | LocalBuffer::Registered(_, len, _) => len,
        }
    }
}

/// The operation of a request, with the remote address and rkey that it accesses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Write(u64, u32),
    Read(u64, u32),
    FetchAdd(u64, u32, u64),
    /// Compared value, then swapped.
    CompareSwap(u64, u32, u64, u64),
    Send,
    /// Announces to the responder that this queue pair ends.
    Disconnect,
}

/// One request, before it has the form of `ibv_send_wr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendRequest {
    pub(crate) operation: Operation,
    pub(crate) local: LocalBuffer,
    /// Whether it waits for all reads and atomics before it.
    pub(crate) is_fenced: bool,
}

struct Arrays {
    requests: [ibv_send_wr; LONGEST],
    sges: [ibv_sge; LONGEST],
    words: [u64; LONGEST],
}

/// Up to [`LONGEST`] linked requests. One raw pointer reaches their arrays, since requests point to each
/// other and to their scatter/gather entries.
#[derive(Debug)]
pub(crate) struct Batch {
    arrays: NonNull<Arrays>,
    len: usize,
}

// SAFETY: a batch owns its arrays.
unsafe impl Send for Batch {}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: made by `Box::leak` in `new`, given back once.
        drop(unsafe { Box::from_raw(self.arrays.as_ptr()) });
    }
}

impl Batch {
    pub(crate) fn new() -> Batch {
        // SAFETY: integers and null pointers, for which zero is a value.
        let arrays: Box<Arrays> = Box::new(unsafe { std::mem::zeroed() });
        Batch {
            arrays: NonNull::from(Box::leak(arrays)),
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a request. Its completion carries `id`. The batch must not be full.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: RequestId, request: SendRequest) {
        debug_assert!(self.len < LONGEST);
        let at = self.len;
        self.len += 1;
        let arrays = self.arrays.as_ptr();
        let mut set = 0;
        if request.is_fenced {
            set |= flags::IBV_SEND_FENCE.0;
        }
        let (addr, length, lkey) = match request.local {
            LocalBuffer::Empty => (0, 0, 0),
            LocalBuffer::Inline(addr, len) => {
                set |= flags::IBV_SEND_INLINE.0;
                (addr.addr(), len, 0)
            }
            LocalBuffer::InlineWord(word) => {
                set |= flags::IBV_SEND_INLINE.0;
                // SAFETY: below `LONGEST`; the arrays live as long as the batch.
                let place = unsafe { &raw mut (*arrays).words[at] };
                // SAFETY: as above.
                unsafe { place.write(word) };
                (place.addr(), 8, 0)
            }
            LocalBuffer::Registered(addr, len, lkey) => (addr.addr(), len, lkey),
        };
        let rdma = |remote_addr, rkey| wr_t {
            rdma: rdma_t { remote_addr, rkey },
        };
        let atomic = |remote_addr, rkey, compare_add, swap| wr_t {
            atomic: atomic_t {
                remote_addr,
                compare_add,
                swap,
                rkey,
            },
        };
        let (code, remote) = match request.operation {
            Operation::Write(addr, key) => (opcode::IBV_WR_RDMA_WRITE, rdma(addr, key)),
            Operation::Read(addr, key) => (opcode::IBV_WR_RDMA_READ, rdma(addr, key)),
            Operation::FetchAdd(addr, key, value) => (
                opcode::IBV_WR_ATOMIC_FETCH_AND_ADD,
                atomic(addr, key, value, 0),
            ),
            Operation::CompareSwap(addr, key, compare, value) => (
                opcode::IBV_WR_ATOMIC_CMP_AND_SWP,
                atomic(addr, key, compare, value),
            ),
            Operation::Send => {
                set |= flags::IBV_SEND_SOLICITED.0;
                (opcode::IBV_WR_SEND, rdma(0, 0))
            }
            Operation::Disconnect => {
                set |= flags::IBV_SEND_SOLICITED.0;
                (opcode::IBV_WR_SEND_WITH_IMM, rdma(0, 0))
            }
        };
        // SAFETY: `at` is below `LONGEST` (indexing checks it); the arrays live as long as the batch
        // and are accessed through this pointer alone.
        unsafe {
            let sge = &raw mut (*arrays).sges[at];
            sge.write(ibv_sge {
                addr: addr as u64,
                length,
                lkey,
            });
            let wr = &raw mut (*arrays).requests[at];
            (*wr).wr_id = id.to_u64();
            (*wr).next = null_mut();
            (*wr).sg_list = sge;
            (*wr).num_sge = c_int::from(length > 0);
            (*wr).opcode = code;
            (*wr).send_flags = set;
            (*wr).wr = remote;
            if at > 0 {
                (*arrays).requests[at - 1].next = wr;
            }
        }
    }

    /// Makes the last request a signaled one.
    #[inline]
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) = self.len.checked_sub(1) {
            // SAFETY: below `LONGEST`, as for `push`.
            unsafe {
                (*self.arrays.as_ptr()).requests[last].send_flags |= flags::IBV_SEND_SIGNALED.0;
            }
        }
    }

    /// Posts all requests; the batch is empty then. A refusal tells which were not taken.
    ///
    /// # Safety
    ///
    /// The local buffer of each request is valid: inline bytes now, registered ones until their completion
    /// or the end of the queue pair.
    #[inline]
    pub(crate) unsafe fn post(&mut self, pair: &QueuePair) -> Result<(), Refusal> {
        self.len = 0;
        // SAFETY: the requests up to the old length are a list, of which at least one was pushed;
        // their memory is the caller's promise.
        unsafe { pair.post(&raw mut (*self.arrays.as_ptr()).requests[0]) }
    }

    /// Posts requests of the last batch that the device had no room for: the rest of a refusal.
    ///
    /// # Safety
    ///
    /// As for [`post`](Self::post), and nothing was [pushed](Self::push) since.
    #[cold]
    pub(crate) unsafe fn post_rest(
        &self,
        pair: &QueuePair,
        rest: NonNull<ibv_send_wr>,
    ) -> Result<(), Refusal> {
        // SAFETY: the requests from there on are the end of the list; their memory is the caller's promise.
        unsafe { pair.post(rest.as_ptr()) }
    }

    /// Forgets all requests: their queue pair has gone.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}
