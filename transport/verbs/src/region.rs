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
use crate::registration::refused;
use crate::wire::Key;

/// The key of an operation's local buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MrKey {
    pub(crate) lkey: u32,
    /// Whether it is GPU memory, which the CPU does not touch.
    pub(crate) on_gpu: bool,
}

impl MrKey {
    const ON_GPU: u64 = 1 << 32;

    #[inline]
    pub(crate) fn from_local_key(key: LocalKey) -> MrKey {
        MrKey {
            lkey: key.0 as u32,
            on_gpu: key.0 & Self::ON_GPU != 0,
        }
    }

    fn to_local_key(self) -> LocalKey {
        let on_gpu = if self.on_gpu { Self::ON_GPU } else { 0 };
        LocalKey(u64::from(self.lkey) | on_gpu)
    }
}

/// A region of this PE, which peers access.
#[derive(Debug)]
pub(crate) struct VerbsRegion {
    number: RegionNumber,
    key: Vec<u8>,
    local: MrKey,
    // Before their memory.
    _strict: MemoryRegion,
    _relaxed: Option<MemoryRegion>,
    _memory: Memory,
}

impl VerbsRegion {
    /// Registers memory, twice if writes may pass each other: signals, atomics and flushes need a
    /// registration in which they do not, where the device has one. `gpu`: the owner of the memory, if it is not the host's.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        gpu: Option<&Direct>,
        pe: u32,
        number: RegionNumber,
        memory: &Memory,
        relaxed: bool,
    ) -> Result<VerbsRegion> {
        let (base, len) = (memory.base().as_ptr(), memory.len());
        let register = |access| match gpu {
            // SAFETY: `Memory` promises that its bytes stay, and that they are accessed as memory
            // that peers write, while its owner lives; the region holds it.
            Some(gpu) => unsafe { gpu.register(domain, base, len, access) },
            // SAFETY: as above.
            None => unsafe { MemoryRegion::register(domain, base, len, access) }.map_err(|error| {
                refused(memory.kind(), len, domain.largest_registration(), &error)
            }),
        };
        let strict = register(Access::Remote)?;
        let twice = relaxed && !domain.relaxed_only();
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
        let main = relaxed.as_ref().unwrap_or(&strict);
        let key = Key {
            pe,
            region: number.id().0,
            base: base.addr() as u64,
            len: len as u64,
            relaxed: main.rkey(),
            strict: strict.rkey(),
            gpu: gpu.is_some(),
        };
        Ok(VerbsRegion {
            key: key.to_bytes(),
            local: MrKey {
                lkey: main.lkey(),
                on_gpu: gpu.is_some(),
            },
            number,
            _strict: strict,
            _relaxed: relaxed,
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
    region: MemoryRegion,
    on_gpu: bool,
}

impl VerbsLocalRegion {
    /// # Safety
    ///
    /// The bytes stay mapped while it lives.
    pub(crate) unsafe fn new(
        domain: &Arc<ProtectionDomain>,
        gpu: Option<&Direct>,
        addr: *mut u8,
        len: usize,
        written: bool,
        relaxed: bool,
    ) -> Result<VerbsLocalRegion> {
        // Write access only where it is needed, so that read-only pages can be registered.
        let access = match (written, relaxed) {
            (false, _) => Access::LocalRead,
            (true, false) => Access::LocalWrite,
            (true, true) => Access::LocalWriteRelaxed,
        };
        let region = match gpu {
            // SAFETY: the bytes stay mapped, as this function's caller promises; the device writes only
            // the bytes that operations name, whose posters promise theirs.
            Some(gpu) => unsafe { gpu.register(domain, addr, len, access) },
            // SAFETY: as above.
            None => unsafe { MemoryRegion::register(domain, addr, len, access) }.map_err(|error| {
                refused(MemoryKind::Host, len, domain.largest_registration(), &error)
            }),
        };
        region.map(|region| VerbsLocalRegion {
            region,
            on_gpu: gpu.is_some(),
        })
    }
}

impl LocalRegion for VerbsLocalRegion {
    fn key(&self) -> LocalKey {
        let key = MrKey {
            lkey: self.region.lkey(),
            on_gpu: self.on_gpu,
        };
        key.to_local_key()
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
                let key = MrKey { lkey, on_gpu };
                assert_eq!(MrKey::from_local_key(key.to_local_key()), key);
            }
        }
    }
}
