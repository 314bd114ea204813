//! Registration: a region's one or two memory regions, and the parts of registered memory that the
//! transport keeps for itself.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_transport::{
    Error, LocalKey, LocalRegion, Memory, MemoryKind, Region, RegionId, RegionNumber, RemoteRegion,
    Result,
};

use crate::NAME;
use crate::gpu::Direct;
use crate::ibv::{Access, MemoryRegion, ProtectionDomain};
use crate::wire::Key;

/// What kept memory from being registered, with the limit that may be to blame.
fn refused(kind: MemoryKind, len: usize, error: &Error) -> Error {
    let mut why = error.to_string();
    if let Error::Os { source, .. } = error {
        why = match source.raw_os_error() {
            Some(libc::ENOMEM | libc::EPERM | libc::EAGAIN) => format!(
                "{len} bytes could not be locked: {source}. {}",
                lockable(locked_memory_limit())
            ),
            Some(libc::EFAULT) => format!(
                "{len} bytes are not mapped, or not writable: {source}. Read-only memory can only \
                 be a source"
            ),
            _ => why,
        };
    }
    Error::Memory {
        transport: NAME,
        kind,
        why,
    }
}

fn lockable(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!(
            "`ulimit -l` is {} KiB: raise it (`ulimit -l unlimited`, /etc/security/limits.conf, \
             LimitMEMLOCK=infinity, docker --ulimit memlock=-1)",
            limit >> 10
        ),
        None => "`ulimit -l` sets no limit, so the machine or the control group has too little \
                 memory: use a smaller heap (OXSHMEM_SYMMETRIC_SIZE)"
            .into(),
    }
}

/// In bytes; none if there is none.
fn locked_memory_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes the structure.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (code == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The key of an operation's near side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NearKey {
    pub(crate) lkey: u32,
    /// Whether it is memory that the CPU does not touch.
    pub(crate) on_gpu: bool,
}

impl NearKey {
    const ON_GPU: u64 = 1 << 32;

    #[inline]
    pub(crate) fn of(key: LocalKey) -> NearKey {
        NearKey {
            lkey: key.0 as u32,
            on_gpu: key.0 & Self::ON_GPU != 0,
        }
    }

    fn told(self) -> LocalKey {
        let on_gpu = if self.on_gpu { Self::ON_GPU } else { 0 };
        LocalKey(u64::from(self.lkey) | on_gpu)
    }
}

/// A region of this PE, which peers reach.
#[derive(Debug)]
pub(crate) struct Registered {
    number: RegionNumber,
    key: Vec<u8>,
    local: NearKey,
    // Before the memory that they are of.
    _strict: MemoryRegion,
    _relaxed: Option<MemoryRegion>,
    _memory: Memory,
}

impl Registered {
    /// With two registrations of one memory if writes may pass each other: signals, atomics and
    /// flushes need one in which they do not. `gpu`: whose memory it is, if not the host's.
    pub(crate) fn new(
        domain: &Arc<ProtectionDomain>,
        gpu: Option<&Direct>,
        pe: u32,
        number: RegionNumber,
        memory: &Memory,
        relaxed: bool,
    ) -> Result<Registered> {
        let (base, len) = (memory.base().as_ptr(), memory.len());
        let register = |access| match gpu {
            // SAFETY: `Memory` promises that its bytes stay, and that they are accessed as memory
            // that peers write, while its owner lives; the region holds it.
            Some(gpu) => unsafe { gpu.register(domain, base, len, access) },
            // SAFETY: as above.
            None => unsafe { MemoryRegion::register(domain, base, len, access) }
                .map_err(|error| refused(memory.kind(), len, &error)),
        };
        let strict = register(Access::Remote)?;
        let relaxed = relaxed.then(|| register(Access::RemoteRelaxed));
        // What is locked twice may be too much. In order is slower, and right.
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
        Ok(Registered {
            key: key.to_bytes(),
            local: NearKey {
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

impl Region for Registered {
    fn id(&self) -> RegionId {
        self.number.id()
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn local_key(&self) -> LocalKey {
        self.local.told()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Memory registered for the near side alone.
#[derive(Debug)]
pub(crate) struct RegisteredLocal {
    region: MemoryRegion,
    on_gpu: bool,
}

impl RegisteredLocal {
    /// # Safety
    ///
    /// The bytes stay mapped while it lives.
    pub(crate) unsafe fn new(
        domain: &Arc<ProtectionDomain>,
        gpu: Option<&Direct>,
        addr: *mut u8,
        len: usize,
        written: bool,
    ) -> Result<RegisteredLocal> {
        // Without leave to write, so that pages that are only readable will do.
        let access = match written {
            true => Access::LocalWrite,
            false => Access::LocalRead,
        };
        let region = match gpu {
            // SAFETY: the caller's promise; the device writes only what operations name, whose caller
            // promises its part.
            Some(gpu) => unsafe { gpu.register(domain, addr, len, access) },
            // SAFETY: as above.
            None => unsafe { MemoryRegion::register(domain, addr, len, access) }
                .map_err(|error| refused(MemoryKind::Host, len, &error)),
        };
        region.map(|region| RegisteredLocal {
            region,
            on_gpu: gpu.is_some(),
        })
    }
}

impl LocalRegion for RegisteredLocal {
    fn key(&self) -> LocalKey {
        let near = NearKey {
            lkey: self.region.lkey(),
            on_gpu: self.on_gpu,
        };
        near.told()
    }
}

/// A peer's region: nothing here can be loaded or stored.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) len: usize,
}

impl RemoteRegion for Remote {
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

/// Pages of its own, registered.
#[derive(Debug)]
pub(crate) struct Arena {
    // Before the pages that it is of.
    region: MemoryRegion,
    pages: Pages,
}

#[derive(Debug)]
struct Pages {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: `Pages` owns its mapping and accesses it nowhere.
unsafe impl Send for Pages {}
// SAFETY: as for Send.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: a mapping of its own, unmapped once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

impl Arena {
    pub(crate) fn new(domain: &Arc<ProtectionDomain>, len: usize) -> Result<Arena> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which replaces none.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        let base = match base {
            libc::MAP_FAILED => None,
            base => NonNull::new(base.cast::<u8>()),
        };
        let base = base.ok_or_else(|| Error::Os {
            transport: NAME,
            call: format!("mmap of {len} bytes"),
            source: std::io::Error::last_os_error(),
        })?;
        let pages = Pages { base, len };
        // SAFETY: the pages live as long as the arena, in which the registration comes first, and
        // are accessed through raw pointers alone.
        let region =
            unsafe { MemoryRegion::register(domain, base.as_ptr(), len, Access::LocalWrite) }
                .map_err(|error| refused(MemoryKind::Host, len, &error))?;
        Ok(Arena { region, pages })
    }

    /// The byte at `offset`, which must be inside.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.pages.len);
        self.pages.base.as_ptr().wrapping_add(offset)
    }

    pub(crate) fn lkey(&self) -> u32 {
        self.region.lkey()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_lockable_memory_names_limit_and_mend() {
        let error = Error::Os {
            transport: NAME,
            call: "ibv_reg_mr".into(),
            source: std::io::Error::from_raw_os_error(libc::ENOMEM),
        };
        let told = refused(MemoryKind::Host, 4096, &error).to_string();
        assert!(
            told.contains("ulimit -l") && told.contains("4096 bytes"),
            "{told}"
        );
        assert!(lockable(Some(64 << 10)).contains("is 64 KiB"));
        assert!(lockable(None).contains("OXSHMEM_SYMMETRIC_SIZE"));
    }

    #[test]
    fn a_near_key_tells_whose_memory_it_is() {
        for on_gpu in [false, true] {
            for lkey in [0, 7, u32::MAX] {
                let near = NearKey { lkey, on_gpu };
                assert_eq!(NearKey::of(near.told()), near);
            }
        }
    }

    #[test]
    fn memory_that_is_not_writable_is_told_as_that() {
        let error = Error::Os {
            transport: NAME,
            call: "ibv_reg_mr".into(),
            source: std::io::Error::from_raw_os_error(libc::EFAULT),
        };
        let told = refused(MemoryKind::Host, 4096, &error).to_string();
        assert!(told.contains("not writable"), "{told}");
    }
}
