//! Memory of the checks.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::memory::{LocalKey, Memory, MemoryKind};
use crate::op::Local;

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
/// descriptor. PEs of one process can register it.
///
/// # Errors
///
/// If there is not that much memory.
pub fn host_memory(len: usize) -> Result<Memory, String> {
    pages(len, MemoryKind::Host).ok_or_else(|| {
        format!("no {len} bytes of host memory for the check; lower Harness::largest")
    })
}

/// The same, as memory of the given kind. None if there is not that much.
#[must_use]
pub fn pages(len: usize, kind: MemoryKind) -> Option<Memory> {
    let len = len.max(1).checked_next_multiple_of(PAGE)?;
    let layout = Layout::from_size_align(len, PAGE).ok()?;
    // SAFETY: the layout's size is not zero: `len` is at least one page.
    let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    let owner = Arc::new(Pages { base, layout });
    // SAFETY: `owner` keeps the allocation, which nothing else refers to.
    Some(unsafe { Memory::new(base, len, kind, None, owner) })
}

/// The contents of memory that the CPU does not load and store. The suite reads and writes them while a
/// transport may be writing them.
///
/// Offsets and lengths are in bytes and inside the memory. Aligned words of 4 and 8 bytes are read and
/// written whole. A call returns when its access is complete; one that fails panics.
pub trait Contents: Send + Sync + fmt::Debug {
    /// Reads from `offset` on.
    fn read(&self, offset: u64, into: &mut [u8]);

    /// Writes from `offset` on.
    fn write(&self, offset: u64, bytes: &[u8]);
}

/// Memory that the checks read and write while a transport may be writing it. In host memory every
/// access is an atomic of one byte or one aligned word, inside the memory.
#[derive(Clone, Debug)]
pub(super) struct Area {
    memory: Memory,
    key: Option<LocalKey>,
    /// The access to it; none for host memory.
    contents: Option<Arc<dyn Contents>>,
}

impl Area {
    /// `memory` must be host memory, valid as it says, or that of `contents`; `key` is its
    /// registration's, if it has one.
    pub(super) fn new(
        memory: Memory,
        key: Option<LocalKey>,
        contents: Option<Arc<dyn Contents>>,
    ) -> Area {
        Area {
            memory,
            key,
            contents,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Whether the CPU loads and stores it.
    pub(super) fn is_host(&self) -> bool {
        self.contents.is_none()
    }

    /// The bytes as an operation's local buffer.
    pub(super) fn buffer(&self, offset: u64, len: u64) -> Local {
        Local {
            addr: self.at(offset, len),
            len: len as usize,
            key: self.key,
        }
    }

    /// The address of `offset`. `len` bytes from it must be inside: a check that asks for others is wrong
    /// itself.
    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    fn at(&self, offset: u64, len: u64) -> *mut u8 {
        if offset.checked_add(len).is_none_or(|end| end > self.len()) {
            panic!(
                "the suite names {len} bytes at {offset} of an area of {}",
                self.len()
            );
        }
        self.memory.base().as_ptr().wrapping_add(offset as usize)
    }

    /// The address of an aligned word of `len` bytes that the CPU loads.
    #[allow(clippy::panic, reason = "a bug of the suite, never of the transport")]
    fn cpu(&self, offset: u64, len: u64) -> *mut u8 {
        let at = self.at(offset, len);
        if !self.is_host() {
            panic!("the suite would load GPU memory at {offset}");
        }
        if !at.addr().is_multiple_of(len as usize) {
            panic!("the suite names a misaligned word at {offset}");
        }
        at
    }

    fn byte(&self, offset: u64) -> &AtomicU8 {
        // SAFETY: one byte inside host memory that `self.memory.owner` keeps; all accesses in this
        // process are atomic ones or the transport's, which keeps its own rules.
        unsafe { AtomicU8::from_ptr(self.cpu(offset, 1)) }
    }

    /// The word at `offset`, a multiple of 8, in host memory.
    pub(super) fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: inside the memory and aligned, checked by `cpu`; else as for `byte`.
        unsafe { AtomicU64::from_ptr(self.cpu(offset, 8).cast()) }
    }

    /// The 32-bit word at `offset`, a multiple of 4, in host memory.
    pub(super) fn half(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: inside the memory and aligned, checked by `cpu`; else as for `byte`.
        unsafe { AtomicU32::from_ptr(self.cpu(offset, 4).cast()) }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        self.at(offset, into.len() as u64);
        match &self.contents {
            Some(contents) => contents.read(offset, into),
            None => {
                for (byte, at) in into.iter_mut().zip(offset..) {
                    *byte = self.byte(at).load(Ordering::Acquire);
                }
            }
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        self.at(offset, bytes.len() as u64);
        match &self.contents {
            Some(contents) => contents.write(offset, bytes),
            None => {
                for (&byte, at) in bytes.iter().zip(offset..) {
                    self.byte(at).store(byte, Ordering::Relaxed);
                }
            }
        }
    }

    pub(super) fn load(&self, offset: u64) -> u64 {
        match &self.contents {
            None => self.word(offset).load(Ordering::Acquire),
            Some(contents) => {
                let mut bytes = [0; 8];
                contents.read(offset, &mut bytes);
                u64::from_ne_bytes(bytes)
            }
        }
    }

    pub(super) fn store(&self, offset: u64, value: u64) {
        match &self.contents {
            None => self.word(offset).store(value, Ordering::Release),
            Some(contents) => contents.write(offset, &value.to_ne_bytes()),
        }
    }

    pub(super) fn load_half(&self, offset: u64) -> u32 {
        match &self.contents {
            None => self.half(offset).load(Ordering::Acquire),
            Some(contents) => {
                let mut bytes = [0; 4];
                contents.read(offset, &mut bytes);
                u32::from_ne_bytes(bytes)
            }
        }
    }

    pub(super) fn store_half(&self, offset: u64, value: u32) {
        match &self.contents {
            None => self.half(offset).store(value, Ordering::Release),
            Some(contents) => contents.write(offset, &value.to_ne_bytes()),
        }
    }

    /// Every `step`-th word of the first `len` bytes, and its offset. Both are multiples of 8.
    pub(super) fn words(&self, len: u64, step: u64) -> Vec<(u64, u64)> {
        let places = (0..len).step_by(step as usize);
        if self.is_host() {
            return places.map(|at| (at, self.load(at))).collect();
        }
        let mut bytes = vec![0; len as usize];
        self.read(0, &mut bytes);
        let (words, _) = bytes.as_chunks();
        places
            .map(|at| (at, u64::from_ne_bytes(words[at as usize / 8])))
            .collect()
    }

    /// Stores `value` into every word of the first `len` bytes, a multiple of 8.
    pub(super) fn store_words(&self, len: u64, value: u64) {
        if self.is_host() {
            (0..len).step_by(8).for_each(|at| self.store(at, value))
        } else {
            self.write(0, &value.to_ne_bytes().repeat(len as usize / 8))
        }
    }

    /// Fills with one byte.
    pub(super) fn set(&self, offset: u64, len: u64, byte: u8) {
        self.write(offset, &vec![byte; len as usize]);
    }

    /// Fills with a sequence in which neighbours, and equal places of two seeds, differ.
    pub(super) fn fill(&self, offset: u64, len: u64, seed: u8) {
        let bytes: Vec<u8> = (0..len).map(|at| pattern(seed, at)).collect();
        self.write(offset, &bytes);
    }

    /// Checks that the bytes are those that [`fill`](Self::fill) writes.
    pub(super) fn expect_filled(&self, offset: u64, len: u64, seed: u8) -> Result<(), String> {
        self.expect(offset, len, |at| pattern(seed, at))
    }

    /// Checks that all bytes are `byte`.
    pub(super) fn expect_set(&self, offset: u64, len: u64, byte: u8) -> Result<(), String> {
        self.expect(offset, len, |_| byte)
    }

    fn expect(&self, offset: u64, len: u64, want: impl Fn(u64) -> u8) -> Result<(), String> {
        let mut bytes = vec![0; len as usize];
        self.read(offset, &mut bytes);
        for (found, at) in bytes.into_iter().zip(0..) {
            let want = want(at);
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
