//! Put and get, contiguous and strided. All calls follow M3 to M7, M15 and M16.
//!
//! Stores to a mapped peer and loads from it are inlined here; all other peers are reached by lanes (`oxshmem_engine::lane`).

use bytemuck::Pod;
use oxshmem_engine::memory::mapped::HostMemory;

use crate::context::Context;
use crate::error::Result;
use crate::place::placed;
use crate::strided::Blocks;
use crate::sym::{ObjectStart, Sym};

impl Context<'_> {
    /// Puts `source` at the start of `dst` on PE `pe`. Returns when `source` may be reused; the data
    /// may still be on the way (M15).
    ///
    /// Each element of 1, 2, 4 or 8 bytes arrives whole. Two puts are not ordered without a
    /// [`fence`](Self::fence) between them (M17).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let (me, peer) = (world.my_pe() as u32, 1 - world.my_pe());
    ///         let row = world.alloc::<u32>(4)?;
    ///         world.put(row, &[me; 4], peer)?;
    ///         world.fence()?; // the next put comes after that one
    ///         world.put(row.range(1..3)?, &[7, 8], peer)?; // into a part of it
    ///         world.barrier_all()?; // all puts of all PEs are done
    ///         let mut seen = [0; 4];
    ///         world.read(&mut seen, row)?;
    ///         assert_eq!(seen, [peer as u32, 7, 8, peer as u32]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_putmem",
        "shmem_put",
        "nvshmem_put",
        "nvshmem_putmem",
        "MPI_Put"
    ))]
    #[inline]
    #[track_caller]
    pub fn put<T: Pod>(&self, dst: Sym<T>, source: &[T], pe: usize) -> Result<()> {
        self.put_as("put", dst, source, pe)
    }

    #[inline(always)]
    #[track_caller]
    fn put_as<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: &[T],
        pe: usize,
    ) -> Result<()> {
        if let [value] = source {
            return self.p_as(call, dst, *value, pe);
        }
        if source.len() <= dst.len()
            && let Some(span) = self.worker.peers.span(dst, pe)
        {
            span.copy_from(bytemuck::cast_slice(source));
            self.worker.peers.note_store(pe);
            return Ok(());
        }
        self.put_slow(call, dst.start(), dst.len(), source, pe)
    }

    /// Gets the start of `src` on PE `pe` into all of `destination`. Returns when the data is there
    /// (M16).
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(2, |world| {
    ///         let row = world.alloc::<u32>(4)?;
    ///         world.write(row, &[world.my_pe() as u32; 4])?;
    ///         world.barrier_all()?; // both have written
    ///         let peer = 1 - world.my_pe();
    ///         let mut theirs = [0; 3];
    ///         world.get(&mut theirs, row.range(1..)?, peer)?;
    ///         assert_eq!(theirs, [peer as u32; 3]);
    ///         world.barrier_all() // both have read
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias(
        "shmem_getmem",
        "shmem_get",
        "nvshmem_get",
        "nvshmem_getmem",
        "MPI_Get"
    ))]
    #[inline]
    #[track_caller]
    pub fn get<T: Pod>(&self, destination: &mut [T], src: Sym<T>, pe: usize) -> Result<()> {
        self.get_as("get", destination, src, pe)
    }

    #[inline(always)]
    #[track_caller]
    pub(crate) fn get_as<T: Pod>(
        &self,
        call: &'static str,
        destination: &mut [T],
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        if destination.len() <= src.len()
            && let Some(span) = self.worker.peers.span(src, pe)
        {
            span.copy_to(bytemuck::cast_slice_mut(destination));
            self.worker.order_read(span);
            return Ok(());
        }
        self.get_slow(call, destination, src.start(), src.len(), pe)
    }

    /// Puts one value into the first element of `dst` on PE `pe`: `world.p(x.at(3)?, 7, pe)?`.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (me, n) = (world.my_pe(), world.n_pes());
    ///         let all = world.alloc::<u64>(n)?;
    ///         for pe in 0..n {
    ///             world.p(all.at(me)?, me as u64, pe)?; // into element `me` of each PE's
    ///         }
    ///         world.barrier_all()?;
    ///         let mut seen = vec![0; n];
    ///         world.read(&mut seen, all)?;
    ///         assert_eq!(seen, [0, 1, 2]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_p", "nvshmem_p"))]
    #[inline(always)]
    #[track_caller]
    pub fn p<T: Pod>(&self, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        self.p_as("p", dst, value, pe)
    }

    #[inline(always)]
    #[track_caller]
    fn p_as<T: Pod>(&self, call: &'static str, dst: Sym<T>, value: T, pe: usize) -> Result<()> {
        if self.try_p(dst, value, pe) {
            return Ok(());
        }
        self.p_slow(call, dst.start(), dst.len(), value, pe)
    }

    /// [`p`](Self::p) where it is a store of this CPU; else nothing is done, and the result is false.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_p<T: Pod>(&self, dst: Sym<T>, value: T, pe: usize) -> bool {
        if dst.is_empty() {
            return false;
        }
        if let Some(span) = self.worker.peers.clean_store_span(dst, pe) {
            span.store(value);
            return true;
        }
        // The first store to this PE after a quiet.
        let Some(span) = self.worker.peers.span(dst, pe) else {
            return false;
        };
        span.store(value);
        self.worker.peers.mark_dirty(pe);
        true
    }

    /// Gets the first element of `src` on PE `pe`.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(3, |world| {
    ///         let (me, n) = (world.my_pe(), world.n_pes());
    ///         let own = world.alloc::<u64>(1)?;
    ///         world.write(own, &[10 + me as u64])?;
    ///         world.barrier_all()?;
    ///         let right = (me + 1) % n;
    ///         assert_eq!(world.g(own, right)?, 10 + right as u64);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias("shmem_g", "nvshmem_g"))]
    #[inline(always)]
    #[track_caller]
    pub fn g<T: Pod>(&self, src: Sym<T>, pe: usize) -> Result<T> {
        if let Some(value) = self.try_g(src, pe) {
            return Ok(value);
        }
        self.g_slow(src.start(), src.len(), pe)
    }

    /// [`g`](Self::g) where it is a load of this CPU; else nothing is done.
    #[inline(always)]
    #[must_use]
    pub(crate) fn try_g<T: Pod>(&self, src: Sym<T>, pe: usize) -> Option<T> {
        let span = self
            .worker
            .peers
            .span(src, pe)
            .filter(|_| !src.is_empty())?;
        let value = span.load();
        self.worker.order_read(span);
        Some(value)
    }

    /// Writes this PE's own copy: a store, which the fences and quiets of every context concern (M17, M19),
    /// or in GPU memory a put to itself that is complete when the call returns.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(1, |world| {
    ///         let own = world.alloc::<u64>(3)?;
    ///         world.write(own, &[1, 2, 3])?;
    ///         let mut seen = [0; 3];
    ///         world.read(&mut seen, own)?;
    ///         assert_eq!(seen, [1, 2, 3]);
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    #[track_caller]
    pub fn write<T: Pod>(&self, dst: Sym<T>, source: &[T]) -> Result<()> {
        self.put_as("write", dst, source, self.my_pe())?;
        if dst.tag() == self.worker.tag {
            self.worker.note_own_store();
            return Ok(());
        }
        Ok(self.worker.in_call("write").make_own_gpu_visible()?)
    }

    /// Reads this PE's own copy: a get from itself.
    #[inline]
    #[track_caller]
    pub fn read<T: Pod>(&self, destination: &mut [T], src: Sym<T>) -> Result<()> {
        self.get_as("read", destination, src, self.my_pe())
    }

    /// Puts `count` elements, every `src_stride`-th of `source`, to every `dst_stride`-th of `dst`.
    /// Strides are in elements and at least 1.
    #[doc(alias("shmem_iput", "nvshmem_iput"))]
    #[track_caller]
    pub fn iput<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let blocks = Blocks::of_put(dst_stride, src_stride, 1, count);
        self.put_blocks("iput", dst, source, blocks, pe)
    }

    /// Gets `count` elements, every `src_stride`-th of `src`, to every `dst_stride`-th of
    /// `destination`. Strides are in elements and at least 1.
    #[doc(alias("shmem_iget", "nvshmem_iget"))]
    #[track_caller]
    pub fn iget<T: Pod>(
        &self,
        destination: &mut [T],
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let blocks = Blocks::of_get(dst_stride, src_stride, 1, count);
        self.get_blocks("iget", destination, src, blocks, pe)
    }

    /// Puts `blocks` blocks of `block` contiguous elements; strides, in elements, run from block
    /// start to block start and are at least `block`.
    #[doc(alias = "shmem_ibput")]
    #[expect(clippy::too_many_arguments, reason = "OpenSHMEM's ibput has these")]
    #[track_caller]
    pub fn ibput<T: Pod>(
        &self,
        dst: Sym<T>,
        source: &[T],
        dst_stride: usize,
        src_stride: usize,
        block: usize,
        blocks: usize,
        pe: usize,
    ) -> Result<()> {
        let blocks = Blocks::of_put(dst_stride, src_stride, block, blocks);
        self.put_blocks("ibput", dst, source, blocks, pe)
    }

    /// Gets `blocks` blocks of `block` contiguous elements; strides as in [`ibput`](Self::ibput).
    #[doc(alias = "shmem_ibget")]
    #[expect(clippy::too_many_arguments, reason = "OpenSHMEM's ibget has these")]
    #[track_caller]
    pub fn ibget<T: Pod>(
        &self,
        destination: &mut [T],
        src: Sym<T>,
        dst_stride: usize,
        src_stride: usize,
        block: usize,
        blocks: usize,
        pe: usize,
    ) -> Result<()> {
        let blocks = Blocks::of_get(dst_stride, src_stride, block, blocks);
        self.get_blocks("ibget", destination, src, blocks, pe)
    }

    #[track_caller]
    fn put_blocks<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: &[T],
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        placed(|| {
            self.in_call(call).check(dst, 0, pe)?;
            blocks.check(call, dst)?;
            blocks.check_local(call, source.len())?;
            // SAFETY: the blocks lie within `source`.
            unsafe { self.put_blocks_raw(call, dst, source.as_ptr(), blocks, pe) }
        })
    }

    #[track_caller]
    fn get_blocks<T: Pod>(
        &self,
        call: &'static str,
        destination: &mut [T],
        src: Sym<T>,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        placed(|| {
            self.in_call(call).check(src, 0, pe)?;
            blocks.check(call, src)?;
            blocks.check_local(call, destination.len())?;
            // SAFETY: the blocks lie within `destination`.
            unsafe { self.get_blocks_raw(call, destination.as_mut_ptr(), src, blocks, pe) }
        })
    }

    // Takes the value itself, and the object's start, which registers hold: for a reference, or an object of three words, the
    // fast path would store them to the stack.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn p_slow<T: Pod>(
        &self,
        call: &'static str,
        dst: ObjectStart,
        len: usize,
        value: T,
        pe: usize,
    ) -> Result<()> {
        self.put_slow(call, dst, len, std::slice::from_ref(&value), pe)
    }

    // Takes the object's start, as `p_slow`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn g_slow<T: Pod>(&self, src: ObjectStart, len: usize, pe: usize) -> Result<T> {
        let mut value = T::zeroed();
        let src = Sym::starting_at(src, len);
        // SAFETY: `value` lives longer than the call, and any bytes are a `T: Pod`.
        unsafe {
            self.in_call("g")
                .get_raw_slow(&raw mut value, src, 1, pe, false)?;
        }
        Ok(value)
    }

    // Out of line, and the object in parts, as `p_slow`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn put_slow<T: Pod>(
        &self,
        call: &'static str,
        dst: ObjectStart,
        len: usize,
        source: &[T],
        pe: usize,
    ) -> Result<()> {
        let dst = Sym::starting_at(dst, len);
        // SAFETY: `source` is borrowed for the call.
        unsafe {
            self.in_call(call)
                .put_raw_slow(dst, source.as_ptr(), source.len(), pe, false)
        }
    }

    // As `put_slow`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn get_slow<T: Pod>(
        &self,
        call: &'static str,
        destination: &mut [T],
        src: ObjectStart,
        len: usize,
        pe: usize,
    ) -> Result<()> {
        let src = Sym::starting_at(src, len);
        let (into, len) = (destination.as_mut_ptr(), destination.len());
        // SAFETY: `destination` is borrowed for the call, and any bytes are a `T: Pod`.
        unsafe { self.in_call(call).get_raw_slow(into, src, len, pe, false) }
    }
}
