//! RMA whose local buffer is raw memory; the calls for slices are made of these.
//!
//! The rules are the same, with one exception: other PEs may write the buffer meanwhile, as they may no slice.

use bytemuck::Pod;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_transport::{AtomicOp, AtomicRequest, Operands, SignalOp, Width};

use crate::atomics::AtomicValue;
use crate::context::Context;
use crate::error::Result;
use crate::place::placed;
use crate::signal::SignalUpdate;
use crate::stats::counters::Kind;
use crate::sym::{ObjectStart, Sym};

impl Context<'_> {
    /// [`put`](Self::put) of as many elements as `dst` has.
    ///
    /// # Safety
    ///
    /// `source` is readable for as many elements, and is `dst`'s own place or apart from it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn put_raw<T: Pod>(&self, dst: Sym<T>, source: *const T, pe: usize) -> Result<()> {
        if let Some(span) = self.worker.peers.span(dst, pe) {
            // SAFETY: the caller promises as many readable bytes as the span has.
            unsafe { span.copy_from_raw(source.cast(), dst.bytes()) };
            self.worker.peers.note_store(pe);
            return Ok(());
        }
        // SAFETY: the caller promises a readable source.
        unsafe { self.put_raw_outlined(dst.start(), dst.len(), source, pe) }
    }

    /// [`get`](Self::get) of as many elements as `src` has.
    ///
    /// # Safety
    ///
    /// `destination` is writable for as many elements, and is `src`'s own place or apart from it.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn get_raw<T: Pod>(
        &self,
        destination: *mut T,
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        if let Some(span) = self.worker.peers.span(src, pe) {
            // SAFETY: the caller promises as many writable bytes as the span has.
            unsafe { span.copy_to_raw(destination.cast(), src.bytes()) };
            self.worker.order_read(span);
            return Ok(());
        }
        // SAFETY: the caller promises a writable destination.
        unsafe { self.get_raw_outlined(destination, src.start(), src.len(), pe) }
    }

    /// [`put_raw_slow`](Self::put_raw_slow) of the whole object, out of line, and with the object in parts: so the fast path
    /// keeps it in registers.
    ///
    /// # Safety
    ///
    /// As of [`put_raw_slow`](Self::put_raw_slow).
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn put_raw_outlined<T: Pod>(
        &self,
        dst: ObjectStart,
        len: usize,
        source: *const T,
        pe: usize,
    ) -> Result<()> {
        let dst = Sym::starting_at(dst, len);
        // SAFETY: the caller's promise.
        unsafe {
            self.in_call("put")
                .put_raw_slow(dst, source, len, pe, false)
        }
    }

    /// [`get_raw_slow`](Self::get_raw_slow), as [`put_raw_outlined`](Self::put_raw_outlined).
    ///
    /// # Safety
    ///
    /// As of [`get_raw_slow`](Self::get_raw_slow).
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn get_raw_outlined<T: Pod>(
        &self,
        destination: *mut T,
        src: ObjectStart,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        let src = Sym::starting_at(src, len);
        // SAFETY: the caller's promise.
        unsafe {
            self.in_call("get")
                .get_raw_slow(destination, src, len, pe, false)
        }
    }

    /// Puts `len` elements by any path, after all checks.
    ///
    /// # Safety
    ///
    /// As [`put_nbi`](Self::put_nbi) if the call is `nonblocking`; else `source` is readable during the call.
    #[cold]
    #[track_caller]
    pub(crate) unsafe fn put_raw_slow<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        len: usize,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        placed(|| {
            let pe = self.check(dst, len, pe)?;
            self.guard(Access::Put, dst, len, pe, true)?;
            let bytes = len * size_of::<T>();
            self.count(Kind::Put, dst, bytes, pe);
            // SAFETY: the caller promises a readable source.
            unsafe {
                let source = LocalBuffer::at(source.cast(), bytes);
                Ok(self.worker.put_raw(dst.into(), source, pe, nonblocking)?)
            }
        })
    }

    /// Gets `len` elements by any path, after all checks.
    ///
    /// # Safety
    ///
    /// As [`get_nbi`](Self::get_nbi) if the call is `nonblocking`; else `destination` is writable during the call.
    #[cold]
    #[track_caller]
    pub(crate) unsafe fn get_raw_slow<T: Pod>(
        &self,
        destination: *mut T,
        src: Sym<T>,
        len: usize,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        placed(|| {
            let pe = self.check(src, len, pe)?;
            self.guard(Access::Get, src, len, pe, nonblocking)?;
            let bytes = len * size_of::<T>();
            self.count(Kind::Get, src, bytes, pe);
            // SAFETY: the caller promises a writable destination.
            unsafe {
                let into = LocalBuffer::at(destination.cast(), bytes);
                Ok(self.worker.get_raw(into, src.into(), pe, nonblocking)?)
            }
        })
    }

    /// [`put_signal`](Self::put_signal) of as many elements as `dst` has. If it is `nonblocking`, the next quiet completes it.
    ///
    /// # Safety
    ///
    /// `source` is readable for as many elements. The source of a nonblocking call is unchanged until a quiet has
    /// returned, or if that fails until the world is dropped.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "OpenSHMEM's put_signal has these"
    )]
    #[track_caller]
    pub unsafe fn put_signal_raw<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        if !signal.is_empty()
            && let Some(span) = self.worker.peers.span(dst, pe)
            && let Some(word) = self.worker.peers.word(signal, pe)
        {
            // SAFETY: the caller promises as many readable bytes as the span has.
            unsafe { span.copy_from_raw(source.cast(), dst.bytes()) };
            match op {
                SignalOp::Set => word.store_word(Width::W64, value, FenceSite::Signal),
                SignalOp::Add => {
                    let add = AtomicRequest::wide(AtomicOp::Add, value, 0);
                    word.rmw_word(add, FenceSite::Signal);
                }
            }
            self.worker.peers.note_store(pe);
            return Ok(());
        }
        let word = signal;
        let signal = SignalUpdate { word, op, value };
        // SAFETY: the caller promises a readable source, as long as the call needs it.
        unsafe { self.put_signal_slow(dst, source, signal, pe, nonblocking) }
    }

    /// A fetching atomic whose result arrives by the next quiet. `operand` is the value that it adds or writes, `compare` the
    /// value that a compare-and-swap compares with.
    ///
    /// # Safety
    ///
    /// `result` is writable, and not accessed, until a quiet has returned; if that quiet fails,
    /// until the world is dropped.
    #[track_caller]
    pub unsafe fn atomic_nbi<T: AtomicValue>(
        &self,
        op: AtomicOp,
        result: *mut T,
        on: Sym<T>,
        operand: T,
        compare: T,
        pe: usize,
    ) -> Result<()> {
        let operands = Operands {
            operand: operand.bits(),
            compare: compare.bits(),
        };
        // SAFETY: the caller promises a writable result until a quiet has returned.
        unsafe { self.rmw_nbi("atomic_nbi", op, result, on, operands, pe) }
    }
}
