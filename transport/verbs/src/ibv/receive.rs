//! Shared receive queues.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use oxshmem_transport::Result;

use super::calls::ibv_post_srq_recv;
use super::context::ProtectionDomain;
use super::result::{created, ended, returned};
use super::sys::{ibv_recv_wr, ibv_sge, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

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

    /// Posts a receive buffer, under a number that its completion will carry.
    ///
    /// # Safety
    ///
    /// The buffer is registered under `lkey` for local writing, and left alone until its completion
    /// was taken or all queue pairs of this queue are gone.
    #[doc(alias = "ibv_post_srq_recv")]
    pub(crate) unsafe fn post(&self, number: u64, at: *mut u8, len: u32, lkey: u32) -> Result<()> {
        let mut sge = ibv_sge {
            addr: at.addr() as u64,
            length: len,
            lkey,
        };
        let mut request = ibv_recv_wr {
            wr_id: number,
            next: null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
        };
        let mut bad = null_mut();
        // SAFETY: the queue lives; the request is copied by the call; the buffer is the caller's
        // promise.
        let code = unsafe { ibv_post_srq_recv(self.as_raw(), &raw mut request, &raw mut bad) };
        returned("ibv_post_srq_recv", code)
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
