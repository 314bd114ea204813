//! Slots: the contexts of operations in flight, most of them with a buffer that the operation sends from or delivers
//! into.
//!
//! A provider may write to an operation's context and buffer until it reports the operation. So both belong to the
//! endpoint, and a slot's buffer is accessed only while the slot is idle.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::NonNull;

use super::sys::fi_context2;

/// A slot of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(pub u32);

/// Bytes of the buffer of a slot that sends: those of data that is copied, and of the head before it.
pub(crate) const BUFFER: usize = (16 << 10) + 256;
/// Bytes of the buffer of a slot that receives: those of a long message, and its head.
pub(crate) const LONG_BUFFER: usize = (256 << 10) + 4096;

/// A context as libfabric wants it, with the slot's number behind.
#[repr(C)]
struct Context {
    of_provider: UnsafeCell<fi_context2>,
    number: u32,
}

/// How many slots of each kind there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds {
    /// Those with a buffer that sends, or takes what is read.
    pub sends: u32,
    /// Those with a longer buffer that receives.
    pub receives: u32,
    /// Those without a buffer.
    pub bare: u32,
}

impl Kinds {
    /// Bytes of all buffers.
    fn bytes(self) -> usize {
        self.sends as usize * BUFFER + self.receives as usize * LONG_BUFFER
    }

    /// The place of a slot's buffer among all, and its length; none of a slot without.
    fn place(self, slot: SlotId) -> Option<(usize, usize)> {
        let sends = self.sends as usize * BUFFER;
        match slot.0.checked_sub(self.sends) {
            None => Some((slot.0 as usize * BUFFER, BUFFER)),
            Some(at) if at < self.receives => {
                Some((sends + at as usize * LONG_BUFFER, LONG_BUFFER))
            }
            Some(_) => None,
        }
    }
}

/// Slots in the order of [`Kinds`].
pub(super) struct Slots {
    contexts: Box<[Context]>,
    busy: Box<[bool]>,
    buffers: NonNull<u8>,
    kinds: Kinds,
}

// SAFETY: the buffers and contexts are owned, and bound to no thread.
unsafe impl Send for Slots {}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

fn layout(kinds: Kinds) -> Layout {
    let page = 4096;
    let bytes = kinds.bytes().max(BUFFER);
    // A few MiB, on pages.
    Layout::from_size_align(bytes, page).unwrap_or(Layout::new::<u64>())
}

impl Slots {
    pub(super) fn new(kinds: Kinds) -> Slots {
        let layout = layout(kinds);
        let all = kinds.sends + kinds.receives + kinds.bare;
        // SAFETY: the size is not zero.
        let buffers = unsafe { alloc_zeroed(layout) };
        let Some(buffers) = NonNull::new(buffers) else {
            handle_alloc_error(layout)
        };
        let context = |number| Context {
            of_provider: UnsafeCell::new(fi_context2 {
                internal: [std::ptr::null_mut(); 8],
            }),
            number,
        };
        Slots {
            contexts: (0..all).map(context).collect(),
            busy: vec![false; all as usize].into(),
            buffers,
            kinds,
        }
    }

    /// All buffers: the first byte, and how many there are.
    pub(super) fn memory(&self) -> (*mut u8, usize) {
        (self.buffers.as_ptr(), self.kinds.bytes())
    }

    /// The context of a slot, for the provider.
    pub(super) fn context(&self, slot: SlotId) -> Option<*mut c_void> {
        let context = self.contexts.get(slot.0 as usize)?;
        Some(context.of_provider.get().cast())
    }

    /// The first byte of a slot's buffer, and how many there are.
    pub(super) fn at(&self, slot: SlotId) -> Option<(*mut u8, usize)> {
        let (offset, len) = self.kinds.place(slot)?;
        Some((self.buffers.as_ptr().wrapping_add(offset), len))
    }

    /// The slot of a context that the provider gives back; none if it is no slot's.
    pub(super) fn of_context(&self, context: *mut c_void) -> Option<SlotId> {
        let first = self.contexts.as_ptr().addr();
        let distance = context.addr().checked_sub(first)?;
        let number = distance / size_of::<Context>();
        let whole = distance.is_multiple_of(size_of::<Context>());
        let known = self.contexts.get(number).filter(|_| whole)?;
        Some(SlotId(known.number))
    }

    pub(super) fn is_busy(&self, slot: SlotId) -> bool {
        self.busy.get(slot.0 as usize).is_none_or(|busy| *busy)
    }

    pub(super) fn set_busy(&mut self, slot: SlotId, busy: bool) {
        if let Some(state) = self.busy.get_mut(slot.0 as usize) {
            *state = busy;
        }
    }

    /// The bytes of an idle slot's buffer; none of another's.
    pub(super) fn bytes(&mut self, slot: SlotId) -> &mut [u8] {
        match self.at(slot) {
            // SAFETY: inside the allocation; an idle slot's buffer belongs to no operation, and slots do not overlap.
            Some((at, len)) if !self.is_busy(slot) => unsafe {
                std::slice::from_raw_parts_mut(at, len)
            },
            _ => &mut [],
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once, here.
        unsafe { dealloc(self.buffers.as_ptr(), layout(self.kinds)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sends: u32, receives: u32, bare: u32) -> Kinds {
        Kinds {
            sends,
            receives,
            bare,
        }
    }

    #[test]
    fn buffers_do_not_overlap_and_lie_in_the_memory_that_is_registered() {
        let slots = Slots::new(kinds(2, 2, 1));
        let (first, all) = slots.memory();
        let places = (0..4).map(|slot| slots.at(SlotId(slot)).unwrap());
        let end = places.fold(first, |next, (at, len)| {
            assert_eq!(at, next);
            at.wrapping_add(len)
        });
        assert_eq!(end, first.wrapping_add(all));
    }

    #[test]
    fn a_context_names_its_slot_and_nothing_else_does() {
        let slots = Slots::new(kinds(1, 1, 3));
        for number in 0..5 {
            let context = slots.context(SlotId(number)).unwrap();
            assert_eq!(slots.of_context(context), Some(SlotId(number)));
            assert_eq!(slots.of_context(context.wrapping_byte_add(8)), None);
        }
        assert_eq!(slots.context(SlotId(5)), None);
        assert_eq!(slots.of_context(std::ptr::null_mut()), None);
        assert_eq!(slots.at(SlotId(2)), None, "a slot without a buffer");
    }

    #[test]
    fn the_buffer_of_a_slot_in_flight_is_not_touched() {
        let mut slots = Slots::new(kinds(2, 0, 0));
        slots.bytes(SlotId(1)).fill(7);
        slots.set_busy(SlotId(1), true);
        assert!(slots.bytes(SlotId(1)).is_empty());
        slots.set_busy(SlotId(1), false);
        assert!(slots.bytes(SlotId(1)).iter().all(|byte| *byte == 7));
    }
}
