//! Private buffers that NICs are told of once, for many transfers.

use std::fmt;
use std::mem::take;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use oxshmem_transport::{LocalKey, LocalRegion};

use crate::wire::Opened;
use crate::{Result, World};

/// A private buffer, registered with every transport that goes by lanes: transfers from and to it
/// need no copy and no registration of their own. Made by [`World::register`]; ends when dropped. It owns
/// the buffer, so that no forgotten registration outlives the memory.
///
/// It is not symmetric (M1): it can be no PE's target. Use it through its slice:
///
/// ```
/// # oxshmem::testing::spmd(2, |world| {
/// # let x = world.alloc::<u64>(512)?;
/// let mut buffer = world.register(vec![1_u64; 512])?;
/// world.put(x, &buffer, 1)?;
/// world.quiet()?;
/// world.get(&mut buffer, x, 1)?;
/// let buffer: Vec<u64> = buffer.into_vec();
/// # Ok(()) })?;
/// # Ok::<(), oxshmem::Error>(())
/// ```
pub struct Registered<'w, T> {
    world: &'w World,
    /// Never moved or resized.
    buffer: Vec<T>,
}

/// The bytes of a buffer, as the transports know them.
pub(crate) struct Known {
    start: usize,
    len: usize,
    /// By the index of the transport; none where it needs no key.
    keys: Vec<Option<Box<dyn LocalRegion>>>,
}

impl Known {
    /// The key of one transport, if all the bytes lie in the buffer.
    pub(crate) fn key(&self, transport: usize, memory: *const u8, len: usize) -> Option<LocalKey> {
        let at = memory.addr().checked_sub(self.start)?;
        let inside = at.checked_add(len)? <= self.len;
        let region = self.keys.get(transport)?.as_ref()?;
        inside.then(|| region.key())
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("len", &self.len).finish()
    }
}

impl World {
    /// Registers a private buffer for many transfers. Without it, transports that need registered
    /// memory copy up to some 100 KiB and register more than that for each call.
    ///
    /// # Errors
    ///
    /// What a transport says, such as that so much memory may not be locked. One that cannot register
    /// such memory at all copies from and to it.
    pub fn register<T: Pod>(&self, mut buffer: Vec<T>) -> Result<Registered<'_, T>> {
        let len = size_of_val(buffer.as_slice());
        let start = buffer.as_mut_ptr();
        let needs = |via: &&Opened| via.pins() && !via.is_retired();
        let mut keys = Vec::new();
        for via in &self.inner.wire.transports {
            if len == 0 || !needs(&via) {
                keys.push(None);
                continue;
            }
            // SAFETY: the guard owns the buffer, and ends the registration before it.
            match unsafe { via.domain.register_local(start.cast(), len, true) } {
                Ok(region) => keys.push(Some(region)),
                Err(oxshmem_transport::Error::Unsupported { .. }) => keys.push(None),
                Err(error) => return Err(error.into()),
            }
        }
        self.inner.wire.known.borrow_mut().push(Known {
            start: start.addr(),
            len,
            keys,
        });
        Ok(Registered {
            world: self,
            buffer,
        })
    }
}

impl<T> Registered<'_, T> {
    /// Ends the registration and gives the buffer back.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<T> {
        self.end();
        take(&mut self.buffer)
    }

    fn end(&self) {
        let start = self.buffer.as_ptr().addr();
        let len = size_of_val(self.buffer.as_slice());
        let mut known = self.world.inner.wire.known.borrow_mut();
        if let Some(at) = known.iter().position(|k| (k.start, k.len) == (start, len)) {
            known.swap_remove(at);
        }
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

impl<T> Drop for Registered<'_, T> {
    fn drop(&mut self) {
        self.end();
    }
}
