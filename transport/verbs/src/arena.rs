//! Arenas: registered pages that the transport keeps for itself.

use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_transport::{Error, MemoryKind, Result};

use crate::ibv::{Access, MemoryRegion, ProtectionDomain};
use crate::limits::NAME;
use crate::registration::refused;

/// Registered pages that the transport owns.
#[derive(Debug)]
pub(crate) struct Arena {
    // Before its pages.
    region: MemoryRegion,
    further: Vec<MemoryRegion>,
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
    /// Pages for the local side of requests.
    pub(crate) fn new(domain: &Arc<ProtectionDomain>, len: usize) -> Result<Arena> {
        Arena::with(domain, len, Access::LocalWrite)
    }

    /// Pages that are accessed in this way.
    pub(crate) fn with(
        domain: &Arc<ProtectionDomain>,
        len: usize,
        allowed: Access,
    ) -> Result<Arena> {
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
        let region = unsafe { MemoryRegion::register(domain, base.as_ptr(), len, allowed) }
            .map_err(|error| {
                refused(MemoryKind::Host, len, domain.largest_registration(), &error)
            })?;
        Ok(Arena {
            region,
            further: Vec::new(),
            pages,
        })
    }

    /// Registers the pages for the local side of requests at another device; gives its lkey.
    pub(crate) fn register(&mut self, domain: &Arc<ProtectionDomain>) -> Result<u32> {
        let (base, len) = (self.pages.base.as_ptr(), self.pages.len);
        // SAFETY: as in `with`.
        let region = unsafe { MemoryRegion::register(domain, base, len, Access::LocalWrite) };
        let region = region.map_err(|error| {
            refused(MemoryKind::Host, len, domain.largest_registration(), &error)
        })?;
        let lkey = region.lkey();
        self.further.push(region);
        Ok(lkey)
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

    pub(crate) fn rkey(&self) -> u32 {
        self.region.rkey()
    }
}
