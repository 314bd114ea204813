//! Mappings of shared memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat, fstatfs};

use crate::error::{Error, Result};

/// Assumed for explicit huge pages whose file does not tell their size.
const HUGE: usize = 2 << 20;

/// A peer's mapping is aligned to this much, or to a page, where there is no room to align it further.
const LESS_ALIGN: usize = 2 << 20;

/// No mapping's start is aligned to more than this; the search for such a start reserves as many
/// bytes of address space for a moment.
const MOST_ALIGN: usize = 1 << 40;

/// `f_type` of a memfd made of explicit huge pages.
const HUGETLBFS_MAGIC: u32 = 0x9584_58f6;

/// A segment, mapped whole and shared, for reading and writing. Unmapped when dropped: whoever uses
/// [`base`](Self::base) keeps the `Mapping` (an `Arc` of it) alive meanwhile.
///
/// Peers, NICs and other threads access the bytes at any time, so no reference to them may be made:
/// they are for [`copy`](crate::copy) and atomics.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// The mapped bytes: `len`, rounded up to the file's pages.
    mapped: usize,
}

// SAFETY: a `Mapping` only owns the address range, which is not tied to a thread; access to the
// bytes is up to whoever dereferences `base`.
unsafe impl Send for Mapping {}
// SAFETY: as for Send; no method touches the bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a peer's segment.
    ///
    /// The peer is not trusted: the file must be sealed against shrinking and hold `len` bytes now,
    /// so that no access within them is ever out of the file (which would be a SIGBUS). Fails with
    /// [`Error::BadDescriptor`] if not.
    pub fn of_descriptor(descriptor: BorrowedFd<'_>, len: usize) -> Result<Self> {
        let page = Self::check(descriptor, len)?;
        // Aligning takes more address space for a moment, and only this PE's own blocks need it.
        let most = Self::most_align(len, page);
        Self::map(descriptor, len, page, most)
            .or_else(|_| Self::map(descriptor, len, page, LESS_ALIGN.max(page)))
            .or_else(|_| Self::map(descriptor, len, page, page))
    }

    /// As [`of_descriptor`](Self::of_descriptor), for this PE's own segment. It starts at a multiple
    /// of its length or more (up to 1 TiB): a block's address then has every alignment that its
    /// offset has (M12), and huge pages fit.
    pub(crate) fn of_own(descriptor: BorrowedFd<'_>, len: usize) -> Result<Self> {
        let page = Self::check(descriptor, len)?;
        Self::map(descriptor, len, page, Self::most_align(len, page))
    }

    fn most_align(len: usize, page: usize) -> usize {
        len.checked_next_power_of_two()
            .unwrap_or(MOST_ALIGN)
            .min(MOST_ALIGN)
            .max(page)
    }

    /// Fails unless the first `len` bytes of the file are there to stay; gives its pages' size.
    fn check(descriptor: BorrowedFd<'_>, len: usize) -> Result<usize> {
        let bad = |why: String| Error::BadDescriptor { why };
        if len == 0 {
            return Err(bad("it is announced as empty".into()));
        }
        let stat = fstat(descriptor).map_err(|e| bad(format!("fstat: {e}")))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(bad("it is no memory file".into()));
        }
        let seals = fcntl_get_seals(descriptor)
            .map_err(|e| bad(format!("it is no memory file: F_GET_SEALS: {e}")))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(bad("it is not sealed against shrinking".into()));
        }
        // Only after the seal was seen: from here on the size can't get less.
        let stat = fstat(descriptor).map_err(|e| bad(format!("fstat: {e}")))?;
        if u64::try_from(stat.st_size).unwrap_or(0) < len as u64 {
            return Err(bad(format!(
                "it has {} bytes, {len} were announced",
                stat.st_size
            )));
        }
        let kind = fstatfs(descriptor)
            .map_err(|e| bad(format!("fstatfs: {e}")))?
            .f_type;
        // f_type's type differs between architectures; the number fits 32 bits in all.
        Ok(if kind as u32 == HUGETLBFS_MAGIC {
            usize::try_from(stat.st_blksize).unwrap_or(HUGE)
        } else {
            rustix::param::page_size()
        })
    }

    /// Maps `len` bytes of a file with pages of `page` bytes at a multiple of `align`, which is one
    /// of `page`.
    fn map(descriptor: BorrowedFd<'_>, len: usize, page: usize, align: usize) -> Result<Self> {
        let no_room =
            |source: io::Error| Error::os(format!("mapping {len} bytes of a heap"), source);
        let too_large = || no_room(io::ErrorKind::OutOfMemory.into());
        let mapped = len.checked_next_multiple_of(page).ok_or_else(too_large)?;
        // The kernel aligns to pages by itself (explicit huge ones it does not, in plain memory).
        let slack = if align > rustix::param::page_size() {
            align
        } else {
            0
        };
        let reserved = mapped.checked_add(slack).ok_or_else(too_large)?;
        // SAFETY: a new range, wherever the kernel likes; nothing can be in it yet.
        let range = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(null_mut(), reserved, libc::PROT_NONE, flags, -1, 0)
        };
        if range == libc::MAP_FAILED {
            return Err(no_room(io::Error::last_os_error()));
        }
        let range = range.cast::<u8>();
        let before = range.addr().next_multiple_of(align) - range.addr();
        // SAFETY: `before` < `align`, so the `mapped` bytes from there lie in the reserved range,
        // which is ours; MAP_FIXED replaces only those.
        let base = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let at = range.add(before).cast();
            libc::mmap(at, mapped, protection, flags, descriptor.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            unmap(range, reserved);
            return Err(no_room(error));
        }
        let base = base.cast::<u8>();
        unmap(range, before);
        unmap(base.wrapping_add(mapped), reserved - before - mapped);
        // mmap never gives the null page for a range that the kernel chose.
        let base = NonNull::new(base).ok_or_else(too_large)?;
        Ok(Mapping { base, len, mapped })
    }

    /// The first byte.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: an empty segment is not mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.base.as_ptr(), self.mapped);
    }
}

/// Unmaps what this module mapped and nobody uses any more. The call fails only for addresses that
/// are not page-aligned (or for want of memory to split a range); the range then stays.
fn unmap(at: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: all callers pass ranges of their own mappings, no longer used.
        unsafe { libc::munmap(at.cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    fn file(len: u64, seals: SealFlags) -> OwnedFd {
        let file = memfd_create(c"test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, len).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    #[test]
    fn two_mappings_of_one_file_show_the_same_bytes() {
        let len = (4 << 20) + 100;
        let file = file(len as u64, SealFlags::SHRINK);
        let (a, b) = (
            Mapping::of_descriptor(file.as_fd(), len).unwrap(),
            Mapping::of_descriptor(file.as_fd(), len).unwrap(),
        );
        drop(file);
        assert_eq!((a.len(), b.len()), (len, len));
        assert_eq!(
            a.base().addr().get() % (8 << 20),
            0,
            "aligned as far as it is long"
        );
        let last = len / 8 * 8 - 8;
        // SAFETY: the last whole word of both mappings, by atomics.
        unsafe {
            a.base()
                .add(last)
                .cast::<AtomicU64>()
                .as_ref()
                .store(7, Relaxed);
            assert_eq!(
                b.base()
                    .add(last)
                    .cast::<AtomicU64>()
                    .as_ref()
                    .load(Relaxed),
                7
            );
        }
    }

    /// Run by the next test, in a process of its own: the limit would harm the other tests.
    #[test]
    #[ignore = "lowers this process's limit on address space"]
    fn in_little_address_space() {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let len = 64 << 20;
        let file = file(len as u64, SealFlags::SHRINK);
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
        let limit = Some(pages * rustix::param::page_size() as u64 + (96 << 20));
        let limit = Rlimit {
            current: limit,
            maximum: limit,
        };
        setrlimit(Resource::As, limit).unwrap();
        let error = Mapping::of_own(file.as_fd(), len).unwrap_err().to_string();
        assert!(error.contains("ulimit -v"), "{error}");
        assert_eq!(
            Mapping::of_descriptor(file.as_fd(), len).unwrap().len(),
            len
        );
    }

    #[test]
    fn a_peers_segment_is_mapped_where_there_is_no_room_to_align_it() {
        let name = "mapping::tests::in_little_address_space";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{output:?}"
        );
    }

    #[test]
    fn a_file_that_could_shrink_is_refused() {
        let file = file(4096, SealFlags::GROW);
        let error = Mapping::of_descriptor(file.as_fd(), 4096)
            .unwrap_err()
            .to_string();
        assert!(error.contains("shrinking"), "{error}");
    }

    #[test]
    fn a_file_shorter_than_announced_is_refused() {
        let file = file(4096, SealFlags::SHRINK);
        for len in [4097, 1 << 40, usize::MAX] {
            let error = Mapping::of_descriptor(file.as_fd(), len)
                .unwrap_err()
                .to_string();
            assert!(error.contains("4096 bytes"), "{error}");
        }
        assert!(Mapping::of_descriptor(file.as_fd(), 0).is_err());
    }

    #[test]
    fn what_is_no_memory_file_is_refused() {
        let disk = std::fs::File::open("/proc/self/exe").unwrap();
        let directory = std::fs::File::open("/").unwrap();
        for fd in [disk.as_fd(), directory.as_fd()] {
            let error = Mapping::of_descriptor(fd, 4096).unwrap_err();
            assert!(matches!(error, Error::BadDescriptor { .. }), "{error}");
        }
    }
}
