//! Puts, gets and puts-with-signal on lanes.

use oxshmem_transport::{AtomicLevel, AtomicOp, Capabilities, Op, SignalOp, SignalSupport, Width};

use super::local_buffer::LocalChunk;
use super::{AccessPath, AtomicsBy, Effect, Endpoint, LocalBuffer, RemoteTarget, Until};
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind, OpSet};
use crate::{Context, Result, Sym};

/// How a put-with-signal changes its word.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub word: Sym<u64>,
    pub op: SignalOp,
    pub value: u64,
}

/// Whether a lane's put-with-signal updates this word as its domain wants (M29). A signal that is set
/// is a whole word written, which any domain bears; who sets signals does not add to them.
fn native_signal(caps: &Capabilities, word: RemoteTarget, op: SignalOp) -> bool {
    let SignalSupport::Native(level) = caps.put_signal else {
        return false;
    };
    let whole = caps.atomics.level(AtomicOp::Set, Width::W64) == AtomicLevel::Cpu;
    match (op, level) {
        (_, AtomicLevel::Cpu) => word.atomics != AtomicsBy::Nic,
        (SignalOp::Set, _) => whole,
        (SignalOp::Add, level) => word.atomics == AtomicsBy::Nic && level == AtomicLevel::Nic,
    }
}

impl Context<'_> {
    /// Puts bytes. Returns when the source may be reused (M15).
    ///
    /// # Safety
    ///
    /// `source` is readable during the call, or names symmetric memory of this PE.
    pub(crate) unsafe fn lane_put(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let put = || unsafe { self.put_pieces(call, via, far, source) };
        self.lending(via, far.pe, put)
    }

    /// [`wire_put`](Self::wire_put), if it does not panic.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn put_pieces(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        let (limits, len) = (via.caps.put, source.len);
        // SAFETY: the caller's promise, till the registration ends.
        let for_call = unsafe { self.side_for_call(via, &source, false, limits) };
        let source = for_call.as_ref().map_or(source, |(side, _)| *side);
        // Pieces are posted one behind the other. Whether some may still read the source:
        let mut reading = false;
        let mut done = 0;
        while done < len {
            let (to, rest) = far.locate(via, done);
            let part = source.part(done, rest.min(len - done));
            let piece = match self.near(call, (via, far.pe), part, limits) {
                Err(error) if reading => return self.fail_or_complete(via, far.pe, Err(error)),
                piece => piece?,
            };
            if let Some(bounce) = &piece.bounce {
                // SAFETY: `piece.local.len` bytes from there lie in the caller's source, and are
                // neither symmetric nor on a GPU: those have a key of their own.
                let bytes = unsafe { std::slice::from_raw_parts(part.at, piece.local.len) };
                self.own(bounce.buffer)
                    .part(0, bytes.len())
                    .copy_from(bytes);
            }
            let op = Op::Put {
                from: piece.local,
                to,
            };
            done += piece.local.len;
            let reads = reading || !piece.is_reusable(limits);
            let until = match reads && (piece.bounce.is_some() || done == len) {
                // With it all before it have completed.
                true => Until::Completed,
                false => Until::Posted,
            };
            self.state.wire.gpu_due(via, far);
            let leaves = Effect::Update(OpSet::of(OpKind::Put, far.kind));
            // SAFETY: up to the limit the bytes are copied at once, beyond it we wait for completion
            // before returning or reusing the bounce buffer; after a failure the lane is dropped.
            let posted = unsafe { self.post(call, via, far.pe, op, until, leaves) };
            match reading {
                true => self.fail_or_complete(via, far.pe, posted)?,
                false => posted?,
            }
            reading = reads && until == Until::Posted;
        }
        Ok(())
    }

    /// Gets bytes. Returns when they are there (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable during the call, or names symmetric memory of this PE.
    pub(crate) unsafe fn lane_get(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        let get = || unsafe { self.get_pieces(call, via, far, destination) };
        self.lending(via, far.pe, get)
    }

    /// [`wire_get`](Self::wire_get), if it does not panic.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn get_pieces(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        let (limits, len) = (via.caps.get, destination.len);
        if !via.guarantees(far.kind).put_get && self.inserts(FenceSite::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        let (from, rest) = far.locate(via, 0);
        let into = self.near_whole(via, destination, limits);
        if let Some(LocalChunk { local, on_gpu, .. }) = into.filter(|_| (1..=rest).contains(&len)) {
            let op = Op::Get { into: local, from };
            // SAFETY: we wait for completion while the memory is valid.
            unsafe { self.post(call, via, far.pe, op, Until::Completed, Effect::Nothing)? };
            return self.see_got(on_gpu);
        }
        // SAFETY: the caller's promise, till the registration ends.
        let for_call = unsafe { self.side_for_call(via, &destination, true, limits) };
        let destination = for_call.as_ref().map_or(destination, |(side, _)| *side);
        let mut on_gpu = false;
        // Whether pieces may still write to the destination.
        let mut writing = false;
        let mut done = 0;
        while done < len {
            let (from, rest) = far.locate(via, done);
            let part = destination.part(done, rest.min(len - done));
            let piece = match self.near(call, (via, far.pe), part, limits) {
                Err(error) if writing => return self.fail_or_complete(via, far.pe, Err(error)),
                piece => piece?,
            };
            on_gpu |= piece.on_gpu;
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
            let posted = unsafe { self.post(call, via, far.pe, op, until, Effect::Nothing) };
            match writing {
                true => self.fail_or_complete(via, far.pe, posted)?,
                false => posted?,
            }
            writing = until == Until::Posted;
            if let Some(bounce) = &piece.bounce {
                // SAFETY: as many bytes from there lie in the caller's destination, which is lent to this
                // call, and neither symmetric nor on a GPU: that has a key of its own.
                let bytes = unsafe { std::slice::from_raw_parts_mut(part.at, piece.local.len) };
                self.own(bounce.buffer).part(0, bytes.len()).copy_to(bytes);
            }
        }
        self.see_got(on_gpu)
    }

    /// Put-with-signal (M22): native, or put, flush and atomic.
    ///
    /// # Safety
    ///
    /// `source` is readable during the call.
    pub(crate) unsafe fn lane_put_signal(
        &self,
        via: &Endpoint,
        far: RemoteTarget,
        source: LocalBuffer,
        signal: Signal,
        nonblocking: bool,
    ) -> Result<()> {
        const CALL: &str = "put_signal";
        let caps = &via.caps;
        let path = self.path(CALL, OpKind::Atomic, signal.word, far.pe)?;
        let native = match path {
            AccessPath::Lane(same, word) if std::ptr::eq(same, via) => {
                native_signal(caps, word, signal.op).then_some(word)
            }
            _ => None,
        };
        let from = self.near_whole(via, source, caps.put);
        let (to, rest) = far.locate(via, 0);
        if let (Some(word), Some(from)) = (native, from)
            && source.len <= rest
        {
            let op = Op::PutSignal {
                from: from.local,
                to,
                signal: word.word(via),
                op: signal.op,
                value: signal.value,
            };
            let until = match from.is_reusable(caps.put) {
                true => Until::Posted,
                false => Until::Completed,
            };
            self.state.wire.gpu_due(via, far);
            self.state.wire.gpu_due(via, word);
            let mut updates = OpSet::of(OpKind::Put, far.kind);
            // One that a NIC sets is written, as data are.
            let written = caps.put_signal == SignalSupport::Native(AtomicLevel::Nic)
                && signal.op == SignalOp::Set;
            let class = if written { OpKind::Put } else { OpKind::Atomic };
            updates.add(OpSet::of(class, word.kind));
            let leaves = match nonblocking {
                true => Effect::Nonblocking(updates),
                false => Effect::Update(updates),
            };
            // SAFETY: inline bytes are copied at once, others we wait for.
            let post = || unsafe { self.post(CALL, via, far.pe, op, until, leaves) };
            return self.lending(via, far.pe, post);
        }
        // SAFETY: the caller's promise.
        unsafe { self.lane_put(CALL, via, far, source)? };
        let message = matches!(path, AccessPath::Lane(same, word)
            if std::ptr::eq(same, via) && word.atomics == AtomicsBy::Target);
        let kept = message && via.guarantees(far.kind).put_message;
        if !kept && self.inserts(FenceSite::SignalLane) {
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
        match self.path(call, OpKind::Atomic, signal.word, pe)? {
            AccessPath::Mapped(word) => {
                match signal.op {
                    SignalOp::Set => word.store_word(Width::W64, signal.value, FenceSite::Signal),
                    SignalOp::Add => {
                        let operands = (signal.value, 0);
                        word.rmw_word(Width::W64, op, operands, FenceSite::Signal);
                    }
                }
                self.peers.mark_dirty_any();
                Ok(())
            }
            AccessPath::Lane(via, word) => {
                let operands = (signal.value, 0);
                self.lane_amo(call, via, word, Width::W64, op, operands, false)
                    .map(drop)
            }
            AccessPath::Staged(word) => {
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
    pub(crate) unsafe fn lane_put_nbi(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        let from = self.near_whole(via, source, via.caps.put);
        let Some(from) = from.filter(|_| source.len <= far.locate(via, 0).1) else {
            // In pieces, or by the bounce buffer: blocking is allowed, and simpler.
            // SAFETY: readable during the call.
            return unsafe { self.lane_put(call, via, far, source) };
        };
        let (to, _) = far.locate(via, 0);
        self.state.wire.gpu_due(via, far);
        let update = OpSet::of(OpKind::Put, far.kind);
        let op = Op::Put {
            from: from.local,
            to,
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.post_nbi(
                call,
                via,
                far.pe,
                op,
                (source.len, Effect::Nonblocking(update)),
            )
        }
    }

    /// A get that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `destination` stays writable and untouched until then, or until the lane is dropped.
    pub(crate) unsafe fn lane_get_nbi(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        let into = self.near_whole(via, destination, via.caps.get);
        let Some(into) = into.filter(|_| destination.len <= far.locate(via, 0).1) else {
            // SAFETY: writable during the call.
            return unsafe { self.lane_get(call, via, far, destination) };
        };
        let (from, _) = far.locate(via, 0);
        if into.on_gpu {
            self.state.wire.got_to_gpu.set(true);
        }
        let op = Op::Get {
            into: into.local,
            from,
        };
        let whole = (destination.len, Effect::Brings(OpSet::NONE));
        // SAFETY: the caller's promise.
        unsafe { self.post_nbi(call, via, far.pe, op, whole) }
    }
}
