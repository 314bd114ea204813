//! The address space of device memory.
//!
//! It has two ranges of the same length: *addresses*, which the program sees and which the host may
//! not touch, and *bytes*, a mirror of it at a fixed distance that the driver itself reads and
//! writes. A freed address is not reused soon, so that the use of a dead one is noticed.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::identity::identity;
use crate::call::Outcome;
use crate::code::Code;

/// The unit of device memory: of sizes, addresses and mappings.
pub(crate) const GRANULARITY: u64 = 2 << 20;
/// Address space that is requested at first; less is taken if that fails.
const MOST: u64 = 4 << 40;
const LEAST: u64 = 16 << 30;

/// The host's access to a device address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostAccess {
    /// No access: a dereference faults.
    None,
    /// Access for kernels, which run as host code and need the bytes at the address itself.
    Kernels,
}

/// The two stretches.
#[derive(Debug)]
pub(crate) struct Arena {
    base: u64,
    length: u64,
    bytes: u64,
    next: u64,
    /// The access of kernels, if there are host kernels.
    kernels: bool,
}

fn reserve(length: u64) -> Option<u64> {
    // SAFETY: a new private mapping that nothing may touch; no memory is committed.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (at != libc::MAP_FAILED).then_some(at as u64)
}

impl Arena {
    pub(crate) fn new(kernels: bool) -> Outcome<Arena> {
        let mut length = MOST;
        while length >= LEAST {
            // One mapping for both ranges, so that both exist or neither.
            if let Some(at) = reserve(2 * length + GRANULARITY) {
                let base = at.next_multiple_of(GRANULARITY);
                return Ok(Arena {
                    base,
                    length,
                    bytes: base + length,
                    next: base,
                    kernels,
                });
            }
            length /= 2;
        }
        Err(Code::OUT_OF_MEMORY)
    }

    /// Whether a number is a device address, in use or not.
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.base..self.base + self.length).contains(&address)
    }

    /// A free range of `length` bytes, apart from all entries of `taken` (address to length), with
    /// a gap behind it.
    pub(crate) fn place(
        &mut self,
        length: u64,
        alignment: u64,
        taken: &BTreeMap<u64, u64>,
    ) -> Outcome<u64> {
        let end = self.base + self.length;
        let room = length.checked_add(GRANULARITY).ok_or(Code::OUT_OF_MEMORY)?;
        let mut at = self.next.next_multiple_of(alignment);
        let mut wrapped = false;
        loop {
            if at.checked_add(room).is_none_or(|stop| stop > end) {
                if wrapped {
                    return Err(Code::OUT_OF_MEMORY);
                }
                wrapped = true;
                at = self.base.next_multiple_of(alignment);
                continue;
            }
            match taken.range(..at + room).next_back() {
                Some((start, taken_length)) if start + taken_length + GRANULARITY > at => {
                    at = (start + taken_length + GRANULARITY).next_multiple_of(alignment);
                }
                _ => {
                    self.next = at + room;
                    return Ok(at);
                }
            }
        }
    }

    /// The driver's pointer to the bytes of a device address.
    pub(crate) fn bytes_of(&self, address: u64) -> *mut u8 {
        (address - self.base + self.bytes) as *mut u8
    }

    /// Maps a file's bytes for the driver at an address.
    pub(crate) fn show(&self, address: u64, length: u64, file: BorrowedFd<'_>) -> Outcome {
        crate::race::mapped(address as usize, length as usize, identity(file)?);
        self.map(
            self.bytes_of(address) as u64,
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            Some(file),
        )
    }

    /// Sets the host's access at the address itself.
    pub(crate) fn allow(
        &self,
        address: u64,
        length: u64,
        file: BorrowedFd<'_>,
        access: HostAccess,
    ) -> Outcome {
        match access {
            HostAccess::Kernels if self.kernels => self.map(
                address,
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                Some(file),
            ),
            HostAccess::None if self.kernels => self.map(address, length, libc::PROT_NONE, None),
            _ => Ok(()),
        }
    }

    /// Unmaps the bytes, for the driver and for kernels.
    pub(crate) fn hide(&self, address: u64, length: u64) -> Outcome {
        crate::race::unmapped(address as usize, length as usize);
        self.map(self.bytes_of(address) as u64, length, libc::PROT_NONE, None)?;
        if self.kernels {
            self.map(address, length, libc::PROT_NONE, None)
        } else {
            Ok(())
        }
    }

    fn map(&self, at: u64, length: u64, protection: i32, file: Option<BorrowedFd<'_>>) -> Outcome {
        let flags = match file {
            Some(_) => libc::MAP_SHARED | libc::MAP_FIXED,
            None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
        };
        // SAFETY: `at` lies in one of the two ranges, which are the arena's own, and the caller
        // holds the memory for writing, so no copy is in progress there.
        let mapped = unsafe {
            libc::mmap(
                at as *mut libc::c_void,
                length as usize,
                protection,
                flags,
                file.map_or(-1, |file| file.as_raw_fd()),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            Err(Code::OUT_OF_MEMORY)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_place_is_not_given_out_again_at_once() {
        let mut arena = Arena::new(false).unwrap();
        let mut taken = BTreeMap::new();
        let one = arena.place(GRANULARITY, GRANULARITY, &taken).unwrap();
        taken.insert(one, GRANULARITY);
        let two = arena.place(GRANULARITY, GRANULARITY, &taken).unwrap();
        assert!(
            two >= one + 2 * GRANULARITY,
            "no gap between {one:x} and {two:x}"
        );
        taken.remove(&one);
        assert_ne!(arena.place(GRANULARITY, GRANULARITY, &taken).unwrap(), one);
    }

    #[test]
    fn places_are_found_again_when_the_end_is_reached() {
        let mut arena = Arena::new(false).unwrap();
        let half = arena.length / 2 - GRANULARITY;
        let mut taken = BTreeMap::new();
        for _ in 0..2 {
            let at = arena.place(half, GRANULARITY, &taken).unwrap();
            taken.insert(at, half);
        }
        assert_eq!(
            arena.place(half, GRANULARITY, &taken),
            Err(Code::OUT_OF_MEMORY)
        );
        let first = *taken.keys().next().unwrap();
        taken.remove(&first);
        assert_eq!(arena.place(half, GRANULARITY, &taken), Ok(first));
    }
}
