//! Memory regions.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use oxshmem_transport::Result;

use super::context::ProtectionDomain;
use super::result::{created, ended, failed};
use super::sys::{ibv_access_flags as flags, ibv_mr};

/// The accesses that a registration allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Peers read, write and, where the device has them, perform atomics, in the order of arrival if the device has such keys.
    Remote,
    /// As `Remote`, but the NIC's writes may pass each other on their way to memory.
    RemoteRelaxed,
    /// Peers write only as responses to this process's requests.
    LocalWrite,
    /// As `LocalWrite`, but the NIC's writes may pass each other: each completion comes after them all the same.
    LocalWriteRelaxed,
    /// This process's sends read it.
    LocalRead,
}

impl Access {
    /// `relaxed_only`: whether the device refuses registrations in which its writes keep their order. `has_atomics`:
    /// whether it has atomics; some devices without them refuse registrations that ask for them.
    fn flags(self, relaxed_only: bool, has_atomics: bool) -> u32 {
        let relaxed = flags::IBV_ACCESS_RELAXED_ORDERING.0;
        let kept = if relaxed_only { relaxed } else { 0 };
        let remote = flags::IBV_ACCESS_LOCAL_WRITE.0
            | flags::IBV_ACCESS_REMOTE_WRITE.0
            | flags::IBV_ACCESS_REMOTE_READ.0
            | if has_atomics {
                flags::IBV_ACCESS_REMOTE_ATOMIC.0
            } else {
                0
            };
        match self {
            Access::Remote => remote | kept,
            Access::RemoteRelaxed => remote | relaxed,
            Access::LocalWrite => flags::IBV_ACCESS_LOCAL_WRITE.0 | kept,
            Access::LocalWriteRelaxed => flags::IBV_ACCESS_LOCAL_WRITE.0 | relaxed,
            Access::LocalRead => kept,
        }
    }

    /// The flags of a registration in a domain.
    fn allowed(self, domain: &ProtectionDomain) -> u32 {
        self.flags(domain.relaxed_only(), domain.has_atomics())
    }
}

/// Registered memory.
#[doc(alias = "ibv_reg_mr")]
#[derive(Debug)]
pub(crate) struct MemoryRegion {
    raw: NonNull<ibv_mr>,
    domain: Arc<ProtectionDomain>,
}

// SAFETY: a registration may be ended from any thread.
unsafe impl Send for MemoryRegion {}
// SAFETY: it is only read.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives, and are accessed as memory that a device
    /// writes, if `access` allows it to.
    pub(crate) unsafe fn register(
        domain: &Arc<ProtectionDomain>,
        base: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion> {
        let iova = base.addr() as u64;
        // SAFETY: the caller's promise about the bytes; the domain lives.
        let raw = unsafe {
            let (library, allowed) = (domain.library(), access.allowed(domain));
            library.ibv_reg_mr_iova2(domain.as_raw(), base.cast(), len, iova, allowed)
        };
        let raw = created(&format!("ibv_reg_mr of {len} bytes"), raw)?;
        Ok(MemoryRegion {
            raw,
            domain: Arc::clone(domain),
        })
    }

    /// Registers `len` bytes from byte `offset` of a dma-buf on, under the addresses from `base` on. It
    /// holds the buffer, so the descriptor may be closed.
    ///
    /// # Safety
    ///
    /// The bytes are memory that a device may write while the registration lives, if `access` allows it.
    #[doc(alias = "ibv_reg_dmabuf_mr")]
    pub(crate) unsafe fn register_dma_buf(
        domain: &Arc<ProtectionDomain>,
        buffer: BorrowedFd<'_>,
        offset: u64,
        base: u64,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion> {
        let call = format!("ibv_reg_dmabuf_mr of {len} bytes");
        let Some(register) = domain.library().reg_dmabuf_mr else {
            return Err(failed(
                &call,
                io::Error::from_raw_os_error(libc::EOPNOTSUPP),
            ));
        };
        let allowed = access.allowed(domain) as std::ffi::c_int;
        // SAFETY: the caller's promise about the bytes; the domain lives, the descriptor is open.
        let raw = unsafe {
            register(
                domain.as_raw(),
                offset,
                len,
                base,
                buffer.as_raw_fd(),
                allowed,
            )
        };
        let raw = created(&call, raw)?;
        Ok(MemoryRegion {
            raw,
            domain: Arc::clone(domain),
        })
    }

    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the registration lives; its keys never change.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: as for `lkey`.
        unsafe { (*self.raw.as_ptr()).rkey }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: ended once.
        ended("ibv_dereg_mr", unsafe {
            self.domain.library().ibv_dereg_mr(self.raw.as_ptr())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_strict_keys_is_never_asked_for_one() {
        let relaxed = |access: Access, only| {
            access.flags(only, true) & flags::IBV_ACCESS_RELAXED_ORDERING.0 != 0
        };
        let all = [
            Access::Remote,
            Access::RemoteRelaxed,
            Access::LocalWrite,
            Access::LocalWriteRelaxed,
            Access::LocalRead,
        ];
        assert!(all.into_iter().all(|access| relaxed(access, true)));
        assert!(!relaxed(Access::Remote, false) && relaxed(Access::RemoteRelaxed, false));
        assert!(!relaxed(Access::LocalWrite, false) && relaxed(Access::LocalWriteRelaxed, false));
    }

    #[test]
    fn atomics_are_asked_for_only_where_the_device_has_them() {
        let atomic = flags::IBV_ACCESS_REMOTE_ATOMIC.0;
        for relaxed_only in [false, true] {
            for access in [Access::Remote, Access::RemoteRelaxed] {
                let (with, without) = (
                    access.flags(relaxed_only, true),
                    access.flags(relaxed_only, false),
                );
                assert_eq!(with, without | atomic);
                assert_eq!(without & atomic, 0);
            }
            assert_eq!(Access::LocalWrite.flags(relaxed_only, true) & atomic, 0);
        }
    }
}
