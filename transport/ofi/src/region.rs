//! This PE's registered memory, and the stores of other PEs' messages into it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use oxshmem_transport::{Memory, MemoryKind, Reply, SignalOp};

use crate::fabric::memory::MemoryRegion;
use crate::message::Signal;

/// A registered region.
#[derive(Debug)]
pub(crate) struct OwnRegion {
    /// None once the endpoint has ended.
    pub registration: Option<MemoryRegion>,
    pub memory: Memory,
}

/// The regions of this PE, by number.
#[derive(Debug, Default)]
pub(crate) struct OwnRegions(pub BTreeMap<u32, OwnRegion>);

impl OwnRegions {
    /// The address of bytes that lie inside a region, where they are aligned to `align`.
    fn find(&self, region: u32, offset: u64, len: u64, align: u64) -> Option<*mut u8> {
        // The CPU accesses no GPU memory: whoever names such a region in a message is refused.
        let memory = &self.0.get(&region)?.memory;
        if memory.kind() != MemoryKind::Host {
            return None;
        }
        let end = offset.checked_add(len)?;
        let at = memory
            .base()
            .as_ptr()
            .wrapping_add(usize::try_from(offset).ok()?);
        let aligned = (at.addr() as u64).is_multiple_of(align);
        (end <= memory.len() as u64 && aligned).then_some(at)
    }

    fn word(&self, region: u32, offset: u64) -> Option<&AtomicU64> {
        let at = self.find(region, offset, 8, 8)?;
        // SAFETY: an aligned word in memory that its owner keeps; all access to it is atomic or at machine level.
        Some(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// Copies data to a region, and then updates a signal. Gives whether both lie in regions; if not, nothing is done.
    pub(crate) fn put(
        &self,
        (region, offset): (u32, u64),
        data: &[u8],
        signal: Option<Signal>,
    ) -> bool {
        let Some(to) = self.find(region, offset, data.len() as u64, 1) else {
            return false;
        };
        let word = signal.map(|signal| (signal, self.word(signal.region, signal.offset)));
        if matches!(word, Some((_, None))) {
            return false;
        }
        // Data of earlier messages is visible before this.
        fence(Ordering::Release);
        // SAFETY: `data` lies in a buffer of this process, `to` in a region that its owner keeps.
        unsafe { oxshmem_heap::copy::copy(to, data.as_ptr(), data.len()) };
        if let Some((signal, Some(word))) = word {
            fence(Ordering::SeqCst);
            match signal.op {
                SignalOp::Set => word.store(signal.value, Ordering::SeqCst),
                SignalOp::Add => {
                    word.fetch_add(signal.value, Ordering::SeqCst);
                }
            }
        }
        true
    }

    /// Copies data from a region.
    ///
    /// # Safety
    ///
    /// `to` is writable for `len` bytes.
    pub(crate) unsafe fn get(&self, (region, offset): (u32, u64), to: *mut u8, len: usize) -> bool {
        let Some(from) = self.find(region, offset, len as u64, 1) else {
            return false;
        };
        fence(Ordering::SeqCst);
        // SAFETY: `from` lies in a region that its owner keeps, `to` is the caller's.
        unsafe { copy_overlapping(to, from, len) };
        fence(Ordering::SeqCst);
        true
    }

    /// As [`put`](Self::put), of memory of this process, which may overlap with the place in the region.
    ///
    /// # Safety
    ///
    /// `from` is readable for `len` bytes.
    pub(crate) unsafe fn put_from(
        &self,
        (region, offset): (u32, u64),
        (from, len): (*const u8, usize),
        signal: Option<Signal>,
    ) -> bool {
        let to = self.find(region, offset, len as u64, 1);
        let has_word = |signal: Signal| self.word(signal.region, signal.offset).is_some();
        let Some(to) = to.filter(|_| signal.is_none_or(has_word)) else {
            return false;
        };
        fence(Ordering::Release);
        // SAFETY: `to` lies in a region that its owner keeps, `from` is the caller's.
        unsafe { copy_overlapping(to, from, len) };
        self.put((region, offset), &[], signal)
    }

    /// Writes a reply: the value, and then the number.
    pub(crate) fn reply(&self, reply: &Reply) -> bool {
        let region = reply.to.region.0;
        let Some(next) = reply.to.offset.checked_add(8) else {
            return false;
        };
        match (self.word(region, reply.to.offset), self.word(region, next)) {
            (Some(value), Some(number)) => {
                value.store(reply.value, Ordering::SeqCst);
                number.store(reply.number, Ordering::SeqCst);
                true
            }
            _ => false,
        }
    }
}

/// Bytes that one step of an overlapping copy takes.
const STEP: usize = 4096;

/// A buffer of one step, in which data lies as in a word of its destination.
#[repr(align(8))]
struct Step([u8; STEP + 8]);

/// Copies bytes whose source and destination may overlap. A word of 8 bytes that lies alike in both is copied whole.
///
/// # Safety
///
/// `from` is readable and `to` is writable for `len` bytes.
unsafe fn copy_overlapping(to: *mut u8, from: *const u8, len: usize) {
    let distance = to.addr().abs_diff(from.addr());
    if distance == 0 {
        return;
    }
    if distance >= len {
        // SAFETY: the caller's promise; they do not overlap.
        return unsafe { oxshmem_heap::copy::copy(to, from, len) };
    }
    let phase = to.addr() % 8;
    let steps = (phase + len).div_ceil(STEP);
    let mut buffer = Step([0; STEP + 8]);
    for step in 0..steps {
        // No step writes to source bytes that a later one reads.
        let step = match to.addr() < from.addr() {
            true => step,
            false => steps - 1 - step,
        };
        let start = (step * STEP).max(phase) - phase;
        let end = ((step + 1) * STEP).min(phase + len) - phase;
        let place = buffer.0.as_mut_ptr().wrapping_add((phase + start) % 8);
        // SAFETY: the caller's promise; the buffer has room for a step at each place in a word.
        unsafe {
            oxshmem_heap::copy::copy(place, from.wrapping_add(start), end - start);
            oxshmem_heap::copy::copy(to.wrapping_add(start), place, end - start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_arrive_as_they_were_however_source_and_destination_overlap(
            from in 0_usize..6000, to in 0_usize..6000, len in 0_usize..10_000,
        ) {
            let mut bytes: Vec<u8> = (0..16_000_u32).map(|n| (n % 251) as u8).collect();
            let mut expected = bytes.clone();
            expected.copy_within(from..from + len, to);
            let base = bytes.as_mut_ptr();
            // SAFETY: both ranges lie in the list.
            unsafe { copy_overlapping(base.wrapping_add(to), base.wrapping_add(from), len) };
            prop_assert!(bytes == expected);
        }
    }
}
