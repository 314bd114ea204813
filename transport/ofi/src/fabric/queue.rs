//! Completion queues, and the results of calls.

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
