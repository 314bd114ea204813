//! GPU memory that no transport carries: by way of host memory.
//!
//! Data go by this PE's ordinary route to the *host* memory of the PE, into a slot that it lends
//! ([`gpu::stage`](crate::gpu::stage)), and its process copies them to its GPU when this one asks; or the
//! other way round. Of a long transfer one piece travels while the one before is copied. Atomics are asked
//! of that process, which has its GPU do them: in the same domain as the GPU's own and those of transports
//! between GPUs (M29). This PE's own GPU memory is copied directly.
//!
//! Each operation is performed when its call returns, placed and visible to the GPU: fence and quiet owe it
//! nothing. What a fence put before it is performed first (M17).

use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, TryLockError};

use oxshmem_transport::{AtomicOp, Width};

use super::{AccessPath, LocalBuffer, RemoteTarget};
use crate::control::{ControlRequest, Message, PendingCall};
use crate::gpu::StageRequest;
use crate::gpu::staging_server::{MAX_LENT, Slots, StagePiece};
use crate::hang::WaitedFor;
use crate::order::{FenceSite, OpKind};
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

/// Slots of a PE's that this one has for a transfer; given back when it ends.
struct Lease<'w> {
    context: &'w Context<'w>,
    call: &'static str,
    pe: usize,
    slots: Slots,
    lent: Vec<u8>,
    /// A PE has all its slots back at once: one transfer at a time has some.
    _turn: MutexGuard<'w, ()>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // No answer comes to this number. A PE that it does not reach is lost, and takes all back.
        let done = Message::Ask(0, ControlRequest::Stage(StageRequest::Done));
        let _ = self.context.send(self.call, self.pe, &done);
    }
}

/// One piece of a transfer: its slot, its place in the object, and its length.
#[derive(Clone, Copy)]
struct Part {
    slot: u8,
    at: usize,
    len: usize,
}

impl Lease<'_> {
    /// The number of pieces of a transfer of so many bytes.
    fn count(&self, len: usize) -> usize {
        len.div_ceil(self.slots.bytes)
    }

    fn part(&self, index: usize, len: usize) -> Option<Part> {
        let at = index * self.slots.bytes;
        let rest = len.checked_sub(at).filter(|rest| *rest > 0)?;
        let slot = *self.lent.get(index % self.lent.len().max(1))?;
        let len = rest.min(self.slots.bytes);
        Some(Part { slot, at, len })
    }

    /// A part's slot at the PE.
    fn place(&self, part: Part) -> Result<Sym<u8>> {
        let tag = self.context.tag;
        Sym::new(
            tag,
            crate::alloc::OWN,
            self.slots.at(part.slot),
            self.slots.bytes,
        )
        .range(..part.len)
    }

    /// Has the PE copy a part between its slot and its GPU.
    fn ask(
        &self,
        far: RemoteTarget,
        part: Part,
        request: fn(StagePiece) -> StageRequest,
    ) -> Result<PendingCall<'_>> {
        let piece = StagePiece {
            slot: part.slot,
            len: part.len as u32,
            offset: far.offset + part.at as u64,
        };
        let question = ControlRequest::Stage(request(piece));
        self.context.begin_call(self.call, self.pe, question)
    }

    fn answer(&self, asked: Option<PendingCall<'_>>) -> Result<()> {
        let copied = |asked| {
            self.context
                .await_reply(self.call, asked, "its copy to or from its GPU")
        };
        asked.map_or(Ok(()), |asked| copied(asked).map(drop))
    }
}

impl Context<'_> {
    /// Puts `len` bytes; they are placed when it returns.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call, or names host memory of this PE's heap.
    pub(crate) unsafe fn staged_put(
        &self,
        call: &'static str,
        far: RemoteTarget,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        self.before_staging(call, far.pe)?;
        if far.pe == self.shared.me {
            return self.on_own_gpu(call, |gpu| {
                // SAFETY: the caller's promise.
                unsafe { gpu.write(far.offset, source, len) }
            });
        }
        if len == 0 {
            return Ok(());
        }
        let lease = self.lease(call, far.pe, len)?;
        // By place in the lease: what is asked of the slot, and not answered.
        let mut asked: [Option<PendingCall<'_>>; MAX_LENT] = Default::default();
        let count = lease.count(len);
        for index in 0..count {
            let (Some(part), Some(before)) = (
                lease.part(index, len),
                asked.get_mut(index % lease.lent.len().max(1)),
            ) else {
                continue;
            };
            lease.answer(before.take())?;
            let slot = lease.place(part)?;
            // SAFETY: the part lies within the caller's bytes.
            unsafe { self.fill_slot(call, slot, far.pe, source.wrapping_add(part.at))? };
            *before = Some(lease.ask(far, part, StageRequest::In)?);
        }
        for asked in asked {
            lease.answer(asked)?;
        }
        Ok(())
    }

    /// Gets `len` bytes; they are there when it returns.
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes during the call, or names host memory of this PE's heap.
    pub(crate) unsafe fn staged_get(
        &self,
        call: &'static str,
        far: RemoteTarget,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        self.before_staging(call, far.pe)?;
        if far.pe == self.shared.me {
            return self.on_own_gpu(call, |gpu| {
                // SAFETY: the caller's promise.
                unsafe { gpu.read(far.offset, destination, len) }
            });
        }
        if len == 0 {
            return Ok(());
        }
        let lease = self.lease(call, far.pe, len)?;
        let (count, slots) = (lease.count(len), lease.lent.len());
        let ask = |index| match lease.part(index, len) {
            Some(part) => lease.ask(far, part, StageRequest::Out).map(Some),
            None => Ok(None),
        };
        let mut asked: [Option<PendingCall<'_>>; MAX_LENT] = Default::default();
        for (index, asked) in asked.iter_mut().take(slots).enumerate() {
            *asked = ask(index)?;
        }
        for index in 0..count {
            let (Some(part), Some(asked)) =
                (lease.part(index, len), asked.get_mut(index % slots.max(1)))
            else {
                continue;
            };
            lease.answer(asked.take())?;
            let slot = lease.place(part)?;
            // SAFETY: the part lies within the caller's bytes.
            unsafe { self.drain_slot(call, slot, far.pe, destination.wrapping_add(part.at))? };
            *asked = ask(index + slots)?;
        }
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// An atomic, performed when it returns; gives the old value.
    pub(crate) fn staged_atomic(
        &self,
        call: &'static str,
        far: RemoteTarget,
        (op, width): (AtomicOp, Width),
        (operand, compare): (u64, u64),
    ) -> Result<u64> {
        let wire = &self.state.wire;
        self.before_staging(call, far.pe)?;
        // It sees this PE's own puts, though those may go by a lane.
        let copies = self.shared.ways(far.pe).copies(far.kind).transport();
        if let Some(via) = copies.and_then(|index| wire.channels.get(index)) {
            self.flush(call, via, far.pe)?;
        }
        if far.pe == self.shared.me {
            return self.on_own_gpu(call, |gpu| {
                gpu.atomic(far.offset, op, width, (operand, compare))
            });
        }
        let question = ControlRequest::Stage(StageRequest::Atomic {
            op,
            width,
            offset: far.offset,
            operand,
            compare,
        });
        let old = self.call(call, far.pe, question, "an atomic by its GPU")?;
        fence(Ordering::Acquire);
        match old.try_into() {
            Ok(old) => Ok(u64::from_le_bytes(old)),
            Err(_) => Err(strange(call, far.pe)),
        }
    }

    /// What a fence put before what follows is performed, and so are this PE's own stores.
    fn before_staging(&self, call: &'static str, pe: usize) -> Result<()> {
        self.cpu_fence(FenceSite::QuietStores);
        self.flush_fenced(call, pe, None)
    }

    fn on_own_gpu<R>(
        &self,
        call: &'static str,
        run: impl FnOnce(&dyn crate::GpuAccess) -> Result<R, String>,
    ) -> Result<R> {
        let done = self.shared.stage.access().and_then(run);
        done.map_err(|why| Error::FailedElsewhere {
            call,
            pe: self.shared.me,
            why,
        })
    }

    /// Slots of a PE's for a transfer of so many bytes; waits for the first.
    fn lease(&self, call: &'static str, pe: usize, len: usize) -> Result<Lease<'_>> {
        let Some(slots) = self.shared.stage.slots() else {
            return Err(strange(call, pe));
        };
        let tell = || (WaitedFor::Me, "the transfers of other threads".into());
        let reason = WaitReason {
            call,
            needs: WaitsOn::Pe(pe),
            describe: &tell,
        };
        let turn = || match self.shared.staging_lock.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let turn = self.wait(&reason, None, turn)?;
        // Before it is asked: however the wait ends, nothing stays lent.
        let mut lease = Lease {
            context: self,
            call,
            pe,
            slots,
            lent: Vec::new(),
            _turn: turn,
        };
        let most = lease.count(len).clamp(1, MAX_LENT);
        let question = ControlRequest::Stage(StageRequest::Take(most as u8));
        let what = "room in its host memory for what goes to or from its GPU";
        lease.lent = self.call(call, pe, question, what)?;
        let known = |slot: &u8| usize::from(*slot) < crate::gpu::staging_server::SLOTS;
        if !(1..=most).contains(&lease.lent.len()) || !lease.lent.iter().all(known) {
            return Err(strange(call, pe));
        }
        Ok(lease)
    }

    /// Puts into a slot, and waits until all is in place.
    ///
    /// # Safety
    ///
    /// As [`staged_put`](Self::staged_put), for the slot's length.
    unsafe fn fill_slot(
        &self,
        call: &'static str,
        slot: Sym<u8>,
        pe: usize,
        source: *const u8,
    ) -> Result<()> {
        match self.path(call, OpKind::Put, slot, pe)? {
            AccessPath::Mapped(place) => {
                // SAFETY: the caller's promise.
                unsafe { place.copy_from_raw(source, slot.bytes()) };
                self.cpu_fence(FenceSite::QuietStores);
                Ok(())
            }
            AccessPath::Lane(via, far) => {
                // SAFETY: the caller's promise.
                unsafe { self.lane_put(call, via, far, LocalBuffer::at(source, slot.bytes()))? };
                self.flush(call, via, pe)
            }
            AccessPath::Staged(_) => Err(strange(call, pe)),
        }
    }

    /// Gets what is in a slot.
    ///
    /// # Safety
    ///
    /// As [`staged_get`](Self::staged_get), for the slot's length.
    unsafe fn drain_slot(
        &self,
        call: &'static str,
        slot: Sym<u8>,
        pe: usize,
        destination: *mut u8,
    ) -> Result<()> {
        match self.path(call, OpKind::Put, slot, pe)? {
            AccessPath::Mapped(place) => {
                // The answer came after the copy into the slot.
                self.cpu_fence(FenceSite::Wait);
                // SAFETY: the caller's promise.
                unsafe { place.copy_to_raw(destination, slot.bytes()) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(via, far) => unsafe {
                self.lane_get(call, via, far, LocalBuffer::at(destination, slot.bytes()))
            },
            AccessPath::Staged(_) => Err(strange(call, pe)),
        }
    }
}

/// A PE's answer that no PE of this version gives.
#[cold]
fn strange(call: &'static str, pe: usize) -> Error {
    Error::FailedElsewhere {
        call,
        pe,
        why: "its part of a transfer by way of host memory makes no sense".into(),
    }
}
