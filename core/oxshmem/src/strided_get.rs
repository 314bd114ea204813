//! Strided gets on lanes: each block is posted, and the last one is waited for.

use bytemuck::Pod;
use oxshmem_engine::lane::endpoint::Endpoint;
use oxshmem_engine::lane::local_buffer::LocalBuffer;
use oxshmem_engine::lane::remote::LanePeer;
use oxshmem_engine::ops::access_path::AccessPath;
use oxshmem_engine::order::conflict::Access;
use oxshmem_engine::order::op_set::OpKind;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::stats::counters::Kind;
use crate::strided::Blocks;
use crate::sym::Sym;

impl Context<'_> {
    /// Gets blocks of `src` from a PE, by its number in the world; the caller has checked all. Returns when they have
    /// arrived (M16).
    ///
    /// # Safety
    ///
    /// `destination` is writable where blocks of it lie.
    #[cold]
    pub(crate) unsafe fn get_blocks_slow<T: Pod>(
        &self,
        destination: *mut T,
        src: Sym<T>,
        blocks: Blocks,
        pe: usize,
    ) -> Result<()> {
        let mut in_flight = None;
        let mut result = Ok(());
        for i in 0..blocks.count {
            let at = i * blocks.remote_stride;
            let into = destination.wrapping_add(i * blocks.local_stride).cast();
            let last = i + 1 == blocks.count;
            let before: Option<&Endpoint> = in_flight;
            let mut get = || {
                let from = src.range(at..at + blocks.block_len)?;
                // SAFETY: the caller's promise.
                unsafe { self.get_block(into, from, pe, last, &mut in_flight) }
            };
            result = match before {
                Some(endpoint) => self.worker.lending(LanePeer { endpoint, pe }, get),
                None => get(),
            };
            if result.is_err() {
                break;
            }
        }
        match in_flight {
            // They write to memory that is the caller's again.
            Some(endpoint) if result.is_err() => {
                let is_lost =
                    matches!(&result, Err(Error::PeerLost { pe: lost, .. }) if *lost == pe);
                if let Err(error) = &result {
                    let peer = LanePeer { endpoint, pe };
                    self.worker.cancel_in_flight(peer, error, is_lost);
                }
            }
            _ => {}
        }
        result
    }

    /// One of them; `in_flight` is the lane on which some before it may have yet to arrive.
    ///
    /// # Safety
    ///
    /// `into` is writable for the block, until the last of them has arrived or the lane was dropped.
    unsafe fn get_block<'w, T: Pod>(
        &'w self,
        into: *mut u8,
        from: Sym<T>,
        pe: usize,
        last: bool,
        in_flight: &mut Option<&'w Endpoint>,
    ) -> Result<()> {
        self.worker.yield_point();
        self.guard(Access::Get, from, from.len(), pe, false)?;
        self.count(Kind::Get, from, from.bytes(), pe);
        match self.worker.access_path(OpKind::Put, from, pe)? {
            AccessPath::Lane(endpoint, remote) if !last && !from.is_empty() => {
                let peer = LanePeer { endpoint, pe };
                let destination = LocalBuffer::at(into, from.bytes());
                // SAFETY: the caller waits for a later block's completion, or has the lane dropped,
                // while the bytes are writable.
                let posted = unsafe { self.worker.start_get(peer, remote, destination)? };
                *in_flight = posted.then_some(endpoint).or(*in_flight);
                Ok(())
            }
            // The wait for this block is one for those before it, too.
            // SAFETY: the caller's promise.
            _ => unsafe {
                let into = LocalBuffer::at(into, from.bytes());
                Ok(self.worker.get_raw(into, from.into(), pe, false)?)
            },
        }
    }
}
