//! Protection domains and registered memory.

use std::ffi::{c_int, c_uint, c_void};

use crate::abi::sys::{ibv_access_flags as flags, ibv_context, ibv_mr, ibv_pd};
use crate::counters::COUNTERS;
use crate::cuda;
use crate::keys::{Owner, Region};
use crate::memory;
use crate::object::{Handle, Outcome, created, returned};
use crate::verbs::context::{locked, opened};

/// A protection domain: its number, behind the public structure.
pub(crate) type Domain = Handle<ibv_pd, Owner>;
/// A registration.
type Registration = Handle<ibv_mr, Mapped>;

/// The private part of a registration: a mapping of a dma-buf that ends with it.
#[derive(Debug)]
struct Mapped {
    _mapping: Option<memory::Mapping>,
}

/// # Safety
///
/// The context is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    created("ibv_alloc_pd", || {
        // SAFETY: the caller's promise.
        let card = unsafe { opened(context) }.card;
        let domain = locked()?.fresh() as u32;
        let raw = ibv_pd {
            context,
            handle: domain,
        };
        Ok(Domain::create(raw, Owner { card, domain }))
    })
}

/// # Safety
///
/// The domain lives, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dealloc_pd(domain: *mut ibv_pd) -> c_int {
    returned("ibv_dealloc_pd", || {
        // SAFETY: the caller's promise.
        let owner = unsafe { Domain::of(domain) }.inner;
        let world = locked()?;
        if world.keys.in_domain(owner) || world.pairs.values().any(|pair| pair.owner == owner) {
            return Err(libc::EBUSY);
        }
        drop(world);
        // SAFETY: freed once.
        unsafe { Domain::end(domain) };
        Ok(())
    })
}

const REMOTE_WRITES: u32 = flags::IBV_ACCESS_REMOTE_WRITE.0 | flags::IBV_ACCESS_REMOTE_ATOMIC.0;
/// All that this library knows.
const KNOWN: u32 = flags::IBV_ACCESS_LOCAL_WRITE.0
    | flags::IBV_ACCESS_REMOTE_WRITE.0
    | flags::IBV_ACCESS_REMOTE_READ.0
    | flags::IBV_ACCESS_REMOTE_ATOMIC.0
    | flags::IBV_ACCESS_HUGETLB.0
    | OPTIONAL;
/// `IBV_ACCESS_OPTIONAL_RANGE`: a device that does not know one ignores it.
const OPTIONAL: u32 = 0x3ff0_0000;

struct Asked {
    addr: usize,
    len: usize,
    iova: u64,
    access: u32,
    mapping: Option<memory::Mapping>,
}

/// # Safety
///
/// The domain lives; the bytes stay while the registration lives.
unsafe fn register(domain: *mut ibv_pd, asked: Asked) -> Outcome<*mut ibv_mr> {
    // SAFETY: the caller's promise.
    let (owner, context) = unsafe { (Domain::of(domain).inner, (*domain).context) };
    let (access, len) = (asked.access, asked.len);
    let writes = access & (REMOTE_WRITES | flags::IBV_ACCESS_LOCAL_WRITE.0) != 0;
    // The peer's writes need the local right, too.
    if access & REMOTE_WRITES != 0 && access & flags::IBV_ACCESS_LOCAL_WRITE.0 == 0
        || access & !KNOWN != 0
    {
        return Err(libc::EINVAL);
    }
    if len == 0 {
        return Err(libc::EINVAL);
    }
    if !memory::is_mapped(asked.addr, len, writes) {
        return Err(libc::EFAULT);
    }
    // Before the lock: the driver may flush meanwhile, which takes it.
    let is_device = cuda::is_device_memory(asked.addr);
    let mut world = locked()?;
    let card = world.cards.get(&owner.card).ok_or(libc::EINVAL)?;
    let profile = &world.devices[card.device].profile;
    let wants_relaxed = access & flags::IBV_ACCESS_RELAXED_ORDERING.0 != 0;
    if !profile.strict_keys && !wants_relaxed && access & REMOTE_WRITES != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    if profile.refuse_atomic_access && access & flags::IBV_ACCESS_REMOTE_ATOMIC.0 != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    if len as u64 > profile.max_mr_size {
        return Err(libc::EINVAL);
    }
    let relaxed = profile.relaxed && (wants_relaxed || profile.all_relaxed);
    let most = profile.max_mr as usize;
    if world.keys.of_card(owner.card) >= most {
        return Err(libc::ENOMEM);
    }
    let gpu = asked.mapping.is_some() || memory::is_gpu(asked.addr, len) || is_device;
    let (lkey, rkey) = world.keys.add(Region {
        card: owner.card,
        domain: owner.domain,
        iova: asked.iova,
        addr: asked.addr,
        len: len as u64,
        access,
        relaxed,
        gpu,
    });
    COUNTERS.registrations.add(1);
    let raw = ibv_mr {
        context,
        pd: domain,
        addr: std::ptr::with_exposed_provenance_mut(asked.addr),
        length: len,
        handle: lkey >> 8,
        lkey,
        rkey,
    };
    Ok(Registration::create(
        raw,
        Mapped {
            _mapping: asked.mapping,
        },
    ))
}

/// # Safety
///
/// As for `ibv_reg_mr`.
unsafe fn register_plain(
    name: &str,
    domain: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    created(name, || {
        let asked = Asked {
            addr: addr.expose_provenance(),
            len,
            iova,
            access,
            mapping: None,
        };
        // SAFETY: the caller's promise.
        unsafe { register(domain, asked) }
    })
}

/// # Safety
///
/// The domain lives; the bytes stay while the registration lives, and are accessed as a NIC's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(
    domain: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: the caller's promise.
    unsafe {
        register_plain(
            "ibv_reg_mr",
            domain,
            addr,
            len,
            addr.addr() as u64,
            access as c_uint,
        )
    }
}

/// # Safety
///
/// As for [`ibv_reg_mr`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    domain: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: the caller's promise.
    unsafe { register_plain("ibv_reg_mr_iova", domain, addr, len, iova, access as c_uint) }
}

/// # Safety
///
/// As for [`ibv_reg_mr`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    domain: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    // SAFETY: the caller's promise.
    unsafe { register_plain("ibv_reg_mr", domain, addr, len, iova, access) }
}

/// # Safety
///
/// The domain lives. The descriptor is a dma-buf, or another file that can be mapped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_dmabuf_mr(
    domain: *mut ibv_pd,
    offset: u64,
    len: usize,
    iova: u64,
    descriptor: c_int,
    access: c_int,
) -> *mut ibv_mr {
    created("ibv_reg_dmabuf_mr", || {
        // SAFETY: the caller's promise.
        let owner = unsafe { Domain::of(domain) }.inner;
        {
            let world = locked()?;
            let card = world.cards.get(&owner.card).ok_or(libc::EINVAL)?;
            if !world.devices[card.device].profile.dma_buf {
                return Err(libc::EOPNOTSUPP);
            }
        }
        let mapping = memory::Mapping::of(descriptor, offset, len)?;
        let asked = Asked {
            addr: mapping.addr(),
            len,
            iova,
            access: access as u32,
            mapping: Some(mapping),
        };
        // SAFETY: the caller's promise; the mapping lives as long as the registration.
        unsafe { register(domain, asked) }
    })
}

/// # Safety
///
/// The registration lives, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dereg_mr(registration: *mut ibv_mr) -> c_int {
    returned("ibv_dereg_mr", || {
        // SAFETY: the caller's promise.
        let lkey = unsafe { Registration::of(registration) }.raw.lkey;
        let mut world = locked()?;
        let region = world.keys.remove(lkey).ok_or(libc::EINVAL)?;
        // Accepted writes are made before: nothing touches the memory afterwards.
        let of_card = world.pairs.values().filter(|pair| pair.card == region.card);
        let pairs: Vec<u32> = of_card.map(|pair| pair.number).collect();
        for pair in pairs {
            world.arrive_all(pair);
            world.empty_bus(pair, true);
        }
        drop(world);
        // SAFETY: freed once.
        unsafe { Registration::end(registration) };
        Ok(())
    })
}

/// Says that registrations cannot be changed: programs end them and register anew.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rereg_mr(
    _: *mut ibv_mr,
    _: c_int,
    _: *mut ibv_pd,
    _: *mut c_void,
    _: usize,
    _: c_int,
) -> c_int {
    // IBV_REREG_MR_ERR_INPUT: the registration is as it was.
    -1
}
