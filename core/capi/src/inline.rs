//! The table that inlined calls read: those that `-DOXSHMEM_INLINE` compiles into programs (`include/oxshmem/direct.h`).
//!
//! They do what [`rma`](crate::rma), [`atomics`](crate::atomics) and [`order`](crate::order) do on their fast paths: puts and
//! gets of one word, and atomics, on the default context, towards PEs whose memory is mapped here; and, where all memory is
//! mapped, fences and quiets. Everything else is a call. So are they where the library does not allow them: before it is
//! initialized and after it is finalized, and at `SHMEM_THREAD_MULTIPLE`. They are calls, too, in checked mode, with NICs'
//! atomics and over lanes, where the library knows no object by its address alone or has no memory mapped.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use oxshmem::bindings::{self, Peer, PeerWords};

use crate::library::Library;

/// The version of [`Inline`], and of the code that programs have for it: `OXSHMEM_DIRECT_VERSION`. Any change of either is a
/// new version.
const VERSION: u32 = 2;

/// `struct oxshmem_inline`.
#[repr(C)]
#[derive(Debug)]
pub struct Inline {
    /// [`VERSION`] while calls may be inlined, else 0.
    version: AtomicU32,
    pes: AtomicU32,
    /// The heap's address, and its bytes.
    heap: [AtomicUsize; 2],
    /// The same of the program's own mapping of its beginning.
    program: [AtomicUsize; 2],
    /// One for each PE.
    peers: AtomicPtr<Peer>,
    /// One for each PE, for atomics; null where these, fences and quiets are calls.
    words: AtomicPtr<PeerWords>,
}

static INLINE: Inline = Inline {
    version: AtomicU32::new(0),
    pes: AtomicU32::new(0),
    heap: [const { AtomicUsize::new(0) }; 2],
    program: [const { AtomicUsize::new(0) }; 2],
    peers: AtomicPtr::new(null_mut()),
    words: AtomicPtr::new(null_mut()),
};

/// A pointer that never changes: a program may copy it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a name of C's")]
pub static oxshmem_inline: &Inline = &INLINE;

// The sizes that the header has.
const _: () =
    assert!(size_of::<Inline>() == 56 && size_of::<Peer>() == 16 && size_of::<PeerWords>() == 8);

/// Allows inlined calls, now that the library is initialized. The program's next calls are this thread's, or come after it in
/// the program's own order.
pub(crate) fn allow(library: &Library) {
    let Ok(pes) = u32::try_from(library.world.n_pes()) else {
        return;
    };
    INLINE.pes.store(pes, Ordering::Relaxed);
    let addresses = &library.addresses;
    for (place, (base, len)) in [
        (&INLINE.heap, addresses.heap()),
        (&INLINE.program, addresses.program()),
    ] {
        let [to_base, to_len] = place;
        to_base.store(base, Ordering::Relaxed);
        to_len.store(len, Ordering::Relaxed);
    }
    let peers = bindings::peer_table(&library.world).as_ptr();
    INLINE.peers.store(peers.cast_mut(), Ordering::Relaxed);
    let words = bindings::word_table(&library.world);
    let words = words.map_or(null_mut(), |words| words.as_ptr().cast_mut());
    INLINE.words.store(words, Ordering::Relaxed);
    INLINE.version.store(VERSION, Ordering::Release);
}

/// Forbids inlined calls, before the memory that they read is gone.
pub(crate) fn forbid() {
    INLINE.version.store(0, Ordering::Release);
}
