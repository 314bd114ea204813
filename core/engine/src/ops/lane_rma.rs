//! Puts, gets and puts-with-signal on lanes.

use oxshmem_transport::{AtomicLevel, AtomicOp, Capabilities, Op, SignalOp, SignalSupport, Width};

use crate::error::Result;
use crate::lane::endpoint::Endpoint;
use crate::lane::in_flight::{Effect, Until};
use crate::lane::local_buffer::{LocalBuffer, LocalChunk};
use crate::lane::remote::{AtomicsBy, LanePeer, RemoteTarget};
use crate::memory::mapped::HostMemory;
use crate::memory::target::Target;
use crate::ops::access_path::AccessPath;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::{OpKind, OpSet};
use crate::worker::Worker;
use oxshmem_transport::AtomicRequest;

/// The update of the signal word of a put-with-signal.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// The signal word.
    pub word: Target,
    /// The update.
    pub op: SignalOp,
    /// Its operand.
    pub value: u64,
}

impl Signal {
    /// The update as an atomic.
    fn as_atomic(self) -> AtomicRequest {
        let op = match self.op {
            SignalOp::Set => AtomicOp::Set,
            SignalOp::Add => AtomicOp::Add,
        };
        AtomicRequest::wide(op, self.value, 0)
    }
}

/// Whether a lane's put-with-signal updates this word in its domain (M29). Setting a signal writes a
/// whole word, which is safe in any domain, since a program that sets a signal does not add to it.
fn native_signal(
    signals: SignalSupport,
    caps: &Capabilities,
    word: RemoteTarget,
    op: SignalOp,
) -> bool {
    let SignalSupport::Native(level) = signals else {
        return false;
    };
    let whole = caps.atomics.level(AtomicOp::Set, Width::W64) == AtomicLevel::Cpu;
    match (op, level) {
        (_, AtomicLevel::Cpu) => word.atomics != AtomicsBy::Nic,
        (SignalOp::Set, _) => whole,
        (SignalOp::Add, level) => word.atomics == AtomicsBy::Nic && level == AtomicLevel::Nic,
    }
}

impl Worker {
    /// Puts bytes. Returns when the source may be reused (M15).
    ///
    /// # Safety
    ///
    /// `source` is readable during the call, or names symmetric memory of this PE.
    pub unsafe fn lane_put(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        // SAFETY: the caller's promise.
        let put = || unsafe { self.put_chunks(peer, remote, source) };
        self.lending(peer, put)
    }

    /// Puts the word of a collective call, of whose arrival a later word of its receiver tells. So a
    /// [barrier](Self::quiet_before_arrival) need not await it.
    ///
    /// # Errors
    ///
    /// The failure of the lane, or of the connection with the PE.
    pub fn lane_sync_word(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        word: u64,
    ) -> Result<()> {
        let pe = remote.pe;
        let only_sync_words = endpoint.has_only_sync_words(pe);
        let word = word.to_ne_bytes();
        // SAFETY: `word` outlives the call.
        unsafe { self.lane_put(endpoint, remote, LocalBuffer::read(&word))? };
        if only_sync_words {
            endpoint.mark_sync_words(pe);
        }
        Ok(())
    }

    /// [`lane_put`](Self::lane_put), if it does not panic.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn put_chunks(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        let endpoint = peer.endpoint;
        let (limits, len) = (endpoint.caps.put, source.len);
        let (to, rest) = remote.locate(endpoint, 0);
        let whole = self.local_whole(endpoint, source, limits);
        if let Some(chunk) = whole.filter(|_| (1..=rest).contains(&len)) {
            let until = chunk.until_reusable(limits);
            self.state.lanes.note_gpu_update(endpoint, remote);
            let effect = Effect::Write(endpoint.put_update(remote.kind, len));
            let from = chunk.local;
            // SAFETY: inline bytes are copied at once, others we wait for.
            return unsafe { self.post(peer, Op::Put { from, to }, until, effect) };
        }
        // SAFETY: the caller's promise, till the registration ends.
        let for_call = unsafe { self.register_buffer_for_call(endpoint, &source, false, limits) };
        let source = for_call.as_ref().map_or(source, |(buffer, _)| *buffer);
        // Chunks are posted one behind the other. Whether some may still read the source:
        let mut reading = false;
        let mut done = 0;
        while done < len {
            let (to, rest) = remote.locate(endpoint, done);
            let part = source.part(done, rest.min(len - done));
            let chunk = match self.local_chunk(peer, part, limits) {
                Err(error) if reading => return self.fail_or_complete(peer, Err(error)),
                chunk => chunk?,
            };
            if let Some(bounce) = &chunk.bounce {
                // SAFETY: `chunk.local.len` bytes from there lie in the caller's source, and are
                // neither symmetric nor on a GPU: those have a key of their own.
                let bytes = unsafe { std::slice::from_raw_parts(part.at, chunk.local.len) };
                self.own(bounce.buffer)
                    .part(0, bytes.len())
                    .copy_from(bytes);
            }
            let op = Op::Put {
                from: chunk.local,
                to,
            };
            let update = endpoint.put_update(remote.kind, chunk.local.len);
            done += chunk.local.len;
            let reads = reading || chunk.until_reusable(limits) == Until::Reusable;
            let until = if reads && (chunk.bounce.is_some() || done == len) {
                // All chunks before it are reusable with it.
                Until::Reusable
            } else {
                Until::Posted
            };
            self.state.lanes.note_gpu_update(endpoint, remote);
            let effect = Effect::Write(update);
            // SAFETY: up to the limit the bytes are copied at once, beyond it we wait for completion
            // before returning or reusing the bounce buffer; after a failure the lane is dropped.
            let posted = unsafe { self.post(peer, op, until, effect) };
            if reading {
                self.fail_or_complete(peer, posted)?;
            } else {
                posted?;
            }
            reading = reads && until == Until::Posted;
        }
        Ok(())
    }

    /// Gets bytes. Returns when they have arrived (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable during the call, or names symmetric memory of this PE.
    pub unsafe fn lane_get(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        // SAFETY: the caller's promise.
        let get = || unsafe { self.get_chunks(peer, remote, destination) };
        self.lending(peer, get)
    }

    /// [`lane_get`](Self::lane_get), if it does not panic.
    ///
    /// # Safety
    ///
    /// As there.
    unsafe fn get_chunks(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        let endpoint = peer.endpoint;
        let (limits, len) = (endpoint.caps.get, destination.len);
        let overtakes = endpoint.get_overtakes(remote.pe, remote.kind, len);
        if overtakes && self.inserts(FenceSite::ReadLane) {
            self.flush(peer)?;
        }
        let (from, rest) = remote.locate(endpoint, 0);
        let into = self.local_whole(endpoint, destination, limits);
        if let Some(LocalChunk { local, on_gpu, .. }) = into.filter(|_| (1..=rest).contains(&len)) {
            let op = Op::Get { into: local, from };
            // SAFETY: we wait for completion while the memory is valid.
            unsafe { self.post(peer, op, Until::Reusable, Effect::Read)? };
            return self.make_got_visible(on_gpu);
        }
        // SAFETY: the caller's promise, till the registration ends.
        let for_call =
            unsafe { self.register_buffer_for_call(endpoint, &destination, true, limits) };
        let destination = for_call.as_ref().map_or(destination, |(buffer, _)| *buffer);
        let mut on_gpu = false;
        // Whether chunks may still write to the destination.
        let mut writing = false;
        let mut done = 0;
        while done < len {
            let (from, rest) = remote.locate(endpoint, done);
            let part = destination.part(done, rest.min(len - done));
            let chunk = match self.local_chunk(peer, part, limits) {
                Err(error) if writing => return self.fail_or_complete(peer, Err(error)),
                chunk => chunk?,
            };
            on_gpu |= chunk.on_gpu;
            let op = Op::Get {
                into: chunk.local,
                from,
            };
            done += chunk.local.len;
            let until = if chunk.bounce.is_some() || done == len {
                // All chunks before it are reusable with it.
                Until::Reusable
            } else {
                Until::Posted
            };
            // SAFETY: we wait for the last one's completion while the memory is valid; after a failure
            // the lane is dropped.
            let posted = unsafe { self.post(peer, op, until, Effect::Read) };
            if writing {
                self.fail_or_complete(peer, posted)?;
            } else {
                posted?;
            }
            writing = until == Until::Posted;
            if let Some(bounce) = &chunk.bounce {
                // SAFETY: as many bytes from there lie in the caller's destination, which is lent to this
                // call, and neither symmetric nor on a GPU: that has a key of its own.
                let bytes = unsafe { std::slice::from_raw_parts_mut(part.at, chunk.local.len) };
                self.own(bounce.buffer).part(0, bytes.len()).copy_to(bytes);
            }
        }
        self.make_got_visible(on_gpu)
    }

    /// Put-with-signal (M22): native, or put, flush and atomic.
    ///
    /// # Safety
    ///
    /// `source` is readable during the call.
    pub unsafe fn lane_put_signal(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        source: LocalBuffer,
        signal: Signal,
        nonblocking: bool,
    ) -> Result<()> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        let caps = &endpoint.caps;
        let signals = endpoint.put_signal(pe);
        let path = self.access_path(OpKind::Atomic, signal.word, remote.pe)?;
        let native = match path {
            AccessPath::Lane(same, word) if std::ptr::eq(same, endpoint) => {
                native_signal(signals, caps, word, signal.op).then_some(word)
            }
            _ => None,
        };
        let from = self.local_whole(endpoint, source, caps.put);
        let (to, rest) = remote.locate(endpoint, 0);
        if let (Some(word), Some(from)) = (native, from)
            && source.len <= rest
        {
            let op = Op::PutSignal {
                from: from.local,
                to,
                signal: word.word(endpoint),
                op: signal.op,
                value: signal.value,
            };
            let until = from.until_reusable(caps.put);
            self.state.lanes.note_gpu_update(endpoint, remote);
            self.state.lanes.note_gpu_update(endpoint, word);
            let mut updates = endpoint.put_update(remote.kind, source.len);
            // A NIC sets a signal by a write, as it writes data.
            let written =
                signals == SignalSupport::Native(AtomicLevel::Nic) && signal.op == SignalOp::Set;
            let kind = if written { OpKind::Put } else { OpKind::Atomic };
            updates.add(OpSet::of(kind, word.kind));
            let effect = if nonblocking {
                Effect::WriteNbi(updates)
            } else {
                Effect::Write(updates)
            };
            // SAFETY: inline bytes are copied at once, others we wait for.
            let post = || unsafe { self.post(peer, op, until, effect) };
            return self.lending(peer, post);
        }
        // SAFETY: the caller's promise.
        unsafe { self.lane_put(endpoint, remote, source)? };
        let message = matches!(path, AccessPath::Lane(same, word)
            if std::ptr::eq(same, endpoint) && word.atomics == AtomicsBy::TargetCpu);
        let preserved = message
            && endpoint.guarantees(remote.pe, remote.kind).put_message
            && !endpoint.has_long_puts(remote.pe);
        if !preserved && self.inserts(FenceSite::SignalLane) {
            self.flush(peer)?;
        }
        self.signal(signal, remote.pe)
    }

    /// Updates a signal word, after the stores of this PE's CPU.
    pub fn signal(&self, signal: Signal, pe: usize) -> Result<()> {
        let request = signal.as_atomic();
        match self.access_path(OpKind::Atomic, signal.word, pe)? {
            AccessPath::Mapped(word) => {
                match signal.op {
                    SignalOp::Set => word.store_word(Width::W64, signal.value, FenceSite::Signal),
                    SignalOp::Add => {
                        word.rmw_word(request, FenceSite::Signal);
                    }
                }
                self.peers.mark_dirty_any();
                Ok(())
            }
            AccessPath::Lane(endpoint, word) => {
                let updated = self.lane_amo(endpoint, word, request, false);
                updated.map(drop)
            }
            AccessPath::Staged(word) => self.staged_atomic(word, request).map(drop),
        }
    }

    /// A put that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `source` stays readable and unchanged until then, or until the lane is dropped.
    pub unsafe fn lane_put_nbi(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        source: LocalBuffer,
    ) -> Result<()> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        let from = self.local_whole(endpoint, source, endpoint.caps.put);
        let Some(from) = from.filter(|_| source.len <= remote.locate(endpoint, 0).1) else {
            // In chunks, or by the bounce buffer: blocking is allowed, and simpler.
            // SAFETY: readable during the call.
            return unsafe { self.lane_put(endpoint, remote, source) };
        };
        let (to, _) = remote.locate(endpoint, 0);
        self.state.lanes.note_gpu_update(endpoint, remote);
        let effect = Effect::WriteNbi(endpoint.put_update(remote.kind, source.len));
        let op = Op::Put {
            from: from.local,
            to,
        };
        // SAFETY: the caller's promise.
        unsafe { self.post_nbi(peer, op, source.len, effect) }
    }

    /// A get that the next quiet completes.
    ///
    /// # Safety
    ///
    /// `destination` stays writable and untouched until then, or until the lane is dropped.
    pub unsafe fn lane_get_nbi(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<()> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        let into = self.local_whole(endpoint, destination, endpoint.caps.get);
        let Some(into) = into.filter(|_| destination.len <= remote.locate(endpoint, 0).1) else {
            // SAFETY: writable during the call.
            return unsafe { self.lane_get(endpoint, remote, destination) };
        };
        let (from, _) = remote.locate(endpoint, 0);
        if into.on_gpu {
            self.state.lanes.gpu_gets_in_flight.set(true);
        }
        let op = Op::Get {
            into: into.local,
            from,
        };
        let effect = Effect::FetchNbi(OpSet::NONE);
        // SAFETY: the caller's promise.
        unsafe { self.post_nbi(peer, op, destination.len, effect) }
    }

    /// Posts a get. Gives whether it may yet have to arrive.
    ///
    /// # Safety
    ///
    /// The bytes stay writable until a later get of this lane has completed, or the lane was dropped.
    pub unsafe fn start_get(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<bool> {
        let LanePeer { endpoint, .. } = peer;
        let len = destination.len;
        let (from, rest) = remote.locate(endpoint, 0);
        let into = self.local_whole(endpoint, destination, endpoint.caps.get);
        // A get that has to see earlier puts waits for them.
        let at_once = !endpoint.get_overtakes(remote.pe, remote.kind, len) && len <= rest;
        match into.filter(|_| at_once) {
            Some(into) => {
                let into = into.local;
                let op = Op::Get { into, from };
                // SAFETY: the caller's promise.
                let post = || unsafe { self.post(peer, op, Until::Posted, Effect::Read) };
                self.lending(peer, post)?;
                Ok(true)
            }
            None => {
                // SAFETY: the bytes are writable during the call, which waits for them.
                unsafe { self.lane_get(endpoint, remote, destination)? };
                Ok(false)
            }
        }
    }
}
