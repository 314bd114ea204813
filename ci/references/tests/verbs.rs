//! The declarations of libibverbs in `oxshmem-verbs`, compared with the headers, with rdma-mummy-sys and with the library.

use std::ffi::CString;
use std::mem::offset_of;

use oxshmem_references::{CHECKED_IN, FUNCTIONS, verbs};
use rdma_sys as theirs;

#[rustfmt::skip]
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]
#[path = "../../../transport/verbs/src/ibv/sys.rs"]
mod sys;

#[test]
fn the_bindings_that_are_checked_in_are_current() {
    let checked_in = std::fs::read_to_string(CHECKED_IN).unwrap();
    let made = verbs().unwrap();
    let mut lines = checked_in.lines().zip(made.lines()).enumerate();
    let first = lines.find(|(_, (checked_in, made))| checked_in != made);
    assert!(
        checked_in == made,
        "{CHECKED_IN} is not what the headers give: run ci/bindings; the first difference: {first:?}"
    );
}

/// Asserts that structures have the same size, and that fields lie at the same offsets. Where the two crates call a
/// field otherwise, rdma-mummy-sys' name stands behind.
macro_rules! assert_same_layout {
    ($($name:ident { $($field:ident $(= $other:ident)?),* $(,)? })*) => {$(
        assert_eq!(size_of::<sys::$name>(), size_of::<theirs::$name>(), stringify!($name));
        assert_eq!(align_of::<sys::$name>(), align_of::<theirs::$name>(), stringify!($name));
        $(assert_same_layout!(@ $name $field $($other)?);)*
    )*};
    (@ $name:ident $field:ident) => { assert_same_layout!(@ $name $field $field) };
    (@ $name:ident $field:ident $other:ident) => {
        assert_eq!(
            offset_of!(sys::$name, $field),
            offset_of!(theirs::$name, $other),
            "{}.{}", stringify!($name), stringify!($field)
        )
    };
}

#[test]
fn structures_are_laid_out_as_in_rdma_mummy_sys() {
    assert_same_layout! {
        ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_async_event { element, event_type }
        ibv_comp_channel { context, fd }
        ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat }
        ibv_context_ops { poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv }
        ibv_cq { context, channel, cq_context, handle, cqe, mutex, cond, async_events_completed }
        ibv_device { node_type, transport_type, name, dev_name, dev_path, ibdev_path }
        ibv_device_attr {
            max_qp, max_qp_wr, max_cqe, max_srq, max_srq_wr, max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap,
            vendor_id, phys_port_cnt,
        }
        ibv_gid { raw, global }
        ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex }
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_mr { context, pd, addr, length, handle, lkey, rkey }
        ibv_pd { context, handle }
        ibv_port_attr {
            state, active_mtu, max_msg_sz, pkey_tbl_len, lid, active_width, active_speed, link_layer, flags,
        }
        ibv_qp { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond }
        ibv_qp_attr {
            qp_state, path_mtu, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, pkey_index,
            max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
        }
        ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_recv_wr { wr_id, next, sg_list, num_sge }
        ibv_send_wr {
            wr_id, next, sg_list, num_sge, opcode, send_flags,
            __bindgen_anon_1 = imm_data_invalidated_rkey_union, wr, qp_type,
            __bindgen_anon_2 = bind_mw_tso_union,
        }
        ibv_sge { addr, length, lkey }
        ibv_srq { context, srq_context, pd, handle, mutex, cond, events_completed }
        ibv_srq_attr { max_wr, max_sge, srq_limit }
        ibv_srq_init_attr { srq_context, attr }
        ibv_wc {
            wr_id, status, opcode, vendor_err, byte_len, __bindgen_anon_1 = imm_data_invalidated_rkey_union,
            qp_num, src_qp, wc_flags, pkey_index, slid, sl, dlid_path_bits,
        }
    }
    // The remote side of a request: write and read, atomic.
    type Plain = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_1;
    type Atomic = sys::ibv_send_wr__bindgen_ty_2__bindgen_ty_2;
    assert_eq!(offset_of!(Plain, rkey), offset_of!(theirs::rdma_t, rkey));
    assert_eq!(offset_of!(Atomic, swap), offset_of!(theirs::atomic_t, swap));
    assert_eq!(offset_of!(Atomic, rkey), offset_of!(theirs::atomic_t, rkey));
}

/// Asserts that constants are the same.
macro_rules! assert_same_values {
    ($($kind:ident { $($name:ident),* $(,)? })*) => {$($(
        assert_eq!(sys::$kind::$name, theirs::$kind::$name, stringify!($name));
    )*)*};
    (bits: $($kind:ident { $($name:ident),* $(,)? })*) => {$($(
        assert_eq!(sys::$kind::$name.0, theirs::$kind::$name.0, stringify!($name));
    )*)*};
}

#[test]
fn constants_are_as_in_rdma_mummy_sys() {
    assert_same_values! {
        ibv_atomic_cap { IBV_ATOMIC_NONE, IBV_ATOMIC_HCA, IBV_ATOMIC_GLOB }
        ibv_port_state { IBV_PORT_ACTIVE, IBV_PORT_ACTIVE_DEFER }
        ibv_qp_state { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR }
        ibv_qp_type { IBV_QPT_RC }
        ibv_transport_type { IBV_TRANSPORT_IB }
        ibv_wc_status {
            IBV_WC_SUCCESS, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_INV_REQ_ERR,
            IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
            IBV_WC_REM_ABORT_ERR, IBV_WC_FATAL_ERR, IBV_WC_RESP_TIMEOUT_ERR,
        }
        ibv_wr_opcode {
            IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
            IBV_WR_ATOMIC_FETCH_AND_ADD,
        }
    }
    assert_same_values! { bits:
        ibv_access_flags {
            IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC,
            IBV_ACCESS_RELAXED_ORDERING,
        }
        ibv_qp_attr_mask {
            IBV_QP_STATE, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_PATH_MTU,
            IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_TIMEOUT,
            IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_SQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC,
        }
        ibv_send_flags { IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE }
    }
    assert_eq!(
        sys::ibv_fork_status::IBV_FORK_UNNEEDED,
        theirs::IBV_FORK_UNNEEDED
    );
}

/// libibverbs has most functions twice: for programs of 2005 too, whose structures were others.
#[test]
fn a_function_that_is_looked_up_by_name_is_the_newest_of_that_name() {
    // SAFETY: a name, and flags; the initializers of libibverbs have no precondition.
    let library = unsafe { libc::dlopen(c"libibverbs.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(
        !library.is_null(),
        "libibverbs.so.1 is not there: run ci/setup"
    );
    let mut old = 0;
    for name in FUNCTIONS {
        let name = CString::new(*name).unwrap();
        // SAFETY: an open library and C strings.
        let (found, first) = unsafe {
            let version = c"IBVERBS_1.0".as_ptr();
            (
                libc::dlsym(library, name.as_ptr()),
                libc::dlvsym(library, name.as_ptr(), version),
            )
        };
        assert!(!found.is_null(), "{name:?}");
        // These two have no newer one.
        let only = matches!(
            name.to_str(),
            Ok("ibv_create_comp_channel" | "ibv_destroy_comp_channel")
        );
        assert!(only || found != first, "{name:?} is that of IBVERBS_1.0");
        old += usize::from(!first.is_null());
    }
    assert!(old > 15, "{old} functions are there twice");
}
