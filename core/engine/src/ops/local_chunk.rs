//! The choice of the local side of a transfer: the memory itself by a key, a registration for one call, or a bounce
//! buffer.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{Limits, Local, LocalRegion};

use crate::error::Result;
use crate::lane::endpoint::Endpoint;
use crate::lane::local_buffer::{LocalBuffer, LocalChunk};
use crate::lane::remote::LanePeer;
use crate::memory::bounce_pool::Bounce;
use crate::memory::registrations::MrKey;
use crate::progress::long_waits::WaitedFor;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::worker::Worker;

/// From this size on private memory is registered for the call rather than copied, in bytes.
const REGISTER: usize = 256 << 10;

/// A transport that takes as much as this unregistered gets it, in chunks.
const UNREGISTERED_CHUNK: usize = 4096;

/// The offset of `len` bytes in memory of this address and size, if all lie in it.
#[inline]
fn offset_in((base, size): (usize, usize), memory: *const u8, len: usize) -> Option<u64> {
    let offset = memory.addr().checked_sub(base)?;
    (offset.checked_add(len)? <= size).then_some(offset as u64)
}

impl Worker {
    /// Makes visible the data of a get that has completed: a NIC wrote them, so this PE's GPU may need a flush
    /// (M16, M27).
    #[inline]
    pub(crate) fn make_got_visible(&self, on_gpu: bool) -> Result<()> {
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        if on_gpu {
            self.make_gpu_data_visible()
        } else {
            Ok(())
        }
    }

    /// The local side of the next chunk of a transfer: the memory itself where the transport takes it, else a
    /// bounce buffer.
    pub(crate) fn local_chunk(
        &self,
        peer: LanePeer<'_>,
        buffer: LocalBuffer,
        limits: Limits,
    ) -> Result<LocalChunk<'_>> {
        let max = usize::try_from(limits.max).unwrap_or(usize::MAX).max(1);
        let len = buffer.len.min(max);
        if let Some((keyed, rest)) = self.find_key(peer.endpoint, buffer) {
            return Ok(LocalChunk::zcopy(buffer.at, len.min(rest), Some(keyed)));
        }
        let unregistered = usize::try_from(limits.unregistered).unwrap_or(usize::MAX);
        if unregistered >= UNREGISTERED_CHUNK || unregistered >= len {
            return Ok(LocalChunk::zcopy(buffer.at, len.min(unregistered), None));
        }
        // The transport takes little unregistered memory, so the bytes go through a bounce buffer in the heap.
        let bounce = self.acquire_bounce(peer)?;
        let at = bounce.buffer.offset();
        let Some((key, rest)) = peer.endpoint.host.local_key(at) else {
            let len = len.min(unregistered.max(1));
            return Ok(LocalChunk::zcopy(buffer.at, len, None));
        };
        let addr = self.engine.own_base().as_ptr().wrapping_add(at as usize);
        Ok(LocalChunk {
            local: Local {
                addr,
                len: len.min(bounce.buffer.len()).min(rest),
                key: Some(key),
            },
            on_gpu: false,
            bounce: Some(bounce),
        })
    }

    /// Borrows a bounce buffer for a chunk of a transfer with a PE. Waits where the transfers of other threads
    /// have all.
    fn acquire_bounce(&self, peer: LanePeer<'_>) -> Result<Bounce<'_>> {
        let pool = &self.engine.bounce_pool;
        let describe = || {
            let what = "a bounce buffer, which transfers of other threads have";
            (WaitedFor::Me, what.into())
        };
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Pe(peer.pe),
            describe: &describe,
        };
        // Every transfer that holds a buffer ends, at the latest when its lane fails or its PE is lost.
        self.wait(&reason, None, || pool.try_acquire())
    }

    /// The local side of a transfer that goes as one operation without the bounce buffer, if it can.
    #[inline(always)]
    pub fn local_whole(
        &self,
        endpoint: &Endpoint,
        buffer: LocalBuffer,
        limits: Limits,
    ) -> Option<LocalChunk<'static>> {
        let len = buffer.len;
        let keyed = match self.find_key(endpoint, buffer) {
            Some((keyed, rest)) => (len <= rest).then_some(Some(keyed))?,
            None => (len as u64 <= limits.unregistered).then_some(None)?,
        };
        (len as u64 <= limits.max).then(|| LocalChunk::zcopy(buffer.at, len, keyed))
    }

    /// The key of all the bytes, and how many bytes it covers from their start.
    #[inline(always)]
    fn find_key(&self, endpoint: &Endpoint, buffer: LocalBuffer) -> Option<(MrKey, usize)> {
        match buffer.keyed {
            Some(keyed) => Some((keyed, usize::MAX)),
            None => self.key_of(endpoint, buffer.at, buffer.len),
        }
    }

    /// The key of this PE's heap, GPU heap or registered memory, if all the bytes lie in it; and how many bytes it
    /// covers from their start.
    #[inline(always)]
    pub fn key_of(
        &self,
        endpoint: &Endpoint,
        memory: *const u8,
        len: usize,
    ) -> Option<(MrKey, usize)> {
        let own = (self.engine.own_base().addr().get(), self.engine.own_len());
        if let Some(offset) = offset_in(own, memory, len) {
            let known = endpoint.host.local_key(offset);
            let on_gpu = false;
            return known.map(|(key, rest)| (MrKey { key, on_gpu }, rest));
        }
        if self.engine.gpu.is_none() && self.engine.registered.is_empty() {
            return None;
        }
        self.key_off_heap(endpoint, memory, len)
    }

    /// The key of this PE's GPU heap or registered memory, as [`key_of`](Self::key_of) gives it.
    fn key_off_heap(
        &self,
        endpoint: &Endpoint,
        memory: *const u8,
        len: usize,
    ) -> Option<(MrKey, usize)> {
        if let Some((base, limit)) = &self.engine.gpu
            && let Some(offset) =
                offset_in((base.load(Ordering::Relaxed).addr(), *limit), memory, len)
        {
            let known = endpoint.gpu.local_key(offset);
            let on_gpu = true;
            return known.map(|(key, rest)| (MrKey { key, on_gpu }, rest));
        }
        let keyed = self.engine.registered.key(endpoint.index, memory, len)?;
        Some((keyed, usize::MAX))
    }

    /// A private buffer registered for one call, where that costs less than copying it.
    ///
    /// # Safety
    ///
    /// As [`register_for_call`](Self::register_for_call).
    pub(crate) unsafe fn register_buffer_for_call(
        &self,
        endpoint: &Endpoint,
        buffer: &LocalBuffer,
        written: bool,
        limits: Limits,
    ) -> Option<(LocalBuffer, Box<dyn LocalRegion>)> {
        let copied =
            buffer.len < REGISTER || buffer.len as u64 <= limits.unregistered || !endpoint.pins();
        if copied || self.find_key(endpoint, *buffer).is_some() {
            return None;
        }
        // SAFETY: the caller's promise.
        let region = unsafe { self.register_for_call(endpoint, buffer.at, buffer.len, written) }?;
        let key = region.key();
        let keyed = MrKey { key, on_gpu: false };
        Some((buffer.keyed(keyed), region))
    }

    /// Registers memory with one transport for one call, which alone knows of it, if that costs less than
    /// copying. Where it cannot be, such as for want of memory that may be locked, it is copied.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives.
    pub unsafe fn register_for_call(
        &self,
        endpoint: &Endpoint,
        memory: *mut u8,
        len: usize,
        written: bool,
    ) -> Option<Box<dyn LocalRegion>> {
        if len == 0 || endpoint.is_retired() || (endpoint.pins() && len < REGISTER) {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { endpoint.domain.register_local(memory, len, written) }.ok()
    }
}
