//! This PE's side of a transfer on a lane: what key names it, and what goes through a bounce buffer.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{Limits, Local, LocalKey, LocalRegion};

use super::Endpoint;
use super::bounce_pool::Bounce;
use crate::{Context, Result};

/// From this size on private memory is registered for the call rather than copied, in bytes.
const REGISTER: usize = 256 << 10;

/// A transport that takes as much as this unregistered gets it, in pieces.
const PIECE: usize = 4096;

/// How a transport knows bytes of this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MrKey {
    pub key: LocalKey,
    /// They are no CPU's to load or store.
    pub on_gpu: bool,
}

/// This PE's side of a transfer.
#[derive(Clone, Copy)]
pub(crate) struct LocalBuffer {
    pub(super) at: *mut u8,
    pub(super) len: usize,
    /// How the lane's transport knows all of it, if the caller has seen to that; else it is looked up, and
    /// what is not found is the CPU's.
    keyed: Option<MrKey>,
}

impl LocalBuffer {
    /// Memory of the CPU's, or symmetric memory.
    pub(crate) fn at(at: *const u8, len: usize) -> LocalBuffer {
        let at = at.cast_mut();
        LocalBuffer {
            at,
            len,
            keyed: None,
        }
    }

    /// A source.
    pub(crate) fn read(bytes: &[u8]) -> LocalBuffer {
        LocalBuffer::at(bytes.as_ptr(), bytes.len())
    }

    /// The same bytes by a key of the transport whose lane is used, which lasts as long as they are.
    pub(crate) fn keyed(self, keyed: MrKey) -> LocalBuffer {
        LocalBuffer {
            keyed: Some(keyed),
            ..self
        }
    }

    /// A part of it.
    pub(super) fn part(&self, at: usize, len: usize) -> LocalBuffer {
        LocalBuffer {
            at: self.at.wrapping_add(at),
            len,
            ..*self
        }
    }
}

/// The near side of the next piece of a transfer.
pub(super) struct LocalChunk<'w> {
    pub local: Local,
    pub on_gpu: bool,
    /// The bounce buffer, if the bytes go through it.
    pub bounce: Option<Bounce<'w>>,
}

impl LocalChunk<'_> {
    /// The memory itself.
    fn itself(addr: *mut u8, len: usize, keyed: Option<MrKey>) -> Self {
        LocalChunk {
            local: Local {
                addr,
                len,
                key: keyed.map(|keyed| keyed.key),
            },
            on_gpu: keyed.is_some_and(|keyed| keyed.on_gpu),
            bounce: None,
        }
    }

    /// Whether a put's source may be reused when it is posted: what its lane copies. It copies nothing that
    /// lies on a GPU.
    pub(super) fn is_reusable(&self, limits: Limits) -> bool {
        self.local.len as u64 <= limits.inline && !self.on_gpu
    }
}

impl Context<'_> {
    /// What was got is there: a NIC wrote it, so this PE's GPU may need a flush to see it (M16, M27).
    pub(super) fn see_got(&self, on_gpu: bool) -> Result<()> {
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        match on_gpu {
            true => self.see_gpu_data(),
            false => Ok(()),
        }
    }

    /// The near side of the next piece of a transfer with a PE: the memory itself where the transport takes
    /// it, else a bounce buffer.
    pub(super) fn near(
        &self,
        call: &'static str,
        (via, pe): (&Endpoint, usize),
        side: LocalBuffer,
        limits: Limits,
    ) -> Result<LocalChunk<'_>> {
        let max = usize::try_from(limits.max).unwrap_or(usize::MAX).max(1);
        let len = side.len.min(max);
        if let Some((keyed, rest)) = self.find(via, side) {
            return Ok(LocalChunk::itself(side.at, len.min(rest), Some(keyed)));
        }
        let unregistered = usize::try_from(limits.unregistered).unwrap_or(usize::MAX);
        if unregistered >= PIECE || unregistered >= len {
            return Ok(LocalChunk::itself(side.at, len.min(unregistered), None));
        }
        // The transport takes little that is not registered: by a buffer in the heap.
        let bounce = self.acquire_bounce(call, pe)?;
        let at = bounce.buffer.offset();
        let Some((key, rest)) = via.host.local_key(at) else {
            return Ok(LocalChunk::itself(
                side.at,
                len.min(unregistered.max(1)),
                None,
            ));
        };
        let addr = self.own_base().as_ptr().wrapping_add(at as usize);
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

    /// The near side of a transfer that goes as one operation without the bounce buffer, if it can.
    pub(super) fn near_whole(
        &self,
        via: &Endpoint,
        side: LocalBuffer,
        limits: Limits,
    ) -> Option<LocalChunk<'static>> {
        let len = side.len;
        let keyed = match self.find(via, side) {
            Some((keyed, rest)) => (len <= rest).then_some(Some(keyed))?,
            None => (len as u64 <= limits.unregistered).then_some(None)?,
        };
        (len as u64 <= limits.max).then(|| LocalChunk::itself(side.at, len, keyed))
    }

    /// How a transport knows all the bytes, and how far the key reaches.
    #[inline]
    fn find(&self, via: &Endpoint, side: LocalBuffer) -> Option<(MrKey, usize)> {
        match side.keyed {
            Some(keyed) => Some((keyed, usize::MAX)),
            None => self.key_of(via, side.at, side.len),
        }
    }

    /// The key of this PE's heap, GPU heap or registered memory, if all the bytes lie in it; and how far that
    /// reaches.
    #[inline]
    pub(crate) fn key_of(
        &self,
        via: &Endpoint,
        memory: *const u8,
        len: usize,
    ) -> Option<(MrKey, usize)> {
        let inside = |base: usize, size: usize| {
            let offset = memory.addr().checked_sub(base)?;
            (offset.checked_add(len)? <= size).then_some(offset as u64)
        };
        let of_heap = |on_gpu| move |(key, rest)| (MrKey { key, on_gpu }, rest);
        if let Some(offset) = inside(self.own_base().addr().get(), self.own_len()) {
            return via.host.local_key(offset).map(of_heap(false));
        }
        if let Some((base, limit)) = &self.shared.gpu
            && let Some(offset) = inside(base.load(Ordering::Relaxed).addr(), *limit)
        {
            return via.gpu.local_key(offset).map(of_heap(true));
        }
        let keyed = self.shared.registered.key(via.index, memory, len)?;
        Some((keyed, usize::MAX))
    }

    /// A private buffer that costs less to register for one call than to copy, so registered.
    ///
    /// # Safety
    ///
    /// As [`register_for_call`](Self::register_for_call).
    pub(super) unsafe fn side_for_call(
        &self,
        via: &Endpoint,
        side: &LocalBuffer,
        written: bool,
        limits: Limits,
    ) -> Option<(LocalBuffer, Box<dyn LocalRegion>)> {
        let copied = side.len < REGISTER || side.len as u64 <= limits.unregistered || !via.pins();
        if copied || self.find(via, *side).is_some() {
            return None;
        }
        // SAFETY: the caller's promise.
        let region = unsafe { self.register_for_call(via, side.at, side.len, written) }?;
        let key = region.key();
        let keyed = MrKey { key, on_gpu: false };
        Some((side.keyed(keyed), region))
    }

    /// Registers memory with one transport for one call, which alone knows of it, if that costs less than
    /// copying. Where it cannot be, such as for want of memory that may be locked, it is copied.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives.
    pub(crate) unsafe fn register_for_call(
        &self,
        via: &Endpoint,
        memory: *mut u8,
        len: usize,
        written: bool,
    ) -> Option<Box<dyn LocalRegion>> {
        if len == 0 || via.is_retired() || (via.pins() && len < REGISTER) {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { via.domain.register_local(memory, len, written) }.ok()
    }
}
