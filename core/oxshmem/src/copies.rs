//! Copies between this PE and another, of symmetric objects and slices on a GPU.

pub(crate) mod local_operand;
#[cfg(feature = "cuda")]
pub(crate) mod slice;

use bytemuck::Pod;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::op_set::OpKind;

use crate::context::Context;
use crate::copies::local_operand::{CopySource, CopyTarget, LocalOperand};
use crate::error::Result;
use crate::nbi::Scope;
use crate::place::placed;
use crate::stats::Kind;
use crate::sym::Sym;

/// Bytes of each part of a copy through a private buffer on the host.
pub(crate) const HOST_CHUNK: usize = 1 << 20;

impl Context<'_> {
    /// Copies `src` of this PE to `dst` of PE `pe`. It is a symmetric object, for which a NIC needs no bounce
    /// buffer, or a slice of cudarc's, best [registered](Self::register_gpu) if it is used often. Both have
    /// the same length; they are the same object or do not overlap. Each may lie in host or in GPU memory:
    /// where no transport connects the two, the data goes through a private buffer. Returns when `src` may be reused (M15).
    #[track_caller]
    pub fn put_from<'a, T: Pod>(
        &self,
        dst: Sym<T>,
        src: impl Into<CopySource<'a, T>>,
        pe: usize,
    ) -> Result<()> {
        placed(|| self.copy_to("put_from", dst, src.into(), pe, false))
    }

    /// Copies `src` of PE `pe` to `dst` of this PE: a symmetric object, or a slice of cudarc's. Both have the
    /// same length, and each may lie in host or in GPU memory. Returns when the data is there (M16).
    #[track_caller]
    pub fn get_into<'a, T: Pod>(
        &self,
        dst: impl Into<CopyTarget<'a, T>>,
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        placed(|| self.copy_from("get_into", dst.into(), src, pe, false))
    }

    fn copy_to<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        CopySource(src): CopySource<'_, T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let src = match src {
            LocalOperand::Symmetric(src) => src,
            #[cfg(feature = "cuda")]
            LocalOperand::Slice(slice) => return self.put_slice(call, dst, slice, pe, nonblocking),
            #[cfg(not(feature = "cuda"))]
            LocalOperand::Nothing(never, _) => match never {},
        };
        self.check_pair(call, dst, src)?;
        self.check(call, src, src.len(), self.my_pe())?;
        let pe = self.check(call, dst, dst.len(), pe)?;
        self.guard(
            call,
            Access::Get,
            src,
            src.len(),
            self.worker.engine.me,
            nonblocking,
        )?;
        self.guard(call, Access::Put, dst, dst.len(), pe, true)?;
        self.count(Kind::Put, dst, dst.bytes(), pe);
        let on_host = self.is_on_host(src);
        let from = self.worker.local_address(src.into());
        match self.worker.access_path(call, OpKind::Put, dst, pe)? {
            AccessPath::Mapped(span) if on_host => {
                span.copy_from_span(self.own(src), src.bytes());
                self.worker.peers.mark_dirty_any();
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // read, and which stays mapped as long as the world.
            AccessPath::Lane(endpoint, remote) if on_host || endpoint.carries_gpu() => unsafe {
                if nonblocking {
                    Ok(self.worker.lane_put_nbi(
                        call,
                        endpoint,
                        remote,
                        LocalBuffer::at(from, src.bytes()),
                    )?)
                } else {
                    Ok(self.worker.lane_put(
                        call,
                        endpoint,
                        remote,
                        LocalBuffer::at(from, src.bytes()),
                    )?)
                }
            },
            // SAFETY: it names host memory of this PE's heap.
            AccessPath::Staged(remote) if on_host => unsafe {
                Ok(self.worker.staged_put(call, remote, from, src.bytes())?)
            },
            _ => self.copy_via_host(call, (dst, pe), (src, self.worker.engine.me)),
        }
    }

    fn copy_from<T: Pod>(
        &self,
        call: &'static str,
        CopyTarget(dst): CopyTarget<'_, T>,
        src: Sym<T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let dst = match dst {
            LocalOperand::Symmetric(dst) => dst,
            #[cfg(feature = "cuda")]
            LocalOperand::Slice(slice) => return self.get_slice(call, slice, src, pe, nonblocking),
            #[cfg(not(feature = "cuda"))]
            LocalOperand::Nothing(never, _) => match never {},
        };
        self.check_pair(call, dst, src)?;
        self.check(call, dst, dst.len(), self.my_pe())?;
        let pe = self.check(call, src, src.len(), pe)?;
        self.guard(
            call,
            Access::Put,
            dst,
            dst.len(),
            self.worker.engine.me,
            nonblocking,
        )?;
        self.guard(call, Access::Get, src, src.len(), pe, nonblocking)?;
        self.count(Kind::Get, src, src.bytes(), pe);
        let path = self.worker.access_path(call, OpKind::Put, src, pe)?;
        self.get_by(call, path, dst, (src, pe), nonblocking)
    }

    /// Copies a PE's object to this PE's own, by the access path to it. The caller has checked both.
    pub(crate) fn get_by<T: Pod>(
        &self,
        call: &'static str,
        path: AccessPath<'_>,
        dst: Sym<T>,
        (src, pe): (Sym<T>, usize),
        nonblocking: bool,
    ) -> Result<()> {
        let on_host = self.is_on_host(dst);
        let into = self.worker.local_address(dst.into());
        match path {
            AccessPath::Mapped(span) if on_host => {
                self.own(dst).copy_from_span(span, src.bytes());
                self.worker.peers.mark_dirty_any();
                self.order_read_slow(span);
                Ok(())
            }
            // SAFETY: it names symmetric memory of this PE, which the transport knows or the CPU can
            // write, and which stays mapped as long as the world.
            AccessPath::Lane(endpoint, remote) if on_host || endpoint.carries_gpu() => unsafe {
                if nonblocking {
                    Ok(self.worker.lane_get_nbi(
                        call,
                        endpoint,
                        remote,
                        LocalBuffer::at(into, src.bytes()),
                    )?)
                } else {
                    Ok(self.worker.lane_get(
                        call,
                        endpoint,
                        remote,
                        LocalBuffer::at(into, src.bytes()),
                    )?)
                }
            },
            // SAFETY: it names host memory of this PE's heap.
            AccessPath::Staged(remote) if on_host => unsafe {
                Ok(self.worker.staged_get(call, remote, into, src.bytes())?)
            },
            _ => self.copy_via_host(call, (dst, self.worker.engine.me), (src, pe)),
        }
    }

    /// Copies between two objects of one length, one of them this PE's own, that no single operation connects.
    #[cold]
    fn copy_via_host<T: Pod>(
        &self,
        call: &'static str,
        (dst, to): (Sym<T>, usize),
        (src, from): (Sym<T>, usize),
    ) -> Result<()> {
        let (dst, src) = (dst.cast::<u8>()?, src.cast::<u8>()?);
        self.via_host(
            src.len(),
            |at, part| self.get_by_path(call, part, src.range(at..at + part.len())?, from),
            |at, part| self.put_by_path(call, dst.range(at..at + part.len())?, part, to),
        )?;
        // The data is there when the call returns (M16), though a lane brought it to this PE's own GPU.
        if to == self.worker.engine.me && !self.is_on_host(dst) {
            Ok(self.worker.make_own_gpu_visible(call)?)
        } else {
            Ok(())
        }
    }

    /// Copies part by part through a private buffer.
    fn via_host(
        &self,
        len: usize,
        mut fill: impl FnMut(usize, &mut [u8]) -> Result<()>,
        mut drain: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; len.min(HOST_CHUNK)];
        for at in (0..len).step_by(HOST_CHUNK) {
            let (part, _) = buffer.split_at_mut(HOST_CHUNK.min(len - at));
            fill(at, part)?;
            drain(at, part)?;
        }
        Ok(())
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// [`Context::put_from`], complete by the end of the scope (M19); until then `src` is not changed (M37).
    #[track_caller]
    pub fn put_from_nbi<T: Pod>(
        &'scope self,
        dst: Sym<T>,
        src: impl Into<CopySource<'env, T>>,
        pe: usize,
    ) -> Result<()> {
        let call = "put_from_nbi";
        placed(|| self.context().copy_to(call, dst, src.into(), pe, true))
    }

    /// [`Context::get_into`] whose data is there by the end of the scope (M19); until then `dst` is not used
    /// (M37).
    #[track_caller]
    pub fn get_into_nbi<T: Pod>(
        &'scope self,
        dst: impl Into<CopyTarget<'env, T>>,
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        let call = "get_into_nbi";
        placed(|| self.context().copy_from(call, dst.into(), src, pe, true))
    }
}
