//! Copies between private memory, this PE's own symmetric memory and a PE's, by whichever path leads there. PEs are named
//! by their numbers in the world, and the callers have made all checks.

use oxshmem_transport::MemoryKind;

use super::access_path::AccessPath;
use crate::error::{Error, Result};
use crate::lane::local_buffer::LocalBuffer;
use crate::memory::mapped::{HostMemory, Span};
use crate::memory::simulated::HostSpan;
use crate::memory::target::Target;
use crate::order::fence_site::FenceSite;
use crate::order::op_set::OpKind;
use crate::worker::Worker;

/// Bytes of the private buffer that a copy between two GPUs without a common path goes through.
pub const HOST_CHUNK: usize = 1 << 20;

/// A range of symmetric memory at a PE.
#[derive(Clone, Copy, Debug)]
pub struct RemoteRange {
    /// The range.
    pub target: Target,
    /// The PE.
    pub pe: usize,
}

impl Worker {
    /// Orders later reads behind this one, which the ordered model needs (M20). On x86 it takes no
    /// instruction, so the relaxed model has it there, too.
    #[inline(always)]
    pub fn order_read(&self, span: Span<'_>) {
        if cfg!(target_arch = "x86_64") || self.ordered {
            HostMemory::fence(span, FenceSite::Read);
        }
    }

    /// [`order_read`](Self::order_read) where the processor may be a simulated one, which is not x86.
    pub fn order_read_slow(&self, span: HostSpan<'_>) {
        if self.ordered {
            span.fence(FenceSite::Read);
        }
    }

    /// Puts bytes to a PE. Returns when they may be reused (M15).
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    pub fn put_bytes(&self, dst: impl Into<Target>, bytes: &[u8], pe: usize) -> Result<()> {
        // SAFETY: `bytes` is borrowed for the call.
        unsafe { self.put_raw(dst.into(), LocalBuffer::read(bytes), pe, false) }
    }

    /// Gets bytes from a PE. Returns when they have arrived (M16).
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    pub fn get_bytes(&self, bytes: &mut [u8], src: impl Into<Target>, pe: usize) -> Result<()> {
        let into = LocalBuffer::at(bytes.as_mut_ptr(), bytes.len());
        // SAFETY: `bytes` is borrowed for the call.
        unsafe { self.get_raw(into, src.into(), pe, false) }
    }

    /// Puts bytes to a PE; a `nonblocking` put is completed by the next quiet.
    ///
    /// # Safety
    ///
    /// `source` is readable during the call, and unchanged until that quiet if the put is nonblocking.
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    #[inline]
    pub unsafe fn put_raw(
        &self,
        dst: Target,
        source: LocalBuffer,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        match self.access_path(OpKind::Put, dst, pe)? {
            AccessPath::Mapped(span) => {
                // SAFETY: the caller promises as many readable bytes.
                unsafe { span.copy_from_raw(source.as_ptr(), source.len) };
                self.peers.mark_dirty_any();
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(endpoint, remote) => unsafe {
                if nonblocking {
                    self.lane_put_nbi(endpoint, remote, source)
                } else {
                    self.lane_put(endpoint, remote, source)
                }
            },
            // A nonblocking put may block here.
            // SAFETY: the caller promises as many readable bytes.
            AccessPath::Staged(remote) => unsafe {
                self.staged_put(remote, source.as_ptr(), source.len)
            },
        }
    }

    /// Gets bytes from a PE; those of a `nonblocking` get have arrived after the next quiet.
    ///
    /// # Safety
    ///
    /// `destination` is writable during the call, and untouched until that quiet if the get is nonblocking.
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    #[inline]
    pub unsafe fn get_raw(
        &self,
        destination: LocalBuffer,
        src: Target,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        match self.access_path(OpKind::Put, src, pe)? {
            AccessPath::Mapped(span) => {
                // SAFETY: the caller promises as many writable bytes.
                unsafe { span.copy_to_raw(destination.as_ptr(), destination.len) };
                if !nonblocking {
                    self.order_read_slow(span);
                }
                Ok(())
            }
            // SAFETY: the caller's promise.
            AccessPath::Lane(endpoint, remote) => unsafe {
                if nonblocking {
                    self.lane_get_nbi(endpoint, remote, destination)
                } else {
                    self.lane_get(endpoint, remote, destination)
                }
            },
            // SAFETY: the caller promises as many writable bytes.
            AccessPath::Staged(remote) => unsafe {
                self.staged_get(remote, destination.as_ptr(), destination.len)
            },
        }
    }

    /// Whether a target of this world lies in host memory.
    #[inline]
    #[must_use]
    pub fn is_on_host(&self, target: impl Into<Target>) -> bool {
        target.into().kind_in(self.tag) == Some(MemoryKind::Host)
    }

    /// Copies this PE's own `src` to a PE, which has as many bytes at `to`.
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    pub fn copy_to(&self, to: RemoteRange, src: Target, nonblocking: bool) -> Result<()> {
        let on_host = self.is_on_host(src);
        let from = LocalBuffer::at(self.local_address(src), src.len());
        match self.access_path(OpKind::Put, to.target, to.pe)? {
            AccessPath::Mapped(span) if on_host => {
                span.copy_from_span(self.own(src), src.len());
                self.peers.mark_dirty_any();
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // read, and which stays mapped as long as the world.
            AccessPath::Lane(endpoint, remote) if on_host || endpoint.carries_gpu() => unsafe {
                if nonblocking {
                    self.lane_put_nbi(endpoint, remote, from)
                } else {
                    self.lane_put(endpoint, remote, from)
                }
            },
            // SAFETY: it names host memory of this PE's heap.
            AccessPath::Staged(remote) if on_host => unsafe {
                self.staged_put(remote, from.as_ptr(), from.len)
            },
            _ => {
                let pe = self.engine.me;
                self.copy_via_host(to, RemoteRange { target: src, pe })
            }
        }
    }

    /// Copies a PE's range to this PE's own `dst`, by the access path to it. `dst` has as many bytes.
    ///
    /// # Errors
    ///
    /// The failure of the path to the PE, or its loss.
    pub fn copy_by_path(
        &self,
        path: AccessPath<'_>,
        dst: Target,
        from: RemoteRange,
        nonblocking: bool,
    ) -> Result<()> {
        let on_host = self.is_on_host(dst);
        let len = from.target.len();
        let into = LocalBuffer::at(self.local_address(dst), len);
        match path {
            AccessPath::Mapped(span) if on_host => {
                self.own(dst).copy_from_span(span, len);
                self.peers.mark_dirty_any();
                self.order_read_slow(span);
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // write, and which stays mapped as long as the world.
            AccessPath::Lane(endpoint, remote) if on_host || endpoint.carries_gpu() => unsafe {
                if nonblocking {
                    self.lane_get_nbi(endpoint, remote, into)
                } else {
                    self.lane_get(endpoint, remote, into)
                }
            },
            // SAFETY: it names host memory of this PE's heap.
            AccessPath::Staged(remote) if on_host => unsafe {
                self.staged_get(remote, into.as_ptr(), into.len)
            },
            _ => {
                let pe = self.engine.me;
                self.copy_via_host(RemoteRange { target: dst, pe }, from)
            }
        }
    }

    /// Copies between two ranges of one length, one of them this PE's own, that no single operation connects.
    #[cold]
    fn copy_via_host(&self, to: RemoteRange, from: RemoteRange) -> Result<()> {
        let part_of = |whole: Target, at: usize, len: usize| whole.part(at, len).unwrap_or(whole);
        via_host(
            from.target.len(),
            |at, part| {
                let src = part_of(from.target, at, part.len());
                self.get_bytes(part, src, from.pe)
            },
            |at, part| {
                let dst = part_of(to.target, at, part.len());
                self.put_bytes(dst, part, to.pe)
            },
        )?;
        // The data is visible when the call returns (M16), also where a lane placed it in this PE's own GPU memory.
        if to.pe == self.engine.me && !self.is_on_host(to.target) {
            self.make_own_gpu_visible()
        } else {
            Ok(())
        }
    }
}

/// Copies part by part through a private buffer.
///
/// # Errors
///
/// The first of a part.
pub fn via_host<E: From<Error>>(
    len: usize,
    mut fill: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    mut drain: impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; len.min(HOST_CHUNK)];
    for at in (0..len).step_by(HOST_CHUNK) {
        let (part, _) = buffer.split_at_mut(HOST_CHUNK.min(len - at));
        fill(at, part)?;
        drain(at, part)?;
    }
    Ok(())
}
