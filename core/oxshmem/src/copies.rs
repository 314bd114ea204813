//! Copies between this PE and another, of symmetric objects and slices on a GPU.

#[cfg(feature = "cuda")]
pub(crate) mod gpu_slice;
pub(crate) mod local_operand;
#[cfg(feature = "cuda")]
pub(crate) mod slice;

use bytemuck::Pod;
use oxshmem_engine::ops::copy::RemoteRange;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::op_set::OpKind;

use crate::context::Context;
use crate::copies::local_operand::{CopySource, CopyTarget, LocalOperand};
use crate::error::Result;
use crate::nbi::Scope;
use crate::place::placed;
use crate::stats::counters::Kind;
use crate::sym::Sym;

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
        placed(|| self.in_call("put_from").copy_to(dst, src.into(), pe, false))
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
        placed(|| {
            self.in_call("get_into")
                .copy_from(dst.into(), src, pe, false)
        })
    }

    fn copy_to<T: Pod>(
        &self,
        dst: Sym<T>,
        CopySource(src): CopySource<'_, T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let src = match src {
            LocalOperand::Symmetric(src) => src,
            #[cfg(feature = "cuda")]
            LocalOperand::Slice(slice) => return self.put_slice(dst, slice, pe, nonblocking),
            #[cfg(not(feature = "cuda"))]
            LocalOperand::Nothing(never, _) => match never {},
        };
        self.check_pair(self.call(), dst, src)?;
        self.check(src, src.len(), self.my_pe())?;
        let pe = self.check(dst, dst.len(), pe)?;
        self.guard(
            Access::Get,
            src,
            src.len(),
            self.worker.engine.me,
            nonblocking,
        )?;
        self.guard(Access::Put, dst, dst.len(), pe, true)?;
        self.count(Kind::Put, dst, dst.bytes(), pe);
        let to = RemoteRange {
            target: dst.into(),
            pe,
        };
        Ok(self.worker.copy_to(to, src.into(), nonblocking)?)
    }

    fn copy_from<T: Pod>(
        &self,
        CopyTarget(dst): CopyTarget<'_, T>,
        src: Sym<T>,
        pe: usize,
        nonblocking: bool,
    ) -> Result<()> {
        let dst = match dst {
            LocalOperand::Symmetric(dst) => dst,
            #[cfg(feature = "cuda")]
            LocalOperand::Slice(slice) => return self.get_slice(slice, src, pe, nonblocking),
            #[cfg(not(feature = "cuda"))]
            LocalOperand::Nothing(never, _) => match never {},
        };
        self.check_pair(self.call(), dst, src)?;
        self.check(dst, dst.len(), self.my_pe())?;
        let pe = self.check(src, src.len(), pe)?;
        self.guard(
            Access::Put,
            dst,
            dst.len(),
            self.worker.engine.me,
            nonblocking,
        )?;
        self.guard(Access::Get, src, src.len(), pe, nonblocking)?;
        self.count(Kind::Get, src, src.bytes(), pe);
        let path = self.worker.access_path(OpKind::Put, src, pe)?;
        let from = RemoteRange {
            target: src.into(),
            pe,
        };
        Ok(self
            .worker
            .copy_by_path(path, dst.into(), from, nonblocking)?)
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
        placed(|| {
            self.context()
                .in_call(call)
                .copy_to(dst, src.into(), pe, true)
        })
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
        placed(|| {
            self.context()
                .in_call(call)
                .copy_from(dst.into(), src, pe, true)
        })
    }
}
