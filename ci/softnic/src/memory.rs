//! Memory of this process: what is mapped, what counts as a GPU's, and files that are mapped for registrations.

use std::ffi::c_int;
use std::sync::Mutex;

use crate::sync::lock;

/// Ranges that a test has named as a GPU's.
static GPU_RANGES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Has memory count as a GPU's, or no more.
pub(crate) fn set_gpu(addr: usize, len: usize, is: bool) {
    let mut ranges = lock(&GPU_RANGES);
    match is {
        true => ranges.push((addr, len)),
        false => ranges.retain(|range| *range != (addr, len)),
    }
}

pub(crate) fn is_gpu(addr: usize, len: usize) -> bool {
    let end = addr.saturating_add(len);
    let ranges = lock(&GPU_RANGES);
    ranges
        .iter()
        .any(|(from, len)| *from <= addr && end <= from.saturating_add(*len))
}

/// Whether memory is mapped, readable and, if `writes`, writable.
pub(crate) fn is_mapped(addr: usize, len: usize, writes: bool) -> bool {
    let Some(end) = addr.checked_add(len) else {
        return false;
    };
    // Where there is no list of mappings, the caller is trusted.
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return true;
    };
    let mut covered = addr;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else {
            continue;
        };
        let Some((from, to)) = range.split_once('-') else {
            continue;
        };
        let parse = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (from, to) = (parse(from), parse(to));
        if to <= covered {
            continue;
        }
        let fits = rights.starts_with('r') && (!writes || rights[1..].starts_with('w'));
        if from > covered || !fits {
            return false;
        }
        covered = to;
        if covered >= end {
            return true;
        }
    }
    false
}

/// A file mapped for a registration.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    len: usize,
    skip: usize,
}

impl Mapping {
    pub(crate) fn of(descriptor: c_int, offset: u64, len: usize) -> Result<Mapping, c_int> {
        // SAFETY: no memory is involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        let skip = (offset % page) as usize;
        let start = libc::off_t::try_from(offset - skip as u64).map_err(|_| libc::EINVAL)?;
        let whole = len.checked_add(skip).ok_or(libc::EINVAL)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which replaces none.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                whole,
                access,
                libc::MAP_SHARED,
                descriptor,
                start,
            )
        };
        if base == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(error.raw_os_error().unwrap_or(libc::EINVAL));
        }
        Ok(Mapping {
            base: base.expose_provenance(),
            len: whole,
            skip,
        })
    }

    pub(crate) fn addr(&self) -> usize {
        self.base + self.skip
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: its own mapping, which nothing accesses after its registration ended.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_memory_is_told_from_other_memory() {
        let vector = vec![1u8; 100_000];
        assert!(is_mapped(vector.as_ptr().addr(), vector.len(), true));
        static CONSTANT: [u8; 64] = [7; 64];
        assert!(is_mapped(CONSTANT.as_ptr().addr(), 64, false));
        assert!(!is_mapped(CONSTANT.as_ptr().addr(), 64, true));
        assert!(!is_mapped(16, 8, false));
        assert!(!is_mapped(usize::MAX - 3, 8, false));
    }

    #[test]
    fn memory_is_a_gpus_while_a_test_says_so() {
        set_gpu(0x7000, 0x1000, true);
        assert!(is_gpu(0x7800, 0x100) && !is_gpu(0x7800, 0x1000));
        set_gpu(0x7000, 0x1000, false);
        assert!(!is_gpu(0x7800, 0x100));
    }
}
