//! Signals: 64-bit words that announce data (M22).

use bytemuck::Pod;
use oxshmem_transport::AtomicOp;
pub use oxshmem_transport::SignalOp;

use oxshmem_transport::Width;

use crate::check::Access;
use crate::mapped::Bytes;
use crate::order::{Class, Inserted};
use crate::wire::{Path, Side, Signal};
use crate::{Context, Result, Sym};

impl Context<'_> {
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
            && let Some(word) = self.peers.word(signal, pe)
        {
            span.copy_from(bytemuck::cast_slice(source));
            match op {
                SignalOp::Set => word.tell(Width::W64, value, Inserted::Signal),
                SignalOp::Add => {
                    word.update(Width::W64, AtomicOp::Add, (value, 0), Inserted::Signal);
                }
            }
            self.peers.note(pe);
            return Ok(());
        }
        let word = signal;
        self.put_signal_slow(dst, source, Signal { word, op, value }, pe, false)
    }

    #[cold]
    pub(crate) fn put_signal_slow<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        signal: Signal,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        self.check(CALL, signal.word, 1, pe)?;
        let pe = self.check(CALL, dst, source.len(), pe)?;
        // Not under way afterwards: the signal orders it.
        self.guard(CALL, Access::Put, dst, source.len(), pe, false)?;
        let bytes: &[u8] = bytemuck::cast_slice(source);
        match self.path(CALL, Class::Put, dst, pe)? {
            Path::Near(place) => {
                place.copy_from(bytes);
                self.peers.note_slow();
                self.signal(CALL, signal, pe)
            }
            // SAFETY: `source` is borrowed for the call; of a nonblocking one beyond the inline
            // limit the lane's completion is waited for.
            Path::Lane(via, far) => unsafe {
                self.wire_put_signal(via, far, Side::read(bytes), signal, nonblocking)
            },
            // Placed when it returns.
            // SAFETY: `source` is borrowed for the call.
            Path::Staged(far) => unsafe {
                self.staged_put(CALL, far, bytes.as_ptr(), bytes.len())?;
                self.signal(CALL, signal, pe)
            },
        }
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
}
