//! Receive buffers: shared receive queues, and the posting of lists of buffers.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use oxshmem_transport::{Error, Result};

use super::calls::ibv_post_srq_recv;
use super::context::ProtectionDomain;
use super::result::{created, ended, returned};
use super::sys::{ibv_recv_wr, ibv_sge, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

/// Buffers that are posted with one doorbell at most.
pub(crate) const RECEIVE_LIST: usize = 32;

/// The result of posting buffers. If not all are taken, the number of those that were, and the error.
pub(crate) type Posted<E> = Result<(), (usize, E)>;

/// Buffers of one length in registered memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveBuffers {
    /// The first byte of number 0; the others follow.
    pub(crate) base: *mut u8,
    pub(crate) len: u32,
    pub(crate) lkey: u32,
}

impl ReceiveBuffers {
    /// The first byte of a buffer.
    pub(crate) fn at(&self, number: u32) -> *mut u8 {
        self.base.wrapping_add(number as usize * self.len as usize)
    }

    /// Posts buffers by `post`, in lists of up to [`RECEIVE_LIST`].
    pub(super) fn post(
        &self,
        numbers: &[u32],
        mut post: impl FnMut(*mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
    ) -> Posted<c_int> {
        let mut taken = 0;
        for numbers in numbers.chunks(RECEIVE_LIST) {
            // SAFETY: integers and null pointers, for which zero is a value.
            let (mut requests, mut parts): ([ibv_recv_wr; RECEIVE_LIST], [ibv_sge; RECEIVE_LIST]) =
                unsafe { std::mem::zeroed() };
            let (first, first_part) = (requests.as_mut_ptr(), parts.as_mut_ptr());
            for (at, &number) in numbers.iter().enumerate() {
                parts[at] = ibv_sge {
                    addr: self.at(number).addr() as u64,
                    length: self.len,
                    lkey: self.lkey,
                };
                requests[at] = ibv_recv_wr {
                    wr_id: number.into(),
                    next: if at + 1 < numbers.len() {
                        first.wrapping_add(at + 1)
                    } else {
                        null_mut()
                    },
                    sg_list: first_part.wrapping_add(at),
                    num_sge: 1,
                };
            }
            let mut bad = null_mut();
            match post(first, &raw mut bad) {
                0 => taken += numbers.len(),
                code => {
                    // The first that was not taken; a library that names none took none.
                    let of_list = |bad: *mut ibv_recv_wr| {
                        let bytes = bad.addr().checked_sub(first.addr())?;
                        let at = bytes / size_of::<ibv_recv_wr>();
                        (at < numbers.len()).then_some(at)
                    };
                    return Err((taken + of_list(bad).unwrap_or(0), code));
                }
            }
        }
        Ok(())
    }
}

/// Buffers that the queue pairs of many senders share.
#[doc(alias = "ibv_create_srq")]
#[derive(Debug)]
pub(crate) struct SharedReceiveQueue {
    raw: NonNull<ibv_srq>,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: the library synchronises calls on it.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: as for Send.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    pub(crate) fn new(domain: &Arc<ProtectionDomain>, depth: u32) -> Result<SharedReceiveQueue> {
        let mut attr = ibv_srq_init_attr {
            srq_context: null_mut(),
            attr: ibv_srq_attr {
                max_wr: depth,
                max_sge: 1,
                srq_limit: 0,
            },
        };
        // SAFETY: the domain lives, the attributes are read and updated.
        let raw = unsafe {
            let library = domain.library();
            library.ibv_create_srq(domain.as_raw(), &raw mut attr)
        };
        Ok(SharedReceiveQueue {
            raw: created(&format!("ibv_create_srq of {depth} buffers"), raw)?,
            domain: Arc::clone(domain),
        })
    }

    pub(crate) fn as_raw(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    /// Posts receive buffers, under the numbers that their completions will carry.
    ///
    /// # Safety
    ///
    /// The buffers are registered for local writing, and left alone until their completions
    /// were taken or all queue pairs of this queue are gone.
    #[doc(alias = "ibv_post_srq_recv")]
    pub(crate) unsafe fn post(&self, buffers: ReceiveBuffers, numbers: &[u32]) -> Posted<Error> {
        buffers
            // SAFETY: the queue lives; the list is copied by the call; the buffers are the caller's promise.
            .post(numbers, |first, bad| unsafe {
                ibv_post_srq_recv(self.as_raw(), first, bad)
            })
            .or_else(|(taken, code)| {
                returned("ibv_post_srq_recv", code).map_err(|error| (taken, error))
            })
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: ended once; its queue pairs hold it, so are gone.
        ended("ibv_destroy_srq", unsafe {
            self.domain.library().ibv_destroy_srq(self.as_raw())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists that are posted, where the queue has so much room.
    fn posted(count: u32, room: usize) -> (Vec<Vec<u64>>, Posted<c_int>) {
        let mut memory = [0u8; 64];
        let buffers = ReceiveBuffers {
            base: memory.as_mut_ptr(),
            len: 64,
            lkey: 7,
        };
        let numbers: Vec<u32> = (0..count).collect();
        let (mut lists, mut room) = (Vec::new(), room);
        let result = buffers.post(&numbers, |first, bad| {
            let (mut list, mut at) = (Vec::new(), first);
            let mut code = 0;
            while !at.is_null() {
                if room == 0 {
                    // SAFETY: a pointer of the caller's, which is written.
                    unsafe { bad.write(at) };
                    code = libc::ENOMEM;
                    break;
                }
                room -= 1;
                // SAFETY: an element of the caller's list.
                let request = unsafe { &*at };
                // SAFETY: its one part.
                let part = unsafe { *request.sg_list };
                assert_eq!((part.length, part.lkey, request.num_sge), (64, 7, 1));
                let base = buffers.base.addr() as u64;
                assert_eq!(part.addr, base + 64 * request.wr_id);
                list.push(request.wr_id);
                at = request.next;
            }
            lists.push(list);
            code
        });
        (lists, result)
    }

    #[test]
    fn buffers_are_posted_in_lists() {
        let (lists, result) = posted(70, 100);
        assert_eq!(result, Ok(()));
        assert_eq!(lists.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32, 6]);
        assert!(lists.concat().into_iter().eq(0..70));
        assert_eq!(posted(0, 0), (Vec::new(), Ok(())));
    }

    #[test]
    fn the_number_of_those_that_were_taken_is_known() {
        for room in [0, 1, 31, 32, 40] {
            let (_, result) = posted(70, room);
            assert_eq!(result, Err((room, libc::ENOMEM)));
        }
    }
}
