//! This PE's own copy of symmetric memory, and its address for transports.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::memory::mapped::Span;
use crate::memory::simulated::HostSpan;
use crate::memory::target::Target;
use crate::order::op_set::OpKind;
use crate::worker::Worker;

impl Engine {
    /// This PE's own copy. The caller has checked that the target is this world's, in host memory.
    #[inline(always)]
    pub fn own(&self, target: impl Into<Target>) -> HostSpan<'_> {
        let target = target.into();
        if let Some(span) = self.own_simulated(target) {
            return span;
        }
        // SAFETY: by Target's invariant the range lies within this PE's own heap, which is kept mapped whole.
        let span =
            unsafe { Span::new(self.own.base().add(target.offset() as usize), target.len()) };
        HostSpan::Mapped(span)
    }

    #[inline(always)]
    fn own_simulated(&self, target: Target) -> Option<HostSpan<'_>> {
        let simulation = self.simulation.as_ref()?;
        let span = simulation.at(OpKind::Put, self.me, target.offset(), target.len())?;
        Some(HostSpan::Simulated(span))
    }
}

impl Worker {
    /// This PE's own copy. The caller has checked that the target is this world's, in host memory.
    #[inline(always)]
    pub fn own(&self, target: impl Into<Target>) -> HostSpan<'_> {
        let target = target.into();
        debug_assert_eq!(target.tag(), self.tag);
        self.engine.own(target)
    }

    /// The address by which transports know this PE's own copy, together with its region's key. In GPU
    /// memory it means nothing to the CPU, nor to transports that do not carry such memory.
    #[must_use]
    pub fn local_address(&self, target: Target) -> *mut u8 {
        let base = match &self.engine.gpu {
            Some((base, _)) if target.tag() != self.tag => base.load(Ordering::Relaxed),
            _ => self.engine.own_base().as_ptr(),
        };
        base.wrapping_add(target.offset() as usize)
    }
}
