//! The contents of a region while all PEs agree on it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use oxshmem_transport::{Memory, MemoryKind};

/// The contents of a region while all PEs agree on it, word by word.
#[derive(Debug)]
pub(super) enum Plain {
    /// Host memory itself.
    Real(Memory),
    /// The words that were written; the others are 0.
    Kept(HashMap<u64, u64>),
}

impl Plain {
    /// For memory that has an address; none if it is not whole aligned words. A GPU's is kept apart:
    /// a CPU may not touch it.
    pub(super) fn of(memory: &Memory) -> Option<Plain> {
        let words = memory.base().cast::<u64>().is_aligned() && memory.len().is_multiple_of(8);
        match memory.kind() {
            _ if !words => None,
            MemoryKind::Host => Some(Plain::Real(memory.clone())),
            _ => Some(Plain::Kept(HashMap::new())),
        }
    }

    fn word(memory: &Memory, word: u64) -> Option<&AtomicU64> {
        let offset = usize::try_from(word).ok()?.checked_mul(8)?;
        if offset >= memory.len() {
            return None;
        }
        // SAFETY: inside the memory, which is whole words (`of`).
        let at = unsafe { memory.base().add(offset) };
        // SAFETY: aligned, as the base is; readable and writable while `memory` lives, whose maker
        // promised (`Memory::new`) that all accesses are atomic or the machine's.
        Some(unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) })
    }

    pub(super) fn read(&self, word: u64) -> u64 {
        match self {
            // Acquire and release, as a lane that performs an operation owes it to those who look at
            // the memory without the machine.
            Plain::Real(memory) => {
                Self::word(memory, word).map_or(0, |word| word.load(Ordering::Acquire))
            }
            Plain::Kept(words) => words.get(&word).copied().unwrap_or(0),
        }
    }

    /// Changes a word, exclusively, if `change` gives a new value; gives the old one. Words outside
    /// are nobody's.
    pub(super) fn update(&mut self, word: u64, change: impl Fn(u64) -> Option<u64>) -> u64 {
        match self {
            Plain::Real(memory) => Self::word(memory, word).map_or(0, |word| {
                word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change)
                    .unwrap_or_else(|unchanged| unchanged)
            }),
            Plain::Kept(words) => {
                let old = words.get(&word).copied().unwrap_or(0);
                if let Some(new) = change(old) {
                    words.insert(word, new);
                }
                old
            }
        }
    }
}
