//! The local buffers of requests: memory in place, bytes that are copied, and blocks of the lane.

use oxshmem_transport::Local;

use super::batch::LocalBuffer;
use super::bounce_pool::Block;
use super::send_mode::{SendMode, send_mode};
use super::send_queue::{Deliver, WorkRequest};
use super::wqe_builder::{Blocked, WqeBuilder, key, unsupported};
use crate::limits::UNREGISTERED;
use crate::local_keys::{LocalKeys, lkey_at};
use crate::rails::Rails;
use crate::region::MrKey;

/// The keys of local memory that a queue pair needs which is not where its number says.
#[inline]
pub(super) fn moved_keys(rails: &Rails, queue: u8, rail: u8) -> Option<&LocalKeys> {
    // Parts of long transfers have the keys of their NIC already.
    (queue == 0 && rail != 0).then_some(&*rails.local_keys)
}

/// The key at another NIC of memory with this key at the first.
#[cold]
fn moved_key(
    known: MrKey,
    keys: &LocalKeys,
    rail: u8,
    len: usize,
) -> Result<Option<MrKey>, Blocked> {
    let moved = known
        .further
        .and_then(|place| lkey_at(&keys.get(place), rail));
    match moved {
        Some(lkey) => Ok(Some(MrKey { lkey, ..known })),
        None if !known.on_gpu && len <= UNREGISTERED => Ok(None),
        None => Err(unsupported(format!(
            "a transfer of {len} bytes of memory that has no key at the NIC which has taken the place of this PE's first"
        ))),
    }
}

impl WqeBuilder<'_> {
    /// The key of local memory at the NIC of the queue pair. Without one there short transfers take a block, as those without
    /// any key do.
    #[inline]
    pub(super) fn local_key(&self, local: &Local) -> Result<Option<MrKey>, Blocked> {
        match (key(local), self.moved_keys) {
            (Some(known), Some(keys)) => moved_key(known, keys, self.requester.rail, local.len),
            (known, _) => Ok(known),
        }
    }

    /// The local buffer of a source: inline, copied or in place.
    ///
    /// # Safety
    ///
    /// The bytes are valid; those in place until the operation has completed.
    #[inline]
    pub(super) unsafe fn source(
        &mut self,
        from: &Local,
    ) -> Result<(LocalBuffer, Option<Block>), Blocked> {
        // At most `max_transfer`, which is below 4 GiB.
        let len = from.len as u32;
        if len == 0 {
            return Ok((LocalBuffer::Empty, None));
        }
        match send_mode(from.len, self.local_key(from)?, self.requester.max_inline) {
            SendMode::Inline => Ok((LocalBuffer::Inline(from.addr.cast_const(), len), None)),
            SendMode::Bcopy => {
                let block = self.pool.acquire(from.len).ok_or(Blocked::NoBlock)?;
                let at = self.pool.address(block);
                // SAFETY: the source is valid, as this function's caller promises, and not a GPU's;
                // the block is at least as long, and nobody else's.
                unsafe { oxshmem_heap::copy::copy(at, from.addr, from.len) };
                let local = LocalBuffer::Registered(at, len, self.pool.lkey(self.requester.rail));
                Ok((local, Some(block)))
            }
            SendMode::Zcopy(lkey) => {
                // The poster may want the source back soon, if no completion is due.
                self.wants_completion |= !self.requester.send_queue.expects_completion();
                Ok((LocalBuffer::Registered(from.addr, len, lkey), None))
            }
            SendMode::Refused => Err(unsupported(format!(
                "a transfer of {len} unregistered bytes"
            ))),
        }
    }

    /// The local buffer of a word that is written.
    #[inline]
    pub(super) fn word(&mut self, value: u64) -> Result<(LocalBuffer, Option<Block>), Blocked> {
        if self.requester.max_inline >= 8 {
            return Ok((LocalBuffer::InlineWord(value), None));
        }
        let block = self.pool.acquire(8).ok_or(Blocked::NoBlock)?;
        let at = self.pool.address(block);
        // SAFETY: the block is aligned, at least as long, and nobody else's.
        unsafe { at.cast::<u64>().write(value) };
        let local = LocalBuffer::Registered(at, 8, self.pool.lkey(self.requester.rail));
        Ok((local, Some(block)))
    }

    /// The local buffer for results that no caller wants.
    #[inline]
    pub(super) fn sink(&self) -> LocalBuffer {
        LocalBuffer::Registered(self.pool.sink(), 8, self.pool.lkey(self.requester.rail))
    }

    /// The local buffer for an atomic's old value, and the request that delivers it.
    #[inline]
    pub(super) fn fetch_buffer(
        &mut self,
        into: &Local,
    ) -> Result<(LocalBuffer, WorkRequest), Blocked> {
        if let Some(key) = self.local_key(into)? {
            let local = LocalBuffer::Registered(into.addr, 8, key.lkey);
            return Ok((local, WorkRequest::PLAIN));
        }
        let block = self.pool.acquire(8).ok_or(Blocked::NoBlock)?;
        let work = WorkRequest {
            deliver: Deliver::Word(into.addr.cast()),
            block: Some(block),
            ..WorkRequest::PLAIN
        };
        let at = self.pool.address(block);
        Ok((
            LocalBuffer::Registered(at, 8, self.pool.lkey(self.requester.rail)),
            work,
        ))
    }
}
