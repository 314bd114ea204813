//! The slow branch: operations towards PEs that are not mapped, on their transports' lanes.
//!
//! One lane per transport, behind one short lock. Posting never blocks: a full lane is progressed
//! and tried again under the waiting rules of [`crate::wait`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{
    AtomicLevel, AtomicOp, Capabilities, Completion, Domain, Lane, Local, LocalKey, MemoryKind, Op,
    Pe, Region, RegionId, Remote, SignalOp, SignalSupport, Status, Width,
};

use crate::wait::{Needs, Reason};
use crate::{Error, Result, World};

/// The symmetric heap is the first region that every PE registers with every domain.
pub(crate) const HEAP: RegionId = RegionId(0);

/// One opened transport.
pub(crate) struct Opened {
    pub name: &'static str,
    pub domain: Arc<dyn Domain>,
    /// This PE's heap, registered.
    pub heap: Option<Box<dyn Region>>,
    lane: Mutex<LaneState>,
}

struct LaneState {
    lane: Option<Box<dyn Lane>>,
    /// Why there is no lane any more.
    failure: String,
    /// PEs with operations posted since their last quiet.
    dirty: BTreeSet<usize>,
}

/// All lanes of a world.
pub(crate) struct Wire {
    pub transports: Vec<Opened>,
    /// For each PE the transport its operations take when it is not mapped.
    pub by_pe: Vec<Option<usize>>,
    busy: AtomicBool,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.transports.iter().map(|t| t.name))
            .finish()
    }
}

impl Opened {
    pub(crate) fn new(name: &'static str, domain: Arc<dyn Domain>) -> Self {
        let state = LaneState {
            lane: None,
            failure: "not opened".into(),
            dirty: BTreeSet::new(),
        };
        Opened {
            name,
            domain,
            heap: None,
            lane: Mutex::new(state),
        }
    }

    /// Opens the lane that operations will take.
    pub(crate) fn open_lane(&self) -> Result<()> {
        lock(&self.lane).lane = Some(self.domain.lane()?);
        Ok(())
    }

    /// This side's endpoint towards `pe`, for its lane.
    pub(crate) fn endpoint(&self, pe: usize) -> Result<Vec<u8>> {
        self.with_lane("init", |lane| Ok(lane.endpoint(Pe(pe as u32))?))
    }

    /// Connects the lane with `pe`'s.
    pub(crate) fn connect(&self, pe: usize, endpoint: &[u8]) -> Result<()> {
        self.with_lane("init", |lane| Ok(lane.connect(Pe(pe as u32), endpoint)?))
    }

    fn with_lane<R>(
        &self,
        call: &'static str,
        f: impl FnOnce(&mut dyn Lane) -> Result<R>,
    ) -> Result<R> {
        let mut state = lock(&self.lane);
        match &mut state.lane {
            Some(lane) => f(lane.as_mut()),
            None => Err(Error::LaneFailed {
                call,
                transport: self.name,
                why: state.failure.clone(),
            }),
        }
    }

    /// Drops the lane, which waits until nothing outstanding touches local memory.
    fn fail(&self, why: &Error) {
        let mut state = lock(&self.lane);
        if state.lane.take().is_some() {
            state.failure = why.to_string();
        }
        state.dirty.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a posted batch must have come before the call returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Accepted by the lane.
    Posted,
    /// Completed, as the transport counts it.
    Completed,
}

impl Wire {
    pub(crate) fn new(transports: Vec<Opened>, by_pe: Vec<Option<usize>>) -> Self {
        Wire {
            transports,
            by_pe,
            busy: AtomicBool::new(false),
        }
    }

    /// Whether no lane has had an operation since the last quiet.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Relaxed)
    }

    fn route(&self, pe: usize) -> Option<&Opened> {
        self.transports.get((*self.by_pe.get(pe)?)?)
    }
}

impl World {
    /// The transport towards an unmapped PE, or why there is none.
    fn lane_to(&self, call: &'static str, pe: usize) -> Result<&Opened> {
        if pe >= self.n_pes() {
            return Err(Error::NoSuchPe {
                call,
                pe,
                size: self.n_pes(),
            });
        }
        if self.peers.is_lost(pe) {
            return Err(Error::PeerLost { call, pe });
        }
        self.inner.wire.route(pe).ok_or_else(|| Error::Unreachable {
            call,
            pe,
            why: self
                .inner
                .routes
                .get(pe)
                .map(|r| r.refusals())
                .unwrap_or_default(),
        })
    }

    /// Posts `ops` in order and waits as told.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`]; with [`Until::Completed`] the local memory need only be valid during this
    /// call: if it fails, the lane has been dropped or has given the operations up.
    unsafe fn post(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        ops: &[Op],
        until: Until,
    ) -> Result<()> {
        let to = Pe(pe as u32);
        let mut rest = ops;
        let mut target = 0;
        let tell = || (format!("PE {pe}"), format!("room on the {} lane", via.name));
        let full = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        let posted = self.wait(&full, None, || {
            let mut state = lock(&via.lane);
            let Some(lane) = &mut state.lane else {
                return Some(Err(Error::LaneFailed {
                    call,
                    transport: via.name,
                    why: state.failure.clone(),
                }));
            };
            // SAFETY: the caller's promise.
            let posted = unsafe { lane.post(to, rest) };
            rest = rest.get(posted.accepted..).unwrap_or_default();
            target = lane.counters(to).posted;
            state.dirty.insert(pe);
            // Under the lock, after the insertion: `wire_quiet` relies on that order.
            self.inner.wire.busy.store(true, Ordering::Release);
            match posted.status {
                Status::All => Some(Ok(())),
                Status::Full => None,
                Status::Refused(oxshmem_transport::Error::PeerLost { .. }) => {
                    Some(Err(Error::PeerLost { call, pe }))
                }
                Status::Refused(error) => Some(Err(error.into())),
            }
        });
        let result = posted.and_then(|inner| inner).and_then(|()| match until {
            Until::Posted => Ok(()),
            Until::Completed => self.await_completions(call, via, pe, target),
        });
        self.settle(via, result)
    }

    /// After a failure other than the peer's loss (where the domain has given the operations up),
    /// operations may be outstanding on memory that is about to be reused: drop the lane, which
    /// waits for them.
    fn settle(&self, via: &Opened, result: Result<()>) -> Result<()> {
        if let Err(error) = &result
            && matches!(error, Error::Timeout { .. })
        {
            via.fail(error);
        }
        result
    }

    fn await_completions(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        target: u64,
    ) -> Result<()> {
        let tell = || {
            (
                format!("PE {pe}"),
                format!("{target} completions on the {} lane", via.name),
            )
        };
        let reason = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        self.wait(&reason, None, || {
            let state = lock(&via.lane);
            match &state.lane {
                Some(lane) if lane.counters(Pe(pe as u32)).completed >= target => Some(Ok(())),
                Some(_) => None,
                None => Some(Err(Error::LaneFailed {
                    call,
                    transport: via.name,
                    why: state.failure.clone(),
                })),
            }
        })?
    }

    /// Drives every lane a step.
    pub(crate) fn progress(&self) -> Result<()> {
        if self.inner.wire.is_idle() {
            return Ok(());
        }
        for opened in &self.inner.wire.transports {
            if let Some(lane) = &mut lock(&opened.lane).lane {
                match lane.progress() {
                    // The wait that drives this progress notices the loss if it needs the peer.
                    Ok(()) | Err(oxshmem_transport::Error::PeerLost { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

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
            unsafe { self.post(call, via, pe, &[Op::Put { from: local, to }], until)? };
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
                    &[Op::Get { into: local, from }],
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
        let native = matches!(caps.put_signal, SignalSupport::Native(_))
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
        unsafe { self.post(CALL, via, pe, &[op], until) }
    }

    /// An atomic; gives the old value. What the transport lacks is made of compare-swap, if that is
    /// of the same level (M29).
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(crate) fn wire_atomic(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        width: Width,
        op: AtomicOp,
        operand: u64,
        compare: u64,
    ) -> Result<u64> {
        let via = self.lane_to(call, pe)?;
        let caps = via.domain.capabilities();
        if self.native_atomic(caps, op, width) {
            return self.post_atomic(call, via, pe, offset, width, op, operand, compare);
        }
        if caps.atomics.level(AtomicOp::CompareSwap, width) == AtomicLevel::None {
            return Err(Error::Unsupported {
                call,
                transport: via.name,
                pe,
                what: format!("{width}-bit atomic {op}, nor compare_swap to make it of"),
            });
        }
        let mut seen = 0;
        loop {
            let next: u64 = match op {
                AtomicOp::Fetch => seen,
                AtomicOp::Set | AtomicOp::Swap => operand,
                AtomicOp::Add => seen.wrapping_add(operand),
                AtomicOp::And => seen & operand,
                AtomicOp::Or => seen | operand,
                AtomicOp::Xor => seen ^ operand,
                AtomicOp::CompareSwap => operand,
            };
            let cas = AtomicOp::CompareSwap;
            let old = self.post_atomic(call, via, pe, offset, width, cas, next, seen)?;
            if old == seen {
                return Ok(old);
            }
            seen = old;
        }
    }

    /// Whether to use the transport's own operation: all of one width must be of one level (M29).
    fn native_atomic(&self, caps: &Capabilities, op: AtomicOp, width: Width) -> bool {
        let level = caps.atomics.level(op, width);
        let cas = caps.atomics.level(AtomicOp::CompareSwap, width);
        level != AtomicLevel::None && (cas == AtomicLevel::None || cas == level)
    }

    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    fn post_atomic(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        offset: u64,
        width: Width,
        op: AtomicOp,
        operand: u64,
        compare: u64,
    ) -> Result<u64> {
        let mut old = 0_u64;
        let addr = (&raw mut old).cast::<u8>();
        let op = Op::Atomic {
            op,
            width,
            on: Remote {
                region: HEAP,
                offset,
            },
            operand,
            compare,
            fetch: Some(Local {
                addr,
                len: width.bytes(),
                key: None,
            }),
        };
        // SAFETY: `old` outlives the wait for completion.
        unsafe { self.post(call, via, pe, &[op], Until::Completed)? };
        fence(Ordering::Acquire);
        Ok(match width {
            Width::W64 => old,
            // The low half was written (little-endian) or the first four bytes (else).
            Width::W32 => {
                let [a, b, c, d, ..] = old.to_ne_bytes();
                u32::from_ne_bytes([a, b, c, d]).into()
            }
        })
    }

    /// Waits until all that was posted to `pe` is placed (M27).
    fn flush(&self, call: &'static str, via: &Opened, pe: usize) -> Result<()> {
        if !lock(&via.lane).dirty.contains(&pe) {
            return Ok(());
        }
        if self.guarantees(via).completion == Completion::Placed {
            let target = via.with_lane(call, |lane| Ok(lane.counters(Pe(pe as u32)).posted))?;
            let result = self.await_completions(call, via, pe, target);
            self.settle(via, result)?;
        } else {
            // SAFETY: a flush has no local memory.
            unsafe { self.post(call, via, pe, &[Op::Flush], Until::Completed)? };
        }
        lock(&via.lane).dirty.remove(&pe);
        Ok(())
    }

    /// Fence for lanes: free where the lane keeps all orders itself, else a flush of each dirty PE.
    pub(crate) fn wire_fence(&self, call: &'static str) -> Result<()> {
        for via in &self.inner.wire.transports {
            let g = self.guarantees(via);
            if g.put_put && g.put_atomic && g.atomic_put && g.atomic_atomic {
                continue;
            }
            for pe in self.dirty_pes(via, None) {
                self.flush(call, via, pe)?;
            }
        }
        self.end_under_way()
    }

    /// Quiet for lanes, towards `only` or all.
    pub(crate) fn wire_quiet(&self, call: &'static str, only: Option<&[usize]>) -> Result<()> {
        for via in &self.inner.wire.transports {
            for pe in self.dirty_pes(via, only) {
                self.flush(call, via, pe)?;
            }
        }
        self.end_under_way()?;
        // Cleared before the look: a thread that posts after the look sets it again.
        self.inner.wire.busy.store(false, Ordering::Relaxed);
        if self
            .inner
            .wire
            .transports
            .iter()
            .any(|via| !lock(&via.lane).dirty.is_empty())
        {
            self.inner.wire.busy.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn dirty_pes(&self, via: &Opened, only: Option<&[usize]>) -> Vec<usize> {
        let state = lock(&via.lane);
        let wanted = |pe: &usize| only.is_none_or(|list| list.contains(pe));
        state.dirty.iter().copied().filter(wanted).collect()
    }

    fn guarantees(&self, via: &Opened) -> oxshmem_transport::Guarantees {
        // A domain that carries host memory states its guarantees for it; one that does not say
        // gets none.
        via.domain
            .guarantees(MemoryKind::Host)
            .unwrap_or(oxshmem_transport::Guarantees {
                put_put: false,
                put_atomic: false,
                atomic_put: false,
                atomic_atomic: false,
                put_get: false,
                get_get: false,
                across_lanes: false,
                completion: Completion::SourceReusable,
                gpu_flush: oxshmem_transport::GpuFlush::None,
            })
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
        unsafe { self.post(call, via, pe, &[op], Until::Posted) }
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
        unsafe { self.post(call, via, pe, &[op], Until::Posted) }
    }

    /// A fetching atomic whose result the next quiet completes. `operands` are operand and compare.
    ///
    /// # Safety
    ///
    /// `result` stays writable for the width's bytes and untouched until then, or until the lane is
    /// dropped.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(crate) unsafe fn wire_atomic_nbi(
        &self,
        call: &'static str,
        pe: usize,
        offset: u64,
        width: Width,
        op: AtomicOp,
        (operand, compare): (u64, u64),
        result: *mut u8,
    ) -> Result<()> {
        let via = self.lane_to(call, pe)?;
        if !self.native_atomic(via.domain.capabilities(), op, width) {
            let old = self.wire_atomic(call, pe, offset, width, op, operand, compare)?;
            match width {
                // SAFETY: the caller promises 4 writable bytes; they need not be aligned here.
                Width::W32 => unsafe { result.cast::<u32>().write_unaligned(old as u32) },
                // SAFETY: the caller promises 8 writable bytes.
                Width::W64 => unsafe { result.cast::<u64>().write_unaligned(old) },
            }
            return Ok(());
        }
        let fetch = Some(Local {
            addr: result,
            len: width.bytes(),
            key: None,
        });
        let on = Remote {
            region: HEAP,
            offset,
        };
        let op = Op::Atomic {
            op,
            width,
            on,
            operand,
            compare,
            fetch,
        };
        // SAFETY: the caller's promise.
        unsafe { self.post(call, via, pe, &[op], Until::Posted) }
    }

    /// Drops every lane, so that nothing outstanding touches local memory any more.
    pub(crate) fn wire_abandon(&self, why: &Error) {
        for via in &self.inner.wire.transports {
            if !lock(&via.lane).dirty.is_empty() {
                via.fail(why);
            }
        }
    }

    /// Forgets what was outstanding towards a PE whose loss was acknowledged.
    pub(crate) fn wire_forget(&self, pe: usize) {
        for via in &self.inner.wire.transports {
            lock(&via.lane).dirty.remove(&pe);
        }
    }
}
