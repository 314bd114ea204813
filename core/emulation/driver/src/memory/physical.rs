//! Physical memory of a device: an unnamed memory file.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::identity::identity;
use crate::call::Outcome;
use crate::code::Code;
use crate::driver::{driver, fresh, running};

/// The prefix of the files' names; the device's UUID follows.
const PREFIX: &str = "softcuda-";

/// Memory of a device, freed with the last handle and mapping.
#[derive(Debug)]
pub(crate) struct Physical {
    /// Its handle's number.
    pub(crate) id: u64,
    pub(crate) ordinal: usize,
    pub(crate) size: u64,
    /// Handle types that it may be exported as.
    pub(crate) handle_types: u32,
    /// Bytes that it occupies of the device's memory: 0 if another process created it.
    charged: u64,
    file: OwnedFd,
}

fn duplicate(descriptor: RawFd) -> Option<OwnedFd> {
    // SAFETY: a plain system call; a number that is no descriptor is refused by the kernel.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: just made, and owned by nobody else.
    (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
}

impl Physical {
    /// New memory; `size` is a whole number of pages.
    pub(crate) fn create(ordinal: usize, size: u64, handle_types: u32) -> Outcome<Physical> {
        let device = &driver()?.devices[ordinal];
        device.charge(size)?;
        let file = memory_file(&device.uuid_hex(), size).inspect_err(|_| device.discharge(size))?;
        Ok(Physical {
            id: fresh(),
            ordinal,
            size,
            handle_types,
            charged: size,
            file,
        })
    }

    /// Another process's memory (or this one's), by a descriptor that stays the caller's.
    pub(crate) fn import(descriptor: RawFd) -> Outcome<Physical> {
        let driver = driver()?;
        let file = duplicate(descriptor).ok_or(Code::INVALID_VALUE)?;
        let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(|_| Code::INVALID_VALUE)?;
        let uuid = link
            .to_str()
            .and_then(|name| name.strip_prefix("/memfd:"))
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|name| name.get(..32))
            .ok_or(Code::INVALID_VALUE)?;
        let ordinal = driver
            .devices
            .iter()
            .position(|device| device.uuid_hex() == uuid)
            .ok_or(Code::INVALID_DEVICE)?;
        let size = std::fs::File::from(file.try_clone().map_err(|_| Code::OUT_OF_MEMORY)?)
            .metadata()
            .map_err(|_| Code::INVALID_VALUE)?
            .len();
        Ok(Physical {
            id: fresh(),
            ordinal,
            size,
            handle_types: 1,
            charged: 0,
            file,
        })
    }

    /// A new descriptor of the memory, the caller's own.
    pub(crate) fn export(&self) -> Outcome<OwnedFd> {
        duplicate(self.file.as_raw_fd()).ok_or(Code::OUT_OF_MEMORY)
    }

    /// The file, for mapping.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The number of its descriptor in this process.
    pub(crate) fn descriptor(&self) -> u64 {
        self.file.as_raw_fd() as u64
    }

    /// The file's identity on this machine: device and inode number.
    pub(crate) fn identity(&self) -> Outcome<(u64, u64)> {
        identity(self.file.as_fd())
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.charged > 0
            && let Ok(file) = self.identity()
        {
            crate::race::ended(file, self.size as usize);
        }
        if let Ok(driver) = running() {
            driver.devices[self.ordinal].discharge(self.charged);
        }
    }
}

/// A file of fixed size, so that no mapping of it ever faults.
fn memory_file(uuid: &str, size: u64) -> Outcome<OwnedFd> {
    let name = std::ffi::CString::new(format!("{PREFIX}{uuid}")).map_err(|_| Code::UNKNOWN)?;
    // SAFETY: a name that ends, and known flags.
    let file =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if file < 0 {
        return Err(Code::OUT_OF_MEMORY);
    }
    // SAFETY: just made, and owned by nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    let length = libc::off_t::try_from(size).map_err(|_| Code::OUT_OF_MEMORY)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: system calls on a descriptor of our own.
    let made = unsafe {
        libc::ftruncate(file.as_raw_fd(), length) == 0
            && libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) == 0
    };
    if made {
        Ok(file)
    } else {
        Err(Code::OUT_OF_MEMORY)
    }
}
