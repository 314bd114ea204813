//! The loopback lane: it performs each operation as it is posted.
//!
//! Order comes from three fences. One between each two operations (acquire and release: nothing on
//! x86 but a barrier to the compiler) keeps loads and stores in the order posted, all but a store
//! before a later load. A full one before each atomic has earlier puts seen before it. A full one
//! after each batch has every put in memory when `post` returns, which is when it counts as
//! completed; so a flush has nothing left to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use oxshmem_transport::{
    AtomicOp, Counters, Error, Lane, Local, Op, Pe, Posted, Remote, RemoteRegion, Result, SignalOp,
    Width,
};

use crate::name::NAME;
use crate::peers::{Imported, Peers, PeersState};

/// One PE's lane towards all peers. It has nothing in flight.
#[derive(Debug)]
pub(crate) struct LoopbackLane {
    peers: Arc<Peers>,
    performed: Vec<u64>,
}

impl LoopbackLane {
    pub(crate) fn new(peers: Arc<Peers>) -> LoopbackLane {
        let performed = vec![0; peers.size as usize];
        LoopbackLane { peers, performed }
    }

    fn check_peer(&self, state: &PeersState, pe: Pe) -> Result<()> {
        if state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if pe.0 >= self.peers.size {
            let why = format!("the job has {} PEs", self.peers.size);
            return Err(Error::Unreachable {
                transport: NAME,
                pe,
                why,
            });
        }
        if state.lost.contains(&pe) {
            return Err(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        Ok(())
    }
}

impl Lane for LoopbackLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.check_peer(&self.peers.read(), pe)?;
        Ok(Vec::new())
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        self.check_peer(&self.peers.read(), pe)?;
        if !endpoint.is_empty() {
            return Err(Error::BadPeerData {
                transport: NAME,
                what: "an endpoint",
                pe,
                why: format!("{} bytes, where loopback has none", endpoint.len()),
            });
        }
        Ok(())
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let state = self.peers.read();
        if let Err(error) = self.check_peer(&state, pe) {
            return Posted::refused(0, error);
        }
        let mut refused = None;
        let mut accepted = 0;
        for op in ops {
            fence(Ordering::AcqRel);
            // SAFETY: the caller promises that the operation's local memory is valid.
            if let Err(error) = unsafe { perform(&state, pe, op) } {
                refused = Some(error);
                break;
            }
            accepted += 1;
        }
        fence(Ordering::SeqCst);
        drop(state);
        if let Some(performed) = self.performed.get_mut(pe.index()) {
            *performed += accepted as u64;
        }
        match refused {
            None => Posted::all(accepted),
            Some(error) => Posted::refused(accepted, error),
        }
    }

    fn progress(&mut self) -> Result<()> {
        if self.peers.read().closed {
            return Err(Error::Closed { transport: NAME });
        }
        Ok(())
    }

    fn counters(&self, pe: Pe) -> Counters {
        let performed = self.performed.get(pe.index()).copied().unwrap_or(0);
        Counters {
            posted: performed,
            completed: performed,
        }
    }
}

/// A range of a peer's region. It is checked, and mapped as long as the borrowed import lives.
struct RemoteRange<'a> {
    region: &'a Imported,
    offset: usize,
}

impl<'a> RemoteRange<'a> {
    /// The range at an address, of a size and alignment.
    fn of(
        state: &'a PeersState,
        pe: Pe,
        at: Remote,
        what: &'static str,
        size: (u64, u64),
    ) -> Result<RemoteRange<'a>> {
        let region = state
            .imported
            .get(&(pe, at.region))
            .ok_or(Error::UnknownRegion {
                transport: NAME,
                region: at.region.0,
                pe,
            })?;
        at.check(NAME, what, size, region.len() as u64)?;
        // Below the region's length, which is a usize.
        Ok(RemoteRange {
            region,
            offset: at.offset as usize,
        })
    }

    /// As `of`, for a word.
    fn of_word(
        state: &'a PeersState,
        pe: Pe,
        at: Remote,
        width: Width,
        what: &'static str,
    ) -> Result<RemoteRange<'a>> {
        let bytes = width.bytes() as u64;
        RemoteRange::of(state, pe, at, what, (bytes, bytes))
    }

    fn ptr(&self) -> *mut u8 {
        // SAFETY: the offset is inside the region (or just behind it, with no bytes), which is
        // mapped while `self.region` lives.
        unsafe { self.region.base().as_ptr().add(self.offset) }
    }

    /// The word here. Only for ranges made by `of_word` with its width.
    fn word64(&self) -> &'a AtomicU64 {
        // SAFETY: `of_word` checked range and alignment (the base is page-aligned); the region is
        // mapped for 'a; all of oxshmem accesses symmetric memory atomically or by the copy
        // primitive.
        unsafe { AtomicU64::from_ptr(self.ptr().cast()) }
    }

    /// As `word64`.
    fn word32(&self) -> &'a AtomicU32 {
        // SAFETY: as for `word64`.
        unsafe { AtomicU32::from_ptr(self.ptr().cast()) }
    }
}

fn check_len(local: &Local) -> Result<u64> {
    match isize::try_from(local.len) {
        Ok(_) => Ok(local.len as u64),
        Err(_) => Err(Error::Unsupported {
            transport: NAME,
            what: format!("a transfer of {} bytes, more than any memory,", local.len),
        }),
    }
}

/// Performs one operation, or, if it is refused, nothing of it.
///
/// # Safety
///
/// The operation's local memory is valid memory, as [`Lane::post`] says.
unsafe fn perform(state: &PeersState, pe: Pe, op: &Op) -> Result<()> {
    match *op {
        Op::Put { from, to } => {
            let to = RemoteRange::of(state, pe, to, "a put", (check_len(&from)?, 1))?;
            // SAFETY: the source is valid by the caller's promise, the destination was checked.
            unsafe { oxshmem_heap::copy::copy(to.ptr(), from.addr, from.len) };
        }
        Op::Get { into, from } => {
            let from = RemoteRange::of(state, pe, from, "a get", (check_len(&into)?, 1))?;
            // SAFETY: the destination is valid by the caller's promise, the source was checked.
            unsafe { oxshmem_heap::copy::copy(into.addr, from.ptr(), into.len) };
        }
        Op::PutSignal {
            from,
            to,
            signal,
            op,
            value,
        } => {
            let to = RemoteRange::of(state, pe, to, "a put", (check_len(&from)?, 1))?;
            let signal = RemoteRange::of_word(state, pe, signal, Width::W64, "a signal")?;
            // SAFETY: as for put.
            unsafe { oxshmem_heap::copy::copy(to.ptr(), from.addr, from.len) };
            // Before the signal's update: earlier puts, as before any atomic, and this data.
            fence(Ordering::SeqCst);
            match op {
                SignalOp::Set => signal.word64().store(value, Ordering::SeqCst),
                SignalOp::Add => _ = signal.word64().fetch_add(value, Ordering::SeqCst),
            }
        }
        Op::Atomic {
            op,
            width,
            on,
            operand,
            compare,
            fetch,
        } => {
            let on = RemoteRange::of_word(state, pe, on, width, "an atomic")?;
            if let Some(into) = &fetch {
                into.check_fetch(NAME, width)?;
            }
            fence(Ordering::SeqCst);
            let old = match width {
                Width::W32 => atomic32(on.word32(), op, operand as u32, compare as u32).into(),
                Width::W64 => atomic64(on.word64(), op, operand, compare),
            };
            if let Some(into) = fetch {
                // SAFETY: `width` bytes, aligned to them (checked), valid by the caller's promise.
                unsafe { deliver(into.addr, width, old) };
            }
        }
        Op::Flush => {}
        ref other => {
            let what = format!("{other:?}");
            return Err(Error::Unsupported {
                transport: NAME,
                what,
            });
        }
    }
    Ok(())
}

/// # Safety
///
/// `into` is valid for `width` bytes and aligned to them.
unsafe fn deliver(into: *mut u8, width: Width, old: u64) {
    match width {
        Width::W32 => {
            // SAFETY: valid and aligned, as this function's caller promises.
            let word = unsafe { AtomicU32::from_ptr(into.cast()) };
            word.store(old as u32, Ordering::Relaxed);
        }
        Width::W64 => {
            // SAFETY: valid and aligned, as this function's caller promises.
            let word = unsafe { AtomicU64::from_ptr(into.cast()) };
            word.store(old, Ordering::Relaxed);
        }
    }
}

/// An atomic on a word of one width; gives the old value.
macro_rules! atomic {
    ($name:ident, $word:ty, $value:ty) => {
        fn $name(word: &$word, op: AtomicOp, operand: $value, compare: $value) -> $value {
            let order = Ordering::SeqCst;
            match op {
                AtomicOp::Fetch => word.load(order),
                AtomicOp::Set | AtomicOp::Swap => word.swap(operand, order),
                AtomicOp::Add => word.fetch_add(operand, order),
                AtomicOp::And => word.fetch_and(operand, order),
                AtomicOp::Or => word.fetch_or(operand, order),
                AtomicOp::Xor => word.fetch_xor(operand, order),
                AtomicOp::CompareSwap => word
                    .compare_exchange(compare, operand, order, order)
                    .unwrap_or_else(|found| found),
            }
        }
    };
}

atomic!(atomic32, AtomicU32, u32);
atomic!(atomic64, AtomicU64, u64);
