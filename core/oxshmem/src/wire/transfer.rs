//! Puts, gets and puts-with-signal on lanes.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Capabilities, Limits, Local, LocalKey, LocalRegion, Op, SignalOp,
    SignalSupport, Width,
};

use super::bounce::Bounce;
use super::{Channel, Far, Leaves, Path, Performs, Until};
use crate::mapped::Bytes;
use crate::order::{Class, Classes, Inserted};
use crate::{Context, Result, Sym};

/// How a put-with-signal changes its word.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub word: Sym<u64>,
    pub op: SignalOp,
    pub value: u64,
}

/// From this size on a private buffer is registered for the call rather than copied, in bytes.
pub(crate) const REGISTER: usize = 256 << 10;

/// A transport that takes as much as this unregistered gets it, in pieces.
const PIECE: usize = 4096;

/// Whether a lane's put-with-signal updates this word as its domain wants (M29). A signal that is set
/// is a whole word written, which any domain bears; who sets signals does not add to them.
fn native_signal(caps: &Capabilities, word: Far, op: SignalOp) -> bool {
    let SignalSupport::Native(level) = caps.put_signal else {
        return false;
    };
    let whole = caps.atomics.level(AtomicOp::Set, Width::W64) == AtomicLevel::Cpu;
    match (op, level) {
        (_, AtomicLevel::Cpu) => word.atomics != Performs::Nic,
        (SignalOp::Set, _) => whole,
        (SignalOp::Add, level) => word.atomics == Performs::Nic && level == AtomicLevel::Nic,
    }
}

/// The near side of the next piece of a transfer.
struct Piece<'w> {
    local: Local,
    /// The bounce buffer, if the bytes go through it.
    bounce: Option<Bounce<'w>>,
}

impl Context<'_> {
    /// Puts `len` bytes. Returns when the source may be reused (M15).
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call, or names symmetric memory of this PE.
    pub(crate) unsafe fn wire_put(
        &self,
        call: &'static str,
        via: &Channel,
        far: Far,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.caps.put;
        let whole = self.for_call(via, source.cast_mut(), len, false, limits);
        // Pieces are posted one behind the other. Whether some may still read the source:
        let mut reading = false;
        let mut done = 0;
        while done < len {
            let at = source.wrapping_add(done).cast_mut();
            let (to, rest) = far.locate(via, done);
            let len_here = rest.min(len - done);
            let piece = match self.near(call, (via, far.pe), at, len_here, limits, whole.as_deref())
            {
                Err(error) if reading => return self.settle(via, far.pe, Err(error)),
                piece => piece?,
            };
            if let Some(bounce) = &piece.bounce {
                // SAFETY: `piece.local.len` bytes from `at` lie in the caller's source, and are
                // not symmetric: those have a key of their own.
                let bytes = unsafe { std::slice::from_raw_parts(at, piece.local.len) };
                self.own(bounce.buffer)
                    .part(0, bytes.len())
                    .copy_from(bytes);
            }
            let op = Op::Put {
                from: piece.local,
                to,
            };
            done += piece.local.len;
            let reads = reading || !self.is_reusable(&piece.local, limits);
            let until = match reads && (piece.bounce.is_some() || done == len) {
                // With it all before it have completed.
                true => Until::Completed,
                false => Until::Posted,
            };
            self.state.wire.gpu_due(via, far);
            let leaves = Leaves::Update(Classes::of(Class::Put, far.kind));
            // SAFETY: up to the limit the bytes are copied at once, beyond it we wait for completion
            // before returning or reusing the bounce buffer; after a failure the lane is dropped.
            let posted = unsafe { self.post(call, via, far.pe, op, until, leaves) };
            match reading {
                true => self.settle(via, far.pe, posted)?,
                false => posted?,
            }
            reading = reads && until == Until::Posted;
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
        via: &Channel,
        far: Far,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.caps.get;
        if !via.guarantees(far.kind).put_get && self.inserts(Inserted::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        let (from, rest) = far.locate(via, 0);
        let into = self.near_whole(via, destination, len, limits);
        if let Some(into) = into.filter(|_| (1..=rest).contains(&len)) {
            let op = Op::Get { into, from };
            // SAFETY: we wait for completion while the memory is valid.
            unsafe { self.post(call, via, far.pe, op, Until::Completed, Leaves::Nothing)? };
            return self.see_got(destination);
        }
        let whole = self.for_call(via, destination, len, true, limits);
        // Whether pieces may still write to the destination.
        let mut writing = false;
        let mut done = 0;
        while done < len {
            let at = destination.wrapping_add(done);
            let (from, rest) = far.locate(via, done);
            let len_here = rest.min(len - done);
            let piece = match self.near(call, (via, far.pe), at, len_here, limits, whole.as_deref())
            {
                Err(error) if writing => return self.settle(via, far.pe, Err(error)),
                piece => piece?,
            };
            let op = Op::Get {
                into: piece.local,
                from,
            };
            done += piece.local.len;
            let until = match piece.bounce.is_some() || done == len {
                // With it all before it have completed.
                true => Until::Completed,
                false => Until::Posted,
            };
            // SAFETY: we wait for the last one's completion while the memory is valid; after a failure
            // the lane is dropped.
            let posted = unsafe { self.post(call, via, far.pe, op, until, Leaves::Nothing) };
            match writing {
                true => self.settle(via, far.pe, posted)?,
                false => posted?,
            }
            writing = until == Until::Posted;
            if let Some(bounce) = &piece.bounce {
                // SAFETY: as many bytes from `at` lie in the caller's destination, which is lent to
                // this call and is not symmetric: that has a key of its own.
                let bytes = unsafe { std::slice::from_raw_parts_mut(at, piece.local.len) };
                self.own(bounce.buffer).part(0, bytes.len()).copy_to(bytes);
            }
        }
        self.see_got(destination)
    }

    /// Whether a put's source may be reused when it is posted: what its lane copies. It copies nothing that
    /// lies on a GPU.
    fn is_reusable(&self, from: &Local, limits: Limits) -> bool {
        from.len as u64 <= limits.inline && !self.is_on_gpu(from.addr)
    }

    /// Whether an address is one of this PE's GPU: of its heap, or of a slice that lanes know.
    fn is_on_gpu(&self, memory: *const u8) -> bool {
        let Some((base, limit)) = &self.shared.gpu else {
            return false;
        };
        let base = base.load(Ordering::Relaxed).addr();
        let offset = memory.addr().checked_sub(base);
        offset.is_some_and(|offset| offset < *limit) || self.shared.registered.has_on_gpu(memory)
    }

    /// What was got is there: a NIC wrote it, so this PE's GPU may need a flush to see it (M16, M27).
    fn see_got(&self, destination: *const u8) -> Result<()> {
        // Later accesses come after the data's arrival.
        fence(Ordering::Acquire);
        match self.is_on_gpu(destination) {
            true => self.see_gpu_data(),
            false => Ok(()),
        }
    }

    /// The near side of the next piece of a transfer with a PE: the memory itself where the transport takes
    /// it, else a bounce buffer.
    fn near(
        &self,
        call: &'static str,
        (via, pe): (&Channel, usize),
        memory: *mut u8,
        len: usize,
        limits: Limits,
        whole: Option<&dyn LocalRegion>,
    ) -> Result<Piece<'_>> {
        let max = usize::try_from(limits.max).unwrap_or(usize::MAX).max(1);
        let as_it_is = |len, key| {
            Ok(Piece {
                local: Local {
                    addr: memory,
                    len,
                    key,
                },
                bounce: None,
            })
        };
        if let Some(whole) = whole {
            return as_it_is(len.min(max), Some(whole.key()));
        }
        if let Some((key, rest)) = self.key_of(via, memory, len) {
            return as_it_is(len.min(max).min(rest), Some(key));
        }
        let unregistered = usize::try_from(limits.unregistered).unwrap_or(usize::MAX);
        if unregistered >= PIECE || unregistered >= len.min(max) {
            return as_it_is(len.min(max).min(unregistered), None);
        }
        // The transport takes little that is not registered: by a buffer in the heap.
        let bounce = self.take_bounce(call, pe)?;
        let at = bounce.buffer.offset();
        let Some((key, rest)) = via.host.local_key(at) else {
            return as_it_is(len.min(max).min(unregistered.max(1)), None);
        };
        let len = len.min(max).min(bounce.buffer.len()).min(rest);
        let addr = self.own_base().as_ptr().wrapping_add(at as usize);
        Ok(Piece {
            local: Local {
                addr,
                len,
                key: Some(key),
            },
            bounce: Some(bounce),
        })
    }

    /// The key of this PE's heap, or GPU heap, if all the bytes lie in it; and how far that reaches.
    #[inline]
    pub(crate) fn key_of(
        &self,
        via: &Channel,
        memory: *const u8,
        len: usize,
    ) -> Option<(LocalKey, usize)> {
        let inside = |base: usize, size: usize| {
            let offset = memory.addr().checked_sub(base)?;
            (offset.checked_add(len)? <= size).then_some(offset as u64)
        };
        if let Some(offset) = inside(self.own_base().addr().get(), self.heap_limit()) {
            return via.host.local_key(offset);
        }
        if let Some((base, limit)) = &self.shared.gpu
            && let Some(offset) = inside(base.load(Ordering::Relaxed).addr(), *limit)
        {
            return via.gpu.local_key(offset);
        }
        let key = self.shared.registered.key(via.index, memory, len)?;
        Some((key, usize::MAX))
    }

    /// Registers a private buffer for one call, if that costs less than copying it. Where it cannot
    /// be, for want of memory that may be locked, it is copied.
    fn for_call(
        &self,
        via: &Channel,
        memory: *mut u8,
        len: usize,
        written: bool,
        limits: Limits,
    ) -> Option<Box<dyn LocalRegion>> {
        if len < REGISTER || len as u64 <= limits.unregistered || !via.pins() {
            return None;
        }
        if self.key_of(via, memory, len).is_some() {
            return None;
        }
        // SAFETY: the caller's buffer, which stays mapped during the call; the registration ends
        // before it.
        unsafe { via.domain.register_local(memory, len, written) }.ok()
    }

    /// Put-with-signal (M22): native, or put, flush and atomic.
    ///
    /// # Safety
    ///
    /// `source` is readable for `len` bytes during the call.
    pub(crate) unsafe fn wire_put_signal(
        &self,
        via: &Channel,
        far: Far,
        source: *const u8,
        len: usize,
        signal: Signal,
        nonblocking: bool,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        let caps = &via.caps;
        let path = self.path(CALL, Class::Atomic, signal.word, far.pe)?;
        let native = match path {
            Path::Lane(same, word) if std::ptr::eq(same, via) => {
                native_signal(caps, word, signal.op).then_some(word)
            }
            _ => None,
        };
        let from = self.near_whole(via, source.cast_mut(), len, caps.put);
        let (to, rest) = far.locate(via, 0);
        if let (Some(word), Some(from)) = (native, from)
            && len <= rest
        {
            let op = Op::PutSignal {
                from,
                to,
                signal: word.word(via),
                op: signal.op,
                value: signal.value,
            };
            let until = match self.is_reusable(&from, caps.put) {
                true => Until::Posted,
                false => Until::Completed,
            };
            self.state.wire.gpu_due(via, far);
            self.state.wire.gpu_due(via, word);
            let mut updates = Classes::of(Class::Put, far.kind);
            // One that a NIC sets is written, as data are.
            let written = caps.put_signal == SignalSupport::Native(AtomicLevel::Nic)
                && signal.op == SignalOp::Set;
            let class = if written { Class::Put } else { Class::Atomic };
            updates.add(Classes::of(class, word.kind));
            let leaves = match nonblocking {
                true => Leaves::Nonblocking(updates),
                false => Leaves::Update(updates),
            };
            // SAFETY: inline bytes are copied at once, others we wait for.
            return unsafe { self.post(CALL, via, far.pe, op, until, leaves) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.wire_put(CALL, via, far, source, len)? };
        let message = matches!(path, Path::Lane(same, word)
            if std::ptr::eq(same, via) && word.atomics == Performs::Target);
        let kept = message && via.guarantees(far.kind).put_message;
        if !kept && self.inserts(Inserted::SignalLane) {
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
                self.peers.note_slow();
                Ok(())
            }
            Path::Lane(via, word) => {
                let operands = (signal.value, 0);
                self.wire_atomic(call, via, word, Width::W64, op, operands, false)
                    .map(drop)
            }
            Path::Staged(word) => {
                let operands = (signal.value, 0);
                self.staged_atomic(call, word, (op, Width::W64), operands)
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
        via: &Channel,
        far: Far,
        source: *const u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.caps.put;
        let from = self.near_whole(via, source.cast_mut(), len, limits);
        let Some(from) = from.filter(|_| len <= far.locate(via, 0).1) else {
            // In pieces, or by the bounce buffer: blocking is allowed, and simpler.
            // SAFETY: readable during the call.
            return unsafe { self.wire_put(call, via, far, source, len) };
        };
        let (to, _) = far.locate(via, 0);
        self.state.wire.gpu_due(via, far);
        let update = Classes::of(Class::Put, far.kind);
        // SAFETY: the caller's promise.
        unsafe { self.post_nbi(call, via, far.pe, Op::Put { from, to }, (len, update)) }
    }

    /// A get that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `destination` stays writable and untouched until then, or until the lane is dropped.
    pub(crate) unsafe fn wire_get_nbi(
        &self,
        call: &'static str,
        via: &Channel,
        far: Far,
        destination: *mut u8,
        len: usize,
    ) -> Result<()> {
        let limits = via.caps.get;
        let into = self.near_whole(via, destination, len, limits);
        let Some(into) = into.filter(|_| len <= far.locate(via, 0).1) else {
            // SAFETY: writable during the call.
            return unsafe { self.wire_get(call, via, far, destination, len) };
        };
        let (from, _) = far.locate(via, 0);
        if self.is_on_gpu(destination) {
            self.state.wire.got_to_gpu.set(true);
        }
        let update = Classes::NONE;
        // SAFETY: the caller's promise.
        unsafe { self.post_nbi(call, via, far.pe, Op::Get { into, from }, (len, update)) }
    }

    /// The near side of a transfer that goes as one operation without the bounce buffer, if it can.
    pub(super) fn near_whole(
        &self,
        via: &Channel,
        addr: *mut u8,
        len: usize,
        limits: Limits,
    ) -> Option<Local> {
        let key = match self.key_of(via, addr, len) {
            Some((key, rest)) => (len <= rest).then_some(Some(key))?,
            None => (len as u64 <= limits.unregistered).then_some(None)?,
        };
        (len as u64 <= limits.max).then_some(Local { addr, len, key })
    }
}
