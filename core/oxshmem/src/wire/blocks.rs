//! Strided gets on lanes: block after block is posted, and the last is waited for.

use bytemuck::Pod;
use oxshmem_transport::Op;

use super::{Channel, Far, Leaves, Path, Side, Until};
use crate::check::Access;
use crate::mapped::Bytes;
use crate::order::Class;
use crate::{Context, Result, Sym};

impl Context<'_> {
    /// Gets blocks of `src`, each from an element on. Returns when they are there (M16).
    #[cold]
    pub(crate) fn get_blocks_slow<'d, T: Pod>(
        &self,
        call: &'static str,
        blocks: impl Iterator<Item = (usize, &'d mut [T])>,
        src: Sym<T>,
        pe: usize,
    ) -> Result<()> {
        let pe = self.check(call, src, 0, pe)?;
        let mut blocks = blocks.peekable();
        let mut under_way = None;
        let mut result = Ok(());
        while let Some((at, block)) = blocks.next()
            && result.is_ok()
        {
            let last = blocks.peek().is_none();
            result = self.get_block(call, (at, block), src, pe, last, &mut under_way);
        }
        match under_way {
            // They write to what is the caller's again.
            Some(via) if result.is_err() => self.settle(via, pe, result),
            _ => result,
        }
    }

    /// One of them; `under_way` is the lane on which some before it may have yet to arrive.
    fn get_block<'w, T: Pod>(
        &'w self,
        call: &'static str,
        (at, block): (usize, &mut [T]),
        src: Sym<T>,
        pe: usize,
        last: bool,
        under_way: &mut Option<&'w Channel>,
    ) -> Result<()> {
        let from = src.range(at..at + block.len())?;
        self.point();
        self.guard(call, Access::Get, from, block.len(), pe, false)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(block);
        match self.path(call, Class::Put, from, pe)? {
            Path::Near(place) => {
                place.copy_to(bytes);
                self.order_read_slow(place);
                Ok(())
            }
            Path::Lane(via, far) if last || bytes.is_empty() => {
                // SAFETY: the bytes are borrowed for the call, which waits for them, and so for those
                // before.
                unsafe { self.wire_get(call, via, far, Side::written(bytes)) }
            }
            Path::Lane(via, far) => {
                // SAFETY: the caller waits for a later block's completion, or has the lane dropped,
                // while the bytes are borrowed.
                let posted = unsafe { self.start_get(call, via, far, bytes)? };
                *under_way = posted.then_some(via).or(*under_way);
                Ok(())
            }
            // SAFETY: the bytes are borrowed for the call.
            Path::Staged(far) => unsafe {
                self.staged_get(call, far, bytes.as_mut_ptr(), bytes.len())
            },
        }
    }

    /// Posts a get. Gives whether it may yet have to arrive.
    ///
    /// # Safety
    ///
    /// The bytes stay borrowed until a later get of this lane has completed, or the lane was dropped.
    unsafe fn start_get(
        &self,
        call: &'static str,
        via: &Channel,
        far: Far,
        bytes: &mut [u8],
    ) -> Result<bool> {
        let (len, destination) = (bytes.len(), Side::written(bytes));
        let (from, rest) = far.locate(via, 0);
        let into = self.near_whole(via, destination, via.caps.get);
        // One that has to see what was put waits for that.
        let at_once = via.guarantees(far.kind).put_get && len <= rest;
        match into.filter(|_| at_once) {
            Some(into) => {
                let into = into.local;
                let op = Op::Get { into, from };
                // SAFETY: the caller's promise.
                unsafe { self.post(call, via, far.pe, op, Until::Posted, Leaves::Nothing)? };
                Ok(true)
            }
            None => {
                // SAFETY: the bytes are borrowed for the call, which waits for them.
                unsafe { self.wire_get(call, via, far, destination)? };
                Ok(false)
            }
        }
    }
}
