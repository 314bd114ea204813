//! Strided transfers: blocks of elements at a stride in the symmetric object and at another in local memory (M16).

use bytemuck::Pod;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::order::conflict::Access;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::stats::counters::Kind;
use crate::sym::Sym;

/// The layout of a strided transfer, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// From the start of one block to that of the next in the symmetric object; at least `block_len`, and 1.
    pub remote_stride: usize,
    /// The same in local memory.
    pub local_stride: usize,
    /// Elements of a block.
    pub block_len: usize,
    /// Number of blocks.
    pub count: usize,
}

impl Blocks {
    /// The layout of a put: its destination is the symmetric object.
    #[must_use]
    pub const fn of_put(
        dst_stride: usize,
        src_stride: usize,
        block_len: usize,
        count: usize,
    ) -> Self {
        Blocks {
            remote_stride: dst_stride,
            local_stride: src_stride,
            block_len,
            count,
        }
    }

    /// The layout of a get: its source is the symmetric object.
    #[must_use]
    pub const fn of_get(
        dst_stride: usize,
        src_stride: usize,
        block_len: usize,
        count: usize,
    ) -> Self {
        Self::of_put(src_stride, dst_stride, block_len, count)
    }

    /// The elements that the blocks span at a stride; none if that overflows.
    fn span(self, stride: usize) -> Option<usize> {
        if self.count == 0 || self.block_len == 0 {
            return Some(0);
        }
        stride
            .checked_mul(self.count - 1)?
            .checked_add(self.block_len)
    }

    /// The elements that they span in the symmetric object; `usize::MAX` if that overflows.
    #[must_use]
    pub fn remote_span(self) -> usize {
        self.span(self.remote_stride).unwrap_or(usize::MAX)
    }

    /// Refuses strides below the block's size, and a span that leaves the symmetric object.
    pub(crate) fn check<T: Pod>(self, call: &'static str, remote: Sym<T>) -> Result<()> {
        let least = self.block_len.max(1);
        if self.remote_stride < least || self.local_stride < least {
            return Err(Error::Argument {
                call,
                what: format!(
                    "strides {} and {} must be at least the block's {least} elements",
                    self.remote_stride, self.local_stride
                ),
            });
        }
        match self.span(self.remote_stride) {
            Some(end) if end <= remote.len() => Ok(()),
            end => Err(Error::OutOfRange {
                call,
                start: 0,
                end: end.unwrap_or(usize::MAX),
                len: remote.len(),
            }),
        }
    }

    /// Refuses a span of local memory that is longer than any memory.
    fn check_length<T>(self, call: &'static str) -> Result<()> {
        self.check_local(call, isize::MAX as usize / size_of::<T>().max(1))
    }

    /// Refuses a span that leaves `len` elements of local memory.
    pub(crate) fn check_local(self, call: &'static str, len: usize) -> Result<()> {
        match self.span(self.local_stride) {
            Some(needed) if needed <= len => Ok(()),
            needed => Err(Error::BufferTooSmall {
                call,
                len,
                needed: needed.unwrap_or(usize::MAX),
            }),
        }
    }

    /// Whether there is nothing to copy, however many blocks there are.
    fn is_nothing<T>(self) -> bool {
        self.block_len == 0 || size_of::<T>() == 0
    }
}

impl Context<'_> {
    /// [`ibput`](Self::ibput) from raw memory.
    ///
    /// # Safety
    ///
    /// `source` is readable where blocks of it lie.
    pub(crate) unsafe fn put_blocks_raw<T: Pod>(
        &self,
        call: &'static str,
        dst: Sym<T>,
        source: *const T,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let in_world = self.in_call(call).check(dst, 0, pe)?;
        blocks.check(call, dst)?;
        if blocks.is_nothing::<T>() {
            return Ok(());
        }
        blocks.check_length::<T>(call)?;
        let Blocks {
            remote_stride,
            local_stride,
            block_len,
            count,
        } = blocks;
        let span = self.worker.peers.span(dst, pe);
        for i in 0..count {
            let from = source.wrapping_add(i * local_stride);
            match span {
                Some(span) => {
                    let at = i * remote_stride * size_of::<T>();
                    let bytes = block_len * size_of::<T>();
                    // SAFETY: the caller promises a readable block, and `check` found the object to have this one.
                    unsafe { span.part(at, bytes).copy_from_raw(from.cast(), bytes) };
                }
                None => {
                    let start = i * remote_stride;
                    let to = dst.range(start..start + block_len)?;
                    self.worker.yield_point();
                    self.in_call(call)
                        .guard(Access::Put, to, block_len, in_world, true)?;
                    self.count(Kind::Put, to, to.bytes(), in_world);
                    // SAFETY: the caller promises a readable block.
                    unsafe {
                        let (from, bytes) = (from.cast(), to.bytes());
                        let source = LocalBuffer::at(from, bytes);
                        self.worker
                            .in_call(call)
                            .put_raw(to.into(), source, in_world, false)?;
                    }
                }
            }
        }
        if span.is_some() {
            self.worker.peers.note_store(pe);
        }
        Ok(())
    }

    /// [`ibget`](Self::ibget) into raw memory.
    ///
    /// # Safety
    ///
    /// `destination` is writable where blocks of it lie.
    pub(crate) unsafe fn get_blocks_raw<T: Pod>(
        &self,
        call: &'static str,
        destination: *mut T,
        src: Sym<T>,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let in_world = self.in_call(call).check(src, 0, pe)?;
        blocks.check(call, src)?;
        if blocks.is_nothing::<T>() {
            return Ok(());
        }
        blocks.check_length::<T>(call)?;
        let Some(span) = self.worker.peers.span(src, pe) else {
            // SAFETY: the caller promises writable blocks.
            return unsafe {
                self.in_call(call)
                    .get_blocks_slow(destination, src, blocks, in_world)
            };
        };
        for i in 0..blocks.count {
            let at = i * blocks.remote_stride * size_of::<T>();
            let bytes = blocks.block_len * size_of::<T>();
            let into = destination.wrapping_add(i * blocks.local_stride);
            // SAFETY: the caller promises a writable block, and `check` found the object to have this one.
            unsafe { span.part(at, bytes).copy_to_raw(into.cast(), bytes) };
        }
        self.worker.order_read(span);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::strided::Blocks;
    use crate::testing::spmd;

    #[test]
    fn m16_blocks_that_span_more_than_there_is_memory_are_refused() {
        spmd(1, |world| {
            let x = world.alloc::<u64>(4)?;
            let mut mine = [0u64; 1];
            // One block is where the first is, whatever comes after it.
            for (local_stride, count, is_right) in [
                (usize::MAX, 1, true),
                (usize::MAX, 3, false),
                (usize::MAX / 8, 3, false),
            ] {
                let blocks = Blocks::of_put(1, local_stride, 1, count);
                // SAFETY: one element, or none where it is refused, which the array has.
                let put = unsafe { world.put_blocks_raw("test", x, mine.as_ptr(), blocks, 0) };
                // SAFETY: as above.
                let got = unsafe { world.get_blocks_raw("test", mine.as_mut_ptr(), x, blocks, 0) };
                assert_eq!(
                    (put.is_ok(), got.is_ok()),
                    (is_right, is_right),
                    "{blocks:?}"
                );
            }
            world.free(x)
        })
        .unwrap();
    }
}
