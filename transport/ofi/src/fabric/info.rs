//! The list of providers and interfaces: `fi_getinfo`.

use std::ffi::{CStr, CString, c_char};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;

use oxshmem_transport::{Error, Result};

use super::library::{Library, number};
use super::sys;
use super::sys::_bindgen_ty_3::{FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
use crate::facts::{Facts, bits};
use crate::limits::{API, NAME};
use crate::plan::{MODES, NEEDED, REGISTRATION};

/// One provider on one interface. Owns its description.
pub(crate) struct Info {
    library: &'static Library,
    raw: NonNull<sys::fi_info>,
    facts: Facts,
}

// SAFETY: the description is owned, and is read only.
unsafe impl Send for Info {}

impl std::fmt::Debug for Info {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.facts.fmt(f)
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: made by fi_dupinfo, and freed once, here.
        unsafe { self.library.fi_freeinfo(self.raw.as_ptr()) }
    }
}

/// The hints of a search, owned.
struct Hints(&'static Library, NonNull<sys::fi_info>);

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: made by fi_dupinfo, and freed once, here, with the strings that malloc gave.
        unsafe { self.0.fi_freeinfo(self.1.as_ptr()) }
    }
}

impl Hints {
    /// Hints for endpoints without connections of a provider.
    fn new(library: &'static Library, provider: &str, wanted: Wanted) -> Result<Hints> {
        // SAFETY: without an argument it allocates an empty description with all its parts.
        let raw = unsafe { library.fi_dupinfo(std::ptr::null()) };
        let raw = NonNull::new(raw).ok_or_else(|| library.failed("fi_allocinfo", -12))?;
        let hints = Hints(library, raw);
        // SAFETY: the description and its parts were just allocated, by this library, and nobody else has them.
        unsafe {
            let info = &mut *raw.as_ptr();
            info.caps = NEEDED
                | if wanted.atomics { bits::ATOMIC } else { 0 }
                | if wanted.gpu { bits::HMEM } else { 0 };
            info.mode = MODES;
            (*info.ep_attr).type_ = sys::fi_ep_type::FI_EP_RDM;
            let registration = match wanted.gpu {
                true => REGISTRATION,
                false => REGISTRATION & !bits::MR_HMEM,
            };
            (*info.domain_attr).mr_mode = registration as i32;
            (*info.domain_attr).threading = sys::fi_threading::FI_THREAD_DOMAIN;
            (*info.domain_attr).resource_mgmt = sys::fi_resource_mgmt::FI_RM_ENABLED;
            if wanted.delivers {
                (*info.tx_attr).op_flags = bits::DELIVERY_COMPLETE;
            }
            let name = CString::new(provider)
                .map_err(|_| unavailable("the name of a provider has no zero byte".into()))?;
            (*info.fabric_attr).prov_name = libc::strdup(name.as_ptr());
        }
        Ok(hints)
    }
}

fn unavailable(why: String) -> Error {
    Error::Unavailable {
        transport: NAME,
        why,
    }
}

/// The abilities that a provider is asked for, beside those that are needed. Some promise less order where they have atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Completions on delivery.
    pub delivers: bool,
    pub atomics: bool,
    /// GPU memory.
    pub gpu: bool,
}

impl Wanted {
    /// The wishes that a provider may be asked for, one after another: this one, and lesser ones.
    fn lesser(self) -> impl Iterator<Item = Wanted> {
        let without_gpu = Wanted { gpu: false, ..self };
        let delivers = Wanted {
            atomics: false,
            ..without_gpu
        };
        let nothing = Wanted {
            delivers: false,
            ..delivers
        };
        let mut last = None;
        let all = [self, without_gpu, delivers, nothing].into_iter();
        all.filter(move |wanted| last.replace(*wanted) != Some(*wanted))
    }
}

/// All ways to endpoints without connections of a provider, best first as libfabric sees it. A provider that completes
/// operations on delivery, or has what else is wanted, is asked to say so.
pub(crate) fn infos(
    library: &'static Library,
    provider: &str,
    wanted: Wanted,
) -> Result<Vec<Info>> {
    for wanted in wanted.lesser() {
        let found = search(library, provider, wanted)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn search(library: &'static Library, provider: &str, wanted: Wanted) -> Result<Vec<Info>> {
    let hints = Hints::new(library, provider, wanted)?;
    let mut list = std::ptr::null_mut();
    // SAFETY: the hints live during the call; `list` takes a list that is freed below.
    let code = unsafe {
        library.fi_getinfo(
            number(API),
            std::ptr::null(),
            std::ptr::null(),
            0,
            hints.1.as_ptr(),
            &raw mut list,
        )
    };
    if code == -(sys::FI_ENODATA as i32) {
        return Ok(Vec::new());
    }
    if code != 0 {
        return Err(library.failed("fi_getinfo", code as isize));
    }
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: a list that fi_getinfo made; its entries live until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: as above; the duplicate is owned by its `Info`.
        let raw = unsafe { library.fi_dupinfo(next) };
        if let Some(raw) = NonNull::new(raw) {
            // SAFETY: an entry of the list, with its parts.
            let facts = unsafe { facts(entry, wanted.delivers) };
            // SAFETY: the duplicate and its parts are owned here. Operations say by themselves when they are complete.
            unsafe { (*(*raw.as_ptr()).tx_attr).op_flags = 0 };
            if facts.uses_sockets() {
                // No thread of its own: whoever waits moves the data.
                // SAFETY: as above.
                unsafe {
                    let domain = (*raw.as_ptr()).domain_attr;
                    (*domain).data_progress = sys::fi_progress::FI_PROGRESS_MANUAL;
                    (*domain).control_progress = sys::fi_progress::FI_PROGRESS_MANUAL;
                }
            }
            found.push(Info {
                library,
                raw,
                facts,
            });
        }
        next = entry.next;
    }
    // SAFETY: the whole list, once.
    unsafe { library.fi_freeinfo(list) };
    Ok(found)
}

impl Info {
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }

    pub(crate) fn raw(&self) -> *mut sys::fi_info {
        self.raw.as_ptr()
    }
}

/// A C string that may be missing.
///
/// # Safety
///
/// `text` is null or a C string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// # Safety
///
/// An entry of fi_getinfo's list, whose parts all live.
unsafe fn facts(info: &sys::fi_info, delivers: bool) -> Facts {
    // SAFETY: the caller's promise; each part of a description that fi_getinfo gives is there.
    unsafe {
        let (tx, rx) = (&*info.tx_attr, &*info.rx_attr);
        let (endpoint, domain, fabric) = (&*info.ep_attr, &*info.domain_attr, &*info.fabric_attr);
        let (megabits, nic) = nic(info);
        Facts {
            provider: text(fabric.prov_name),
            fabric: text(fabric.name),
            domain: text(domain.name),
            address: address(info),
            address_format: info.addr_format,
            protocol: endpoint.protocol,
            caps: info.caps,
            mode: info.mode | tx.mode | rx.mode | domain.mode,
            order: tx.msg_order & rx.msg_order,
            delivers,
            longest: endpoint.max_msg_size as u64,
            write_after_write: endpoint.max_order_waw_size as u64,
            read_after_write: endpoint.max_order_raw_size as u64,
            prefix: endpoint.msg_prefix_size,
            mr_mode: domain.mr_mode as u64,
            mr_key_size: domain.mr_key_size,
            manual_progress: domain.data_progress != sys::fi_progress::FI_PROGRESS_AUTO,
            megabits,
            nic,
        }
    }
}

/// The address of the interface, if it is one of IP.
///
/// # Safety
///
/// As [`facts`].
unsafe fn address(info: &sys::fi_info) -> Option<IpAddr> {
    if info.src_addr.is_null() {
        return None;
    }
    let family_bytes = size_of::<libc::sa_family_t>();
    if !matches!(
        info.addr_format,
        FI_SOCKADDR | FI_SOCKADDR_IN | FI_SOCKADDR_IN6
    ) || info.src_addrlen < family_bytes
    {
        return None;
    }
    // SAFETY: the address is a sockaddr, by its format, of `src_addrlen` bytes, maybe not aligned.
    let family = unsafe { info.src_addr.cast::<libc::sa_family_t>().read_unaligned() };
    match i32::from(family) {
        libc::AF_INET if info.src_addrlen >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: as above, of the family's size.
            let v4 = unsafe { info.src_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 if info.src_addrlen >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above, of the family's size.
            let v6 = unsafe { info.src_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The bandwidth in Mb/s, and the name, as far as the NIC is described.
///
/// # Safety
///
/// As [`facts`].
unsafe fn nic(info: &sys::fi_info) -> (u32, Option<String>) {
    // SAFETY: null or a description of a NIC, whose parts may be missing.
    unsafe {
        let Some(nic) = info.nic.as_ref() else {
            return (0, None);
        };
        let speed = nic.link_attr.as_ref().map_or(0, |link| link.speed as u64);
        let name = nic.device_attr.as_ref().map(|device| text(device.name));
        let megabits = u32::try_from(speed / 1_000_000).unwrap_or(u32::MAX);
        (megabits, name.filter(|name| !name.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_without_all_that_is_wanted_is_asked_for_less() {
        let all = Wanted {
            delivers: true,
            atomics: true,
            gpu: true,
        };
        let asked: Vec<_> = all
            .lesser()
            .map(|wanted| (wanted.gpu, wanted.atomics, wanted.delivers))
            .collect();
        assert_eq!(
            asked,
            [
                (true, true, true),
                (false, true, true),
                (false, false, true),
                (false, false, false)
            ]
        );
        let plain = Wanted {
            atomics: false,
            gpu: false,
            ..all
        };
        assert_eq!(plain.lesser().count(), 2);
    }
}
