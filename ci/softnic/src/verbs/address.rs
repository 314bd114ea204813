//! Address handles, which only datagrams need: made and freed, and used by nothing here.

use std::ffi::{c_int, c_void};

use crate::abi::sys::{ibv_ah, ibv_ah_attr, ibv_gid, ibv_pd, ibv_qp};
use crate::object::{Handle, created, returned};
use crate::verbs::context::{locked, opened};

type AddressHandle = Handle<ibv_ah, ()>;

/// # Safety
///
/// The domain lives, the attributes are read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah(domain: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    created("ibv_create_ah", || {
        // SAFETY: the caller's promise.
        let (context, asked) = unsafe { ((*domain).context, *attr) };
        // SAFETY: as above.
        let opened = unsafe { opened(context) };
        let device = &locked()?.devices[opened.device];
        let port = device.port(asked.port_num).ok_or(libc::EINVAL)?;
        let source = port
            .gids
            .get(usize::from(asked.grh.sgid_index))
            .copied()
            .flatten();
        if asked.is_global != 0 && source.is_none() || asked.is_global == 0 && device.ethernet() {
            return Err(libc::EINVAL);
        }
        let raw = ibv_ah {
            context,
            pd: domain,
            handle: 0,
        };
        Ok(AddressHandle::create(raw, ()))
    })
}

/// # Safety
///
/// The handle lives, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_ah(handle: *mut ibv_ah) -> c_int {
    returned("ibv_destroy_ah", || {
        // SAFETY: freed once.
        unsafe { AddressHandle::end(handle) };
        Ok(())
    })
}

/// Refuses: there are no datagrams here.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_init_ah_from_wc(
    _: *mut c_void,
    _: u8,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    libc::EOPNOTSUPP
}

/// Refuses: there are no datagrams here.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_ah_from_wc(
    _: *mut ibv_pd,
    _: *mut c_void,
    _: *mut c_void,
    _: u8,
) -> *mut ibv_ah {
    created("ibv_create_ah_from_wc", || Err(libc::EOPNOTSUPP))
}

/// Refuses: there is no multicast here.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_attach_mcast(_: *mut ibv_qp, _: *const ibv_gid, _: u16) -> c_int {
    libc::EOPNOTSUPP
}

/// Refuses: there is no multicast here.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_detach_mcast(_: *mut ibv_qp, _: *const ibv_gid, _: u16) -> c_int {
    libc::EOPNOTSUPP
}
