//! Requests in the form that the device takes, collected for one doorbell.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

use crate::ibv::sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode as opcode};
use crate::ibv::{QueuePair, atomic_t, rdma_t, wr_t};

/// Requests per doorbell at most.
pub(crate) const LONGEST: usize = 64;

/// The near side of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Near {
    /// No bytes.
    Nothing,
    /// Bytes that are copied when the batch is posted.
    Inline(*const u8, u32),
    /// As `Inline`, of a word that is kept until then.
    Word(u64),
    /// Registered bytes: address, length, key.
    Piece(*mut u8, u32, u32),
}

impl Near {
    /// How many bytes it is.
    #[inline]
    pub(crate) fn len(self) -> u32 {
        match self {
            Near::Nothing => 0,
            Near::Word(_) => 8,
            Near::Inline(_, len) | Near::Piece(_, len, _) => len,
        }
    }
}

/// What a request does with a far place, its address and key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    Write(u64, u32),
    Read(u64, u32),
    Add(u64, u32, u64),
    /// Compare, then operand.
    CompareSwap(u64, u32, u64, u64),
    Send,
    /// Tells the other side that this queue pair ends.
    Goodbye,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) what: Do,
    pub(crate) near: Near,
    /// Whether it waits for all reads and atomics before it.
    pub(crate) fenced: bool,
}

struct Arrays {
    requests: [ibv_send_wr; LONGEST],
    pieces: [ibv_sge; LONGEST],
    words: [u64; LONGEST],
}

/// The arrays are reached through one raw pointer, since requests point to each other and to their
/// pieces.
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

    /// Adds a request. `id` comes back with its completion. The batch must not be full.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: u64, request: Request) {
        debug_assert!(self.len < LONGEST);
        let at = self.len;
        self.len += 1;
        let arrays = self.arrays.as_ptr();
        let mut set = 0;
        if request.fenced {
            set |= flags::IBV_SEND_FENCE.0;
        }
        let (addr, length, lkey) = match request.near {
            Near::Nothing => (0, 0, 0),
            Near::Inline(addr, len) => {
                set |= flags::IBV_SEND_INLINE.0;
                (addr.addr(), len, 0)
            }
            Near::Word(word) => {
                set |= flags::IBV_SEND_INLINE.0;
                // SAFETY: below `LONGEST`; the arrays live as long as the batch.
                let place = unsafe { &raw mut (*arrays).words[at] };
                // SAFETY: as above.
                unsafe { place.write(word) };
                (place.addr(), 8, 0)
            }
            Near::Piece(addr, len, lkey) => (addr.addr(), len, lkey),
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
        let (code, far) = match request.what {
            Do::Write(addr, key) => (opcode::IBV_WR_RDMA_WRITE, rdma(addr, key)),
            Do::Read(addr, key) => (opcode::IBV_WR_RDMA_READ, rdma(addr, key)),
            Do::Add(addr, key, value) => (
                opcode::IBV_WR_ATOMIC_FETCH_AND_ADD,
                atomic(addr, key, value, 0),
            ),
            Do::CompareSwap(addr, key, compare, value) => (
                opcode::IBV_WR_ATOMIC_CMP_AND_SWP,
                atomic(addr, key, compare, value),
            ),
            Do::Send => {
                set |= flags::IBV_SEND_SOLICITED.0;
                (opcode::IBV_WR_SEND, rdma(0, 0))
            }
            Do::Goodbye => {
                set |= flags::IBV_SEND_SOLICITED.0;
                (opcode::IBV_WR_SEND_WITH_IMM, rdma(0, 0))
            }
        };
        // SAFETY: `at` is below `LONGEST` (indexing checks it); the arrays live as long as the batch
        // and are accessed through this pointer alone.
        unsafe {
            let piece = &raw mut (*arrays).pieces[at];
            piece.write(ibv_sge {
                addr: addr as u64,
                length,
                lkey,
            });
            let slot = &raw mut (*arrays).requests[at];
            (*slot).wr_id = id;
            (*slot).next = null_mut();
            (*slot).sg_list = piece;
            (*slot).num_sge = c_int::from(length > 0);
            (*slot).opcode = code;
            (*slot).send_flags = set;
            (*slot).wr = far;
            if at > 0 {
                (*arrays).requests[at - 1].next = slot;
            }
        }
    }

    /// Has the last request's completion told.
    #[inline]
    pub(crate) fn signal_last(&mut self) {
        if let Some(last) = self.len.checked_sub(1) {
            // SAFETY: below `LONGEST`, as for `push`.
            unsafe {
                (*self.arrays.as_ptr()).requests[last].send_flags |= flags::IBV_SEND_SIGNALED.0;
            }
        }
    }

    /// Posts all of them and is empty again. On failure, with the error's number, some may have been
    /// posted.
    ///
    /// # Safety
    ///
    /// The near side of each request is valid: inline bytes now, pieces until their completion or
    /// the end of the queue pair.
    #[inline]
    pub(crate) unsafe fn post(&mut self, pair: &QueuePair) -> Result<(), c_int> {
        self.len = 0;
        // SAFETY: the requests up to the old length are a list, of which at least one was pushed;
        // their memory is the caller's promise.
        unsafe { pair.post(&raw mut (*self.arrays.as_ptr()).requests[0]) }
    }
}
