//! Queue pairs: their making and their end.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::abi::ece::Ece;
use crate::abi::sys::{
    ibv_context, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_state,
    ibv_qp_type, ibv_wr_opcode,
};
use crate::counters::COUNTERS;
use crate::engine;
use crate::events::Given;
use crate::object::{Handle, Outcome, created, returned};
use crate::pair::{Pair, Requester, Responder};
use crate::profile::{Atomics, Profile};
use crate::receive_queue::ReceiveQueue;
use crate::send_queue::{Limits, SendQueue};
use crate::verbs::completions::CompletionQueue;
use crate::verbs::context::{locked, opened};
use crate::verbs::domains::Domain;
use crate::verbs::receives::SharedQueue;

/// The private part of a queue pair: what posting needs, without the world's lock.
#[derive(Debug)]
pub(crate) struct PairInner {
    pub(crate) number: u32,
    pub(crate) send: Arc<SendQueue>,
    pub(crate) receive: Arc<ReceiveQueue>,
    pub(crate) shared: bool,
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) events: Arc<Given>,
}

/// A queue pair.
pub(crate) type QueuePair = Handle<ibv_qp, PairInner>;

fn check(profile: &Profile, asked: &ibv_qp_init_attr) -> Outcome {
    let cap = &asked.cap;
    if asked.qp_type != ibv_qp_type::IBV_QPT_RC {
        // Datagrams, unreliable connections and XRC are not played.
        return Err(libc::EOPNOTSUPP);
    }
    if asked.send_cq.is_null() || asked.recv_cq.is_null() {
        return Err(libc::EINVAL);
    }
    let sizes = cap.max_send_wr.max(cap.max_recv_wr) > profile.max_qp_wr
        || cap.max_send_sge.max(cap.max_recv_sge) > profile.max_sge
        || cap.max_inline_data > profile.inline;
    if sizes {
        return Err(libc::EINVAL);
    }
    // As on NICs: a request is made of blocks of 64 bytes, of which 48 bytes are its head.
    let request = u64::from(48 + cap.max_inline_data).next_multiple_of(64);
    let bytes = request * u64::from(cap.max_send_wr);
    match profile.queue_bytes {
        0 => Ok(()),
        most if bytes <= u64::from(most) => Ok(()),
        _ => Err(libc::ENOMEM),
    }
}

/// # Safety
///
/// Domain, queues and shared queue live, the attributes are read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(
    domain: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: the caller's promise.
    created("ibv_create_qp", || unsafe { make(domain, attr, u64::MAX) })
}

/// `IBV_QP_INIT_ATTR_PD`, `IBV_QP_INIT_ATTR_SEND_OPS_FLAGS`.
const WITH_DOMAIN: u32 = 1;
const WITH_OPERATIONS: u32 = 1 << 6;
/// The operations of `ibv_qp_create_send_ops_flags` that are played.
const PLAYED: u64 = 0x7f;

/// `ibv_create_qp_ex`, with a domain and the operations of requests.
///
/// # Safety
///
/// The context is open; domain, queues and shared queue live; the attributes are read and written.
pub(crate) unsafe extern "C" fn create_qp_ex(
    _: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    created("ibv_create_qp_ex", || {
        // SAFETY: the caller's promise.
        let (mask, asked) = unsafe { ((*attr).comp_mask, (*attr).send_ops_flags) };
        let operations = match mask & WITH_OPERATIONS {
            0 => u64::MAX,
            _ => asked,
        };
        let known = mask & !(WITH_DOMAIN | WITH_OPERATIONS) == 0;
        if !known || mask & WITH_DOMAIN == 0 || operations != u64::MAX && operations & !PLAYED != 0
        {
            return Err(libc::EOPNOTSUPP);
        }
        // SAFETY: the caller's promise. The extended attributes begin with the others.
        unsafe { make((*attr).pd, attr.cast(), operations) }
    })
}

/// Creates a queue pair whose requests have these operations, as `ibv_qp_create_send_ops_flags` numbers them.
///
/// # Safety
///
/// As for [`ibv_create_qp`].
unsafe fn make(
    domain: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
    operations: u64,
) -> Outcome<*mut ibv_qp> {
    engine::start().map_err(|why| {
        eprintln!("softnic: {why}");
        libc::EIO
    })?;
    // SAFETY: the caller's promise.
    let (owner, context, asked) = unsafe { (Domain::of(domain).inner, (*domain).context, *attr) };
    // SAFETY: as above.
    let opened = unsafe { opened(context) };
    let mut world = locked()?;
    let profile = world.devices[opened.device].profile.clone();
    check(&profile, &asked)?;
    let of_card = world
        .pairs
        .values()
        .filter(|pair| pair.device == opened.device);
    if of_card.count() >= profile.max_qp as usize {
        return Err(libc::ENOMEM);
    }
    let number = world.fresh_pair().ok_or(libc::ENOMEM)?;
    let mut cap = asked.cap;
    cap.max_send_sge = cap.max_send_sge.max(1);
    let limits = Limits {
        depth: cap.max_send_wr,
        buffers: cap.max_send_sge,
        inline: cap.max_inline_data,
        message: profile.max_msg,
        operations,
    };
    let atomics = profile.atomics != Atomics::None;
    let send = Arc::new(SendQueue::new(limits, asked.sq_sig_all != 0, atomics));
    let (receive, shared) = match asked.srq.is_null() {
        true => {
            let refused = Some(libc::EINVAL);
            (
                Arc::new(ReceiveQueue::new(
                    cap.max_recv_wr,
                    cap.max_recv_sge.max(1),
                    refused,
                )),
                None,
            )
        }
        false => {
            // SAFETY: the caller's promise.
            let inner = unsafe { &SharedQueue::of(asked.srq).inner };
            (cap.max_recv_wr, cap.max_recv_sge) = (0, 0);
            (Arc::clone(&inner.queue), Some(inner.id))
        }
    };
    let events = Arc::<Given>::default();
    // SAFETY: integers only, for which zero is a value.
    let empty: ibv_qp_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the caller's promise.
    let (send_completions, receive_completions) = unsafe {
        let of = |queue| Arc::clone(&CompletionQueue::of(queue).inner);
        (of(asked.send_cq), of(asked.recv_cq))
    };
    let pair = Pair {
        number,
        card: opened.card,
        device: opened.device,
        owner,
        state: ibv_qp_state::IBV_QPS_RESET,
        attr: empty,
        cap,
        ece: [0; 2],
        stuck: false,
        send: Arc::clone(&send),
        receive: Arc::clone(&receive),
        shared,
        send_completions,
        receive_completions,
        events: Arc::clone(&events),
        ask: Requester::default(),
        answer: Responder::default(),
    };
    let raw = ibv_qp {
        context,
        qp_context: asked.qp_context,
        pd: domain,
        send_cq: asked.send_cq,
        recv_cq: asked.recv_cq,
        srq: asked.srq,
        handle: number,
        qp_num: number,
        state: ibv_qp_state::IBV_QPS_RESET,
        qp_type: asked.qp_type,
        mutex: libc::PTHREAD_MUTEX_INITIALIZER,
        cond: libc::PTHREAD_COND_INITIALIZER,
        events_completed: 0,
    };
    let inner = PairInner {
        number,
        send,
        receive,
        shared: shared.is_some(),
        clock: Arc::clone(&opened.clock),
        events,
    };
    let raw = QueuePair::create(raw, inner);
    world.pointers.insert(number, raw.expose_provenance());
    world.pairs.insert(number, pair);
    COUNTERS.queue_pairs.add(1);
    COUNTERS.newest_queue_pair.set(u64::from(number));
    // SAFETY: the caller's promise.
    unsafe { (*attr).cap = cap };
    Ok(raw)
}

/// # Safety
///
/// The queue pair lives, and is not used any more. Waits until its events are acknowledged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(raw: *mut ibv_qp) -> c_int {
    returned("ibv_destroy_qp", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &QueuePair::of(raw).inner };
        let mut world = locked()?;
        if world.is_stuck(inner.number) {
            return Err(world.stuck_code);
        }
        // Accepted writes are made before: nothing touches memory afterwards.
        world.arrive_all(inner.number);
        world.empty_bus(inner.number, true);
        let pair = world.pairs.remove(&inner.number).ok_or(libc::EINVAL)?;
        world.pointers.remove(&inner.number);
        drop(world);
        pair.send_completions.clean(inner.number);
        pair.receive_completions.clean(inner.number);
        inner.events.wait();
        // SAFETY: freed once.
        unsafe { QueuePair::end(raw) };
        Ok(())
    })
}

/// # Safety
///
/// The queue pair lives, both structures are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp(
    raw: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    returned("ibv_query_qp", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &QueuePair::of(raw).inner };
        let world = locked()?;
        let pair = world.pairs.get(&inner.number).ok_or(libc::EINVAL)?;
        let mut answer = pair.attr;
        (answer.qp_state, answer.cur_qp_state, answer.cap) = (pair.state, pair.state, pair.cap);
        // SAFETY: the caller's promise; the public structure is read alone.
        unsafe {
            attr.write(answer);
            init.write(ibv_qp_init_attr {
                qp_context: (*raw).qp_context,
                send_cq: (*raw).send_cq,
                recv_cq: (*raw).recv_cq,
                srq: (*raw).srq,
                cap: pair.cap,
                qp_type: (*raw).qp_type,
                sq_sig_all: c_int::from(pair.send.signal_all),
            });
        }
        Ok(())
    })
}

/// Gives none: no queue pair has the extended interface for posting.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_qp_to_qp_ex(_: *mut ibv_qp) -> *mut std::ffi::c_void {
    std::ptr::null_mut()
}

/// `IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS`, and its answers for whole messages and for aligned 128 bytes.
const RETURN_CAPS: u32 = 1;
const WHOLE: c_int = 1;
const ALIGNED: c_int = 2;

/// # Safety
///
/// The queue pair lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp_data_in_order(
    raw: *mut ibv_qp,
    _: ibv_wr_opcode::Type,
    flags: c_uint,
) -> c_int {
    let mut answer = 0;
    returned("ibv_query_qp_data_in_order", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &QueuePair::of(raw).inner };
        let world = locked()?;
        let pair = world.pairs.get(&inner.number).ok_or(libc::EINVAL)?;
        let connected = pair.state == ibv_qp_state::IBV_QPS_RTS;
        let profile = &world.devices[pair.device].profile;
        let holds = !profile.order_by_path || pair.attr.dest_qp_num == inner.number;
        if connected && profile.data_in_order && holds {
            answer = if flags & RETURN_CAPS != 0 {
                WHOLE | ALIGNED
            } else {
                1
            };
        }
        Ok(())
    });
    answer
}

/// # Safety
///
/// The queue pair lives, the structure is written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ibv_query_ece(raw: *mut ibv_qp, ece: *mut Ece) -> c_int {
    returned("ibv_query_ece", || {
        // SAFETY: the caller's promise.
        let inner = unsafe { &QueuePair::of(raw).inner };
        let world = locked()?;
        let pair = world.pairs.get(&inner.number).ok_or(libc::EINVAL)?;
        let profile = &world.devices[pair.device].profile;
        if !profile.ece {
            return Err(libc::EOPNOTSUPP);
        }
        let [vendor, options] = match pair.ece {
            // Selective repeat and its kin, of which nothing depends here.
            [0, 0] => [profile.vendor, 0x3],
            set => set,
        };
        let answer = Ece {
            vendor,
            options,
            comp_mask: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { ece.write(answer) };
        Ok(())
    })
}

/// # Safety
///
/// The queue pair lives, the structure is read.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ibv_set_ece(raw: *mut ibv_qp, ece: *mut Ece) -> c_int {
    returned("ibv_set_ece", || {
        // SAFETY: the caller's promise.
        let (inner, asked) = unsafe { (&QueuePair::of(raw).inner, ece.read()) };
        if asked.vendor == 0 {
            return Ok(());
        }
        let mut world = locked()?;
        let device = world.pairs.get(&inner.number).ok_or(libc::EINVAL)?.device;
        let profile = &world.devices[device].profile;
        if !profile.ece {
            return Err(libc::EOPNOTSUPP);
        }
        if asked.vendor != profile.vendor || asked.comp_mask != 0 {
            return Err(libc::EINVAL);
        }
        if let Some(pair) = world.pairs.get_mut(&inner.number) {
            // They are part of the change of state by which it is connected.
            if ![ibv_qp_state::IBV_QPS_RESET, ibv_qp_state::IBV_QPS_INIT].contains(&pair.state) {
                return Err(libc::EINVAL);
            }
            COUNTERS.options_taken.add(1);
            pair.ece = [asked.vendor, asked.options];
        }
        Ok(())
    })
}
