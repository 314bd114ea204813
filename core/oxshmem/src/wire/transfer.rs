//! Puts, gets and puts-with-signal on lanes.

use std::sync::MutexGuard;
use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Local, LocalKey, Op, SignalOp, SignalSupport, Width,
};

use super::{Far, Leaves, Opened, Path, Until};
use crate::mapped::Bytes;
use crate::order::{Class, Classes, Inserted};
use crate::simulated::Place;
use crate::{Result, Sym, World};

/// How a put-with-signal changes its word.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub word: Sym<u64>,
    pub op: SignalOp,
    pub value: u64,
}

/// The near side of the next piece of a transfer.
struct Piece<'w> {
    local: Local,
    /// The bounce buffer, if the bytes go through it.
    bounce: Option<(Place<'w>, MutexGuard<'w, ()>)>,
}

impl World {
    /// Puts `len` bytes. Returns when the source may be reused (M15).
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call, or names symmetric memory of this PE.
    pub(crate) unsafe fn wire_put(
        &self,
        call: &'static str,
        via: &Opened,
        far: Far,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.domain.capabilities().put;
        let mut done = 0;
        while done < len {
            let at = source.wrapping_add(done).cast_mut();
            let piece = self.near(via, at, len - done, limits.max, limits.unregistered);
            if let Some((bounce, _)) = &piece.bounce {
                // SAFETY: `piece.local.len` bytes from `at` lie in the caller's source, and are
                // not symmetric: those have a key of their own.
                let bytes = unsafe { std::slice::from_raw_parts(at, piece.local.len) };
                bounce.copy_from(bytes);
            }
            let op = Op::Put {
                from: piece.local,
                to: far.remote(via, done),
            };
            let until = if piece.local.len as u64 <= limits.inline {
                Until::Posted
            } else {
                Until::Completed
            };
            self.inner.wire.gpu_due(via, far);
            let leaves = Leaves::Update(Classes::of(Class::Put, far.kind));
            // SAFETY: up to the inline limit the bytes are copied at once, beyond it we wait for
            // completion before returning or reusing the bounce buffer.
            unsafe { self.post(call, via, far.pe, op, until, leaves)? };
            done += piece.local.len;
        }
        Ok(())
    }

    /// Gets `len` bytes. Returns when they are there (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes during the call, or names symmetric memory of this
    /// PE.
    pub(crate) unsafe fn wire_get(
        &self,
        call: &'static str,
        via: &Opened,
        far: Far,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.domain.capabilities().get;
        if !via.guarantees(far.kind).put_get && self.inserts(Inserted::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        let mut done = 0;
        while done < len {
            let at = destination.wrapping_add(done);
            let piece = self.near(via, at, len - done, limits.max, limits.unregistered);
            let op = Op::Get {
                into: piece.local,
                from: far.remote(via, done),
            };
            // SAFETY: we wait for completion while the memory is valid.
            unsafe {
                self.post(call, via, far.pe, op, Until::Completed, Leaves::Nothing)?;
            }
            if let Some((bounce, _)) = &piece.bounce {
                // SAFETY: as many bytes from `at` lie in the caller's destination, which is lent to
                // this call and is not symmetric: that has a key of its own.
                let bytes = unsafe { std::slice::from_raw_parts_mut(at, piece.local.len) };
                bounce.copy_to(bytes);
            }
            done += piece.local.len;
        }
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// The near side of the next piece of a transfer: the memory itself where the transport takes
    /// it, else the bounce buffer.
    fn near(
        &self,
        via: &Opened,
        memory: *mut u8,
        len: usize,
        max: u64,
        unregistered: u64,
    ) -> Piece<'_> {
        let max = usize::try_from(max).unwrap_or(usize::MAX).max(1);
        let as_it_is = |len, key| Piece {
            local: Local {
                addr: memory,
                len,
                key,
            },
            bounce: None,
        };
        if let Some(key) = self.key_of(via, memory, len) {
            return as_it_is(len.min(max), Some(key));
        }
        let unregistered = usize::try_from(unregistered).unwrap_or(usize::MAX);
        // Small leftovers aside, unregistered memory goes as it is if the transport takes it.
        let Some(heap) = via.heap.as_ref().filter(|_| unregistered < len.min(max)) else {
            return as_it_is(len.min(max).min(unregistered.max(1)), None);
        };
        let internal = &self.inner.internal;
        let guard = super::lanes::held(&internal.bounce_lock);
        let piece = len.min(max).min(internal.bounce.len());
        Piece {
            local: Local {
                addr: self
                    .own_base()
                    .as_ptr()
                    .wrapping_add(internal.bounce.offset() as usize),
                len: piece,
                key: Some(heap.local_key()),
            },
            bounce: Some((self.own(internal.bounce).part(0, piece), guard)),
        }
    }

    /// The key of this PE's heap, or GPU heap, if all the bytes lie in it.
    fn key_of(&self, via: &Opened, memory: *const u8, len: usize) -> Option<LocalKey> {
        let inside = |base: usize, size: usize| {
            let offset = memory.addr().checked_sub(base)?;
            (offset.checked_add(len)? <= size).then_some(())
        };
        if inside(self.own_base().addr().get(), self.heap_limit()).is_some() {
            return via.heap.as_ref().map(|h| h.local_key());
        }
        let gpu = self.inner.gpu.as_ref()?;
        inside(gpu.base().addr().get(), gpu.len())?;
        via.gpu.as_ref().map(|h| h.local_key())
    }

    /// Put-with-signal (M22): native, or put, flush and atomic.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call.
    pub(crate) unsafe fn wire_put_signal(
        &self,
        via: &Opened,
        far: Far,
        source: *const u8,
        len: usize,
        signal: Signal,
        nonblocking: bool,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        let caps = via.domain.capabilities();
        let native = caps.put_signal == SignalSupport::Native(AtomicLevel::Cpu)
            && len as u64 <= caps.put.max.min(caps.put.unregistered);
        if native
            && let Path::Lane(same, word) = self.path(CALL, Class::Atomic, signal.word, far.pe)?
            && std::ptr::eq(same, via)
        {
            let op = Op::PutSignal {
                from: Local {
                    addr: source.cast_mut(),
                    len,
                    key: self.key_of(via, source, len),
                },
                to: far.remote(via, 0),
                signal: word.remote(via, 0),
                op: signal.op,
                value: signal.value,
            };
            let until = if len as u64 <= caps.put.inline {
                Until::Posted
            } else {
                Until::Completed
            };
            self.inner.wire.gpu_due(via, far);
            self.inner.wire.gpu_due(via, word);
            let mut updates = Classes::of(Class::Put, far.kind);
            updates.add(Classes::of(Class::Atomic, word.kind));
            let leaves = match nonblocking {
                true => Leaves::Nonblocking(updates),
                false => Leaves::Update(updates),
            };
            // SAFETY: inline bytes are copied at once, others we wait for.
            return unsafe { self.post(CALL, via, far.pe, op, until, leaves) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.wire_put(CALL, via, far, source, len)? };
        if self.inserts(Inserted::SignalLane) {
            self.flush(CALL, via, far.pe)?;
        }
        self.signal(CALL, signal, far.pe)
    }

    /// Updates a signal word, after what this PE's CPU has stored.
    pub(crate) fn signal(&self, call: &'static str, signal: Signal, pe: usize) -> Result<()> {
        let op = match signal.op {
            SignalOp::Set => AtomicOp::Set,
            SignalOp::Add => AtomicOp::Add,
        };
        match self.path(call, Class::Atomic, signal.word, pe)? {
            Path::Near(word) => {
                match signal.op {
                    SignalOp::Set => word.tell(Width::W64, signal.value, Inserted::Signal),
                    SignalOp::Add => {
                        let operands = (signal.value, 0);
                        word.update(Width::W64, op, operands, Inserted::Signal);
                    }
                }
                self.peers.note(pe);
                Ok(())
            }
            Path::Lane(via, word) => {
                let operands = (signal.value, 0);
                self.wire_atomic(call, via, word, Width::W64, op, operands, false)
                    .map(drop)
            }
        }
    }

    /// A put that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `source` stays readable and unchanged until then, or until the lane is dropped.
    pub(crate) unsafe fn wire_put_nbi(
        &self,
        call: &'static str,
        via: &Opened,
        far: Far,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.domain.capabilities().put;
        let Some(from) = self.near_whole(via, source.cast_mut(), len, limits) else {
            // In pieces, or by the bounce buffer: blocking is allowed, and simpler.
            // SAFETY: readable during the call.
            return unsafe { self.wire_put(call, via, far, source, len) };
        };
        let to = far.remote(via, 0);
        self.inner.wire.gpu_due(via, far);
        let leaves = Leaves::Nonblocking(Classes::of(Class::Put, far.kind));
        // SAFETY: the caller's promise.
        unsafe {
            let op = Op::Put { from, to };
            self.post(call, via, far.pe, op, Until::Posted, leaves)
        }
    }

    /// A get that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `destination` stays writable and untouched until then, or until the lane is dropped.
    pub(crate) unsafe fn wire_get_nbi(
        &self,
        call: &'static str,
        via: &Opened,
        far: Far,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.domain.capabilities().get;
        let Some(into) = self.near_whole(via, destination, len, limits) else {
            // SAFETY: writable during the call.
            return unsafe { self.wire_get(call, via, far, destination, len) };
        };
        let from = far.remote(via, 0);
        let leaves = Leaves::Nonblocking(Classes::NONE);
        // SAFETY: the caller's promise.
        unsafe {
            let op = Op::Get { into, from };
            self.post(call, via, far.pe, op, Until::Posted, leaves)
        }
    }

    /// The near side of a transfer that goes as one operation without the bounce buffer, if it can.
    fn near_whole(
        &self,
        via: &Opened,
        addr: *mut u8,
        len: usize,
        limits: oxshmem_transport::Limits,
    ) -> Option<Local> {
        let key = self.key_of(via, addr, len);
        let whole =
            len as u64 <= limits.max && (key.is_some() || len as u64 <= limits.unregistered);
        whole.then_some(Local { addr, len, key })
    }
}
