//! The states of a queue pair, and the attributes that each change of state takes.

use std::ffi::c_int;

use crate::abi::sys::{
    ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as set, ibv_qp_state,
    ibv_qp_state::{
        IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD,
    },
};
use crate::counters::COUNTERS;
use crate::device::Device;
use crate::engine;
use crate::faults::meet_on_cue;
use crate::object::{Outcome, returned};
use crate::pair::{Pair, Requester, Responder};
use crate::profile::Atomics;
use crate::verbs::context::locked;
use crate::verbs::pairs::QueuePair;
use crate::world::World;

const ACCESS: u32 = set::IBV_QP_ACCESS_FLAGS.0;
const PORT: u32 = set::IBV_QP_PORT.0;
const PKEY: u32 = set::IBV_QP_PKEY_INDEX.0;
const ADDRESS: u32 = set::IBV_QP_AV.0;
const TIMER: u32 = set::IBV_QP_MIN_RNR_TIMER.0;
const READS_OUT: u32 = set::IBV_QP_MAX_QP_RD_ATOMIC.0;
const READS_IN: u32 = set::IBV_QP_MAX_DEST_RD_ATOMIC.0;

const TO_INIT: u32 = PKEY | PORT | ACCESS;
const TO_RTR: u32 = ADDRESS
    | set::IBV_QP_PATH_MTU.0
    | set::IBV_QP_DEST_QPN.0
    | set::IBV_QP_RQ_PSN.0
    | READS_IN
    | TIMER;
const TO_RTS: u32 = set::IBV_QP_TIMEOUT.0
    | set::IBV_QP_RETRY_CNT.0
    | set::IBV_QP_RNR_RETRY.0
    | set::IBV_QP_SQ_PSN.0
    | READS_OUT;
/// Attributes that say nothing here: the current state, another path, a rate.
const IGNORED: u32 = set::IBV_QP_CUR_STATE.0
    | set::IBV_QP_EN_SQD_ASYNC_NOTIFY.0
    | set::IBV_QP_ALT_PATH.0
    | set::IBV_QP_PATH_MIG_STATE.0
    | set::IBV_QP_RATE_LIMIT.0;

/// The attributes that a change of a reliable connection's state needs, and may have.
fn table(from: ibv_qp_state::Type, to: ibv_qp_state::Type) -> Outcome<(u32, u32)> {
    Ok(match (from, to) {
        (_, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (TO_INIT, 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, TO_INIT),
        (IBV_QPS_INIT, IBV_QPS_RTR) => (TO_RTR, PKEY | ACCESS),
        (IBV_QPS_RTR, IBV_QPS_RTS) => (TO_RTS, ACCESS | TIMER),
        (IBV_QPS_RTS, IBV_QPS_RTS) => (0, ACCESS | TIMER),
        (IBV_QPS_RTS, IBV_QPS_SQD) => (0, 0),
        (IBV_QPS_SQD, IBV_QPS_RTS | IBV_QPS_SQD) => {
            (0, TO_INIT | ADDRESS | TO_RTS | TIMER | READS_IN)
        }
        _ => return Err(libc::EINVAL),
    })
}

/// Whether a device takes the attributes of a change.
fn check(device: &Device, pair: &Pair, attr: &ibv_qp_attr, mask: u32) -> Outcome {
    let has = |bits: u32| mask & bits != 0;
    let require = |fine: bool| if fine { Ok(()) } else { Err(libc::EINVAL) };
    let number = if has(PORT) {
        attr.port_num
    } else {
        pair.attr.port_num
    };
    if has(PORT | PKEY | ADDRESS) {
        let port = device.port(number).ok_or(libc::EINVAL)?;
        if has(PKEY) {
            let key = port.pkeys.get(usize::from(attr.pkey_index));
            require(key.is_some_and(|key| key & 0x7fff != 0))?;
        }
        if has(ADDRESS) {
            let (address, route) = (&attr.ah_attr, &attr.ah_attr.grh);
            require(address.port_num == number && address.sl < 16)?;
            match address.is_global != 0 {
                true => {
                    let source = port
                        .gids
                        .get(usize::from(route.sgid_index))
                        .copied()
                        .flatten();
                    let kind = source.ok_or(libc::EINVAL)?.kind;
                    require(!device.ethernet() || kind == 1 || kind == 2)?;
                    require(route.flow_label < 1 << 20)?;
                }
                false => require(!device.ethernet())?,
            }
            require(device.ethernet() || address.dlid != 0)?;
        }
    }
    if has(set::IBV_QP_PATH_MTU.0) {
        require((1..=device.profile.mtu).contains(&attr.path_mtu))?;
    }
    let reads = device.profile.max_rd_atomic;
    require(!has(READS_IN) || u32::from(attr.max_dest_rd_atomic) <= reads)?;
    require(!has(READS_OUT) || u32::from(attr.max_rd_atomic) <= reads)?;
    let atomics = has(ACCESS) && attr.qp_access_flags & 8 != 0;
    let refused = device.profile.refuse_atomic_access && device.profile.atomics == Atomics::None;
    require(!(atomics && refused))?;
    require(!has(set::IBV_QP_TIMEOUT.0) || attr.timeout < 32)?;
    require(!has(set::IBV_QP_RETRY_CNT.0) || attr.retry_cnt < 8)?;
    require(!has(set::IBV_QP_RNR_RETRY.0) || attr.rnr_retry < 8)
}

/// Takes the attributes that the mask names.
fn take(pair: &mut Pair, attr: &ibv_qp_attr, mask: u32) {
    let has = |bits: u32| mask & bits != 0;
    let own = &mut pair.attr;
    if has(ACCESS) {
        own.qp_access_flags = attr.qp_access_flags;
    }
    if has(PORT) {
        own.port_num = attr.port_num;
    }
    if has(PKEY) {
        own.pkey_index = attr.pkey_index;
    }
    if has(ADDRESS) {
        own.ah_attr = attr.ah_attr;
        if attr.ah_attr.is_global != 0 {
            let label = attr.ah_attr.grh.flow_label;
            COUNTERS.newest_flow_label.set(u64::from(label));
        }
    }
    if has(TIMER) {
        own.min_rnr_timer = attr.min_rnr_timer;
    }
    if has(READS_OUT) {
        own.max_rd_atomic = attr.max_rd_atomic;
    }
    if has(READS_IN) {
        own.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    }
    if has(set::IBV_QP_PATH_MTU.0) {
        own.path_mtu = attr.path_mtu;
    }
    if has(set::IBV_QP_DEST_QPN.0) {
        own.dest_qp_num = attr.dest_qp_num & 0x00ff_ffff;
    }
    if has(set::IBV_QP_RQ_PSN.0) {
        own.rq_psn = attr.rq_psn & 0x00ff_ffff;
    }
    if has(set::IBV_QP_SQ_PSN.0) {
        own.sq_psn = attr.sq_psn & 0x00ff_ffff;
    }
    if has(set::IBV_QP_TIMEOUT.0) {
        own.timeout = attr.timeout;
    }
    if has(set::IBV_QP_RETRY_CNT.0) {
        own.retry_cnt = attr.retry_cnt;
        pair.ask.retries = attr.retry_cnt;
    }
    if has(set::IBV_QP_RNR_RETRY.0) {
        own.rnr_retry = attr.rnr_retry;
        pair.ask.pauses = attr.rnr_retry;
    }
}

/// Enters a state.
fn enter(world: &mut World, number: u32, state: ibv_qp_state::Type) {
    if state == IBV_QPS_ERR {
        return world.fail(number, None);
    }
    if state == IBV_QPS_RESET {
        world.arrive_all(number);
        world.empty_bus(number, true);
    }
    let Some(pair) = world.pairs.get_mut(&number) else {
        return;
    };
    pair.state = state;
    pair.attr.qp_state = state;
    match state {
        IBV_QPS_RESET => {
            pair.send.reset();
            if pair.shared.is_none() {
                pair.receive.clear();
                pair.receive.accept(Some(libc::EINVAL));
            }
            (pair.ask, pair.answer) = (Requester::default(), Responder::default());
            pair.send_completions.clean(number);
            pair.receive_completions.clean(number);
        }
        IBV_QPS_INIT if pair.shared.is_none() => pair.receive.accept(None),
        IBV_QPS_RTS => pair.send.accept(None),
        _ => {}
    }
}

/// # Safety
///
/// The queue pair lives, the attributes are read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(
    raw: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    mask: c_int,
) -> c_int {
    returned("ibv_modify_qp", || {
        // SAFETY: the caller's promise.
        let (inner, asked) = unsafe { (&QueuePair::of(raw).inner, *attr) };
        let mask = mask as u32;
        let mut guard = locked()?;
        let world = &mut *guard;
        world.now = std::time::Instant::now();
        let fails = mask & set::IBV_QP_STATE.0 != 0 && asked.qp_state == IBV_QPS_ERR;
        if fails && world.is_stuck(inner.number) {
            return Err(world.stuck_code);
        }
        let pair = world.pairs.get_mut(&inner.number).ok_or(libc::EINVAL)?;
        let device = &world.devices[pair.device];
        let to = match mask & set::IBV_QP_STATE.0 != 0 {
            true => asked.qp_state,
            false => pair.state,
        };
        let (needed, optional) = table(pair.state, to)?;
        let given = mask & !set::IBV_QP_STATE.0 & !IGNORED;
        if given & needed != needed || given & !(needed | optional) != 0 {
            return Err(libc::EINVAL);
        }
        check(device, pair, &asked, mask)?;
        let slow = device.profile.modify;
        take(pair, &asked, given);
        enter(world, inner.number, to);
        // SAFETY: the caller's promise: nobody else changes the state meanwhile.
        unsafe { (*raw).state = to };
        drop(guard);
        if !slow.is_zero() {
            std::thread::sleep(slow);
        }
        if to == IBV_QPS_RTR {
            meet_on_cue()?;
        }
        engine::ring(inner.number);
        Ok(())
    })
}
