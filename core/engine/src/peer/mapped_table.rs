//! The table that the fast path reads: for each PE the address at which its heap is mapped here, if it is.
//!
//! Each context has its own: it tracks its own stores there, and may number the PEs in its own way.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::memory::mapped::Span;
use crate::memory::target::Target;
use crate::peer::entry::{Peer, PeerWords, Tables, table, unmapped_tables};
use crate::peer::liveness::Liveness;

/// The PEs as one context has them, in its own numbering, and those of them that it has stored to.
pub struct PeerTable {
    /// The world's; a handle with another is foreign.
    tag: u32,
    /// A few more than there are, without memory: so no other allocation shares the cache lines to which `store_base`s
    /// are written.
    peers: Arc<[Peer]>,
    /// For each PE its base, if atomics on its memory are this CPU's instructions, else null.
    words: Arc<[PeerWords]>,
    count: usize,
    liveness: Arc<Liveness>,
    dirty: Box<DirtyPeers>,
    /// The tables have no PE, so that all operations take the slow branch, which counts them; `liveness` has them all.
    is_counted: bool,
}

/// The dirty PEs: stored to since the last quiet. Cells, so that one thread at a time uses a context: with several,
/// one's quiet would clear another's store. Aligned, so that other threads write to other cache lines.
#[repr(align(128))]
struct DirtyPeers {
    /// The first; [`NO_PEER`] if none is. Apart from the rest, because few programs store to a second
    /// PE between two quiets, and each store here is one more for the quiet's fence to wait for.
    first: Cell<u32>,
    /// The others: the first `count` of these.
    rest: Box<[Cell<u32>]>,
    count: Cell<usize>,
}

const NO_PEER: u32 = u32::MAX;
/// Some PE, whose `store_base` stays null.
const ANY_PEER: u32 = NO_PEER - 1;
impl fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerTable")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// A mapping of one peer's heap, with the owner that keeps it mapped.
#[derive(Clone)]
pub struct Mapped {
    /// The first byte's address here.
    pub base: NonNull<u8>,
    /// The owner that keeps it mapped.
    pub keep: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// The start of one PE's GPU heap, as this PE's GPU addresses it.
#[derive(Clone)]
pub struct OnGpu {
    /// The address.
    pub address: u64,
    /// The owner that keeps it mapped.
    pub _keep: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for OnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnGpu({:#x})", self.address)
    }
}

/// The mappings of one peer's heap. Two transports may have mapped it.
#[derive(Clone, Default)]
pub struct MappedHeap {
    /// The one by which puts and gets are this CPU's stores and loads, if they are.
    pub copies: Option<Mapped>,
    /// The one by which atomics are this CPU's instructions (M29), if they are.
    pub words: Option<Mapped>,
}

impl fmt::Debug for MappedHeap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedHeap").finish_non_exhaustive()
    }
}

impl MappedHeap {
    /// Whether it is mapped at all.
    pub fn is_mapped(&self) -> bool {
        self.copies.is_some() || self.words.is_some()
    }
}

impl PeerTable {
    /// The default context's, with the liveness that all contexts share; `is_counted` keeps all off the fast path.
    ///
    /// # Safety
    ///
    /// Each mapping is readable and writable for the heap's whole limit (the bound of every
    /// `Target` with this tag) while its `keep` lives, and is accessed by others atomically or at
    /// machine level only.
    pub unsafe fn new(tag: u32, heaps: Vec<MappedHeap>, is_counted: bool) -> Self {
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
        let tables = table(bases);
        let liveness = Arc::new(Liveness::new(&tables, keep));
        let own = if is_counted {
            unmapped_tables(tables.count)
        } else {
            tables
        };
        Self::with(tag, own, liveness, is_counted)
    }

    /// Another context's, of all PEs or of these `members`, which it numbers from 0.
    pub fn of_context(&self, members: Option<&Arc<[u32]>>) -> Self {
        let made = if self.is_counted {
            unmapped_tables(members.map_or(self.liveness.len(), |members| members.len()))
        } else {
            self.liveness.tables_of(members)
        };
        Self::with(self.tag, made, Arc::clone(&self.liveness), self.is_counted)
    }

    fn with(tag: u32, tables: Tables, liveness: Arc<Liveness>, is_counted: bool) -> Self {
        let Tables {
            peers,
            words,
            count,
        } = tables;
        let dirty = DirtyPeers {
            first: Cell::new(NO_PEER),
            rest: (0..count).map(|_| Cell::new(NO_PEER)).collect(),
            count: Cell::new(0),
        };
        PeerTable {
            tag,
            peers,
            words,
            count,
            liveness,
            dirty: Box::new(dirty),
            is_counted,
        }
    }

    /// Number of PEs.
    #[inline(always)]
    pub fn n_pes(&self) -> usize {
        self.count
    }

    pub(crate) fn tag(&self) -> u32 {
        self.tag
    }

    /// Its entries, without the padding.
    pub fn table(&self) -> &[Peer] {
        self.peers.get(..self.count).unwrap_or_default()
    }

    /// The bases for atomics.
    pub fn words(&self) -> &[PeerWords] {
        &self.words
    }

    /// Whether atomics on every PE's memory are this CPU's instructions.
    pub fn all_words_are_mapped(&self) -> bool {
        let mut words = self.words.iter();
        words.all(|word| !word.0.load(Ordering::Relaxed).is_null())
    }

    /// The liveness of the PEs, which all tables of a PE share.
    #[inline]
    pub fn liveness(&self) -> &Arc<Liveness> {
        &self.liveness
    }

    /// [`span_of`](Self::span_of), where the fast path's tables have no PE because operations are counted.
    #[cold]
    pub fn span_counted(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        self.is_counted.then(|| self.span_of(target, pe)).flatten()
    }

    /// [`span`](Self::span), by the PE's number in the world.
    pub(crate) fn span_of(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        let target = target.into();
        if target.tag() != self.tag {
            return None;
        }
        self.at(target, self.liveness.base(pe)?)
    }

    /// [`word`](Self::word), by the PE's number in the world.
    pub(crate) fn word_of(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        let target = target.into();
        if target.tag() != self.tag || target.is_nic() {
            return None;
        }
        self.at(target, self.liveness.word(pe)?)
    }

    /// The object's bytes at `pe`, if `pe` exists, is mapped and alive, and the object is this
    /// world's.
    #[inline(always)]
    pub fn span(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        let target = target.into();
        if target.tag() != self.tag {
            return None;
        }
        self.at(target, &self.peers.get(pe)?.base)
    }

    /// [`span`](Self::span) for a store that needs no [`note_store`](Self::note_store), because the PE is dirty
    /// already.
    #[inline(always)]
    pub fn clean_store_span(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        let target = target.into();
        if target.tag() != self.tag {
            return None;
        }
        self.at(target, &self.peers.get(pe)?.store_base)
    }

    /// The caller has compared the tags.
    #[inline(always)]
    fn at(&self, target: Target, base: &AtomicPtr<u8>) -> Option<Span<'_>> {
        let base = NonNull::new(base.load(Ordering::Relaxed))?;
        // SAFETY: the tags are equal, so by Target's invariant the range lies within the heap's limit,
        // which `new`'s caller promised to be mapped here for as long as `self` (whose liveness keeps it).
        Some(unsafe { Span::new(base.add(target.offset() as usize), target.len()) })
    }

    /// [`span`](Self::span) for an atomic, if atomics on that PE's memory are this CPU's (M29).
    #[inline(always)]
    pub fn word(&self, target: impl Into<Target>, pe: usize) -> Option<Span<'_>> {
        let target = target.into();
        if target.tag() != self.tag || target.is_nic() {
            return None;
        }
        self.at(target, &self.words.get(pe)?.0)
    }

    /// Notes a mapped store to `pe`, for the next quiet.
    #[inline(always)]
    pub fn note_store(&self, pe: usize) {
        if let Some(peer) = self.peers.get(pe)
            && peer.store_base.load(Ordering::Relaxed).is_null()
        {
            self.mark_dirty(pe);
        }
    }

    /// Notes a store by the slow branch; its PE's `store_base` stays null.
    pub fn mark_dirty_any(&self) {
        let first = &self.dirty.first;
        if first.get() == NO_PEER {
            first.set(ANY_PEER);
        }
    }

    /// Notes the first mapped store to `pe` since the last quiet.
    ///
    /// If the PE is lost just now, its `store_base` may stay set until the next quiet, and stores to its
    /// memory, which stays mapped, go unnoticed until then.
    #[cold]
    pub fn mark_dirty(&self, pe: usize) {
        let Some(peer) = self.peers.get(pe) else {
            return;
        };
        let base = peer.base.load(Ordering::Relaxed);
        let dirty = &self.dirty;
        if dirty.first.get() == NO_PEER {
            dirty.first.set(pe as u32);
        } else if base.is_null() {
            // Lost since the store. Some PE is dirty already, so the next quiet fences.
            return;
        } else if let Some(slot) = dirty.rest.get(dirty.count.get()) {
            slot.set(pe as u32);
            dirty.count.set(dirty.count.get() + 1);
        } else {
            // Unreachable, as each PE is recorded once. The `store_base` of an unrecorded PE must stay null.
            return;
        }
        peer.store_base.store(base, Ordering::Relaxed);
        if peer.base.load(Ordering::Relaxed).is_null() {
            peer.store_base.store(null_mut(), Ordering::Relaxed);
        }
    }

    /// Whether no store was noted since the last [`clear_dirty`](Self::clear_dirty).
    #[inline(always)]
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty.first.get() == NO_PEER
    }

    /// Marks all PEs as clean. A full fence is to follow.
    #[inline(always)]
    pub fn clear_dirty(&self) {
        let dirty = &self.dirty;
        self.mark_clean(dirty.first.replace(NO_PEER));
        if dirty.count.get() > 0 {
            for slot in dirty.rest.iter().take(dirty.count.replace(0)) {
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
        self.liveness.forget(&self.peers);
    }
}
