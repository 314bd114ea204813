//! The entries of the tables that the fast path reads: for each PE the addresses at which its heap is mapped here.

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

/// One PE as the fast path sees it: the one of Rust here, and the one that bindings compile into programs of other
/// languages, which read the first word, whole.
#[derive(Debug)]
#[repr(C)]
pub struct Peer {
    /// Start of its heap here while it is mapped and the PE lives, else null. So one comparison
    /// answers "mapped?" and "alive?" together; checked mode maps no PE.
    pub(crate) base: AtomicPtr<u8>,
    /// The same, but only from the first store after a quiet until the next quiet: the PE is dirty then, and stores
    /// through it need no note.
    pub(crate) store_base: AtomicPtr<u8>,
}

/// The address at which one PE's memory is mapped for atomics, null if it is not or the PE is lost. Bindings compile reads of it, one word,
/// into programs of other languages; nothing but the library writes it.
#[derive(Debug)]
#[repr(transparent)]
pub struct PeerWords(pub(crate) AtomicPtr<u8>);

/// The entries of a table beyond its PEs: two cache lines.
const PADDING: usize = 8;

/// A context's bases, its bases for atomics, and the number of its PEs.
pub(crate) struct Tables {
    pub peers: Arc<[Peer]>,
    pub words: Arc<[PeerWords]>,
    pub count: usize,
}

/// A table of these bases, for copies and for atomics.
pub(crate) fn table(bases: Vec<(*mut u8, *mut u8)>) -> Tables {
    let count = bases.len();
    let (bases, words): (Vec<_>, Vec<_>) = bases.into_iter().unzip();
    let bases = bases.into_iter().chain([null_mut(); PADDING]);
    let peers = bases.map(|base| Peer {
        base: AtomicPtr::new(base),
        store_base: AtomicPtr::new(null_mut()),
    });
    let words = words.into_iter().map(AtomicPtr::new).map(PeerWords);
    Tables {
        peers: peers.collect(),
        words: words.collect(),
        count,
    }
}

/// A table of so many PEs of which none is mapped.
pub(crate) fn unmapped_tables(count: usize) -> Tables {
    table(vec![(null_mut(), null_mut()); count])
}
