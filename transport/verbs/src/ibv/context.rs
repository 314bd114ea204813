//! Devices, their attributes, and protection domains.

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Once};

use oxshmem_transport::{Error, Result};

use super::calls::{ibv_query_device_ex, ibv_query_port};
use super::gid::Gid;
use super::library::Library;
use super::result::{created, ended, failed, returned};
use super::sys::{
    ibv_atomic_cap, ibv_context, ibv_device, ibv_device_attr, ibv_device_attr_ex, ibv_gid_entry,
    ibv_pd, ibv_port_attr, ibv_port_state, ibv_transport_type,
};
use crate::limits::NAME;

/// The list of devices, while it lasts.
struct DeviceList {
    library: &'static Library,
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    /// The list, or the reason why there is none, with its remedy.
    fn get() -> Result<DeviceList> {
        let library = Library::get()?;
        let mut count = 0;
        // SAFETY: the call writes one int, and gives a list of that many or null.
        let list = unsafe { library.ibv_get_device_list(&raw mut count) };
        let unavailable = |why: String| Error::Unavailable {
            transport: NAME,
            why,
        };
        let Some(list) = NonNull::new(list) else {
            let source = io::Error::last_os_error();
            return Err(unavailable(match source.raw_os_error() {
                Some(libc::ENOSYS) => {
                    "the kernel has no RDMA devices (no ib_uverbs); load the NIC's driver and \
                     `modprobe ib_uverbs`, or without such a NIC have soft-RoCE on any network card: \
                     `modprobe rdma_rxe`, then `rdma link add rxe0 type rxe netdev eth0`"
                        .into()
                }
                _ => format!("ibv_get_device_list: {source}"),
            }));
        };
        let list = DeviceList {
            library,
            list,
            count: usize::try_from(count).unwrap_or(0),
        };
        if list.count == 0 {
            return Err(unavailable(
                "there is no RDMA device; `rdma link` should show one (soft-RoCE makes one of any \
                 network card: `modprobe rdma_rxe`, then `rdma link add rxe0 type rxe netdev eth0`), \
                 and in a container /dev/infiniband must be there"
                    .into(),
            ));
        }
        Ok(list)
    }

    fn each(&self) -> impl Iterator<Item = (NonNull<ibv_device>, String)> {
        (0..self.count).filter_map(|at| {
            // SAFETY: the list has `count` entries and lives as long as `self`.
            let device = NonNull::new(unsafe { *self.list.as_ptr().add(at) })?;
            // SAFETY: a device of the living list.
            let name = unsafe { self.library.ibv_get_device_name(device.as_ptr()) };
            if name.is_null() {
                return None;
            }
            // SAFETY: the name is a C string inside the device.
            let name = unsafe { CStr::from_ptr(name) };
            Some((device, name.to_string_lossy().into_owned()))
        })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list is freed once; contexts opened from it stay good.
        unsafe { self.library.ibv_free_device_list(self.list.as_ptr()) }
    }
}

/// The names of this machine's RDMA devices.
#[doc(alias = "ibv_get_device_list")]
pub(crate) fn device_names() -> Result<Vec<String>> {
    Ok(DeviceList::get()?.each().map(|(_, name)| name).collect())
}

/// An opened device.
#[doc(alias = "ibv_open_device")]
#[derive(Debug)]
pub(crate) struct Context {
    library: &'static Library,
    raw: NonNull<ibv_context>,
    infiniband: bool,
    name: String,
}

// SAFETY: verbs contexts may be used and closed from any thread.
unsafe impl Send for Context {}
// SAFETY: as for Send; the library synchronises concurrent calls.
unsafe impl Sync for Context {}

/// Has registered memory outlive a fork. Kernels since 5.12 give the child copies of pinned pages,
/// and nothing must be done: the library would keep the pages from the child, which then lacks what
/// shares a page with a buffer on its stack. On older kernels that is what it takes, for else the
/// *parent* would get the copies, and the NIC keep the pages.
fn survive_fork(library: &Library) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if library.fork_is_harmless() {
            return;
        }
        // SAFETY: no precondition; before the first registration by this transport.
        let code = unsafe { library.ibv_fork_init() };
        if code != 0 {
            tracing::warn!(code, "ibv_fork_init failed: the process should not fork");
        }
    });
}

/// The reason why a device could not be opened, found by opening its file.
fn not_opened(name: &str, file: &str, error: Error) -> Error {
    let path = format!("/dev/infiniband/{file}");
    let file = std::fs::File::options().read(true).write(true).open(&path);
    match file.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) => error,
        Err((Some(libc::ENOENT), _)) => Error::Unavailable {
            transport: NAME,
            why: format!(
                "{name} is there, but {path} is not: in a container pass it in (docker run \
                 --device=/dev/infiniband), else `modprobe ib_uverbs`"
            ),
        },
        Err((_, error)) => failed(&format!("opening {path} of {name}"), error),
    }
}

/// The limits of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLimits {
    pub(crate) queue_depth: u32,
    pub(crate) completions: u32,
    /// Shared receive queues, and what each holds.
    pub(crate) shared_queues: u32,
    pub(crate) receive_depth: u32,
    pub(crate) queue_pairs: u32,
    /// Reads and atomics outstanding that a queue pair may start.
    pub(crate) reads_out: u8,
    /// Reads and atomics outstanding that it serves as the responder.
    pub(crate) reads_in: u8,
    pub(crate) atomics: ibv_atomic_cap::Type,
    /// Whether it adds, compares and swaps words of 8 bytes by atomics of the PCIe bus.
    pub(crate) pci_atomics: bool,
    pub(crate) vendor: u32,
    /// The vendor's number of the model.
    pub(crate) part: u32,
    pub(crate) ports: u8,
}

impl DeviceLimits {
    /// Whether the device performs atomics that change a word.
    pub(crate) fn has_atomics(&self) -> bool {
        self.atomics != ibv_atomic_cap::IBV_ATOMIC_NONE
    }

    /// Whether many queue pairs may take their receive buffers from one queue.
    pub(crate) fn has_shared_receives(&self) -> bool {
        self.shared_queues > 0 && self.receive_depth > 0
    }
}

/// A port's attributes and its identifiers.
#[derive(Clone, Debug)]
pub(crate) struct PortAttributes {
    pub(crate) active: bool,
    pub(crate) ethernet: bool,
    pub(crate) lid: u16,
    /// As `ibv_mtu` numbers it: 1 is 256 bytes, 5 is 4096.
    pub(crate) mtu: u8,
    pub(crate) largest_message: u32,
    pub(crate) speed: u32,
    pub(crate) width: u8,
    pub(crate) pkeys: u16,
    /// Whether packets must carry a global route.
    pub(crate) needs_route: bool,
    /// Index, whether it is RoCE v2's, and the identifier; empty entries left out.
    pub(crate) gids: Vec<(u32, bool, Gid)>,
}

/// `IBV_LINK_LAYER_ETHERNET`.
const ETHERNET: u8 = 2;
/// `IBV_QPF_GRH_REQUIRED`.
const ROUTE_REQUIRED: u8 = 1;
/// `IBV_GID_TYPE_ROCE_V2`.
const ROCE_V2: u32 = 2;

fn narrow(value: std::ffi::c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

impl Context {
    pub(crate) fn open(name: &str) -> Result<Context> {
        let library = Library::get()?;
        survive_fork(library);
        let list = DeviceList::get()?;
        let found = list.each().find(|(_, device)| device == name);
        let Some((device, _)) = found else {
            return Err(Error::Unavailable {
                transport: NAME,
                why: format!("there is no RDMA device {name}; `rdma link` lists them"),
            });
        };
        // SAFETY: the device is of a list that lives until after the call.
        let raw = unsafe { library.ibv_open_device(device.as_ptr()) };
        let opened = created(&format!("ibv_open_device {name}"), raw);
        // The library tries several ways to open it, and gives the error of the last one.
        // SAFETY: as above; the name is a C string inside the device.
        let file = unsafe { CStr::from_ptr((&raw const (*device.as_ptr()).dev_name).cast()) };
        let raw = opened.map_err(|error| not_opened(name, &file.to_string_lossy(), error))?;
        // SAFETY: as above.
        let kind = unsafe { (*device.as_ptr()).transport_type };
        let context = Context {
            library,
            raw,
            infiniband: kind == ibv_transport_type::IBV_TRANSPORT_IB,
            name: name.to_owned(),
        };
        context.without_waiting()?;
        Ok(context)
    }

    /// Whether its protocol is InfiniBand's, as that of RoCE is.
    pub(crate) fn infiniband(&self) -> bool {
        self.infiniband
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(crate) fn as_raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[doc(alias = "ibv_query_device")]
    fn attributes(&self) -> Result<ibv_device_attr> {
        // SAFETY: integers and characters only, for which zero is a value.
        let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open, `attr` is written.
        let code = unsafe { self.library.ibv_query_device(self.as_raw(), &raw mut attr) };
        returned("ibv_query_device", code).map(|()| attr)
    }

    pub(crate) fn limits(&self) -> Result<DeviceLimits> {
        let attr = self.attributes()?;
        let reads = |value| u8::try_from(narrow(value)).unwrap_or(u8::MAX);
        Ok(DeviceLimits {
            queue_depth: narrow(attr.max_qp_wr),
            completions: narrow(attr.max_cqe),
            shared_queues: narrow(attr.max_srq),
            queue_pairs: narrow(attr.max_qp),
            receive_depth: narrow(attr.max_srq_wr),
            reads_out: reads(attr.max_qp_init_rd_atom),
            reads_in: reads(attr.max_qp_rd_atom),
            atomics: attr.atomic_cap,
            pci_atomics: self.has_pci_atomics(),
            vendor: attr.vendor_id,
            part: attr.vendor_part_id,
            ports: attr.phys_port_cnt,
        })
    }

    #[doc(alias = "ibv_query_device_ex")]
    fn has_pci_atomics(&self) -> bool {
        /// `IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP`.
        const OF_8_BYTES: u16 = 2;
        // SAFETY: integers only, for which zero is a value.
        let mut attr: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open.
        let code = unsafe { ibv_query_device_ex(self.as_raw(), &mut attr) };
        let atomics = attr.pci_atomic_caps;
        code == 0 && atomics.fetch_add & atomics.compare_swap & OF_8_BYTES != 0
    }

    #[doc(alias = "ibv_query_port")]
    pub(crate) fn port(&self, port: u8) -> Result<PortAttributes> {
        // SAFETY: integers only, for which zero is a value.
        let mut attr: ibv_port_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open, `attr` is written.
        let code = match unsafe { ibv_query_port(self.as_raw(), port, &mut attr) } {
            Some(code) => code,
            // SAFETY: the context is open, the first 48 bytes of `attr` are written.
            None => unsafe {
                let attr = (&raw mut attr).cast();
                self.library.ibv_query_port(self.as_raw(), port, attr)
            },
        };
        returned(&format!("ibv_query_port {}:{port}", self.name), code)?;
        Ok(PortAttributes {
            active: matches!(
                attr.state,
                ibv_port_state::IBV_PORT_ACTIVE | ibv_port_state::IBV_PORT_ACTIVE_DEFER
            ),
            ethernet: attr.link_layer == ETHERNET,
            lid: attr.lid,
            mtu: u8::try_from(attr.active_mtu).unwrap_or(1).clamp(1, 5),
            largest_message: attr.max_msg_sz,
            // Speeds from XDR on are too large for the older field.
            speed: match attr.active_speed_ex {
                0 => attr.active_speed.into(),
                speed => speed,
            },
            width: attr.active_width,
            pkeys: attr.pkey_tbl_len,
            needs_route: attr.flags & ROUTE_REQUIRED != 0,
            gids: self.gids(port)?,
        })
    }

    /// The identifiers of a port: index, whether it is RoCE v2's, and the identifier.
    #[doc(alias = "ibv_query_gid_table")]
    pub(crate) fn gids(&self, port: u8) -> Result<Vec<(u32, bool, Gid)>> {
        // The kernel takes the length of the answer in 16 bits of bytes.
        const MOST: usize = 1024;
        // SAFETY: integers only, for which zero is a value.
        let empty: ibv_gid_entry = unsafe { std::mem::zeroed() };
        let mut entries = vec![empty; MOST];
        // SAFETY: the context is open, at most `MOST` entries are written.
        let count = unsafe {
            let (entries, size) = (entries.as_mut_ptr(), size_of::<ibv_gid_entry>());
            let context = self.as_raw();
            self.library
                ._ibv_query_gid_table(context, entries, MOST, 0, size)
        };
        let Ok(count) = usize::try_from(count) else {
            let source = io::Error::from_raw_os_error(i32::try_from(-count).unwrap_or(libc::EIO));
            return Err(failed(
                &format!("ibv_query_gid_table {}", self.name),
                source,
            ));
        };
        let of_port = |entry: &&ibv_gid_entry| entry.port_num == u32::from(port);
        let entries = entries.iter().take(count).filter(of_port);
        Ok(entries
            .map(|entry| {
                // SAFETY: both variants of the union are 16 bytes of which all values are valid.
                let raw = unsafe { entry.gid.raw };
                (entry.gid_index, entry.gid_type == ROCE_V2, Gid(raw))
            })
            .collect())
    }

    /// The partition key at an index of the port's table, in host order.
    #[doc(alias = "ibv_query_pkey")]
    pub(crate) fn partition_key(&self, port: u8, index: u16) -> Result<u16> {
        let mut key = 0;
        // SAFETY: the context is open, one 16-bit number is written.
        let code = unsafe {
            let context = self.as_raw();
            self.library
                .ibv_query_pkey(context, port, index.into(), &raw mut key)
        };
        let call = || format!("ibv_query_pkey {}:{port} index {index}", self.name);
        returned(&call(), code).map(|()| u16::from_be(key))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: closed once; all that was made from it holds it, so is gone.
        ended("ibv_close_device", unsafe {
            self.library.ibv_close_device(self.as_raw())
        });
    }
}

/// A protection domain, to which keys and queue pairs belong.
#[doc(alias = "ibv_alloc_pd")]
#[derive(Debug)]
pub(crate) struct ProtectionDomain {
    raw: NonNull<ibv_pd>,
    /// Whether the device registers memory only if its writes may pass each other.
    relaxed_only: bool,
    /// Whether its keys and queue pairs ask for atomics.
    has_atomics: bool,
    context: Arc<Context>,
}

// SAFETY: as for `Context`.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as for `Context`.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// `has_atomics`: whether the device has atomics. Some that have none refuse keys and queue pairs that ask for them.
    pub(crate) fn new(context: &Arc<Context>, has_atomics: bool) -> Result<ProtectionDomain> {
        // SAFETY: the context is open.
        let raw = created("ibv_alloc_pd", unsafe {
            context.library().ibv_alloc_pd(context.as_raw())
        })?;
        Ok(ProtectionDomain {
            raw,
            relaxed_only: false,
            has_atomics,
            context: Arc::clone(context),
        })
    }

    /// The domain, for a device that has no other keys than relaxed ones.
    pub(crate) fn with_relaxed_keys_only(mut self) -> ProtectionDomain {
        self.relaxed_only = true;
        self
    }

    /// Whether its registrations all let the device's writes pass each other.
    pub(crate) fn relaxed_only(&self) -> bool {
        self.relaxed_only
    }

    /// Whether peers may perform atomics here.
    pub(crate) fn has_atomics(&self) -> bool {
        self.has_atomics
    }

    /// Bytes that the device registers at once; the most that there are if it does not say.
    pub(crate) fn largest_registration(&self) -> u64 {
        let attributes = self.context.attributes();
        attributes.map_or(u64::MAX, |attr| attr.max_mr_size)
    }

    pub(super) fn library(&self) -> &'static Library {
        self.context.library
    }

    pub(super) fn context(&self) -> *mut ibv_context {
        self.context.as_raw()
    }

    pub(crate) fn as_raw(&self) -> *mut ibv_pd {
        self.raw.as_ptr()
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: freed once; all that was made in it holds it, so is gone.
        ended("ibv_dealloc_pd", unsafe {
            self.library().ibv_dealloc_pd(self.as_raw())
        });
    }
}
