//! The table that the fast path reads: for each PE, where its heap is mapped here, if it is.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use bytemuck::Pod;

use crate::Sym;
use crate::mapped::Span;

/// One PE as the fast path sees it.
struct Peer {
    /// Start of its heap here while it is mapped and the PE lives, else null. So one comparison
    /// answers "mapped?" and "alive?" together; checked mode maps nobody.
    base: AtomicPtr<u8>,
    /// The same, but only from the first store after a quiet until the next: stores through it need
    /// not be noted any more.
    gate: AtomicPtr<u8>,
}

/// All PEs, and which of them this PE has stored to.
pub(crate) struct Peers {
    /// The world's; a handle with another is foreign.
    tag: u32,
    peers: Arc<[Peer]>,
    /// For each PE its base, if atomics on its memory are this CPU's instructions, else null.
    words: Arc<[AtomicPtr<u8>]>,
    losses: Arc<Losses>,
    /// What keeps each `base` mapped.
    _keep: Arc<[Arc<dyn Any + Send + Sync>]>,
    open: Box<Open>,
}

/// The PEs whose gates are open. Cells, so that one thread at a time uses a world: with several,
/// one's quiet would close a gate on another's store.
struct Open {
    /// The first; [`NOBODY`] if none is. Apart from the rest, because few programs store to a second
    /// PE between two quiets, and each store here is one more for the quiet's fence to wait for.
    first: Cell<u32>,
    /// The others: the first `count` of these.
    rest: Box<[Cell<u32>]>,
    count: Cell<usize>,
}

const NOBODY: u32 = u32::MAX;

struct Losses {
    state: Box<[AtomicU32]>,
    any: AtomicBool,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers")
            .field("count", &self.peers.len())
            .finish_non_exhaustive()
    }
}

/// A mapping of one peer's heap, with what keeps it so.
#[derive(Clone)]
pub(crate) struct Mapped {
    pub base: NonNull<u8>,
    pub keep: Arc<dyn Any + Send + Sync>,
}

/// Where one PE's GPU heap begins, as this PE's GPU has it.
#[derive(Clone)]
pub(crate) struct OnGpu {
    pub address: u64,
    /// What keeps it mapped.
    pub _keep: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for OnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnGpu({:#x})", self.address)
    }
}

/// Where one peer's heap is mapped. Two transports may have mapped it.
#[derive(Clone, Default)]
pub(crate) struct MappedHeap {
    /// Where puts and gets are this CPU's stores and loads, if they are.
    pub copies: Option<Mapped>,
    /// Where atomics are this CPU's instructions (M29), if they are.
    pub words: Option<Mapped>,
}

impl MappedHeap {
    pub(crate) fn is_mapped(&self) -> bool {
        self.copies.is_some() || self.words.is_some()
    }
}

// What is known of a PE's end, as bits; none of them while it lives.
/// The bootstrap told that it died: every PE hears so.
const DIED: u32 = 1;
/// It left in order: it was through with finalize, so every PE had arrived there.
const LEFT: u32 = 2;
/// This PE alone found that it cannot be reached, or was told so by that PE.
const CUT: u32 = 4;
/// The program knows.
const ACKNOWLEDGED: u32 = 8;
/// Any of these is a loss.
const LOST: u32 = DIED | LEFT | CUT;

/// How a PE was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The bootstrap told that it died.
    Died,
    /// The bootstrap told that it left in order.
    Left,
    /// It does not answer this PE, or gave up; others may not know.
    Cut,
}

impl Peers {
    /// # Safety
    ///
    /// Each mapping is readable and writable for the heap's whole limit (the bound of every
    /// `Sym` with this tag) while its `keep` lives, and is accessed by others atomically or at
    /// machine level only.
    pub(crate) unsafe fn new(tag: u32, heaps: Vec<MappedHeap>) -> Self {
        let state = heaps.iter().map(|_| AtomicU32::new(0)).collect();
        let open = Open {
            first: Cell::new(NOBODY),
            rest: heaps.iter().map(|_| Cell::new(NOBODY)).collect(),
            count: Cell::new(0),
        };
        let mut keep = Vec::new();
        let mut hold = |mapped: Option<Mapped>| match mapped {
            Some(Mapped { base, keep: kept }) => {
                keep.push(kept);
                base.as_ptr()
            }
            None => null_mut(),
        };
        let mut words = Vec::new();
        let peers = heaps
            .into_iter()
            .map(|heap| {
                let (base, word) = (hold(heap.copies), hold(heap.words));
                words.push(AtomicPtr::new(word));
                Peer {
                    base: AtomicPtr::new(base),
                    gate: AtomicPtr::new(null_mut()),
                }
            })
            .collect();
        let losses = Arc::new(Losses {
            state,
            any: AtomicBool::new(false),
        });
        Peers {
            tag,
            peers,
            words: words.into(),
            losses,
            _keep: keep.into(),
            open: Box::new(open),
        }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// The object's bytes at `pe`, if `pe` exists, is mapped and alive, and the object is this
    /// world's.
    #[inline(always)]
    pub(crate) fn span<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag {
            return None;
        }
        self.at(sym, &self.peers.get(pe)?.base)
    }

    /// [`span`](Self::span) for a store that needs no [`note`](Self::note), if the PE's gate is
    /// open.
    #[inline(always)]
    pub(crate) fn gated<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag {
            return None;
        }
        self.at(sym, &self.peers.get(pe)?.gate)
    }

    /// The caller has compared the tags.
    #[inline(always)]
    fn at<T: Pod>(&self, sym: Sym<T>, base: &AtomicPtr<u8>) -> Option<Span<'_>> {
        let base = NonNull::new(base.load(Ordering::Relaxed))?;
        // SAFETY: the tags are equal, so by Sym's invariant the range lies within the heap's limit,
        // which `new`'s caller promised to be mapped here for as long as `self` (which keeps it).
        Some(unsafe { Span::new(base.add(sym.offset() as usize), sym.bytes()) })
    }

    /// [`span`](Self::span) for an atomic, if atomics on that PE's memory are this CPU's (M29).
    #[inline(always)]
    pub(crate) fn word<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag || (size_of::<T>() == size_of::<u64>() && sym.is_nic()) {
            return None;
        }
        self.at(sym, self.words.get(pe)?)
    }

    /// Notes a mapped store to `pe`, for the next quiet.
    #[inline(always)]
    pub(crate) fn note(&self, pe: usize) {
        if let Some(peer) = self.peers.get(pe)
            && peer.gate.load(Ordering::Relaxed).is_null()
        {
            self.open_gate(pe);
        }
    }

    /// Notes a mapped store to `pe`, whose gate is closed.
    ///
    /// If the PE is lost just now, its gate may stay open until the next quiet, and stores to its
    /// memory, which stays mapped, go unnoticed until then.
    #[cold]
    pub(crate) fn open_gate(&self, pe: usize) {
        let Some(peer) = self.peers.get(pe) else {
            return;
        };
        let base = peer.base.load(Ordering::Relaxed);
        let open = &self.open;
        if open.first.get() == NOBODY {
            open.first.set(pe as u32);
        } else if base.is_null() {
            // Lost since the store. Some note is taken already, so the next quiet fences.
            return;
        } else if let Some(slot) = open.rest.get(open.count.get()) {
            slot.set(pe as u32);
            open.count.set(open.count.get() + 1);
        } else {
            // No room cannot be: a gate is recorded once. An unrecorded one must stay closed.
            return;
        }
        peer.gate.store(base, Ordering::Relaxed);
        if peer.base.load(Ordering::Relaxed).is_null() {
            peer.gate.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Whether no store was noted since the last [`take_notes`](Self::take_notes).
    #[inline(always)]
    pub(crate) fn is_clean(&self) -> bool {
        self.open.first.get() == NOBODY
    }

    /// Closes all gates. A full fence is to follow.
    #[inline(always)]
    pub(crate) fn take_notes(&self) {
        let open = &self.open;
        self.close_gate(open.first.replace(NOBODY));
        if open.count.get() > 0 {
            for slot in open.rest.iter().take(open.count.replace(0)) {
                self.close_gate(slot.get());
            }
        }
    }

    #[inline(always)]
    fn close_gate(&self, pe: u32) {
        if let Some(peer) = self.peers.get(pe as usize) {
            peer.gate.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// What another thread needs to record that a PE is lost.
    pub(crate) fn loser(&self) -> impl Fn(usize, Loss) + Send + Sync + Clone + use<> {
        let (peers, words) = (Arc::clone(&self.peers), Arc::clone(&self.words));
        let losses = Arc::clone(&self.losses);
        move |pe, loss| {
            if let Some(state) = losses.state.get(pe) {
                let bit = match loss {
                    Loss::Died => DIED,
                    Loss::Left => LEFT,
                    Loss::Cut => CUT,
                };
                // First the reason, then its effect: who finds no base finds why.
                state.fetch_or(bit, Ordering::Release);
                losses.any.store(true, Ordering::Release);
                cut(&peers, &words, pe);
            }
        }
    }

    fn state(&self, pe: usize) -> u32 {
        let state = self.losses.state.get(pe);
        state.map_or(0, |state| state.load(Ordering::Acquire))
    }

    pub(crate) fn is_lost(&self, pe: usize) -> bool {
        let lost = self.state(pe) & LOST != 0;
        if lost {
            // Who has once heard of it meets no mapping afterwards (the loser may not be that far).
            cut(&self.peers, &self.words, pe);
        }
        lost
    }

    /// Whether every PE hears of its end, not this one alone.
    pub(crate) fn is_told_lost(&self, pe: usize) -> bool {
        self.state(pe) & (DIED | LEFT) != 0
    }

    /// Whether the PE is gone without having finalized.
    pub(crate) fn has_died(&self, pe: usize) -> bool {
        let state = self.state(pe);
        state & LOST != 0 && state & LEFT == 0
    }

    /// A PE whose loss the program has not acknowledged.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if !self.losses.any.load(Ordering::Acquire) {
            return None;
        }
        let unknown = |pe: &usize| {
            let state = self.state(*pe);
            state & LOST != 0 && state & ACKNOWLEDGED == 0
        };
        (0..self.losses.state.len()).find(unknown)
    }

    /// Acknowledges every loss so far; gives all the lost.
    pub(crate) fn acknowledge(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for (pe, state) in self.losses.state.iter().enumerate() {
            if state.load(Ordering::Acquire) & LOST != 0 {
                state.fetch_or(ACKNOWLEDGED, Ordering::Release);
                all.push(pe);
            }
        }
        all
    }
}

/// Ends the mapping of a PE that was lost.
fn cut(peers: &[Peer], words: &[AtomicPtr<u8>], pe: usize) {
    if let (Some(peer), Some(word)) = (peers.get(pe), words.get(pe)) {
        peer.base.store(null_mut(), Ordering::Release);
        peer.gate.store(null_mut(), Ordering::Release);
        word.store(null_mut(), Ordering::Release);
    }
}
