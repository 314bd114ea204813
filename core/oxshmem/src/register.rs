//! Private buffers registered once with the NICs, for many transfers.

#[cfg(feature = "cuda")]
pub(crate) mod gpu;

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use oxshmem_engine::lane::rail::Rail;
use oxshmem_engine::memory::registrations::{Known, Registration};
use oxshmem_transport::{Error as Refusal, MemoryKind};

use crate::context::Context;
use crate::error::Result;
use crate::place::placed;

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
        for rail in &self.worker.engine.rails {
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
        Ok(Registration::new(&self.worker.engine.registered, known))
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
