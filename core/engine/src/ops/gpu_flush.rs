//! Flushes of GPUs, after which they see the data that NICs have placed in their memory (M27).

use crate::control::message::ControlRequest;
use crate::control::pending::PendingCall;
use crate::engine::Engine;
use crate::error::Result;
use crate::order::fence_site::FenceSite;
use crate::peer::pe_set::Towards;
use crate::worker::Worker;

impl Worker {
    /// [`Engine::make_gpu_data_visible`].
    #[inline(always)]
    pub fn make_gpu_data_visible(&self) -> Result<()> {
        self.engine.make_gpu_data_visible()
    }

    /// Completes this PE's puts into its own GPU memory, for its GPU and for others.
    pub fn make_own_gpu_visible(&self) -> Result<()> {
        self.quiet_slow(Some(&[self.engine.me]), true)?;
        self.make_gpu_data_visible()
    }

    /// Has the GPUs of these PEs that are due make visible the data that were placed in their memory (M27): each is
    /// requested before any is awaited. The PEs need make no call for it.
    pub(crate) fn flush_gpus(&self, towards: &Towards<'_>) -> Result<()> {
        let due = &self.state.lanes.gpu_flushes_due;
        let mut first = Ok(());
        let mut requested = Vec::new();
        let mut from = 0;
        loop {
            let Some(pe) = due.borrow().next(from) else {
                break;
            };
            from = pe + 1;
            if !towards.has(pe) {
                continue;
            }
            match self.request_gpu_flush(pe) {
                Ok(Some(pending)) => requested.push(pending),
                Ok(None) => due.borrow_mut().remove(pe),
                Err(error) => first = first.and(Err(error)),
            }
        }
        for pending in requested {
            let pe = pending.pe;
            match self.await_reply(pending, "its GPU's flush") {
                Ok(_) => due.borrow_mut().remove(pe),
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// Requests a flush of a PE's GPU. The bootstrap's service replies, so that nothing simulated takes part in the wait.
    /// None if it is done: this PE flushes its own.
    fn request_gpu_flush(&self, pe: usize) -> Result<Option<PendingCall<'_>>> {
        if pe == self.engine.me {
            self.engine.gpu_flushes.flush()?;
            return Ok(None);
        }
        let pending = self.begin_call(pe, ControlRequest::FlushGpu);
        pending.map(Some)
    }
}

impl Engine {
    /// Flushes this PE's GPU, which then sees the data that NICs have placed in its memory, where a
    /// transport needs that (M27). Run by waits, tests and barriers.
    #[inline(always)]
    pub fn make_gpu_data_visible(&self) -> Result<()> {
        let flushes = &self.gpu_flushes;
        if !flushes.are_needed() || !self.inserts(FenceSite::WaitGpu) {
            return Ok(());
        }
        Ok(flushes.flush()?)
    }
}
