//! Transfers and atomics on GPU memory that no transport carries: through host memory.
//!
//! Data go by this PE's ordinary route to the *host* memory of the PE, into a slot that it lends
//! ([`gpu::staging_server`](crate::gpu::staging_server)), and its process copies them to its GPU when this one
//! requests it; or the other way round. Of a long transfer one chunk travels while the one before is copied.
//! Atomics are requests to that process, which has its GPU do them: in the same domain as the GPU's own and
//! those of transports between GPUs (M29). This PE's own GPU memory is copied directly.
//!
//! Each operation is performed when its call returns, placed and visible to the GPU: fence and quiet owe it
//! nothing. Operations that a fence ordered before it are performed first (M17).

use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, TryLockError};

use crate::control::message::{ControlRequest, Message};
use crate::control::pending::PendingCall;
use crate::error::{Error, Result};
use crate::gpu::memory::GpuAccess;
use crate::gpu::stage_request::{StagePiece, StageRequest};
use crate::gpu::staging_server::{MAX_LENT, SLOTS, Slots};
use crate::lane::local_buffer::LocalBuffer;
use crate::lane::remote::{LanePeer, RemoteTarget};
use crate::memory::target::Target;
use crate::ops::access_path::AccessPath;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;
use crate::progress::long_waits::WaitedFor;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::worker::Worker;
use oxshmem_transport::AtomicRequest;

/// Slots of a PE's that this one has for a transfer; given back when it ends.
struct Lease<'w> {
    worker: &'w Worker,
    pe: usize,
    slots: Slots,
    lent: Vec<u8>,
    /// The right to a lease. A lease's end returns all slots, so one transfer at a time may have some.
    _lock: MutexGuard<'w, ()>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // Request 0 gets no reply. A PE that the message cannot reach has lost this one, and takes its slots back.
        let done = Message::Request(0, ControlRequest::Stage(StageRequest::Done));
        let _ = self.worker.send(self.pe, &done);
    }
}

/// One chunk of a transfer: its slot, its offset in the object, and its length.
#[derive(Clone, Copy)]
struct Chunk {
    slot: u8,
    at: usize,
    len: usize,
}

impl Lease<'_> {
    /// The number of chunks of a transfer of so many bytes.
    fn count(&self, len: usize) -> usize {
        len.div_ceil(self.slots.bytes)
    }

    fn chunk(&self, index: usize, len: usize) -> Option<Chunk> {
        let at = index * self.slots.bytes;
        let rest = len.checked_sub(at).filter(|rest| *rest > 0)?;
        let slot = *self.lent.get(index % self.lent.len().max(1))?;
        let len = rest.min(self.slots.bytes);
        Some(Chunk { slot, at, len })
    }

    /// The slot of a chunk at the PE.
    fn slot_of(&self, chunk: Chunk) -> Result<Target> {
        let slot = self.slots.target(chunk.slot, chunk.len);
        slot.ok_or_else(|| malformed(self.worker.call(), self.pe))
    }

    /// Requests a copy of a chunk between its slot and the PE's GPU.
    fn request_copy(
        &self,
        remote: RemoteTarget,
        chunk: Chunk,
        request: fn(StagePiece) -> StageRequest,
    ) -> Result<PendingCall> {
        let piece = StagePiece {
            slot: chunk.slot,
            len: chunk.len as u32,
            offset: remote.offset + chunk.at as u64,
        };
        let request = ControlRequest::Stage(request(piece));
        self.worker.begin_call(self.pe, request)
    }

    /// Waits for such a copy.
    fn await_copy(&self, pending: Option<PendingCall>) -> Result<()> {
        let Some(pending) = pending else {
            return Ok(());
        };
        let what = "its copy to or from its GPU";
        let copied = self.worker.await_reply(pending, what);
        copied.map(drop)
    }
}

impl Worker {
    /// Puts `len` bytes; they are placed when it returns.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call, or names host memory of this PE's heap.
    pub unsafe fn staged_put(
        &self,
        remote: RemoteTarget,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        self.before_staging(remote.pe)?;
        if remote.pe == self.engine.me {
            return self.on_own_gpu(|gpu| {
                // SAFETY: the caller's promise.
                unsafe { gpu.write(remote.offset, source, len) }
            });
        }
        if len == 0 {
            return Ok(());
        }
        let lease = self.lease(remote.pe, len)?;
        // By slot of the lease: the copy that was requested and whose reply is due.
        let mut pending: [Option<PendingCall>; MAX_LENT] = Default::default();
        let count = lease.count(len);
        for index in 0..count {
            let (Some(chunk), Some(before)) = (
                lease.chunk(index, len),
                pending.get_mut(index % lease.lent.len().max(1)),
            ) else {
                continue;
            };
            lease.await_copy(before.take())?;
            let slot = lease.slot_of(chunk)?;
            // SAFETY: the chunk lies within the caller's bytes.
            unsafe { self.fill_slot(slot, remote.pe, source.wrapping_add(chunk.at))? };
            *before = Some(lease.request_copy(remote, chunk, StageRequest::In)?);
        }
        for pending in pending {
            lease.await_copy(pending)?;
        }
        Ok(())
    }

    /// Gets `len` bytes; they have arrived when it returns.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes during the call, or names host memory of this PE's heap.
    pub unsafe fn staged_get(
        &self,
        remote: RemoteTarget,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        self.before_staging(remote.pe)?;
        if remote.pe == self.engine.me {
            return self.on_own_gpu(|gpu| {
                // SAFETY: the caller's promise.
                unsafe { gpu.read(remote.offset, destination, len) }
            });
        }
        if len == 0 {
            return Ok(());
        }
        let lease = self.lease(remote.pe, len)?;
        let (count, slots) = (lease.count(len), lease.lent.len());
        let request = |index| match lease.chunk(index, len) {
            Some(chunk) => {
                let pending = lease.request_copy(remote, chunk, StageRequest::Out);
                pending.map(Some)
            }
            None => Ok(None),
        };
        let mut pending: [Option<PendingCall>; MAX_LENT] = Default::default();
        for (index, pending) in pending.iter_mut().take(slots).enumerate() {
            *pending = request(index)?;
        }
        for index in 0..count {
            let (Some(chunk), Some(pending)) = (
                lease.chunk(index, len),
                pending.get_mut(index % slots.max(1)),
            ) else {
                continue;
            };
            lease.await_copy(pending.take())?;
            let slot = lease.slot_of(chunk)?;
            // SAFETY: the chunk lies within the caller's bytes.
            unsafe { self.drain_slot(slot, remote.pe, destination.wrapping_add(chunk.at))? };
            *pending = request(index + slots)?;
        }
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// An atomic, performed when it returns; gives the old value.
    pub fn staged_atomic(&self, remote: RemoteTarget, request: AtomicRequest) -> Result<u64> {
        let lanes = &self.state.lanes;
        let pe = remote.pe;
        self.before_staging(pe)?;
        // The atomic must see this PE's own puts, which may be in flight on a lane.
        let paths = self.engine.routes.paths_to(pe);
        let copies = paths.copies(remote.kind).transport();
        if let Some(endpoint) = copies.and_then(|index| lanes.endpoints.get(index)) {
            self.flush(LanePeer { endpoint, pe })?;
        }
        let AtomicRequest {
            op,
            width,
            operand,
            compare,
        } = request;
        if pe == self.engine.me {
            return self.on_own_gpu(|gpu| gpu.atomic(remote.offset, request));
        }
        let request = ControlRequest::Stage(StageRequest::Atomic {
            op,
            width,
            offset: remote.offset,
            operand,
            compare,
        });
        let old = self.call_peer(pe, request, "an atomic by its GPU")?;
        fence(Ordering::Acquire);
        match old.try_into() {
            Ok(old) => Ok(u64::from_le_bytes(old)),
            Err(_) => Err(malformed(self.call(), pe)),
        }
    }

    /// Performs the operations that a fence ordered before those that follow, and this PE's own stores.
    fn before_staging(&self, pe: usize) -> Result<()> {
        self.cpu_fence(FenceSite::QuietStores);
        self.flush_fenced(pe, None)
    }

    fn on_own_gpu<R>(&self, run: impl FnOnce(&dyn GpuAccess) -> Result<R, String>) -> Result<R> {
        let done = self.engine.stage.access().and_then(run);
        done.map_err(|why| Error::FailedElsewhere {
            call: self.call(),
            pe: self.engine.me,
            why,
        })
    }

    /// Slots of a PE's for a transfer of so many bytes; waits for the first.
    fn lease(&self, pe: usize, len: usize) -> Result<Lease<'_>> {
        let Some(slots) = self.engine.stage.slots() else {
            return Err(malformed(self.call(), pe));
        };
        let describe = || (WaitedFor::Me, "the transfers of other threads".into());
        let reason = WaitReason {
            call: self.call(),
            needs: WaitsOn::Pe(pe),
            describe: &describe,
        };
        let lock = || match self.engine.staging_lock.try_lock() {
            Ok(lock) => Some(lock),
            Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let lock = self.wait(&reason, None, lock)?;
        // Before the request: however the wait ends, nothing stays lent.
        let mut lease = Lease {
            worker: self,
            pe,
            slots,
            lent: Vec::new(),
            _lock: lock,
        };
        let most = lease.count(len).clamp(1, MAX_LENT);
        let request = ControlRequest::Stage(StageRequest::Take(most as u8));
        let what = "room in its host memory for what goes to or from its GPU";
        lease.lent = self.call_peer(pe, request, what)?;
        let known = |slot: &u8| usize::from(*slot) < SLOTS;
        if !(1..=most).contains(&lease.lent.len()) || !lease.lent.iter().all(known) {
            return Err(malformed(self.call(), pe));
        }
        Ok(lease)
    }

    /// Puts into a slot, and waits until all is placed.
    ///
    /// # Safety
    ///
    /// As [`staged_put`](Self::staged_put), for the slot's length.
    unsafe fn fill_slot(&self, slot: Target, pe: usize, source: *const u8) -> Result<()> {
        match self.access_path(OpKind::Put, slot, pe)? {
            AccessPath::Mapped(span) => {
                // SAFETY: the caller's promise.
                unsafe { span.copy_from_raw(source, slot.len()) };
                self.cpu_fence(FenceSite::QuietStores);
                Ok(())
            }
            AccessPath::Lane(endpoint, remote) => {
                let source = LocalBuffer::at(source, slot.len());
                // SAFETY: the caller's promise.
                unsafe { self.lane_put(endpoint, remote, source)? };
                self.flush(LanePeer { endpoint, pe })
            }
            AccessPath::Staged(_) => Err(malformed(self.call(), pe)),
        }
    }

    /// Gets the bytes of a slot.
    ///
    /// # Safety
    ///
    /// As [`staged_get`](Self::staged_get), for the slot's length.
    unsafe fn drain_slot(&self, slot: Target, pe: usize, destination: *mut u8) -> Result<()> {
        match self.access_path(OpKind::Put, slot, pe)? {
            AccessPath::Mapped(span) => {
                // The reply came after the copy into the slot.
                self.cpu_fence(FenceSite::Wait);
                // SAFETY: the caller's promise.
                unsafe { span.copy_to_raw(destination, slot.len()) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(endpoint, remote) => unsafe {
                let destination = LocalBuffer::at(destination, slot.len());
                self.lane_get(endpoint, remote, destination)
            },
            AccessPath::Staged(_) => Err(malformed(self.call(), pe)),
        }
    }
}

/// The error of a PE's reply that no PE of this version gives.
#[cold]
fn malformed(call: &'static str, pe: usize) -> Error {
    Error::FailedElsewhere {
        call,
        pe,
        why: "its part of a transfer by way of host memory makes no sense".into(),
    }
}
