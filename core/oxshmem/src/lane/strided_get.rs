//! Strided gets on lanes: block after block is posted, and the last is waited for.

use bytemuck::Pod;
use oxshmem_transport::Op;

use super::{AccessPath, Effect, Endpoint, LocalBuffer, RemoteTarget, Until};
use crate::check::Access;
use crate::order::OpKind;
use crate::stats::Kind;
use crate::strided::Blocks;
use crate::{Context, Result, Sym};

impl Context<'_> {
    /// Gets blocks of `src` from a PE, by its number in the world; the caller has checked all. Returns when they are there
    /// (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable where blocks of it lie.
    #[cold]
    pub(crate) unsafe fn get_blocks_slow<T: Pod>(
        &self,
        call: &'static str,
        destination: *mut T,
        src: Sym<T>,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let mut under_way = None;
        let mut result = Ok(());
        for i in 0..blocks.count {
            let at = i * blocks.remote_stride;
            let into = destination.wrapping_add(i * blocks.local_stride).cast();
            let last = i + 1 == blocks.count;
            let before: Option<&Endpoint> = under_way;
            let mut get = || {
                let from = src.range(at..at + blocks.block_len)?;
                // SAFETY: the caller's promise.
                unsafe { self.get_block(call, into, from, pe, last, &mut under_way) }
            };
            result = match before {
                Some(via) => self.lending(via, pe, get),
                None => get(),
            };
            if result.is_err() {
                break;
            }
        }
        match under_way {
            // They write to what is the caller's again.
            Some(via) if result.is_err() => self.fail_or_complete(via, pe, result),
            _ => result,
        }
    }

    /// One of them; `under_way` is the lane on which some before it may have yet to arrive.
    ///
    /// # Safety
    ///
    /// `into` is writable for the block, until the last of them has come or the lane was dropped.
    unsafe fn get_block<'w, T: Pod>(
        &'w self,
        call: &'static str,
        into: *mut u8,
        from: Sym<T>,
        pe: usize,
        last: bool,
        under_way: &mut Option<&'w Endpoint>,
    ) -> Result<()> {
        self.point();
        self.guard(call, Access::Get, from, from.len(), pe, false)?;
        self.count(Kind::Get, from, from.bytes(), pe);
        match self.path(call, OpKind::Put, from, pe)? {
            AccessPath::Lane(via, far) if !last && !from.is_empty() => {
                // SAFETY: the caller waits for a later block's completion, or has the lane dropped,
                // while the bytes are writable.
                let posted =
                    unsafe { self.start_get(call, via, far, LocalBuffer::at(into, from.bytes()))? };
                *under_way = posted.then_some(via).or(*under_way);
                Ok(())
            }
            // What waits for this block waits for those before.
            // SAFETY: the caller's promise.
            _ => unsafe { self.get_raw_by_path(call, into, from.bytes(), from, pe, false) },
        }
    }

    /// Posts a get. Gives whether it may yet have to arrive.
    ///
    /// # Safety
    ///
    /// The bytes stay writable until a later get of this lane has completed, or the lane was dropped.
    unsafe fn start_get(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<bool> {
        let len = destination.len;
        let (from, rest) = far.locate(via, 0);
        let into = self.near_whole(via, destination, via.caps.get);
        // One that has to see what was put waits for that.
        let at_once = via.guarantees(far.kind).put_get && len <= rest;
        match into.filter(|_| at_once) {
            Some(into) => {
                let into = into.local;
                let op = Op::Get { into, from };
                // SAFETY: the caller's promise.
                let post =
                    || unsafe { self.post(call, via, far.pe, op, Until::Posted, Effect::Nothing) };
                self.lending(via, far.pe, post)?;
                Ok(true)
            }
            None => {
                // SAFETY: the bytes are writable during the call, which waits for them.
                unsafe { self.lane_get(call, via, far, destination)? };
                Ok(false)
            }
        }
    }
}
