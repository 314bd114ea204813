//! This PE's registered memory, and the stores of other PEs' messages into it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use oxshmem_transport::{Memory, Reply, SignalOp};

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
        let memory = &self.0.get(&region)?.memory;
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
        unsafe { oxshmem_heap::copy::copy(to, from, len) };
        fence(Ordering::SeqCst);
        true
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
