//! Private buffers registered once with the NICs, for many transfers.

#[cfg(feature = "cuda")]
mod gpu;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use bytemuck::Pod;
use oxshmem_transport::{Error as Refusal, LocalRegion, MemoryKind};

#[cfg(feature = "cuda")]
pub use self::gpu::RegisteredGpu;
use crate::lane::{MrKey, Rail};
use crate::place::placed;
use crate::{Context, Result};

/// A private buffer, registered with every transport that uses lanes: transfers from and to it
/// need no copy and no registration of their own. Made by [`Context::register`]; the registration ends when it is dropped. It
/// owns the buffer, so that no forgotten registration outlives the memory.
///
/// It is not symmetric (M1): it can be no PE's target. Use it through its slice:
///
/// ```
/// use oxshmem::{Result, testing::spmd};
///
/// fn main() -> Result<()> {
///     spmd(2, |world| {
///         let x = world.alloc::<u64>(512)?;
///         let mut buffer = world.register(vec![1_u64; 512])?;
///         world.put(x, &buffer, 1)?;
///         world.quiet()?;
///         world.get(&mut buffer, x, 1)?;
///         let buffer: Vec<u64> = buffer.into_vec();
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
pub struct Registered<'w, T> {
    registration: Registration<'w>,
    /// Never moved or resized.
    buffer: Vec<T>,
}

/// The buffers that a PE has registered, for all its contexts.
#[derive(Default)]
pub(crate) struct Registrations {
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

    /// The key of one transport, if all the bytes lie in a buffer.
    #[inline]
    pub(crate) fn key(&self, transport: usize, memory: *const u8, len: usize) -> Option<MrKey> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut keys = known.values().filter_map(|k| k.key(transport, memory, len));
        keys.next()
    }
}

/// A buffer as the transports have registered it.
struct Known {
    kind: MemoryKind,
    start: usize,
    len: usize,
    /// By the index of the transport; none where that needs no key.
    keys: Vec<Option<Box<dyn LocalRegion>>>,
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

impl Context<'_> {
    /// Registers a private buffer for many transfers. Without it, transports that need registered
    /// memory copy up to some 100 KiB and register more than that for each call.
    ///
    /// # Errors
    ///
    /// The error of a transport, such as that so much memory may not be locked. A transport that cannot register
    /// such memory at all copies from and to it.
    #[doc(alias = "nvshmemx_buffer_register")]
    #[track_caller]
    pub fn register<T: Pod>(&self, buffer: Vec<T>) -> Result<Registered<'_, T>> {
        placed(|| self.register_inner(buffer))
    }

    fn register_inner<T: Pod>(&self, mut buffer: Vec<T>) -> Result<Registered<'_, T>> {
        let len = size_of_val(buffer.as_slice());
        let start = buffer.as_mut_ptr().cast();
        let needs = |rail: &Rail| rail.pins() && !rail.is_retired();
        // SAFETY: the guard owns the buffer, and ends the registration before it.
        let registration = unsafe { self.make_known(MemoryKind::Host, start, len, needs) }?;
        Ok(Registered {
            registration,
            buffer,
        })
    }

    /// Registers bytes with the transports that need it. A transport that cannot register such memory has no key.
    ///
    /// # Safety
    ///
    /// The bytes stay mapped while the registration lives.
    unsafe fn make_known(
        &self,
        kind: MemoryKind,
        start: *mut u8,
        len: usize,
        needs: impl Fn(&Rail) -> bool,
    ) -> Result<Registration<'_>> {
        let mut keys = Vec::new();
        for rail in &self.shared.rails {
            if len == 0 || !needs(rail) {
                keys.push(None);
                continue;
            }
            // SAFETY: the caller promises that the bytes stay mapped while the registration lives.
            match unsafe { rail.domain.register_local(start, len, true) } {
                Ok(region) => keys.push(Some(region)),
                Err(Refusal::Unsupported { .. }) => keys.push(None),
                // The GPU copies instead.
                Err(error @ Refusal::Memory { .. }) if kind != MemoryKind::Host => {
                    tracing::debug!(%error, transport = rail.name, "a slice is not registered");
                    keys.push(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let known = Known {
            kind,
            start: start.addr(),
            len,
            keys,
        };
        let named = known.keys.iter().any(Option::is_some);
        let all = &self.shared.registered;
        Ok(Registration {
            all,
            number: named.then(|| all.add(known)),
        })
    }
}

/// The registration of a private buffer; it ends when this is dropped.
pub(crate) struct Registration<'w> {
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

impl<T> Registered<'_, T> {
    /// Ends the registration and gives the buffer back.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        let Registered {
            registration,
            buffer,
        } = self;
        drop(registration);
        buffer
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.buffer
    }
}

impl<T> DerefMut for Registered<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer
    }
}

impl<T> fmt::Debug for Registered<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("len", &self.buffer.len())
            .finish_non_exhaustive()
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
