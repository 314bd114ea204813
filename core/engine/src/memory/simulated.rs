//! Mapped memory that a transport simulates, so that a weak processor's reorderings are seen on any.

use std::fmt;
use std::sync::Arc;

use oxshmem_transport::{Accessor, AtomicOp, AtomicRequest, Width};

use crate::memory::mapped::{HostMemory, Span};
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;

/// The accessors of this PE's simulated CPU to one PE's heap, where there are any.
#[derive(Clone, Default)]
pub struct Accessors {
    /// The accessor for puts and gets.
    pub copies: Option<Arc<dyn Accessor>>,
    /// The accessor for atomics.
    pub atomics: Option<Arc<dyn Accessor>>,
}

impl fmt::Debug for Accessors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accessors").finish_non_exhaustive()
    }
}

impl Accessors {
    fn each(&self) -> impl Iterator<Item = &Arc<dyn Accessor>> {
        self.copies.iter().chain(&self.atomics)
    }
}

/// The accessors of this PE's simulated CPU to every PE's heap.
pub struct Simulation {
    accessors: Vec<Accessors>,
    /// The site that the mutation check disables.
    disabled: Option<FenceSite>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("omitted", &self.disabled)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// None where no PE's memory is simulated.
    pub fn of(accessors: Vec<Accessors>, disabled: Option<FenceSite>) -> Option<Self> {
        let any = accessors.iter().any(|a| a.each().next().is_some());
        any.then_some(Simulation {
            accessors,
            disabled,
        })
    }

    /// `len` bytes at `offset` of a PE's heap, if operations of this kind find it simulated. The
    /// caller has checked the range.
    pub(crate) fn at(
        &self,
        op: OpKind,
        pe: usize,
        offset: u64,
        len: usize,
    ) -> Option<Simulated<'_>> {
        let accessors = self.accessors.get(pe)?;
        let accessor = match op {
            OpKind::Put => &accessors.copies,
            _ => &accessors.atomics,
        };
        Some(Simulated {
            accessor: accessor.as_deref()?,
            offset,
            len,
            disabled: self.disabled,
        })
    }

    /// A fence of this PE's simulated CPU.
    pub fn fence(&self, site: FenceSite) {
        if self.disabled == Some(site) {
            return;
        }
        // One CPU: its fence is the same by whichever of its accessors.
        if let Some(accessor) = self.accessors.iter().flat_map(Accessors::each).next() {
            accessor.fence(site.order());
        }
    }
}

/// `len` simulated bytes.
#[derive(Clone, Copy, Debug)]
pub struct Simulated<'w> {
    accessor: &'w dyn Accessor,
    offset: u64,
    len: usize,
    disabled: Option<FenceSite>,
}

impl Simulated<'_> {
    fn order(self, site: FenceSite) -> std::sync::atomic::Ordering {
        if self.disabled == Some(site) {
            FenceSite::Nothing.order()
        } else {
            site.order()
        }
    }
}

impl HostMemory for Simulated<'_> {
    fn part(self, offset: usize, len: usize) -> Self {
        debug_assert!(offset <= self.len && len <= self.len - offset);
        let offset = self.offset + offset as u64;
        Simulated {
            offset,
            len,
            ..self
        }
    }

    fn copy_from(self, source: &[u8]) {
        self.accessor.store(self.offset, source);
    }

    fn copy_to(self, destination: &mut [u8]) {
        self.accessor.load(self.offset, destination);
    }

    fn load_word(self, width: Width, site: FenceSite) -> u64 {
        let order = self.order(site);
        self.accessor.load_word(self.offset, width, order)
    }

    fn store_word(self, width: Width, value: u64, site: FenceSite) {
        let order = self.order(site);
        self.accessor.store_word(self.offset, width, value, order);
    }

    fn rmw_word(self, request: AtomicRequest, site: FenceSite) -> u64 {
        let order = self.order(site);
        let width = request.width;
        match request.op {
            AtomicOp::Fetch => self.accessor.load_word(self.offset, width, order),
            AtomicOp::Set => {
                self.store_word(width, request.operand, FenceSite::Nothing);
                0
            }
            _ => self.accessor.rmw_word(self.offset, request, order),
        }
    }

    fn fence(self, site: FenceSite) {
        if self.disabled != Some(site) {
            self.accessor.fence(site.order());
        }
    }
}

/// Bytes that this PE's CPU accesses, in memory or simulated.
#[derive(Clone, Copy, Debug)]
pub enum HostSpan<'w> {
    /// Mapped bytes: this processor's accesses.
    Mapped(Span<'w>),
    /// Simulated bytes: a weak processor's accesses.
    Simulated(Simulated<'w>),
}

macro_rules! either {
    ($self:ident, $bytes:ident => $do:expr) => {
        match $self {
            HostSpan::Mapped($bytes) => $do,
            HostSpan::Simulated($bytes) => $do,
        }
    };
}

impl HostMemory for HostSpan<'_> {
    #[inline]
    fn part(self, offset: usize, len: usize) -> Self {
        match self {
            HostSpan::Mapped(span) => HostSpan::Mapped(span.part(offset, len)),
            HostSpan::Simulated(span) => HostSpan::Simulated(span.part(offset, len)),
        }
    }

    #[inline]
    fn copy_from(self, source: &[u8]) {
        either!(self, bytes => bytes.copy_from(source));
    }

    #[inline]
    fn copy_to(self, destination: &mut [u8]) {
        either!(self, bytes => bytes.copy_to(destination));
    }

    #[inline]
    fn load_word(self, width: Width, site: FenceSite) -> u64 {
        either!(self, bytes => bytes.load_word(width, site))
    }

    #[inline]
    fn store_word(self, width: Width, value: u64, site: FenceSite) {
        either!(self, bytes => bytes.store_word(width, value, site));
    }

    #[inline]
    fn rmw_word(self, request: AtomicRequest, site: FenceSite) -> u64 {
        either!(self, bytes => bytes.rmw_word(request, site))
    }

    #[inline]
    fn fence(self, site: FenceSite) {
        either!(self, bytes => HostMemory::fence(bytes, site));
    }
}

impl HostSpan<'_> {
    /// Copies `len` bytes from another span, which the caller has checked to be this one or apart.
    #[inline]
    pub fn copy_from_span(self, source: HostSpan<'_>, len: usize) {
        self.copy_chunk_from_span(source, len, len);
    }

    /// [`copy_from_span`](Self::copy_from_span) as a part of `total` bytes that are copied at about the
    /// same time, by this PE and others.
    #[inline]
    pub fn copy_chunk_from_span(self, source: HostSpan<'_>, len: usize, total: usize) {
        match (self, source) {
            (HostSpan::Mapped(to), HostSpan::Mapped(from)) => to.copy_from_span(from, len, total),
            (to, from) => {
                let mut bytes = vec![0; len];
                from.copy_to(&mut bytes);
                to.copy_from(&bytes);
            }
        }
    }

    /// [`copy_from`](HostMemory::copy_from) of raw memory.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes.
    pub unsafe fn copy_from_raw(self, source: *const u8, len: usize) {
        match self {
            // SAFETY: the caller's promise.
            HostSpan::Mapped(span) => unsafe { span.copy_from_raw(source, len) },
            HostSpan::Simulated(span) => {
                let mut bytes = vec![0; len];
                // SAFETY: the caller's promise, and these bytes are new.
                unsafe { oxshmem_heap::copy::copy(bytes.as_mut_ptr(), source, len) };
                span.copy_from(&bytes);
            }
        }
    }

    /// [`copy_to`](HostMemory::copy_to) of raw memory.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes.
    pub unsafe fn copy_to_raw(self, destination: *mut u8, len: usize) {
        match self {
            // SAFETY: the caller's promise.
            HostSpan::Mapped(span) => unsafe { span.copy_to_raw(destination, len) },
            HostSpan::Simulated(span) => {
                let mut bytes = vec![0; len];
                span.copy_to(&mut bytes);
                // SAFETY: the caller's promise, and these bytes are new.
                unsafe { oxshmem_heap::copy::copy(destination, bytes.as_ptr(), len) };
            }
        }
    }

    /// Sets every byte to zero.
    pub fn zero(self) {
        match self {
            HostSpan::Mapped(span) => span.zero(),
            HostSpan::Simulated(span) => span.copy_from(&vec![0; span.len]),
        }
    }
}
