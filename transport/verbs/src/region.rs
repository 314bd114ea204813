//! Registered memory: this PE's regions, each of one or two memory regions of the device, and memory registered
//! for the local side alone.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_transport::{
    LocalKey, LocalRegion, Memory, MemoryKind, Region, RegionId, RegionNumber, RemoteRegion, Result,
};

use crate::gpu::Direct;
use crate::ibv::{Access, MemoryRegion, ProtectionDomain};
use crate::local_keys::{HeldPlace, KeyPlace, LocalKeys, LocalRailKeys};
use crate::registration::refused;
use crate::wire::{Key, RailKeys};

/// The key of an operation's local buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MrKey {
    /// That of the NIC for all but long transfers.
    pub(crate) lkey: u32,
    /// The place of those of further NICs, if there are any.
    pub(crate) further: Option<KeyPlace>,
    /// Whether it is GPU memory, which the CPU does not touch.
    pub(crate) on_gpu: bool,
}

impl MrKey {
    const ON_GPU: u64 = 1 << 32;

    #[inline]
    pub(crate) fn from_local_key(key: LocalKey) -> MrKey {
        MrKey {
            lkey: key.0 as u32,
            further: KeyPlace::from_bits((key.0 >> 33) as u32),
            on_gpu: key.0 & Self::ON_GPU != 0,
        }
    }

    pub(crate) fn to_local_key(self) -> LocalKey {
        let on_gpu = if self.on_gpu { Self::ON_GPU } else { 0 };
        let further = self.further.map_or(0, KeyPlace::to_bits);
        LocalKey(u64::from(self.lkey) | on_gpu | u64::from(further) << 33)
    }
}

/// One of this PE's NICs, for registrations of some memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisteringNic<'a> {
    pub(crate) domain: &'a Arc<ProtectionDomain>,
    /// The owner of the memory, if it is not the host's.
    pub(crate) gpu: Option<&'a Direct>,
}

impl RegisteringNic<'_> {
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives, and are accessed as memory that a device writes, if `access`
    /// allows it to.
    unsafe fn register(&self, base: *mut u8, len: usize, access: Access) -> Result<MemoryRegion> {
        let domain = self.domain;
        match self.gpu {
            // SAFETY: as this function's caller promises.
            Some(gpu) => unsafe { gpu.register(domain, base, len, access) },
            // SAFETY: as above.
            None => unsafe { MemoryRegion::register(domain, base, len, access) }.map_err(|error| {
                refused(MemoryKind::Host, len, domain.largest_registration(), &error)
            }),
        }
    }
}

/// The registration of a region at one NIC.
#[derive(Debug)]
struct Registration {
    strict: MemoryRegion,
    relaxed: Option<MemoryRegion>,
}

impl Registration {
    /// Registers memory, twice if writes may pass each other: signals, atomics and flushes need a
    /// registration in which they do not, where the device has one.
    fn new(nic: &RegisteringNic<'_>, memory: &Memory, relaxed: bool) -> Result<Registration> {
        let (base, len) = (memory.base().as_ptr(), memory.len());
        // SAFETY: `Memory` promises that its bytes stay, and that they are accessed as memory
        // that peers write, while its owner lives; the region holds it.
        let register = |access| unsafe { nic.register(base, len, access) };
        let strict = register(Access::Remote)?;
        let twice = relaxed && !nic.domain.relaxed_only();
        let relaxed = twice.then(|| register(Access::RemoteRelaxed));
        // To lock the memory twice may exceed the limit. Writes in order are slower, and correct.
        let relaxed = relaxed.and_then(|relaxed| {
            relaxed
                .inspect_err(|error| {
                    let twice = 2 * len;
                    tracing::warn!(%error, "a region is registered in order only: for relaxed \
                         ordering {twice} bytes would have to be locked; \
                         OXSHMEM_VERBS_RELAXED_ORDERING=off asks for that");
                })
                .ok()
        });
        Ok(Registration { strict, relaxed })
    }

    fn main(&self) -> &MemoryRegion {
        self.relaxed.as_ref().unwrap_or(&self.strict)
    }

    fn keys(&self) -> RailKeys {
        RailKeys {
            relaxed: self.main().rkey(),
            strict: self.strict.rkey(),
        }
    }
}

/// The registrations of some memory, one at each NIC that may have it; the first has. One that a further NIC refuses leaves
/// that NIC out of transfers of this memory.
fn at_each<T>(
    nics: &[Option<RegisteringNic<'_>>],
    register: impl Fn(&RegisteringNic<'_>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    let all = nics.iter().map(Option::as_ref).enumerate();
    let at = |(rail, nic): (usize, Option<_>)| match nic.map(&register) {
        Some(Err(error)) if rail > 0 => {
            tracing::warn!(rail, %error, "memory is not registered at one of the NICs of this PE: its transfers \
                 take the others");
            Ok(None)
        }
        registered => registered.transpose(),
    };
    all.map(at).collect()
}

/// The key of local buffers in memory with these keys at each NIC, and its place in the table.
fn enter_keys(
    table: &Arc<LocalKeys>,
    keys: impl Iterator<Item = Option<u32>>,
    on_gpu: bool,
) -> (MrKey, Option<HeldPlace>) {
    let mut all = LocalRailKeys::default();
    all.iter_mut().zip(keys).for_each(|(at, key)| *at = key);
    let place = table.enter(all);
    let key = MrKey {
        lkey: all.first().copied().flatten().unwrap_or(0),
        further: place.as_ref().map(HeldPlace::place),
        on_gpu,
    };
    (key, place)
}

/// A region of this PE, which peers access.
#[derive(Debug)]
pub(crate) struct VerbsRegion {
    number: RegionNumber,
    key: Vec<u8>,
    local: MrKey,
    _place: Option<HeldPlace>,
    // Before their memory.
    _registrations: Vec<Option<Registration>>,
    _memory: Memory,
}

impl VerbsRegion {
    /// Registers memory at each NIC that may have it; the first has. `pe`: this PE.
    pub(crate) fn new(
        nics: &[Option<RegisteringNic<'_>>],
        table: &Arc<LocalKeys>,
        pe: u32,
        number: RegionNumber,
        memory: &Memory,
        relaxed: bool,
    ) -> Result<VerbsRegion> {
        let registrations = at_each(nics, |nic| Registration::new(nic, memory, relaxed))?;
        let on_gpu = memory.kind() != MemoryKind::Host;
        let key = Key {
            pe,
            region: number.id().0,
            base: memory.base().as_ptr().addr() as u64,
            len: memory.len() as u64,
            rails: registrations
                .iter()
                .map(|one| one.as_ref().map(Registration::keys))
                .collect(),
            gpu: on_gpu,
        };
        let lkey = |one: &Option<Registration>| one.as_ref().map(|one| one.main().lkey());
        let (local, place) = enter_keys(table, registrations.iter().map(lkey), on_gpu);
        Ok(VerbsRegion {
            key: key.to_bytes(),
            local,
            number,
            _place: place,
            _registrations: registrations,
            _memory: memory.clone(),
        })
    }
}

impl Region for VerbsRegion {
    fn id(&self) -> RegionId {
        self.number.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        self.local.to_local_key()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Memory registered for the local side alone.
#[derive(Debug)]
pub(crate) struct VerbsLocalRegion {
    key: MrKey,
    _place: Option<HeldPlace>,
    _regions: Vec<Option<MemoryRegion>>,
}

impl VerbsLocalRegion {
    /// Registered at each NIC that may have it; the first has.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while it lives.
    pub(crate) unsafe fn new(
        nics: &[Option<RegisteringNic<'_>>],
        table: &Arc<LocalKeys>,
        (addr, len): (*mut u8, usize),
        written: bool,
        relaxed: bool,
    ) -> Result<VerbsLocalRegion> {
        // Write access only where it is needed, so that read-only pages can be registered.
        let access = match (written, relaxed) {
            (false, _) => Access::LocalRead,
            (true, false) => Access::LocalWrite,
            (true, true) => Access::LocalWriteRelaxed,
        };
        // SAFETY: the bytes stay mapped, as this function's caller promises; the device writes only
        // the bytes that operations name, whose posters promise theirs.
        let regions = at_each(nics, |nic| unsafe { nic.register(addr, len, access) })?;
        let on_gpu = nics.iter().flatten().any(|nic| nic.gpu.is_some());
        let lkeys = regions
            .iter()
            .map(|one| one.as_ref().map(MemoryRegion::lkey));
        let (key, place) = enter_keys(table, lkeys, on_gpu);
        Ok(VerbsLocalRegion {
            key,
            _place: place,
            _regions: regions,
        })
    }
}

impl LocalRegion for VerbsLocalRegion {
    fn key(&self) -> LocalKey {
        self.key.to_local_key()
    }
}

/// A peer's region. It is not mapped here.
#[derive(Debug)]
pub(crate) struct VerbsRemoteRegion {
    pub(crate) len: usize,
}

impl RemoteRegion for VerbsRemoteRegion {
    fn mapped(&self) -> Option<NonNull<u8>> {
        None
    }

    fn len(&self) -> usize {
        self.len
    }

    fn keep_alive(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_key_tells_whose_memory_it_is() {
        for on_gpu in [false, true] {
            for lkey in [0, 7, u32::MAX] {
                for further in [0, 1, (1 << 31) - 1].map(KeyPlace::from_bits) {
                    let key = MrKey {
                        lkey,
                        further,
                        on_gpu,
                    };
                    assert_eq!(MrKey::from_local_key(key.to_local_key()), key);
                }
            }
        }
    }
}
