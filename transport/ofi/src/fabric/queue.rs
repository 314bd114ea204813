//! Completion queues, and the results of calls.

use std::fs;
use std::os::fd::RawFd;
use std::sync::Arc;

use oxshmem_transport::Result;

use super::library::Library;
use super::open::OpenDomain;
use super::sys;

/// The result of a call that returns 0 or a negative error number.
pub(super) fn check(library: &Library, call: &str, code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(library.failed(call, code as isize)),
    }
}

/// The error number of a call that a provider lacks.
pub(super) const MISSING: i32 = -(sys::FI_ENOSYS as i32);

/// Opens a completion queue, with a descriptor to sleep on if the provider has such.
pub(super) fn open_queue(
    domain: &Arc<OpenDomain>,
    entries: u32,
) -> Result<(*mut sys::fid_cq, Option<RawFd>)> {
    let open = domain.domain();
    let open_as = |wait| {
        // SAFETY: zero is a value of every field.
        let mut attributes: sys::fi_cq_attr = unsafe { std::mem::zeroed() };
        attributes.size = entries as usize;
        attributes.format = sys::fi_cq_format::FI_CQ_FORMAT_MSG;
        attributes.wait_obj = wait;
        let mut cq = std::ptr::null_mut();
        // SAFETY: the domain is open; the attributes live during the call.
        let code = unsafe {
            let ops = (*open).ops;
            let (attributes, cq) = (&raw mut attributes, &raw mut cq);
            (*ops)
                .cq_open
                .map_or(MISSING, |f| f(open, attributes, cq, std::ptr::null_mut()))
        };
        (code, cq)
    };
    let (code, cq) = open_as(sys::fi_wait_obj::FI_WAIT_FD);
    if code == 0 {
        let mut fd: RawFd = -1;
        // SAFETY: the queue is open; the descriptor is an int.
        let code = unsafe {
            let fid = &raw mut (*cq).fid;
            let control = (*(*fid).ops).control;
            let command = sys::_bindgen_ty_7::FI_GETWAIT as i32;
            control.map_or(MISSING, |f| f(fid, command, (&raw mut fd).cast()))
        };
        return Ok((cq, (code == 0 && fd >= 0).then_some(fd)));
    }
    let (code, cq) = open_as(sys::fi_wait_obj::FI_WAIT_NONE);
    check(domain.library(), "fi_cq_open", code)?;
    Ok((cq, None))
}

/// The descriptor to sleep on in the stead of a queue's own: that of the sockets' events alone, if it is part of the queue's.
///
/// The queue's own has a second part, which tells that an operation has ended. A sleeper here has taken all ends before, and another thread that
/// takes some wakes it. And the provider `net` of libfabric 1.17 never takes that mark back (its `fi_trywait` does nothing): from the first
/// end on, a sleep on the queue's own descriptor ends at once.
pub(super) fn of_sockets(queue: RawFd) -> RawFd {
    let parts = fs::read_to_string(format!("/proc/self/fdinfo/{queue}")).unwrap_or_default();
    let parts = parts.lines().filter_map(|line| {
        let number = line.strip_prefix("tfd:")?.split_whitespace().next()?;
        number.parse::<RawFd>().ok()
    });
    let is_set = |part: &RawFd| {
        let kind = fs::read_link(format!("/proc/self/fd/{part}"));
        kind.is_ok_and(|kind| kind.to_string_lossy() == "anon_inode:[eventpoll]")
    };
    let sets: Vec<_> = parts.filter(is_set).collect();
    match sets[..] {
        [one] => one,
        _ => queue,
    }
}
