//! Reliable queue pairs.

use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use oxshmem_transport::{Error, Result};

use super::calls::{ibv_post_recv, ibv_post_send};
use super::completion::CompletionQueue;
use super::context::ProtectionDomain;
use super::gid::Gid;
use super::receive::{Posted, ReceiveBuffers, SharedReceiveQueue};
use super::result::{created, returned};
use super::sys::{
    ibv_access_flags, ibv_gid, ibv_global_route, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as set,
    ibv_qp_cap, ibv_qp_init_attr, ibv_qp_state, ibv_qp_type, ibv_send_wr, ibv_wr_opcode,
};

/// `IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS`.
const RETURN_CAPABILITIES: u32 = 1;
/// `IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY`: not asking whether the CPU keeps the order too.
const DEVICE_ONLY: u32 = 2;
/// `IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG`, which is also the answer "yes" where capabilities are not asked for.
const WHOLE_MESSAGE: c_int = 1;

/// The sizes of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSizes {
    /// Requests.
    pub(crate) depth: u32,
    /// Bytes that a request may carry inline, as far as the device can.
    pub(crate) inline: u32,
    /// Queue pairs that the device holds, for the error's description.
    pub(crate) max_pairs: u32,
}

/// The receive buffers of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceiveSource<'a> {
    /// None: nothing is sent to it.
    None,
    Shared(&'a Arc<SharedReceiveQueue>),
    /// So many of its own at most.
    Own(u32),
}

/// One side of a reliable connection.
#[doc(alias = "ibv_create_qp")]
#[derive(Debug)]
pub(crate) struct QueuePair {
    raw: NonNull<ibv_qp>,
    inline: u32,
    ended: bool,
    _send: Arc<CompletionQueue>,
    _receive: Arc<CompletionQueue>,
    _buffers: Option<Arc<SharedReceiveQueue>>,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: the library synchronises calls on a queue pair.
unsafe impl Send for QueuePair {}
// SAFETY: as for Send.
unsafe impl Sync for QueuePair {}

/// The remedy for an error of this number, when a queue pair is connected.
fn mend(code: c_int) -> &'static str {
    match code {
        libc::ETIMEDOUT => {
            " (nobody answered for that address: is it on this port's network? Check VLAN, netmask \
             and `ip neigh`; OXSHMEM_VERBS_GID_INDEX chooses another of this port's addresses)"
        }
        libc::EHOSTUNREACH | libc::ENETUNREACH => {
            " (this host has no route there: see `ip route get` for that address; \
             OXSHMEM_VERBS_GID_INDEX chooses another of this port's addresses)"
        }
        libc::EINVAL => {
            " (the device does not take this: did the address, the GID table or the MTU change \
             since start? OXSHMEM_VERBS_GID_INDEX and OXSHMEM_VERBS_MTU choose others)"
        }
        _ => "",
    }
}

/// Whether a queue pair that was refused just now may be had with less inline data.
fn inline_may_be_too_long() -> bool {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.is_none_or(is_of_size)
}

/// Whether an error of this number is about the sizes asked for. Providers name a request that is too long by several.
fn is_of_size(code: c_int) -> bool {
    matches!(
        code,
        libc::EINVAL | libc::ENOMEM | libc::E2BIG | libc::ENOTSUP | libc::ENOSYS
    )
}

/// The attributes by which a queue pair is connected.
#[derive(Clone, Debug)]
pub(crate) struct ConnectAttributes {
    /// The connection in words, for errors.
    pub(crate) description: String,
    pub(crate) port: u8,
    /// As `ibv_mtu` numbers it.
    pub(crate) mtu: u8,
    pub(crate) their_number: u32,
    pub(crate) their_sequence: u32,
    pub(crate) our_sequence: u32,
    pub(crate) their_lid: u16,
    /// Index of our identifier, and theirs, where packets carry a global route.
    pub(crate) route: Option<(u8, Gid)>,
    pub(crate) service_level: u8,
    pub(crate) traffic_class: u8,
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) receiver_retries: u8,
    pub(crate) receiver_timer: u8,
    /// Reads and atomics in flight that this side starts.
    pub(crate) reads_out: u8,
    /// Reads and atomics in flight that it serves.
    pub(crate) reads_in: u8,
}

impl QueuePair {
    /// A queue pair in its first state. Where the device carries no `sizes.inline` bytes, it is made
    /// with as many as it does.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        send: &Arc<CompletionQueue>,
        receive: &Arc<CompletionQueue>,
        source: ReceiveSource<'_>,
        sizes: QueueSizes,
    ) -> Result<QueuePair> {
        let mut inline = sizes.inline;
        let (buffers, receives) = match source {
            ReceiveSource::None => (None, 1),
            ReceiveSource::Shared(queue) => (Some(queue), 0),
            ReceiveSource::Own(count) => (None, count),
        };
        loop {
            let mut attr = ibv_qp_init_attr {
                qp_context: null_mut(),
                send_cq: send.as_raw(),
                recv_cq: receive.as_raw(),
                srq: buffers.map_or(null_mut(), |buffers| buffers.as_raw()),
                cap: ibv_qp_cap {
                    max_send_wr: sizes.depth,
                    max_recv_wr: receives,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: inline,
                },
                qp_type: ibv_qp_type::IBV_QPT_RC,
                sq_sig_all: 0,
            };
            // SAFETY: domain and queues live, the attributes are read and updated.
            let raw = unsafe {
                let library = domain.library();
                library.ibv_create_qp(domain.as_raw(), &raw mut attr)
            };
            if raw.is_null() && inline > 0 && inline_may_be_too_long() {
                inline /= 2;
                continue;
            }
            let call = format!(
                "ibv_create_qp of {} requests (the device holds {} queue pairs in all; \
                 OXSHMEM_VERBS_DEPTH makes them smaller)",
                sizes.depth, sizes.max_pairs
            );
            return Ok(QueuePair {
                raw: created(&call, raw)?,
                inline: attr.cap.max_inline_data.min(inline),
                ended: false,
                _send: Arc::clone(send),
                _receive: Arc::clone(receive),
                _buffers: buffers.map(Arc::clone),
                domain: Arc::clone(domain),
            });
        }
    }

    /// Its number on this device.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the queue pair lives; its number never changes.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Bytes that a request may carry inline.
    pub(crate) fn inline(&self) -> u32 {
        self.inline
    }

    /// Whether the device says that it places the data of writes that arrive here in order; none if the library has
    /// no such call. The queue pair must be connected.
    #[doc(alias = "ibv_query_qp_data_in_order")]
    pub(crate) fn data_in_order(&self) -> Option<bool> {
        let ask = self.domain.library().query_qp_data_in_order?;
        // An older library answers "no" to flags that it does not know.
        let flags = [RETURN_CAPABILITIES | DEVICE_ONLY, RETURN_CAPABILITIES, 0];
        Some(flags.into_iter().any(|flags| {
            // SAFETY: the queue pair lives.
            let answer = unsafe { ask(self.raw.as_ptr(), ibv_wr_opcode::IBV_WR_RDMA_WRITE, flags) };
            answer > 0 && answer & WHOLE_MESSAGE != 0
        }))
    }

    fn modify(&self, attr: &mut ibv_qp_attr, mask: set) -> c_int {
        // SAFETY: the queue pair lives, the attributes are read.
        let code = unsafe {
            let library = self.domain.library();
            library.ibv_modify_qp(self.raw.as_ptr(), attr, mask.0 as c_int)
        };
        match code {
            // As some providers do.
            -1 => std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
            code => code.abs(),
        }
    }

    fn attributes(state: ibv_qp_state::Type) -> ibv_qp_attr {
        // SAFETY: integers only, for which zero is a value.
        let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
        attr.qp_state = state;
        attr
    }

    /// Brings it to the state in which it waits for its peer.
    pub(crate) fn prepare(&self, port: u8, partition: u16) -> Result<()> {
        let mut attr = Self::attributes(ibv_qp_state::IBV_QPS_INIT);
        attr.port_num = port;
        attr.pkey_index = partition;
        attr.qp_access_flags = (ibv_access_flags::IBV_ACCESS_REMOTE_WRITE
            | ibv_access_flags::IBV_ACCESS_REMOTE_READ)
            .0;
        if self.domain.has_atomics() {
            attr.qp_access_flags |= ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0;
        }
        let mask = set::IBV_QP_STATE
            | set::IBV_QP_PKEY_INDEX
            | set::IBV_QP_PORT
            | set::IBV_QP_ACCESS_FLAGS;
        let call = format!("ibv_modify_qp to INIT (port {port}, P_Key index {partition})");
        returned(&call, self.modify(&mut attr, mask))
    }

    /// Connects it: it receives and sends from then on.
    pub(crate) fn connect(&self, to: &ConnectAttributes) -> Result<()> {
        let mut attr = Self::attributes(ibv_qp_state::IBV_QPS_RTR);
        attr.path_mtu = to.mtu.into();
        attr.dest_qp_num = to.their_number;
        attr.rq_psn = to.their_sequence;
        attr.max_dest_rd_atomic = to.reads_in;
        attr.min_rnr_timer = to.receiver_timer;
        attr.ah_attr.port_num = to.port;
        attr.ah_attr.dlid = to.their_lid;
        attr.ah_attr.sl = to.service_level;
        if let Some((index, gid)) = to.route {
            attr.ah_attr.is_global = 1;
            attr.ah_attr.grh = ibv_global_route {
                dgid: ibv_gid { raw: gid.0 },
                flow_label: 0,
                sgid_index: index,
                hop_limit: 64,
                traffic_class: to.traffic_class,
            };
        }
        let receive = set::IBV_QP_STATE
            | set::IBV_QP_AV
            | set::IBV_QP_PATH_MTU
            | set::IBV_QP_DEST_QPN
            | set::IBV_QP_RQ_PSN
            | set::IBV_QP_MAX_DEST_RD_ATOMIC
            | set::IBV_QP_MIN_RNR_TIMER;
        let done = |state, code| {
            let call = || format!("ibv_modify_qp to {state} {}{}", to.description, mend(code));
            match code {
                0 => Ok(()),
                code => returned(&call(), code),
            }
        };
        done("RTR", self.modify(&mut attr, receive))?;
        let mut attr = Self::attributes(ibv_qp_state::IBV_QPS_RTS);
        attr.sq_psn = to.our_sequence;
        attr.timeout = to.timeout;
        attr.retry_cnt = to.retries;
        attr.rnr_retry = to.receiver_retries;
        attr.max_rd_atomic = to.reads_out;
        let send = set::IBV_QP_STATE
            | set::IBV_QP_TIMEOUT
            | set::IBV_QP_RETRY_CNT
            | set::IBV_QP_RNR_RETRY
            | set::IBV_QP_SQ_PSN
            | set::IBV_QP_MAX_QP_RD_ATOMIC;
        done("RTS", self.modify(&mut attr, send))
    }

    /// Puts it into the error state: everything outstanding fails, and it sends and receives nothing from then on.
    pub(crate) fn fail(&self) -> Result<()> {
        let mut attr = Self::attributes(ibv_qp_state::IBV_QPS_ERR);
        let code = self.modify(&mut attr, set::IBV_QP_STATE);
        returned("ibv_modify_qp to ERR", code)
    }

    /// Ends it. If it cannot be destroyed, the memory of its requests must be left alone: the device
    /// may access it still.
    pub(crate) fn destroy(mut self) -> Result<()> {
        let done = self.end();
        match &done {
            Ok(()) => self.ended = true,
            // Its parents are kept with it.
            Err(_) => std::mem::forget(self),
        }
        done
    }

    fn end(&mut self) -> Result<()> {
        // SAFETY: ended once: after this the queue pair is forgotten, or marked as ended. Nothing of
        // it touches memory after the call, if that succeeds.
        returned("ibv_destroy_qp", unsafe {
            self.domain.library().ibv_destroy_qp(self.raw.as_ptr())
        })
    }

    /// Posts receive buffers, under the numbers that their completions will carry. It must be [prepared](Self::prepare).
    ///
    /// # Safety
    ///
    /// The buffers are registered for local writing, and left alone until their completions
    /// were taken or the queue pair is gone.
    #[doc(alias = "ibv_post_recv")]
    pub(crate) unsafe fn post_receives(
        &self,
        buffers: ReceiveBuffers,
        numbers: &[u32],
    ) -> Posted<Error> {
        buffers
            // SAFETY: the queue pair lives; the list is copied by the call; the buffers are the caller's promise.
            .post(numbers, |first, bad| unsafe {
                ibv_post_recv(self.raw.as_ptr(), first, bad)
            })
            .or_else(|(taken, code)| {
                returned("ibv_post_recv", code).map_err(|error| (taken, error))
            })
    }

    /// Posts a list of requests; the error's number if not all of them were taken.
    ///
    /// # Safety
    ///
    /// `first` begins a list of sound requests, whose memory is registered and stays so until they
    /// complete or the queue pair is gone.
    #[doc(alias = "ibv_post_send")]
    #[inline]
    pub(crate) unsafe fn post(&self, first: *mut ibv_send_wr) -> Result<(), c_int> {
        let mut bad = null_mut();
        // SAFETY: the queue pair lives, the list is the caller's promise.
        match unsafe { ibv_post_send(self.raw.as_ptr(), first, &raw mut bad) } {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if !self.ended
            && let Err(error) = self.end()
        {
            tracing::error!(%error, "a queue pair could not be destroyed and is leaked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_of_size, mend};

    #[test]
    fn only_an_error_of_sizes_has_a_queue_pair_tried_with_less_inline_data() {
        assert!(is_of_size(libc::EINVAL) && is_of_size(libc::ENOMEM));
        assert!(!is_of_size(libc::EPERM) && !is_of_size(libc::EIO));
    }

    #[test]
    fn what_keeps_an_address_from_being_found_is_told_with_what_to_look_at() {
        for (code, word) in [
            (libc::ETIMEDOUT, "ip neigh"),
            (libc::EHOSTUNREACH, "ip route"),
            (libc::ENETUNREACH, "ip route"),
            (libc::EINVAL, "OXSHMEM_VERBS_MTU"),
        ] {
            assert!(mend(code).contains(word), "{code}");
        }
        assert_eq!(mend(libc::EIO), "");
    }
}
