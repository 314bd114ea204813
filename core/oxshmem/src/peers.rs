//! The table that the fast path reads: for each PE, where its heap is mapped here, if it is.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytemuck::Pod;

use crate::Sym;
use crate::mapped::Span;

/// One PE as the fast path sees it.
struct Peer {
    /// The world's tag while the PE's heap is mapped here and the PE lives; else 0, which no `Sym`
    /// has. So one comparison answers "my world?", "mapped?" and "alive?" together.
    tag: AtomicU32,
    /// Start of its heap here; meaningful only where it was mapped.
    base: NonNull<u8>,
}

/// All PEs. Clones share one table.
#[derive(Clone)]
pub(crate) struct Peers {
    peers: Arc<[Peer]>,
    losses: Arc<Losses>,
    /// What keeps each `base` mapped.
    _keep: Arc<[Arc<dyn Any + Send + Sync>]>,
}

struct Losses {
    state: Box<[AtomicU32]>,
    any: AtomicBool,
}

// SAFETY: `base` is an address of shared memory that any thread may access through `Span`; the rest
// is atomic or Send and Sync itself.
unsafe impl Send for Peers {}
// SAFETY: as for Send.
unsafe impl Sync for Peers {}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers")
            .field("count", &self.peers.len())
            .finish_non_exhaustive()
    }
}

/// Where one peer's heap is mapped, with what keeps it so.
pub(crate) struct MappedHeap {
    pub base: NonNull<u8>,
    pub keep: Arc<dyn Any + Send + Sync>,
}

const ALIVE: u32 = 0;
const LOST: u32 = 1;
const ACKNOWLEDGED: u32 = 2;

impl Peers {
    /// # Safety
    ///
    /// Each mapped heap is readable and writable for the heap's whole limit (the bound of every
    /// `Sym` with this tag) while its `keep` lives, and is accessed by others atomically or at
    /// machine level only.
    pub(crate) unsafe fn new(tag: u32, heaps: Vec<Option<MappedHeap>>) -> Self {
        let mut keep = Vec::new();
        let state = heaps.iter().map(|_| AtomicU32::new(ALIVE)).collect();
        let peers = heaps
            .into_iter()
            .map(|heap| match heap {
                Some(heap) => {
                    keep.push(heap.keep);
                    Peer {
                        tag: AtomicU32::new(tag),
                        base: heap.base,
                    }
                }
                None => Peer {
                    tag: AtomicU32::new(0),
                    base: NonNull::dangling(),
                },
            })
            .collect();
        let losses = Arc::new(Losses {
            state,
            any: AtomicBool::new(false),
        });
        Peers {
            peers,
            losses,
            _keep: keep.into(),
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
        let peer = self.peers.get(pe)?;
        if peer.tag.load(Ordering::Relaxed) != sym.tag() {
            return None;
        }
        // SAFETY: the tags are equal, so by Sym's invariant the range lies within the heap's limit,
        // which `new`'s caller promised to be mapped here for as long as `self` (which keeps it).
        Some(unsafe { Span::new(peer.base.add(sym.offset() as usize), sym.bytes()) })
    }

    /// Records that a PE died or left.
    pub(crate) fn lose(&self, pe: usize) {
        if let (Some(peer), Some(lost)) = (self.peers.get(pe), self.losses.state.get(pe)) {
            peer.tag.store(0, Ordering::Relaxed);
            lost.store(LOST, Ordering::Release);
            self.losses.any.store(true, Ordering::Release);
        }
    }

    pub(crate) fn is_lost(&self, pe: usize) -> bool {
        self.losses
            .state
            .get(pe)
            .is_some_and(|l| l.load(Ordering::Acquire) != ALIVE)
    }

    /// A PE whose loss the program has not acknowledged.
    pub(crate) fn first_lost(&self) -> Option<usize> {
        if !self.losses.any.load(Ordering::Acquire) {
            return None;
        }
        self.losses
            .state
            .iter()
            .position(|l| l.load(Ordering::Acquire) == LOST)
    }

    /// Acknowledges every loss so far; gives all the lost.
    pub(crate) fn acknowledge(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for (pe, lost) in self.losses.state.iter().enumerate() {
            if lost.load(Ordering::Acquire) != ALIVE {
                lost.store(ACKNOWLEDGED, Ordering::Release);
                all.push(pe);
            }
        }
        all
    }
}
