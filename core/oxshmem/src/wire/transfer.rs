//! Puts, gets and puts-with-signal on lanes.

use std::sync::MutexGuard;
use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Local, LocalKey, Op, Remote, SignalOp, SignalSupport, Width,
};

use super::{HEAP, Opened, Until, lock};
use crate::{Result, World};

impl World {
    /// Puts `len` bytes. Returns when the source may be reused (M15).
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call.
    pub(crate) unsafe fn wire_put(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let via = self.lane_to(call, pe)?;
        let limits = via.domain.capabilities().put;
        let mut done = 0;
        while done < len {
            // SAFETY: `done < len`, within the caller's source.
            let at = unsafe { source.add(done) };
            let (piece, local, _guard) = self.near(
                via,
                at.cast_mut(),
                len - done,
                limits.max,
                limits.unregistered,
            );
            if local.addr != at.cast_mut() {
                // SAFETY: the bounce buffer has room for `piece` bytes (`near`), the source has
                // them, and they are different memory.
                unsafe { oxshmem_heap::copy::copy(local.addr, at, piece) };
            }
            let to = Remote {
                region: HEAP,
                offset: offset + done as u64,
            };
            let until = if piece as u64 <= limits.inline {
                Until::Posted
            } else {
                Until::Completed
            };
            // SAFETY: up to the inline limit the bytes are copied at once, beyond it we wait for
            // completion before returning or reusing the bounce buffer.
            unsafe { self.post(call, via, pe, Op::Put { from: local, to }, until)? };
            done += piece;
        }
        Ok(())
    }

    /// Gets `len` bytes. Returns when they are there (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable for `len` bytes during the call.
    pub(crate) unsafe fn wire_get(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let via = self.lane_to(call, pe)?;
        let limits = via.domain.capabilities().get;
        if !self.guarantees(via).put_get {
            self.flush(call, via, pe)?;
        }
        let mut done = 0;
        while done < len {
            // SAFETY: `done < len`, within the caller's destination.
            let at = unsafe { destination.add(done) };
            let (piece, local, _guard) =
                self.near(via, at, len - done, limits.max, limits.unregistered);
            let from = Remote {
                region: HEAP,
                offset: offset + done as u64,
            };
            // SAFETY: we wait for completion while the memory is valid.
            unsafe {
                self.post(
                    call,
                    via,
                    pe,
                    Op::Get { into: local, from },
                    Until::Completed,
                )?;
            }
            if local.addr != at {
                // SAFETY: the bounce buffer holds `piece` bytes, the destination has room.
                unsafe { oxshmem_heap::copy::copy(at, local.addr, piece) };
            }
            done += piece;
        }
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        Ok(())
    }

    /// The near side of the next piece of a transfer: the memory itself where the transport takes
    /// it, else the bounce buffer, held by the guard.
    fn near(
        &self,
        via: &Opened,
        memory: *mut u8,
        len: usize,
        max: u64,
        unregistered: u64,
    ) -> (usize, Local, Option<MutexGuard<'_, ()>>) {
        let max = usize::try_from(max).unwrap_or(usize::MAX).max(1);
        if let Some(key) = self.heap_key(via, memory, len) {
            let piece = len.min(max);
            return (
                piece,
                Local {
                    addr: memory,
                    len: piece,
                    key: Some(key),
                },
                None,
            );
        }
        let unregistered = usize::try_from(unregistered).unwrap_or(usize::MAX);
        // Small leftovers aside, unregistered memory goes as it is if the transport takes it.
        if unregistered >= len.min(max) || via.heap.is_none() {
            let piece = len.min(max).min(unregistered.max(1));
            return (
                piece,
                Local {
                    addr: memory,
                    len: piece,
                    key: None,
                },
                None,
            );
        }
        let guard = lock(&self.inner.internal.bounce_lock);
        let (addr, room) = self.bounce();
        let piece = len.min(max).min(room);
        let key = via.heap.as_ref().map(|h| h.local_key());
        (
            piece,
            Local {
                addr,
                len: piece,
                key,
            },
            Some(guard),
        )
    }

    /// The key of this PE's heap, if all the bytes lie in it.
    fn heap_key(&self, via: &Opened, memory: *const u8, len: usize) -> Option<LocalKey> {
        let offset = memory.addr().checked_sub(self.own_base().addr().get())?;
        let inside = offset.checked_add(len)? <= self.heap_limit();
        if inside {
            via.heap.as_ref().map(|h| h.local_key())
        } else {
            None
        }
    }

    /// Put-with-signal (M22), native or put by put.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call.
    #[expect(clippy::too_many_arguments, reason = "two remote places and a value")]
    pub(crate) unsafe fn wire_put_signal(
        &self,
        pe: usize,
        offset: u64,
        source: *const u8,
        len: usize,
        signal: u64,
        op: SignalOp,
        value: u64,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        let via = self.lane_to(CALL, pe)?;
        let caps = via.domain.capabilities();
        let native = caps.put_signal == SignalSupport::Native(AtomicLevel::Cpu)
            && len as u64 <= caps.put.max.min(caps.put.unregistered);
        if !native {
            // SAFETY: the caller's promise.
            unsafe { self.wire_put(CALL, pe, offset, source, len)? };
            self.flush(CALL, via, pe)?;
            let amo = match op {
                SignalOp::Set => AtomicOp::Set,
                SignalOp::Add => AtomicOp::Add,
            };
            return self
                .wire_atomic(CALL, pe, signal, Width::W64, amo, value, 0)
                .map(drop);
        }
        let op = Op::PutSignal {
            from: Local {
                addr: source.cast_mut(),
                len,
                key: self.heap_key(via, source, len),
            },
            to: Remote {
                region: HEAP,
                offset,
            },
            signal: Remote {
                region: HEAP,
                offset: signal,
            },
            op,
            value,
        };
        let until = if len as u64 <= caps.put.inline {
            Until::Posted
        } else {
            Until::Completed
        };
        // SAFETY: inline bytes are copied at once, others we wait for.
        unsafe { self.post(CALL, via, pe, op, until) }
    }

    /// A put that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `source` stays readable and unchanged until then, or until the lane is dropped.
    pub(crate) unsafe fn wire_put_nbi(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let via = self.lane_to(call, pe)?;
        let limits = via.domain.capabilities().put;
        let key = self.heap_key(via, source, len);
        if len as u64 > limits.max || (key.is_none() && len as u64 > limits.unregistered) {
            // In pieces, or by the bounce buffer: blocking is allowed, and simpler.
            // SAFETY: readable during the call.
            return unsafe { self.wire_put(call, pe, offset, source, len) };
        }
        let from = Local {
            addr: source.cast_mut(),
            len,
            key,
        };
        let op = Op::Put {
            from,
            to: Remote {
                region: HEAP,
                offset,
            },
        };
        // SAFETY: the caller's promise.
        unsafe { self.post(call, via, pe, op, Until::Posted) }
    }

    /// A get that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `destination` stays writable and untouched until then, or until the lane is dropped.
    pub(crate) unsafe fn wire_get_nbi(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let via = self.lane_to(call, pe)?;
        let limits = via.domain.capabilities().get;
        let key = self.heap_key(via, destination, len);
        if len as u64 > limits.max || (key.is_none() && len as u64 > limits.unregistered) {
            // SAFETY: writable during the call.
            return unsafe { self.wire_get(call, pe, offset, destination, len) };
        }
        let into = Local {
            addr: destination,
            len,
            key,
        };
        let op = Op::Get {
            into,
            from: Remote {
                region: HEAP,
                offset,
            },
        };
        // SAFETY: the caller's promise.
        unsafe { self.post(call, via, pe, op, Until::Posted) }
    }
}
