//! Queries of devices and ports.

use std::ffi::c_int;

use crate::abi::sys::{
    __be16, _compat_ibv_port_attr, ibv_atomic_cap, ibv_context, ibv_device_attr,
    ibv_device_attr_ex, ibv_gid, ibv_gid_entry, ibv_pci_atomic_caps, ibv_port_attr, ibv_port_state,
    ibv_query_device_ex_input,
};
use crate::device::{Device, Gid};
use crate::object::{Outcome, returned};
use crate::profile::{Atomics, Link};
use crate::verbs::context::{locked, opened};

/// `IBV_DEVICE_PORT_ACTIVE_EVENT`, `_SYS_IMAGE_GUID`, `_RC_RNR_NAK_GEN` and `_SRQ_RESIZE`.
const CAPABILITIES: u32 = 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13;
/// `IBV_QPF_GRH_REQUIRED`.
const ROUTE_REQUIRED: u8 = 1;
/// `IBV_LINK_LAYER_INFINIBAND`, `_ETHERNET`.
const LAYERS: [u8; 2] = [1, 2];

fn attributes(device: &Device) -> ibv_device_attr {
    let profile = &device.profile;
    let number = |value: u32| c_int::try_from(value).unwrap_or(c_int::MAX);
    // SAFETY: integers only, for which zero is a value.
    let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
    let version = format!("softnic {}", profile.name);
    for (to, from) in attr.fw_ver.iter_mut().take(63).zip(version.bytes()) {
        *to = from as std::ffi::c_char;
    }
    attr.node_guid = device.guid.to_be();
    attr.sys_image_guid = device.guid.to_be();
    attr.max_mr_size = profile.max_mr_size;
    attr.page_size_cap = 0xffff_f000;
    (attr.vendor_id, attr.vendor_part_id) = (profile.vendor, profile.part);
    attr.max_qp = number(profile.max_qp);
    attr.max_qp_wr = number(profile.max_qp_wr);
    attr.device_cap_flags = CAPABILITIES;
    (attr.max_sge, attr.max_sge_rd) = (number(profile.max_sge), number(profile.max_sge));
    (attr.max_cq, attr.max_cqe) = (number(profile.max_cq), number(profile.max_cqe));
    (attr.max_mr, attr.max_pd) = (number(profile.max_mr), 1 << 15);
    attr.max_qp_rd_atom = number(profile.max_rd_atomic);
    attr.max_qp_init_rd_atom = number(profile.max_rd_atomic);
    attr.max_res_rd_atom = number(profile.max_rd_atomic).saturating_mul(attr.max_qp);
    attr.atomic_cap = match profile.atomics {
        Atomics::None => ibv_atomic_cap::IBV_ATOMIC_NONE,
        Atomics::Hca => ibv_atomic_cap::IBV_ATOMIC_HCA,
        Atomics::Glob | Atomics::Claimed => ibv_atomic_cap::IBV_ATOMIC_GLOB,
    };
    attr.max_ah = 1 << 15;
    if profile.srq {
        (attr.max_srq, attr.max_srq_wr, attr.max_srq_sge) =
            (1 << 15, number(profile.max_srq_wr), 1);
    }
    attr.max_pkeys = profile.pkeys as u16;
    attr.local_ca_ack_delay = 16;
    attr.phys_port_cnt = profile.ports as u8;
    attr
}

/// # Safety
///
/// The context is open, `attr` is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    returned("ibv_query_device", || {
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let attributes = attributes(&locked()?.devices[opened.device]);
        // SAFETY: the caller's promise.
        unsafe { attr.write(attributes) };
        Ok(())
    })
}

/// `ibv_query_device_ex`.
///
/// # Safety
///
/// The context is open, `size` bytes of `attr` are written.
pub(crate) unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    _: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    returned("ibv_query_device_ex", || {
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let world = locked()?;
        let device = &world.devices[opened.device];
        // SAFETY: integers only, for which zero is a value.
        let mut all: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
        all.orig_attr = attributes(device);
        if device.profile.pci_atomics {
            // Bits of sizes: 4 bytes, 8 bytes, and for the third operation 16.
            all.pci_atomic_caps = ibv_pci_atomic_caps {
                fetch_add: 1 | 2,
                swap: 1 | 2,
                compare_swap: 1 | 2 | 4,
            };
        }
        all.phys_port_cnt_ex = device.profile.ports;
        if size < size_of::<ibv_device_attr>() {
            return Err(libc::EINVAL);
        }
        let size = size.min(size_of::<ibv_device_attr_ex>());
        // SAFETY: as many bytes as the caller has, and as there are.
        unsafe { std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), attr.cast(), size) };
        Ok(())
    })
}

/// Width and speed for a rate in Gb/s, as the specification numbers them.
fn speed(rate: u32) -> (u8, u8) {
    match rate {
        0..=10 => (1, 4),
        11..=40 => (2, 4),
        41..=100 => (2, 32),
        101..=200 => (2, 64),
        // XDR is told by the newer field.
        _ => (2, 128),
    }
}

/// The speed of XDR, which only the newer field holds; 0 for lower ones.
fn newer_speed(rate: u32) -> u32 {
    if rate > 400 { 256 } else { 0 }
}

fn port_attributes(device: &Device, number: u8) -> Outcome<ibv_port_attr> {
    let port = device.port(number).ok_or(libc::EINVAL)?;
    let profile = &device.profile;
    // SAFETY: integers only, for which zero is a value.
    let mut attr: ibv_port_attr = unsafe { std::mem::zeroed() };
    let infiniband = profile.link == Link::InfiniBand;
    (attr.state, attr.phys_state) = match port.up {
        true => (ibv_port_state::IBV_PORT_ACTIVE, 5),
        false => (ibv_port_state::IBV_PORT_DOWN, 3),
    };
    (attr.max_mtu, attr.active_mtu) = (5, profile.mtu);
    attr.gid_tbl_len = port.gids.len().max(16) as c_int;
    attr.max_msg_sz = profile.max_msg;
    attr.pkey_tbl_len = profile.pkeys as u16;
    (attr.lid, attr.sm_lid) = (port.lid, u16::from(infiniband));
    attr.max_vl_num = 3;
    attr.subnet_timeout = 18;
    (attr.active_width, attr.active_speed) = speed(profile.rate);
    attr.active_speed_ex = newer_speed(profile.rate);
    (attr.link_layer, attr.flags) = match infiniband {
        true => (LAYERS[0], 0),
        false => (LAYERS[1], ROUTE_REQUIRED),
    };
    Ok(attr)
}

/// `ibv_query_port` of newer programs.
///
/// # Safety
///
/// The context is open, `size` bytes of `attr` are written.
pub(crate) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    size: usize,
) -> c_int {
    returned("ibv_query_port", || {
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let all = port_attributes(&locked()?.devices[opened.device], port)?;
        let size = size.min(size_of::<ibv_port_attr>());
        // SAFETY: as many bytes as the caller has, and as there are.
        unsafe { std::ptr::copy_nonoverlapping((&raw const all).cast::<u8>(), attr.cast(), size) };
        Ok(())
    })
}

/// The size of `ibv_port_attr` in programs that call the function: without the fields after `flags`.
const OLD_SIZE: usize = 48;

/// # Safety
///
/// The context is open, the first 48 bytes of `attr` are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut _compat_ibv_port_attr,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { query_port(context, port, attr.cast(), OLD_SIZE) }
}

fn entry(port: u32, index: usize, gid: &Gid) -> ibv_gid_entry {
    ibv_gid_entry {
        gid: ibv_gid { raw: gid.raw },
        gid_index: index as u32,
        port_num: port,
        gid_type: gid.kind,
        ndev_ifindex: 0,
    }
}

/// # Safety
///
/// The context is open, at most `most` entries of `size` bytes are written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    most: usize,
    flags: u32,
    size: usize,
) -> isize {
    let mut count = 0;
    let code = returned("ibv_query_gid_table", || {
        if flags != 0 || size < size_of::<ibv_gid_entry>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let world = locked()?;
        let ports = (1..).zip(&world.devices[opened.device].ports);
        let all = ports.flat_map(|(port, table)| {
            let gids = table.gids.iter().enumerate();
            gids.filter_map(move |(index, gid)| Some(entry(port, index, gid.as_ref()?)))
        });
        for one in all.take(most) {
            // SAFETY: fewer than `most` entries of `size` bytes are before it.
            unsafe { entries.byte_add(count * size).write(one) };
            count += 1;
        }
        Ok(())
    });
    if code == 0 {
        count as isize
    } else {
        -(code as isize)
    }
}

fn gid_at(context: *mut ibv_context, port: u32, index: u32) -> Outcome<Option<Gid>> {
    // SAFETY: the callers have it of theirs.
    let opened = unsafe { opened(context) };
    let world = locked()?;
    let port = u8::try_from(port).map_err(|_| libc::EINVAL)?;
    let table = &world.devices[opened.device]
        .port(port)
        .ok_or(libc::EINVAL)?
        .gids;
    match table.get(index as usize) {
        Some(gid) => Ok(*gid),
        None if index < 16 => Ok(None),
        None => Err(libc::EINVAL),
    }
}

/// # Safety
///
/// The context is open, `into` is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    into: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    returned("ibv_query_gid_ex", || {
        if flags != 0 || size < size_of::<ibv_gid_entry>() {
            return Err(libc::EINVAL);
        }
        let gid = gid_at(context, port, index)?.ok_or(libc::ENODATA)?;
        // SAFETY: the caller's promise.
        unsafe { into.write(entry(port, index as usize, &gid)) };
        Ok(())
    })
}

/// # Safety
///
/// The context is open, `gid` is written. An empty entry is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ibv_gid,
) -> c_int {
    let code = returned("ibv_query_gid", || {
        let index = u32::try_from(index).map_err(|_| libc::EINVAL)?;
        let found = gid_at(context, port.into(), index)?;
        let raw = found.map_or([0; 16], |gid| gid.raw);
        // SAFETY: the caller's promise.
        unsafe { gid.write(ibv_gid { raw }) };
        Ok(())
    });
    if code == 0 { 0 } else { -1 }
}

/// `enum ibv_gid_type_sysfs`: programs that ask by the older, private call.
///
/// # Safety
///
/// The context is open, `kind` is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: u32,
    kind: *mut u32,
) -> c_int {
    let code = returned("ibv_query_gid_type", || {
        let gid = gid_at(context, port.into(), index)?.ok_or(libc::ENODATA)?;
        // SAFETY: the caller's promise.
        unsafe { kind.write(u32::from(gid.kind == 2)) };
        Ok(())
    });
    if code == 0 { 0 } else { -1 }
}

/// # Safety
///
/// The context is open, `key` is written, in network order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    key: *mut __be16,
) -> c_int {
    let code = returned("ibv_query_pkey", || {
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let world = locked()?;
        let table = &world.devices[opened.device]
            .port(port)
            .ok_or(libc::EINVAL)?
            .pkeys;
        let index = usize::try_from(index).map_err(|_| libc::EINVAL)?;
        let found = table.get(index).ok_or(libc::EINVAL)?;
        // SAFETY: the caller's promise.
        unsafe { key.write(found.to_be()) };
        Ok(())
    });
    if code == 0 { 0 } else { -1 }
}

/// # Safety
///
/// The context is open. `key` is in network order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_pkey_index(
    context: *mut ibv_context,
    port: u8,
    key: __be16,
) -> c_int {
    let mut found = -1;
    let code = returned("ibv_get_pkey_index", || {
        // SAFETY: the caller's promise.
        let opened = unsafe { opened(context) };
        let world = locked()?;
        let table = &world.devices[opened.device]
            .port(port)
            .ok_or(libc::EINVAL)?
            .pkeys;
        let at = table.iter().position(|one| *one == u16::from_be(key));
        found = at.ok_or(libc::ENOENT)? as c_int;
        Ok(())
    });
    if code == 0 { found } else { -1 }
}
