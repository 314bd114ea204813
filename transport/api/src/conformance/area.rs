use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::{Local, LocalKey, Memory, MemoryKind};

const PAGE: usize = 4096;

struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `Pages` owns its allocation and reads or writes it nowhere.
unsafe impl Send for Pages {}
// SAFETY: as for Send.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `base` came from `alloc_zeroed` with this layout and is freed once, here.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Zeroed, page-aligned host memory of `len` bytes, rounded up to whole pages, without a
/// descriptor: what PEs in one process can register.
///
/// # Errors
///
/// Where there is not that much memory.
pub fn host_memory(len: usize) -> Result<Memory, String> {
    let short = || format!("no {len} bytes of host memory for the check; lower Harness::largest");
    let len = len
        .max(1)
        .checked_next_multiple_of(PAGE)
        .ok_or_else(short)?;
    let layout = Layout::from_size_align(len, PAGE).map_err(|_| short())?;
    // SAFETY: the layout's size is not zero: `len` is at least one page.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(short)?;
    let owner = Arc::new(Pages { base, layout });
    // SAFETY: `owner` keeps the allocation, which nothing else refers to.
    Ok(unsafe { Memory::new(base, len, MemoryKind::Host, None, owner) })
}

/// Host memory that the checks fill and look into while a transport may be writing it: every access
/// is an atomic of one byte or one aligned word, inside the memory.
#[derive(Clone, Debug)]
pub(super) struct Area {
    memory: Memory,
    key: Option<LocalKey>,
}

impl Area {
    /// `memory` must be host memory, valid as it says; `key` is its registration's, if it has one.
    pub(super) fn new(memory: Memory, key: Option<LocalKey>) -> Area {
        Area { memory, key }
    }

    pub(super) fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// The bytes as an operation's near side.
    pub(super) fn local(&self, offset: u64, len: u64) -> Local {
        Local {
            addr: self.at(offset, len),
            len: len as usize,
            key: self.key,
        }
    }

    /// The address of `offset`, where `len` bytes from it are inside: a check that asks for others
    /// is wrong itself.
    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    fn at(&self, offset: u64, len: u64) -> *mut u8 {
        if offset.checked_add(len).is_none_or(|end| end > self.len()) {
            panic!(
                "the suite names {len} bytes at {offset} of an area of {}",
                self.len()
            );
        }
        // SAFETY: the offset is inside the memory, checked above.
        unsafe { self.memory.base().as_ptr().add(offset as usize) }
    }

    fn byte(&self, offset: u64) -> &AtomicU8 {
        // SAFETY: one byte inside memory that `self.memory.owner` keeps; all accesses in this
        // process are atomic ones or a transport's, which are its business.
        unsafe { AtomicU8::from_ptr(self.at(offset, 1)) }
    }

    /// The word at `offset`, a multiple of 8.
    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    pub(super) fn word(&self, offset: u64) -> &AtomicU64 {
        let at = self.at(offset, 8).cast::<u64>();
        if !at.is_aligned() {
            panic!("the suite names a misaligned word at {offset}");
        }
        // SAFETY: inside the memory and aligned, checked above; else as for `byte`.
        unsafe { AtomicU64::from_ptr(at) }
    }

    /// The 32-bit word at `offset`, a multiple of 4.
    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    pub(super) fn half(&self, offset: u64) -> &AtomicU32 {
        let at = self.at(offset, 4).cast::<u32>();
        if !at.is_aligned() {
            panic!("the suite names a misaligned word at {offset}");
        }
        // SAFETY: inside the memory and aligned, checked above; else as for `byte`.
        unsafe { AtomicU32::from_ptr(at) }
    }

    pub(super) fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    pub(super) fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Fills with one byte.
    pub(super) fn set(&self, offset: u64, len: u64, byte: u8) {
        for at in offset..offset + len {
            self.byte(at).store(byte, Ordering::Relaxed);
        }
    }

    /// Fills with a sequence in which neighbours, and equal places of two seeds, differ.
    pub(super) fn fill(&self, offset: u64, len: u64, seed: u8) {
        for at in 0..len {
            self.byte(offset + at)
                .store(pattern(seed, at), Ordering::Relaxed);
        }
    }

    /// That the bytes are what [`fill`](Self::fill) leaves.
    pub(super) fn expect_filled(&self, offset: u64, len: u64, seed: u8) -> Result<(), String> {
        self.expect(offset, len, |at| pattern(seed, at))
    }

    /// That the bytes are all `byte`.
    pub(super) fn expect_set(&self, offset: u64, len: u64, byte: u8) -> Result<(), String> {
        self.expect(offset, len, |_| byte)
    }

    fn expect(&self, offset: u64, len: u64, want: impl Fn(u64) -> u8) -> Result<(), String> {
        for at in 0..len {
            let (found, want) = (self.byte(offset + at).load(Ordering::Acquire), want(at));
            if found != want {
                let place = offset + at;
                return Err(format!(
                    "byte {at} of {len} (at {place}) is {found}, not {want}"
                ));
            }
        }
        Ok(())
    }
}

fn pattern(seed: u8, at: u64) -> u8 {
    // 251 is prime, so the sequence does not repeat at powers of two, where a copy that goes
    // astray would land.
    ((at + u64::from(seed) * 37) % 251) as u8
}
