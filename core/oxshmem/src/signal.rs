//! Signals: 64-bit words that announce data (M22).

use std::sync::atomic::Ordering;

use bytemuck::Pod;
use oxshmem_transport::AtomicOp;
pub use oxshmem_transport::SignalOp;

use crate::check::Access;
use crate::{Cmp, Result, Sym, World};

impl World {
    /// Puts `source` at the start of `dst` on PE `pe`, then updates the signal word there: whoever
    /// sees its new value (by [`signal_fetch`](Self::signal_fetch), a wait or a test) sees the data
    /// of this call (M22). Earlier puts need a fence of their own. An empty `source` only signals.
    ///
    /// `signal` names one word, apart from `dst`. Updates with the same [`SignalOp`] are exclusive
    /// against each other.
    #[doc(alias = "shmem_putmem_signal")]
    #[inline]
    pub fn put_signal<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        if source.len() <= dst.len()
            && !signal.is_empty()
            && let Some(span) = self.peers.span(dst, pe)
            && let Some(word) = self.peers.span(signal, pe)
        {
            span.copy_from(bytemuck::cast_slice(source));
            let word = word.atomic_u64();
            // Release: the data comes before the signal.
            match op {
                SignalOp::Set => word.store(value, Ordering::Release),
                SignalOp::Add => {
                    word.fetch_add(value, Ordering::Release);
                }
            }
            self.peers.note(pe);
            return Ok(());
        }
        self.put_signal_slow(dst, source, signal, value, op, pe)
    }

    #[cold]
    fn put_signal_slow<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        signal: Sym<u64>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        self.check(CALL, dst, source.len(), pe)?;
        self.check(CALL, signal, 1, pe)?;
        // Not under way afterwards: the signal orders it.
        self.guard(CALL, Access::Put, dst, source.len(), pe, false)?;
        let (bytes, offset): (&[u8], _) = (bytemuck::cast_slice(source), dst.offset());
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `source` is borrowed for the call.
        unsafe { self.wire_put_signal(pe, offset, from, len, signal.offset(), op, value) }
    }

    /// Reads this PE's own signal word.
    #[doc(alias = "shmem_signal_fetch")]
    #[inline]
    pub fn signal_fetch(&self, signal: Sym<u64>) -> Result<u64> {
        self.check("signal_fetch", signal, 1, self.my_pe())?;
        Ok(self.own(signal).atomic_u64().load(Ordering::Acquire))
    }

    /// Sets a signal word of PE `pe`.
    #[doc(alias = "shmem_signal_set")]
    #[inline]
    pub fn signal_set(&self, signal: Sym<u64>, value: u64, pe: usize) -> Result<()> {
        self.post_rmw("signal_set", AtomicOp::Set, signal, value, 0, pe)
    }

    /// Adds to a signal word of PE `pe`.
    #[doc(alias = "shmem_signal_add")]
    #[inline]
    pub fn signal_add(&self, signal: Sym<u64>, value: u64, pe: usize) -> Result<()> {
        self.post_rmw("signal_add", AtomicOp::Add, signal, value, 0, pe)
    }

    /// Waits until this PE's own signal word compares as asked; gives the value that did (M23).
    #[doc(alias = "shmem_signal_wait_until")]
    #[inline]
    pub fn signal_wait_until(&self, signal: Sym<u64>, cmp: Cmp, value: u64) -> Result<u64> {
        self.wait_word("signal_wait_until", signal, cmp, value)
    }
}
