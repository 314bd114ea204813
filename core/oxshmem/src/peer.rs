//! The table that the fast path reads: for each PE, where its heap is mapped here, if it is.
//!
//! Each context has its own: it notes its own stores there, and may number the PEs in its own way.

mod liveness;

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use bytemuck::Pod;

pub(crate) use self::liveness::Liveness;
use crate::Sym;
use crate::mapped::Span;

/// One PE as the fast path sees it: that of Rust here, and what bindings compile into programs of other languages, which
/// read the first word, whole.
#[derive(Debug)]
#[repr(C)]
pub struct Peer {
    /// Start of its heap here while it is mapped and the PE lives, else null. So one comparison
    /// answers "mapped?" and "alive?" together; checked mode maps nobody.
    base: AtomicPtr<u8>,
    /// The same, but only from the first store after a quiet until the next: stores through it need
    /// not be noted any more.
    store_base: AtomicPtr<u8>,
}

/// Where one PE's memory is mapped for atomics, null if it is not or the PE is lost. Bindings compile reads of it, one word,
/// into programs of other languages; nothing but the library writes it.
#[derive(Debug)]
#[repr(transparent)]
pub struct PeerWords(AtomicPtr<u8>);

/// The PEs as one context has them, in its own numbering, and which of them it has stored to.
pub(crate) struct PeerTable {
    /// The world's; a handle with another is foreign.
    tag: u32,
    /// A few more than there are, without memory: what follows in the allocator's memory is not on the
    /// cache lines to which gates are written.
    peers: Arc<[Peer]>,
    /// For each PE its base, if atomics on its memory are this CPU's instructions, else null.
    words: Arc<[PeerWords]>,
    count: usize,
    losses: Arc<Liveness>,
    dirty: Box<DirtyPeers>,
    /// The tables have nobody, so that all operations take the slow branch, which counts them; `losses` has them all.
    is_counted: bool,
}

/// The PEs whose gates are open. Cells, so that one thread at a time uses a context: with several,
/// one's quiet would close a gate on another's store. Apart from what other threads write.
#[repr(align(128))]
struct DirtyPeers {
    /// The first; [`NOBODY`] if none is. Apart from the rest, because few programs store to a second
    /// PE between two quiets, and each store here is one more for the quiet's fence to wait for.
    first: Cell<u32>,
    /// The others: the first `count` of these.
    rest: Box<[Cell<u32>]>,
    count: Cell<usize>,
}

const NO_PEER: u32 = u32::MAX;
/// A PE whose gate is closed.
const ANY_PEER: u32 = NO_PEER - 1;
/// So many more entries a table has than PEs: two cache lines.
const PADDING: usize = 8;

/// A context's bases and gates, its bases for atomics, and the number of its PEs.
type Tables = (Arc<[Peer]>, Arc<[PeerWords]>, usize);

/// A table of these bases, for copies and for atomics.
fn table(bases: Vec<(*mut u8, *mut u8)>) -> Tables {
    let count = bases.len();
    let (bases, words): (Vec<_>, Vec<_>) = bases.into_iter().unzip();
    let bases = bases.into_iter().chain([null_mut(); PADDING]);
    let peers = bases.map(|base| Peer {
        base: AtomicPtr::new(base),
        store_base: AtomicPtr::new(null_mut()),
    });
    let words = words.into_iter().map(AtomicPtr::new).map(PeerWords);
    (peers.collect(), words.collect(), count)
}

/// A table of so many PEs of which none is mapped.
fn unmapped_tables(count: usize) -> Tables {
    table(vec![(null_mut(), null_mut()); count])
}

impl fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers")
            .field("count", &self.count)
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

impl PeerTable {
    /// The default context's, with what all contexts share; `is_counted` keeps all off the fast path.
    ///
    /// # Safety
    ///
    /// Each mapping is readable and writable for the heap's whole limit (the bound of every
    /// `Sym` with this tag) while its `keep` lives, and is accessed by others atomically or at
    /// machine level only.
    pub(crate) unsafe fn new(tag: u32, heaps: Vec<MappedHeap>, is_counted: bool) -> Self {
        let mut keep = Vec::new();
        let mut hold = |mapped: Option<Mapped>| match mapped {
            Some(Mapped { base, keep: kept }) => {
                keep.push(kept);
                base.as_ptr()
            }
            None => null_mut(),
        };
        let bases = heaps
            .into_iter()
            .map(|heap| (hold(heap.copies), hold(heap.words)))
            .collect();
        let (peers, words, count) = table(bases);
        let losses = Liveness::new((Arc::clone(&peers), Arc::clone(&words)), count, keep);
        let own = match is_counted {
            true => unmapped_tables(count),
            false => (peers, words, count),
        };
        Self::with(tag, own, Arc::new(losses), is_counted)
    }

    /// Another context's, of all PEs or of these `members`, which it numbers from 0.
    pub(crate) fn of_context(&self, members: Option<&Arc<[u32]>>) -> Self {
        let made = match self.is_counted {
            true => unmapped_tables(members.map_or(self.losses.len(), |members| members.len())),
            false => self.losses.table_of(members),
        };
        Self::with(self.tag, made, Arc::clone(&self.losses), self.is_counted)
    }

    fn with(
        tag: u32,
        (peers, words, count): Tables,
        losses: Arc<Liveness>,
        is_counted: bool,
    ) -> Self {
        let open = DirtyPeers {
            first: Cell::new(NO_PEER),
            rest: (0..count).map(|_| Cell::new(NO_PEER)).collect(),
            count: Cell::new(0),
        };
        PeerTable {
            tag,
            peers,
            words,
            count,
            losses,
            dirty: Box::new(open),
            is_counted,
        }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn tag(&self) -> u32 {
        self.tag
    }

    /// Those that there are.
    pub(crate) fn table(&self) -> &[Peer] {
        self.peers.get(..self.count).unwrap_or_default()
    }

    /// For atomics on those.
    pub(crate) fn words(&self) -> &[PeerWords] {
        &self.words
    }

    /// Whether atomics on every PE's memory are this CPU's instructions.
    pub(crate) fn all_words_are_mapped(&self) -> bool {
        let mut words = self.words.iter();
        words.all(|word| !word.0.load(Ordering::Relaxed).is_null())
    }

    pub(crate) fn losses(&self) -> &Arc<Liveness> {
        &self.losses
    }

    /// [`span_of`](Self::span_of), where the fast path's tables have nobody for the sake of counting.
    #[cold]
    pub(crate) fn span_counted<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        self.is_counted.then(|| self.span_of(sym, pe)).flatten()
    }

    /// [`span`](Self::span), by the PE's number in the world.
    pub(crate) fn span_of<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag {
            return None;
        }
        self.at(sym, self.losses.base(pe)?)
    }

    /// [`word`](Self::word), by the PE's number in the world.
    pub(crate) fn word_of<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag || (size_of::<T>() == size_of::<u64>() && sym.is_nic()) {
            return None;
        }
        self.at(sym, self.losses.word(pe)?)
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
    pub(crate) fn clean_store_span<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag {
            return None;
        }
        self.at(sym, &self.peers.get(pe)?.store_base)
    }

    /// The caller has compared the tags.
    #[inline(always)]
    fn at<T: Pod>(&self, sym: Sym<T>, base: &AtomicPtr<u8>) -> Option<Span<'_>> {
        let base = NonNull::new(base.load(Ordering::Relaxed))?;
        // SAFETY: the tags are equal, so by Sym's invariant the range lies within the heap's limit,
        // which `new`'s caller promised to be mapped here for as long as `self` (whose losses keep it).
        Some(unsafe { Span::new(base.add(sym.offset() as usize), sym.bytes()) })
    }

    /// [`span`](Self::span) for an atomic, if atomics on that PE's memory are this CPU's (M29).
    #[inline(always)]
    pub(crate) fn word<T: Pod>(&self, sym: Sym<T>, pe: usize) -> Option<Span<'_>> {
        if sym.tag() != self.tag || (size_of::<T>() == size_of::<u64>() && sym.is_nic()) {
            return None;
        }
        self.at(sym, &self.words.get(pe)?.0)
    }

    /// Notes a mapped store to `pe`, for the next quiet.
    #[inline(always)]
    pub(crate) fn note_store(&self, pe: usize) {
        if let Some(peer) = self.peers.get(pe)
            && peer.store_base.load(Ordering::Relaxed).is_null()
        {
            self.mark_dirty(pe);
        }
    }

    /// Notes a store by the slow branch, whose gate stays closed.
    pub(crate) fn mark_dirty_any(&self) {
        let first = &self.dirty.first;
        if first.get() == NO_PEER {
            first.set(ANY_PEER);
        }
    }

    /// Notes a mapped store to `pe`, whose gate is closed.
    ///
    /// If the PE is lost just now, its gate may stay open until the next quiet, and stores to its
    /// memory, which stays mapped, go unnoticed until then.
    #[cold]
    pub(crate) fn mark_dirty(&self, pe: usize) {
        let Some(peer) = self.peers.get(pe) else {
            return;
        };
        let base = peer.base.load(Ordering::Relaxed);
        let open = &self.dirty;
        if open.first.get() == NO_PEER {
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
        peer.store_base.store(base, Ordering::Relaxed);
        if peer.base.load(Ordering::Relaxed).is_null() {
            peer.store_base.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Whether no store was noted since the last [`take_notes`](Self::take_notes).
    #[inline(always)]
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.first.get() == NO_PEER
    }

    /// Closes all gates. A full fence is to follow.
    #[inline(always)]
    pub(crate) fn clear_dirty(&self) {
        let open = &self.dirty;
        self.mark_clean(open.first.replace(NO_PEER));
        if open.count.get() > 0 {
            for slot in open.rest.iter().take(open.count.replace(0)) {
                self.mark_clean(slot.get());
            }
        }
    }

    #[inline(always)]
    fn mark_clean(&self, pe: u32) {
        if let Some(peer) = self.peers.get(pe as usize) {
            peer.store_base.store(null_mut(), Ordering::Relaxed);
        }
    }
}

impl Drop for PeerTable {
    fn drop(&mut self) {
        self.losses.forget(&self.peers);
    }
}
