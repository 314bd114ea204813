//! Flushes of GPUs, after which they see the data that NICs have placed in their memory (M27).

use crate::control::message::ControlRequest;
use crate::engine::Engine;
use crate::error::Result;
use crate::order::fence_site::FenceSite;
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

    /// Has a PE flush its GPU, and waits until it has (M27). The PE need make no call
    /// for it: the bootstrap's service replies, so that nothing simulated takes part in this wait.
    pub(crate) fn request_gpu_flush(&self, pe: usize) -> Result<()> {
        let flushes = &self.engine.gpu_flushes;
        if pe == self.engine.me {
            return Ok(flushes.flush()?);
        }
        let flushed = self.call_peer(pe, ControlRequest::FlushGpu, "its GPU's flush");
        flushed.map(drop)
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
