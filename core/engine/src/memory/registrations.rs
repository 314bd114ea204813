//! The private buffers that a PE has registered with its transports for many transfers, and their memory keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use oxshmem_transport::{LocalKey, LocalRegion, MemoryKind};

/// The key by which a transport knows bytes of this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrKey {
    /// The key.
    pub key: LocalKey,
    /// No CPU can load or store them.
    pub on_gpu: bool,
}

/// The buffers that a PE has registered, for all its contexts.
#[derive(Debug, Default)]
pub struct Registrations {
    /// Whether there are any: most programs have none, and need not take the lock.
    any: AtomicBool,
    /// By number.
    known: RwLock<BTreeMap<u64, Known>>,
    /// The next one's number: several may begin at one address.
    next: AtomicU64,
}

impl Registrations {
    fn add(&self, known: Known) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.change(|all| all.insert(number, known));
        number
    }

    fn end(&self, number: u64) {
        let ended = self.change(|all| all.remove(&number));
        // The transports' part ends without the lock.
        drop(ended);
    }

    fn change<R>(&self, change: impl FnOnce(&mut BTreeMap<u64, Known>) -> R) -> R {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut known);
        // A thread that learns of a buffer sees this store, too.
        self.any.store(!known.is_empty(), Ordering::Relaxed);
        changed
    }

    /// Whether nothing is registered.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// The key of one transport, if all the bytes lie in a buffer.
    pub(crate) fn key(&self, transport: usize, memory: *const u8, len: usize) -> Option<MrKey> {
        if self.is_empty() {
            return None;
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut keys = known.values().filter_map(|k| k.key(transport, memory, len));
        keys.next()
    }
}

/// A buffer as the transports have registered it.
pub struct Known {
    /// The kind of its memory.
    pub kind: MemoryKind,
    /// Its first byte's address.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
    /// By the index of the transport; none where that needs no key.
    pub keys: Vec<Option<Box<dyn LocalRegion>>>,
}

impl Known {
    /// The key of one transport, if all the bytes lie in the buffer.
    fn key(&self, transport: usize, memory: *const u8, len: usize) -> Option<MrKey> {
        let at = memory.addr().checked_sub(self.start)?;
        let inside = at.checked_add(len)? <= self.len;
        let region = self.keys.get(transport)?.as_ref()?;
        inside.then(|| MrKey {
            key: region.key(),
            on_gpu: self.kind != MemoryKind::Host,
        })
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("len", &self.len).finish()
    }
}

/// The registration of a private buffer; it ends when this is dropped.
#[derive(Debug)]
pub struct Registration<'w> {
    all: &'w Registrations,
    /// Its number, if any transport has a key for it.
    number: Option<u64>,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.all.end(number);
        }
    }
}

impl<'w> Registration<'w> {
    /// Registers a buffer of `len` bytes at `start`, with the transports' regions by their index. Without any region
    /// nothing has to be known of it.
    pub fn new(all: &'w Registrations, known: Known) -> Self {
        let named = known.keys.iter().any(Option::is_some);
        Registration {
            all,
            number: named.then(|| all.add(known)),
        }
    }
}

#[cfg(test)]
mod tests {
    use oxshmem_transport::LocalKey;

    use super::*;

    #[derive(Debug)]
    struct Region(u64);

    impl LocalRegion for Region {
        fn key(&self) -> LocalKey {
            LocalKey(self.0)
        }
    }

    #[test]
    fn the_registration_that_ends_is_the_one_that_was_made() {
        let all = Registrations::default();
        let known = |key| Known {
            kind: MemoryKind::Cuda,
            start: 4096,
            len: 64,
            keys: vec![Some(Box::new(Region(key)))],
        };
        let key_of = || {
            let keyed = all.key(0, std::ptr::without_provenance(4100), 60);
            keyed.map(|keyed| (keyed.key.0, keyed.on_gpu))
        };
        let (first, second) = (all.add(known(1)), all.add(known(2)));
        all.end(second);
        assert_eq!(key_of(), Some((1, true)));
        let third = all.add(known(3));
        all.end(first);
        assert_eq!(key_of(), Some((3, true)));
        all.end(third);
        assert_eq!(key_of(), None);
        assert!(!all.any.load(Ordering::Relaxed), "nobody takes the lock");
    }
}
