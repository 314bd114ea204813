//! The list of devices.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use crate::abi::sys::{
    _ibv_device_ops, ibv_device, ibv_fork_status, ibv_node_type, ibv_transport_type,
};
use crate::object::{Handle, created, set_errno};
use crate::sync::lock;
use crate::world::world;

/// The number of a device, behind its public structure.
pub(crate) type Listed = Handle<ibv_device, usize>;

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut into = [0; N];
    for (to, from) in into.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from as c_char;
    }
    into
}

/// The devices, as long as the process lives: programs use them after they have freed the list.
fn devices() -> Result<&'static [usize], c_int> {
    static DEVICES: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();
    let world = world().map_err(|why| {
        eprintln!("softnic: {why}");
        libc::EINVAL
    })?;
    Ok(DEVICES.get_or_init(|| {
        let world = lock(world);
        let listed = world.devices.iter().enumerate().map(|(number, device)| {
            let raw = ibv_device {
                _ops: _ibv_device_ops {
                    _dummy1: None,
                    _dummy2: None,
                },
                node_type: ibv_node_type::IBV_NODE_CA,
                transport_type: ibv_transport_type::IBV_TRANSPORT_IB,
                name: text(&device.name),
                dev_name: text(&format!("uverbs{number}")),
                dev_path: text(&format!("/sys/class/infiniband_verbs/uverbs{number}")),
                ibdev_path: text(&format!("/sys/class/infiniband/{}", device.name)),
            };
            Listed::create(raw, number).expose_provenance()
        });
        listed.collect()
    }))
}

/// # Safety
///
/// `count` is null or written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    created("ibv_get_device_list", || {
        let devices = devices()?;
        let mut list: Vec<*mut ibv_device> = devices
            .iter()
            .map(|at| std::ptr::with_exposed_provenance_mut(*at))
            .collect();
        if !count.is_null() {
            // SAFETY: not null, so the caller's promise.
            unsafe { *count = list.len() as c_int };
        }
        list.push(null_mut());
        Ok(Box::into_raw(list.into_boxed_slice()).cast())
    })
}

/// # Safety
///
/// `list` is null or a list that was got, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    if list.is_null() {
        return;
    }
    let mut len = 0;
    // SAFETY: the list ends with null.
    while !unsafe { *list.add(len) }.is_null() {
        len += 1;
    }
    let slice = std::ptr::slice_from_raw_parts_mut(list, len + 1);
    // SAFETY: a boxed slice of this length, freed once.
    drop(unsafe { Box::from_raw(slice) });
}

/// # Safety
///
/// The device is of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: devices stay as long as the process.
    unsafe { (&raw const (*device).name).cast() }
}

/// # Safety
///
/// The device is of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_guid(device: *mut ibv_device) -> u64 {
    // SAFETY: devices stay as long as the process.
    let number = unsafe { Listed::of(device) }.inner;
    world().map_or(0, |world| lock(world).devices[number].guid.to_be())
}

/// # Safety
///
/// The device is of a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(device: *mut ibv_device) -> c_int {
    // SAFETY: devices stay as long as the process.
    unsafe { Listed::of(device) }.inner as c_int
}

/// Does nothing: children get copies of registered memory.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_fork_init() -> c_int {
    0
}

/// Says that memory need not be kept from children.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_is_fork_initialized() -> ibv_fork_status::Type {
    ibv_fork_status::IBV_FORK_UNNEEDED
}

/// Gives the folder in which libibverbs would look for its devices.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// Fails: there are no files of the devices in sysfs.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_read_sysfs_file(
    _: *const c_char,
    _: *const c_char,
    _: *mut c_char,
    _: usize,
) -> c_int {
    set_errno(libc::ENOENT);
    -1
}
