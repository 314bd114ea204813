//! The calls that infiniband/verbs.h defines inline: through the table of the device's provider.

use std::ffi::c_int;

use super::sys::{
    ibv_context, ibv_cq, ibv_device_attr_ex, ibv_port_attr, ibv_qp, ibv_qp_init_attr_ex,
    ibv_recv_wr, ibv_send_wr, ibv_srq, ibv_wc, verbs_context,
};

/// The table of extended calls that lies before a context, if its provider has it as far as byte `from` of the table's
/// end: fields are added at the front.
///
/// # Safety
///
/// The context is open.
unsafe fn extended(context: *mut ibv_context, from: usize) -> Option<*mut verbs_context> {
    // SAFETY: the context is open.
    let is_extended = unsafe { (*context).abi_compat }.addr() == usize::MAX;
    if !is_extended {
        return None;
    }
    let table = context
        .cast::<u8>()
        .wrapping_sub(std::mem::offset_of!(verbs_context, context))
        .cast::<verbs_context>();
    // SAFETY: an extended context has its size directly before it.
    let size = unsafe { (*table).sz };
    (size >= size_of::<verbs_context>() - from).then_some(table)
}

/// Writes the device's extended attributes, as far as the provider knows them.
///
/// # Safety
///
/// The context is open.
pub(super) unsafe fn ibv_query_device_ex(
    context: *mut ibv_context,
    into: &mut ibv_device_attr_ex,
) -> c_int {
    let from = std::mem::offset_of!(verbs_context, query_device_ex);
    // SAFETY: the context is open.
    let Some(table) = (unsafe { extended(context, from) }) else {
        return libc::EOPNOTSUPP;
    };
    // SAFETY: the table reaches to this field.
    match unsafe { (*table).query_device_ex } {
        // SAFETY: the context is open, at most the structure's size is written.
        Some(query) => unsafe { query(context, std::ptr::null(), into, size_of_val(into)) },
        None => libc::EOPNOTSUPP,
    }
}

/// Writes a port's attributes with the fields that were added later; none if the provider has no such call, and the
/// library's function, which writes the older ones, is to be called.
///
/// # Safety
///
/// The context is open.
pub(super) unsafe fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    into: &mut ibv_port_attr,
) -> Option<c_int> {
    let from = std::mem::offset_of!(verbs_context, query_port);
    // SAFETY: the context is open.
    let table = unsafe { extended(context, from) }?;
    // SAFETY: the table reaches to this field.
    let query = unsafe { (*table).query_port }?;
    // SAFETY: the context is open, at most the structure's size is written.
    Some(unsafe { query(context, port, into, size_of_val(into)) })
}

/// Creates a queue pair by the provider's extended call; none if it has no such call. Else as `ibv_create_qp`.
///
/// # Safety
///
/// The context is open, all that the attributes name lives; they are read and updated.
pub(super) unsafe fn ibv_create_qp_ex(
    context: *mut ibv_context,
    attr: &mut ibv_qp_init_attr_ex,
) -> Option<*mut ibv_qp> {
    let from = std::mem::offset_of!(verbs_context, create_qp_ex);
    // SAFETY: the context is open.
    let table = unsafe { extended(context, from) }?;
    // SAFETY: the table reaches to this field.
    let create = unsafe { (*table).create_qp_ex }?;
    // SAFETY: the caller's promise.
    Some(unsafe { create(context, attr) })
}

/// # Safety
///
/// The queue pair lives; `first` begins a list of sound requests; `bad` is written.
#[inline]
pub(super) unsafe fn ibv_post_send(
    pair: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the queue pair lives, and so does its context.
    let post = unsafe { (*(*pair).context).ops.post_send };
    // SAFETY: every provider sets the operation; the arguments are the caller's promise.
    unsafe { post.unwrap_unchecked()(pair, first, bad) }
}

/// # Safety
///
/// The queue lives; `into` has room for `room` completions.
#[inline]
pub(super) unsafe fn ibv_poll_cq(queue: *mut ibv_cq, room: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: the queue lives, and so does its context.
    let poll = unsafe { (*(*queue).context).ops.poll_cq };
    // SAFETY: every provider sets the operation; the arguments are the caller's promise.
    unsafe { poll.unwrap_unchecked()(queue, room, into) }
}

/// # Safety
///
/// The queue lives.
#[inline]
pub(super) unsafe fn ibv_req_notify_cq(queue: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the queue lives, and so does its context.
    match unsafe { (*(*queue).context).ops.req_notify_cq } {
        // SAFETY: the queue lives.
        Some(arm) => unsafe { arm(queue, solicited_only) },
        None => libc::EOPNOTSUPP,
    }
}

/// # Safety
///
/// The queue pair lives; `first` begins a list of sound requests; `bad` is written.
#[inline]
pub(super) unsafe fn ibv_post_recv(
    pair: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the queue pair lives, and so does its context.
    match unsafe { (*(*pair).context).ops.post_recv } {
        // SAFETY: the arguments are the caller's promise.
        Some(post) => unsafe { post(pair, first, bad) },
        None => libc::EOPNOTSUPP,
    }
}

/// # Safety
///
/// The queue lives; `first` begins a list of sound requests; `bad` is written.
#[inline]
pub(super) unsafe fn ibv_post_srq_recv(
    queue: *mut ibv_srq,
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the queue lives, and so does its context.
    match unsafe { (*(*queue).context).ops.post_srq_recv } {
        // SAFETY: the arguments are the caller's promise.
        Some(post) => unsafe { post(queue, first, bad) },
        None => libc::EOPNOTSUPP,
    }
}
