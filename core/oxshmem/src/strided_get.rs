//! Strided gets on lanes: each block is posted, and the last one is waited for.

use bytemuck::Pod;
use oxshmem_transport::Op;

use super::access_path::AccessPath;
use super::endpoint::Endpoint;
use super::in_flight::{Effect, Until};
use super::local_buffer::LocalBuffer;
use super::target::{LanePeer, RemoteTarget};
use crate::context::Context;
use crate::error::Result;
use crate::order::OpKind;
use crate::order::conflict::Access;
use crate::stats::Kind;
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
        call: &'static str,
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
                unsafe { self.get_block(call, into, from, pe, last, &mut in_flight) }
            };
            result = match before {
                Some(endpoint) => self.lending(LanePeer { call, endpoint, pe }, get),
                None => get(),
            };
            if result.is_err() {
                break;
            }
        }
        match in_flight {
            // They write to memory that is the caller's again.
            Some(endpoint) if result.is_err() => {
                self.fail_or_complete(LanePeer { call, endpoint, pe }, result)
            }
            _ => result,
        }
    }

    /// One of them; `in_flight` is the lane on which some before it may have yet to arrive.
    ///
    /// # Safety
    ///
    /// `into` is writable for the block, until the last of them has arrived or the lane was dropped.
    unsafe fn get_block<'w, T: Pod>(
        &'w self,
        call: &'static str,
        into: *mut u8,
        from: Sym<T>,
        pe: usize,
        last: bool,
        in_flight: &mut Option<&'w Endpoint>,
    ) -> Result<()> {
        self.point();
        self.guard(call, Access::Get, from, from.len(), pe, false)?;
        self.count(Kind::Get, from, from.bytes(), pe);
        match self.access_path(call, OpKind::Put, from, pe)? {
            AccessPath::Lane(endpoint, remote) if !last && !from.is_empty() => {
                let peer = LanePeer { call, endpoint, pe };
                let destination = LocalBuffer::at(into, from.bytes());
                // SAFETY: the caller waits for a later block's completion, or has the lane dropped,
                // while the bytes are writable.
                let posted = unsafe { self.start_get(peer, remote, destination)? };
                *in_flight = posted.then_some(endpoint).or(*in_flight);
                Ok(())
            }
            // The wait for this block is one for those before it, too.
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
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        destination: LocalBuffer,
    ) -> Result<bool> {
        let LanePeer { call, endpoint, .. } = peer;
        let len = destination.len;
        let (from, rest) = remote.locate(endpoint, 0);
        let into = self.local_whole(endpoint, destination, endpoint.caps.get);
        // A get that has to see earlier puts waits for them.
        let at_once = endpoint.guarantees(remote.kind).put_get && len <= rest;
        match into.filter(|_| at_once) {
            Some(into) => {
                let into = into.local;
                let op = Op::Get { into, from };
                // SAFETY: the caller's promise.
                let post = || unsafe { self.post(peer, op, Until::Posted, Effect::Read) };
                self.lending(peer, post)?;
                Ok(true)
            }
            None => {
                // SAFETY: the bytes are writable during the call, which waits for them.
                unsafe { self.lane_get(call, endpoint, remote, destination)? };
                Ok(false)
            }
        }
    }
}
