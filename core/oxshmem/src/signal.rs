//! Signals: 64-bit words that announce data (M22).

use bytemuck::Pod;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::ops::lane_rma::Signal;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::op_set::OpKind;
use oxshmem_transport::AtomicOp;
pub use oxshmem_transport::SignalOp;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::placed;
use crate::stats::counters::Kind;
use crate::sym::Sym;

/// The update of the signal word of a put-with-signal.
#[derive(Clone, Copy)]
pub(crate) struct SignalUpdate {
    pub word: Sym<u64>,
    pub op: SignalOp,
    pub value: u64,
}

impl Context<'_> {
    /// Puts `source` at the start of `dst` on PE `pe`, then updates the signal word there. A PE that
    /// sees its new value (by [`signal_fetch`](Self::signal_fetch), a wait or a test) sees the data
    /// of this call (M22). Earlier puts need a fence of their own. An empty `source` only signals.
    ///
    /// `signal` names one word, apart from `dst`. Updates with the same [`SignalOp`] are exclusive
    /// against each other.
    ///
    /// ```
    /// use oxshmem::{Cmp, Result, SignalOp, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let data = world.alloc::<f32>(100)?;
    ///         let ready = world.alloc_zeroed::<u64>(1)?;
    ///         if world.my_pe() == 0 {
    ///             world.put_signal(data, &[2.5; 100], ready, 1, SignalOp::Set, 1)?;
    ///         } else {
    ///             world.signal_wait_until(ready, Cmp::Eq, 1)?;
    ///             assert_eq!(world.g(data.at(99)?, 1)?, 2.5); // the data is there
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_putmem_signal", "shmem_put_signal", "nvshmem_put_signal"))]
    #[doc(alias = "nvshmem_putmem_signal")]
    #[inline]
    #[track_caller]
    pub fn put_signal<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        let dst = first_elements("put_signal", dst, source.len())?;
        // SAFETY: `source` is borrowed for the call.
        unsafe { self.put_signal_raw(dst, source.as_ptr(), signal, value, op, pe, false) }
    }

    /// # Safety
    ///
    /// As of [`put_signal_raw`](Self::put_signal_raw).
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) unsafe fn put_signal_slow<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        signal: SignalUpdate,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        // SAFETY: the caller promises a readable source, as long as the call needs it.
        placed(|| unsafe { self.put_signal_slow_inner(dst, source, signal, pe, nonblocking) })
    }

    /// # Safety
    ///
    /// As of [`put_signal_slow`](Self::put_signal_slow).
    unsafe fn put_signal_slow_inner<T: Pod>(
        &self,
        dst: Sym<T>,
        source: *const T,
        signal: SignalUpdate,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        self.in_call(CALL).check(signal.word, 1, pe)?;
        let pe = self.in_call(CALL).check(dst, 0, pe)?;
        // Not in flight afterwards: the signal orders it.
        self.in_call(CALL)
            .guard(Access::Put, dst, dst.len(), pe, false)?;
        self.count(Kind::PutSignal, dst, dst.bytes(), pe);
        let (source, len) = (source.cast(), dst.bytes());
        let signal = Signal {
            word: signal.word.into(),
            op: signal.op,
            value: signal.value,
        };
        match self
            .worker
            .in_call(CALL)
            .access_path(OpKind::Put, dst, pe)?
        {
            AccessPath::Mapped(span) => {
                // SAFETY: the caller promises as many readable bytes.
                unsafe { span.copy_from_raw(source, len) };
                self.worker.peers.mark_dirty_any();
                Ok(self.worker.in_call(CALL).signal(signal, pe)?)
            }
            // SAFETY: the caller promises a readable source; a nonblocking call's, beyond the inline limit, until a quiet
            // has waited for the lane's completion.
            AccessPath::Lane(endpoint, remote) => unsafe {
                Ok(self.worker.lane_put_signal(
                    endpoint,
                    remote,
                    LocalBuffer::at(source, len),
                    signal,
                    nonblocking,
                )?)
            },
            // The data is in place when `staged_put` returns.
            // SAFETY: the caller promises as many readable bytes.
            AccessPath::Staged(remote) => unsafe {
                self.worker.in_call(CALL).staged_put(remote, source, len)?;
                Ok(self.worker.in_call(CALL).signal(signal, pe)?)
            },
        }
    }

    /// Sets a signal word of PE `pe`.
    #[doc(alias("shmem_signal_set", "nvshmemx_signal_op"))]
    #[inline]
    #[track_caller]
    pub fn signal_set(&self, signal: Sym<u64>, value: u64, pe: usize) -> Result<()> {
        self.post_rmw("signal_set", AtomicOp::Set, signal, value, 0, pe)
    }

    /// Adds to a signal word of PE `pe`.
    #[doc(alias("shmem_signal_add", "nvshmemx_signal_op"))]
    #[inline]
    #[track_caller]
    pub fn signal_add(&self, signal: Sym<u64>, value: u64, pe: usize) -> Result<()> {
        self.post_rmw("signal_add", AtomicOp::Add, signal, value, 0, pe)
    }
}

/// The first `len` elements of a put's destination.
#[inline(always)]
#[track_caller]
pub(crate) fn first_elements<T: Pod>(
    call: &'static str,
    dst: Sym<T>,
    len: usize,
) -> Result<Sym<T>> {
    match dst.range(..len) {
        Ok(dst) => Ok(dst),
        Err(_) => {
            let too_long = Error::OutOfRange {
                call,
                start: 0,
                end: len,
                len: dst.len(),
            };
            Err(too_long.here())
        }
    }
}
