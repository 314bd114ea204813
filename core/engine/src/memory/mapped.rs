//! Bytes of symmetric memory that this process can load and store: the only code of `oxshmem` that
//! touches mapped memory.
//!
//! A [`Span`] is made by [`PeerTable`](crate::peer::mapped_table::PeerTable), which checks the range that each
//! method here relies on. Plain accesses are relaxed atomics or the heap's copy routine, because
//! other PEs write the same bytes.
//!
//! Ordered accesses are written over the trait [`HostMemory`], which a [`Span`] implements by the
//! processor's instructions and a [`Simulated`](crate::memory::simulated::Simulated) span by a simulation of a
//! weak processor, so that the litmus programs judge the orders that are compiled in.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, AtomicRequest, Width};

use crate::order::fence_site::FenceSite;

/// Bytes that a CPU loads and stores. An ordered access names the site of the fence that it
/// inserts.
pub trait HostMemory: Copy {
    /// The part from `offset` on, of `len` bytes. The caller has checked the range.
    fn part(self, offset: usize, len: usize) -> Self;
    /// Copies from private memory. The caller has checked that `source` fits.
    fn copy_from(self, source: &[u8]);
    /// Copies to private memory. The caller has checked that it fits.
    fn copy_to(self, destination: &mut [u8]);
    /// Loads a word. The caller has checked size and alignment.
    fn load_word(self, width: Width, site: FenceSite) -> u64;
    /// Stores a word. The caller has checked size and alignment.
    fn store_word(self, width: Width, value: u64, site: FenceSite);
    /// A read-modify-write of a word; gives the old value. The caller has checked size and
    /// alignment.
    fn rmw_word(self, request: AtomicRequest, site: FenceSite) -> u64;
    /// A fence of this CPU.
    fn fence(self, site: FenceSite);
}

/// `len` mapped bytes, valid for `'w`.
#[derive(Clone, Copy, Debug)]
pub struct Span<'w> {
    addr: NonNull<u8>,
    len: usize,
    world: PhantomData<&'w ()>,
}

impl<'w> Span<'w> {
    /// # Safety
    ///
    /// `len` bytes from `addr` stay mapped, readable and writable for `'w`, are never behind a
    /// reference other than to atomics, and are accessed by others atomically or at machine level
    /// only.
    #[inline(always)]
    pub(crate) unsafe fn new(addr: NonNull<u8>, len: usize) -> Self {
        Span {
            addr,
            len,
            world: PhantomData,
        }
    }

    /// The first byte's address.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// The part from `offset` on, of `len` bytes. The caller has checked the range.
    #[inline(always)]
    pub fn part(self, offset: usize, len: usize) -> Self {
        debug_assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: the part lies within this span (checked by the caller, asserted in debug builds).
        unsafe { Span::new(self.addr.add(offset), len) }
    }

    /// Stores one element; in one access if it has 1, 2, 4 or 8 bytes and is aligned.
    #[inline(always)]
    pub fn store<T: Pod>(self, value: T) {
        debug_assert!(size_of::<T>() <= self.len);
        // SAFETY: `size_of::<T>()` bytes are mapped (Span's invariant).
        unsafe { oxshmem_heap::copy::store(self.addr.as_ptr().cast::<T>(), value) }
    }

    /// Loads one element; in one access if it has 1, 2, 4 or 8 bytes and is aligned.
    #[inline(always)]
    pub fn load<T: Pod>(self) -> T {
        debug_assert!(size_of::<T>() <= self.len);
        // SAFETY: as for store; any bytes are a valid `T: Pod`.
        unsafe { oxshmem_heap::copy::load(self.addr.as_ptr().cast::<T>()) }
    }

    /// Prefetches the first byte's cache line, to be stored to.
    #[inline(always)]
    pub fn prefetch_write(self) {
        oxshmem_heap::copy::prefetch_write(self.addr.as_ptr());
    }

    /// Prefetches the first byte's cache line, to be loaded from.
    #[inline(always)]
    pub fn prefetch_read(self) {
        oxshmem_heap::copy::prefetch_read(self.addr.as_ptr());
    }

    /// Copies from private memory. The caller has checked that `source` fits.
    #[inline(always)]
    pub(crate) fn copy_from(self, source: &[u8]) {
        debug_assert!(source.len() <= self.len);
        // SAFETY: the destination is mapped for as many bytes; `source` is borrowed, so it is
        // readable and does not overlap memory that is never behind a reference.
        unsafe { oxshmem_heap::copy::copy(self.addr.as_ptr(), source.as_ptr(), source.len()) }
    }

    /// Copies to private memory. The caller has checked that it fits.
    #[inline(always)]
    pub(crate) fn copy_to(self, destination: &mut [u8]) {
        debug_assert!(destination.len() <= self.len);
        // SAFETY: as for copy_from, the other way round.
        unsafe {
            oxshmem_heap::copy::copy(
                destination.as_mut_ptr(),
                self.addr.as_ptr(),
                destination.len(),
            );
        }
    }

    /// [`copy_from`](Self::copy_from) of raw memory.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes.
    #[inline(always)]
    pub unsafe fn copy_from_raw(self, source: *const u8, len: usize) {
        debug_assert!(len <= self.len);
        // SAFETY: the caller's promise, and the span is mapped for as many bytes.
        unsafe { oxshmem_heap::copy::copy(self.addr.as_ptr(), source, len) }
    }

    /// [`copy_to`](Self::copy_to) of raw memory.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes.
    #[inline(always)]
    pub unsafe fn copy_to_raw(self, destination: *mut u8, len: usize) {
        debug_assert!(len <= self.len);
        // SAFETY: the caller's promise, and the span is mapped for as many bytes.
        unsafe { oxshmem_heap::copy::copy(destination, self.addr.as_ptr(), len) }
    }

    /// [`copy_from_raw`](Self::copy_from_raw) of one aligned word; false for anything else, which it leaves.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes.
    #[inline(always)]
    pub unsafe fn copy_word_from_raw(self, source: *const u8, len: usize) -> bool {
        debug_assert!(len <= self.len);
        // SAFETY: as of copy_from_raw.
        unsafe { oxshmem_heap::copy::copy_whole_word(self.addr.as_ptr(), source, len) }
    }

    /// [`copy_to_raw`](Self::copy_to_raw) likewise.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes.
    #[inline(always)]
    pub unsafe fn copy_word_to_raw(self, destination: *mut u8, len: usize) -> bool {
        debug_assert!(len <= self.len);
        // SAFETY: as of copy_to_raw.
        unsafe { oxshmem_heap::copy::copy_whole_word(destination, self.addr.as_ptr(), len) }
    }

    /// Copies `len` bytes, of `total` that are copied at about the same time, from another span, which the
    /// caller has checked to be this one or apart.
    #[inline(always)]
    pub(crate) fn copy_from_span(self, source: Span<'_>, len: usize, total: usize) {
        debug_assert!(len <= self.len && len <= source.len);
        if self.addr == source.addr {
            return;
        }
        let (to, from) = (self.addr.as_ptr(), source.addr.as_ptr());
        // SAFETY: both are mapped for `len` bytes, which do not overlap.
        unsafe { oxshmem_heap::copy::copy_chunk(to, from, len, total) }
    }

    /// Sets every byte to zero.
    pub(crate) fn zero(self) {
        // SAFETY: the span is mapped for `len` bytes.
        unsafe { oxshmem_heap::copy::fill_zero(self.addr.as_ptr(), self.len) }
    }

    /// The span as a 32-bit atomic. The caller has checked size and alignment.
    #[inline(always)]
    pub fn atomic_u32(self) -> &'w AtomicU32 {
        debug_assert!(self.len >= 4 && self.addr.addr().get().is_multiple_of(4));
        // SAFETY: mapped, aligned, and never behind a non-atomic reference (Span's invariant).
        unsafe { AtomicU32::from_ptr(self.addr.as_ptr().cast()) }
    }

    /// The span as a 64-bit atomic. The caller has checked size and alignment.
    #[inline(always)]
    pub(crate) fn atomic_u64(self) -> &'w AtomicU64 {
        debug_assert!(self.len >= 8 && self.addr.addr().get().is_multiple_of(8));
        // SAFETY: as for atomic_u32.
        unsafe { AtomicU64::from_ptr(self.addr.as_ptr().cast()) }
    }
}

impl HostMemory for Span<'_> {
    #[inline(always)]
    fn part(self, offset: usize, len: usize) -> Self {
        Span::part(self, offset, len)
    }

    #[inline(always)]
    fn copy_from(self, source: &[u8]) {
        Span::copy_from(self, source);
    }

    #[inline(always)]
    fn copy_to(self, destination: &mut [u8]) {
        Span::copy_to(self, destination);
    }

    #[inline(always)]
    fn load_word(self, width: Width, site: FenceSite) -> u64 {
        match width {
            Width::W32 => self.atomic_u32().load(site.order()).into(),
            Width::W64 => self.atomic_u64().load(site.order()),
        }
    }

    #[inline(always)]
    fn store_word(self, width: Width, value: u64, site: FenceSite) {
        match width {
            Width::W32 => self.atomic_u32().store(value as u32, site.order()),
            Width::W64 => self.atomic_u64().store(value, site.order()),
        }
    }

    #[inline(always)]
    fn rmw_word(self, request: AtomicRequest, site: FenceSite) -> u64 {
        let AtomicRequest {
            op,
            width,
            operand,
            compare,
        } = request;
        // The operation and the width are constants where this is inlined: one instruction remains.
        macro_rules! apply {
            ($word:expr, $t:ty) => {{
                let (word, operand, order) = ($word, operand as $t, site.order());
                match op {
                    AtomicOp::Fetch => word.load(order),
                    AtomicOp::Set => {
                        word.store(operand, Ordering::Relaxed);
                        0
                    }
                    AtomicOp::Add => word.fetch_add(operand, order),
                    AtomicOp::And => word.fetch_and(operand, order),
                    AtomicOp::Or => word.fetch_or(operand, order),
                    AtomicOp::Xor => word.fetch_xor(operand, order),
                    AtomicOp::Swap => word.swap(operand, order),
                    AtomicOp::CompareSwap => {
                        match word.compare_exchange(compare as $t, operand, order, order) {
                            Ok(old) | Err(old) => old,
                        }
                    }
                }
            }};
        }
        match width {
            Width::W32 => u64::from(apply!(self.atomic_u32(), u32)),
            Width::W64 => apply!(self.atomic_u64(), u64),
        }
    }

    #[inline(always)]
    fn fence(self, site: FenceSite) {
        std::sync::atomic::fence(site.order());
    }
}
