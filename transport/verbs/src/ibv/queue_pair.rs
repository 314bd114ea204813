//! Reliable queue pairs.

use std::any::Any;
use std::ffi::c_int;
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use oxshmem_transport::{Error, Result};

use super::calls::{ibv_create_qp_ex, ibv_post_recv, ibv_post_send};
use super::completion::CompletionQueue;
use super::context::ProtectionDomain;
use super::ece::Ece;
use super::gid::Gid;
use super::queue_sizes::QueueSizes;
use super::receive::{Posted, ReceiveBuffers, SharedReceiveQueue};
use super::result::{failed, returned};
use super::sys::{
    ibv_access_flags, ibv_gid, ibv_global_route, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as set,
    ibv_qp_cap, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_state, ibv_qp_type, ibv_send_wr,
    ibv_wr_opcode,
};
use crate::settings::FlowLabel;

/// `IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS`.
const RETURN_CAPABILITIES: u32 = 1;
/// `IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY`: not asking whether the CPU keeps the order too.
const DEVICE_ONLY: u32 = 2;
/// `IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG`, which is also the answer "yes" where capabilities are not asked for.
const WHOLE_MESSAGE: c_int = 1;

/// `IBV_QP_INIT_ATTR_PD` and `IBV_QP_INIT_ATTR_SEND_OPS_FLAGS`: the extended attributes that are given.
const EXTENDED: u32 = 1 | 1 << 6;

/// The operations of this transport's requests, as `ibv_qp_create_send_ops_flags` numbers them: writes, sends with and without
/// immediate data, reads, compare-and-swap, fetch-and-add. Providers keep room for others in each request where they are not
/// told: that of mlx5 twice as much.
const OPERATIONS: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6;

/// The receive buffers of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReceiveSource<'a> {
    /// None: nothing is sent to it.
    None,
    Shared(&'a Arc<SharedReceiveQueue>),
    /// So many of its own at most.
    Own(u32),
}

impl<'a> ReceiveSource<'a> {
    fn shared(self) -> Option<&'a Arc<SharedReceiveQueue>> {
        match self {
            ReceiveSource::Shared(queue) => Some(queue),
            ReceiveSource::None | ReceiveSource::Own(_) => None,
        }
    }
}

/// A list of requests that a device has not taken as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The error's number.
    pub(crate) code: c_int,
    /// The first request that was not taken. Those before it were. None if the device does not tell.
    pub(crate) rest: Option<NonNull<ibv_send_wr>>,
}

impl Refusal {
    /// The requests that may be posted again, where the device had no room for them.
    pub(crate) fn for_want_of_room(self) -> Option<NonNull<ibv_send_wr>> {
        let is_passing = matches!(self.code, libc::ENOMEM | libc::EAGAIN);
        self.rest.filter(|_| is_passing)
    }
}

/// One side of a reliable connection.
#[doc(alias = "ibv_create_qp")]
#[derive(Debug)]
pub(crate) struct QueuePair {
    raw: NonNull<ibv_qp>,
    depth: u32,
    inline: u32,
    ended: bool,
    _send: Arc<CompletionQueue>,
    _receive: Arc<CompletionQueue>,
    _buffers: Option<Arc<SharedReceiveQueue>>,
    domain: Arc<ProtectionDomain>,
    /// Memory that its requests and receives use.
    memory: Vec<Arc<dyn Any + Send + Sync>>,
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
    pub(crate) flow_label: FlowLabel,
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) receiver_retries: u8,
    pub(crate) receiver_timer: u8,
    /// Reads and atomics in flight that this side starts.
    pub(crate) reads_out: u8,
    /// Reads and atomics in flight that it serves.
    pub(crate) reads_in: u8,
}

/// Creates a queue pair of exactly these sizes. Gives how much its requests carry inline.
fn create(
    domain: &ProtectionDomain,
    [send, receive]: [&Arc<CompletionQueue>; 2],
    source: ReceiveSource<'_>,
    sizes: QueueSizes,
) -> io::Result<(NonNull<ibv_qp>, u32)> {
    let cap = ibv_qp_cap {
        max_send_wr: sizes.depth,
        max_recv_wr: match source {
            ReceiveSource::None => 1,
            ReceiveSource::Shared(_) => 0,
            ReceiveSource::Own(count) => count,
        },
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: sizes.inline,
    };
    let srq = source.shared().map_or(null_mut(), |queue| queue.as_raw());
    // SAFETY: integers and null pointers, for which zero is a value.
    let mut extended: ibv_qp_init_attr_ex = unsafe { std::mem::zeroed() };
    (extended.send_cq, extended.recv_cq, extended.srq) = (send.as_raw(), receive.as_raw(), srq);
    (extended.cap, extended.qp_type) = (cap, ibv_qp_type::IBV_QPT_RC);
    (extended.comp_mask, extended.pd) = (EXTENDED, domain.as_raw());
    extended.send_ops_flags = OPERATIONS;
    // SAFETY: domain and queues live, the attributes are read and updated.
    let raw = unsafe { ibv_create_qp_ex(domain.context(), &mut extended) };
    match raw.map(NonNull::new) {
        Some(Some(raw)) => return Ok((raw, extended.cap.max_inline_data.min(sizes.inline))),
        Some(None) => {
            let error = io::Error::last_os_error();
            // It is smaller than the other one would be.
            if error.raw_os_error() == Some(libc::ENOMEM) {
                return Err(error);
            }
        }
        None => {}
    }
    let mut attr = ibv_qp_init_attr {
        qp_context: null_mut(),
        send_cq: send.as_raw(),
        recv_cq: receive.as_raw(),
        srq,
        cap,
        qp_type: ibv_qp_type::IBV_QPT_RC,
        sq_sig_all: 0,
    };
    // SAFETY: domain and queues live, the attributes are read and updated.
    let raw = unsafe {
        let library = domain.library();
        library.ibv_create_qp(domain.as_raw(), &raw mut attr)
    };
    let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
    Ok((raw, attr.cap.max_inline_data.min(sizes.inline)))
}

impl QueuePair {
    /// A queue pair in its first state, of these sizes or of the largest that the device has.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        send: &Arc<CompletionQueue>,
        receive: &Arc<CompletionQueue>,
        source: ReceiveSource<'_>,
        sizes: QueueSizes,
    ) -> Result<QueuePair> {
        let create = |sizes: QueueSizes| {
            let (raw, inline) = create(domain, [send, receive], source, sizes)?;
            Ok((raw, sizes.depth, inline))
        };
        let (raw, depth, inline) = sizes.largest(create).map_err(|error| {
            let call = format!(
                "ibv_create_qp of {} requests (the device holds {} queue pairs in all; \
                 OXSHMEM_VERBS_DEPTH makes them smaller, OXSHMEM_VERBS_QPS fewer)",
                sizes.depth, sizes.max_pairs
            );
            failed(&call, error)
        })?;
        if depth < sizes.depth {
            let wanted = sizes.depth;
            tracing::debug!(depth, wanted, "a queue pair has room for fewer requests");
        }
        Ok(QueuePair {
            raw,
            depth,
            inline,
            ended: false,
            _send: Arc::clone(send),
            _receive: Arc::clone(receive),
            _buffers: source.shared().map(Arc::clone),
            domain: Arc::clone(domain),
            memory: Vec::new(),
        })
    }

    /// Keeps memory that its requests or receives use: as long as it lives, and for good if it cannot be destroyed.
    pub(crate) fn keep(&mut self, memory: Arc<dyn Any + Send + Sync>) {
        self.memory.push(memory);
    }

    /// Its number on this device.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the queue pair lives; its number never changes.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// Requests that it holds.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Bytes that a request may carry inline.
    pub(crate) fn inline(&self) -> u32 {
        self.inline
    }

    /// Whether the device says that it places the data of writes that arrive here in order; none if the library has
    /// no such call. The queue pair must be connected. By its page the answer is of the data of each write alone. That the
    /// packets of several writes are not placed otherwise is a conclusion.
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

    /// The options that it offers, or that it has taken; none if device or library have none.
    #[doc(alias = "ibv_query_ece")]
    pub(crate) fn ece(&self) -> Option<Ece> {
        let ask = self.domain.library().query_ece?;
        let mut ece = Ece::default();
        // SAFETY: the queue pair lives, the structure is written.
        let code = unsafe { ask(self.raw.as_ptr(), &raw mut ece) };
        (code == 0 && ece.vendor != 0).then_some(ece)
    }

    /// Takes a peer's options, before it is connected. Gives whether it does: only those of its own vendor.
    #[doc(alias = "ibv_set_ece")]
    pub(crate) fn take_ece(&self, mut ece: Ece) -> bool {
        self.domain.library().set_ece.is_some_and(|take| {
            // SAFETY: the queue pair lives, the structure is read.
            let code = unsafe { take(self.raw.as_ptr(), &raw mut ece) };
            if code != 0 {
                tracing::debug!(code, "a peer's options for connections are not taken");
            }
            code == 0
        })
    }

    fn modify(&self, attr: &mut ibv_qp_attr, mask: set) -> c_int {
        // SAFETY: the queue pair lives, the attributes are read.
        let code = unsafe {
            let library = self.domain.library();
            library.ibv_modify_qp(self.raw.as_ptr(), attr, mask.0 as c_int)
        };
        match code {
            // As some providers do.
            -1 => io::Error::last_os_error()
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
                flow_label: to.flow_label.of_pair(self.number(), to.their_number),
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

    /// Posts a list of requests; the refusal if not all of them were taken.
    ///
    /// # Safety
    ///
    /// `first` begins a list of sound requests, whose memory is registered and stays so until they
    /// complete or the queue pair is gone.
    #[doc(alias = "ibv_post_send")]
    #[inline]
    pub(crate) unsafe fn post(&self, first: *mut ibv_send_wr) -> Result<(), Refusal> {
        let mut bad = null_mut();
        // SAFETY: the queue pair lives, the list is the caller's promise.
        match unsafe { ibv_post_send(self.raw.as_ptr(), first, &raw mut bad) } {
            0 => Ok(()),
            code => Err(Refusal {
                code,
                rest: NonNull::new(bad),
            }),
        }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if !self.ended
            && let Err(error) = self.end()
        {
            // The device may still use what it was made of, and the memory of its requests.
            std::mem::forget((
                Arc::clone(&self._send),
                Arc::clone(&self._receive),
                self._buffers.clone(),
                Arc::clone(&self.domain),
                std::mem::take(&mut self.memory),
            ));
            tracing::error!(%error, queue_pair = self.number(), "a queue pair could not be destroyed: it is leaked \
                 with its memory");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mend;

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
