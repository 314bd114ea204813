//! Atomics on lanes.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{AtomicLevel, AtomicOp, Capabilities, Local, Op, Width};

use crate::error::{Error, Result};
use crate::lane::endpoint::Endpoint;
use crate::lane::in_flight::{Effect, Until};
use crate::lane::remote::{AtomicsBy, LanePeer, RemoteTarget};
use crate::order::fence_site::FenceSite;
use crate::order::op_set::{OpKind, OpSet};
use crate::worker::Worker;
use oxshmem_transport::AtomicRequest;

/// The destination of an atomic's old value.
#[derive(Clone, Copy)]
struct FetchInto {
    addr: *mut u8,
    until: Until,
}

/// Whether to use the transport's own operation. All operations on a word must run in one domain
/// (M29): the CPU's, or that of its PE's NIC. In a NIC's domain a plain write could be lost within an
/// atomic of the NIC, so writes are atomics of it, too; plain reads are safe.
fn is_native(caps: &Capabilities, remote: RemoteTarget, op: AtomicOp, width: Width) -> bool {
    match caps.atomics.level(op, width) {
        AtomicLevel::None => false,
        AtomicLevel::Nic => remote.atomics == AtomicsBy::Nic,
        AtomicLevel::Cpu => match remote.atomics {
            AtomicsBy::Transport => true,
            AtomicsBy::Nic => op == AtomicOp::Fetch,
            AtomicsBy::TargetCpu => false,
        },
    }
}

impl Worker {
    /// An atomic; gives the old value if it is `fetching`, and is else in flight until a fence or
    /// quiet. An operation that the transport lacks is made of compare-swap, if that is of the same level (M29).
    pub fn lane_amo(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        request: AtomicRequest,
        fetching: bool,
    ) -> Result<u64> {
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        if remote.atomics == AtomicsBy::TargetCpu {
            return self.message_atomic(peer, remote, request, fetching);
        }
        let AtomicRequest { op, width, .. } = request;
        let caps = &endpoint.caps;
        // A read must see this PE's own puts, as a get does.
        let overtakes =
            !endpoint.guarantees(pe, remote.kind).put_atomic || endpoint.has_long_puts(pe);
        let reads = op == AtomicOp::Fetch && overtakes;
        if reads && self.inserts(FenceSite::ReadLane) {
            self.flush(peer)?;
        }
        if is_native(caps, remote, op, width) {
            return if fetching {
                self.fetch_atomic(peer, remote, request)
            } else {
                // SAFETY: no local memory takes part.
                unsafe { self.post_atomic(peer, remote, request, None)? };
                Ok(0)
            };
        }
        if !is_native(caps, remote, AtomicOp::CompareSwap, width) {
            return Err(Error::Unsupported {
                call: self.call(),
                transport: endpoint.name,
                pe,
                what: format!(
                    "{width}-bit atomic {op} coherent with the CPU, nor compare_swap to make it of"
                ),
            });
        }
        let mut seen = 0;
        loop {
            let swap = AtomicRequest {
                op: AtomicOp::CompareSwap,
                width,
                operand: request.applied_to(seen),
                compare: seen,
            };
            let old = self.fetch_atomic(peer, remote, swap)?;
            if old == seen {
                return Ok(old);
            }
            seen = old;
        }
    }

    /// An atomic, and a wait for its old value.
    fn fetch_atomic(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        request: AtomicRequest,
    ) -> Result<u64> {
        let mut old = 0_u64;
        let result = Some(FetchInto {
            addr: (&raw mut old).cast::<u8>(),
            until: Until::Reusable,
        });
        // SAFETY: `old` outlives the wait for completion.
        let post = || unsafe { self.post_atomic(peer, remote, request, result) };
        self.lending(peer, post)?;
        fence(Ordering::Acquire);
        Ok(match request.width {
            Width::W64 => old,
            // The low half was written (little-endian) or the first four bytes (else).
            Width::W32 => {
                let [a, b, c, d, ..] = old.to_ne_bytes();
                u32::from_ne_bytes([a, b, c, d]).into()
            }
        })
    }

    /// Posts an atomic; its old value goes to `result`, if any.
    ///
    /// # Safety
    ///
    /// `result` stays writable for the width's bytes and untouched until the operation has
    /// completed, or until the lane is dropped.
    #[inline(always)]
    unsafe fn post_atomic(
        &self,
        peer: LanePeer<'_>,
        remote: RemoteTarget,
        request: AtomicRequest,
        result: Option<FetchInto>,
    ) -> Result<()> {
        let AtomicRequest {
            op,
            width,
            operand,
            compare,
        } = request;
        let posted = Op::Atomic {
            op,
            width,
            on: remote.word(peer.endpoint),
            operand,
            compare,
            fetch: result.map(|into| Local {
                addr: into.addr,
                len: width.bytes(),
                key: None,
            }),
        };
        let update = OpSet::of(OpKind::Atomic, remote.kind);
        let (until, effect) = match result.map(|into| into.until) {
            None => (Until::Posted, Effect::Write(update)),
            // The old value proves that it was performed.
            Some(until @ (Until::Reusable | Until::Completed)) => (until, Effect::Read),
            Some(Until::Posted) if op == AtomicOp::Fetch => {
                (Until::Posted, Effect::FetchNbi(OpSet::NONE))
            }
            Some(Until::Posted) => (Until::Posted, Effect::FetchNbi(update)),
        };
        if op != AtomicOp::Fetch {
            self.state.lanes.note_gpu_update(peer.endpoint, remote);
        }
        if result.is_none() && self.state.batches.get() {
            // SAFETY: no local memory takes part.
            return unsafe { self.post_batched(peer, posted, effect) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.post(peer, posted, until, effect) }
    }

    /// A fetching atomic whose result the next quiet completes.
    ///
    /// # Safety
    ///
    /// `result` stays writable for the width's bytes and untouched until then, or until the lane is
    /// dropped.
    pub unsafe fn lane_amo_nbi(
        &self,
        endpoint: &Endpoint,
        remote: RemoteTarget,
        request: AtomicRequest,
        result: *mut u8,
    ) -> Result<()> {
        if !is_native(&endpoint.caps, remote, request.op, request.width) {
            let old = self.lane_amo(endpoint, remote, request, true)?;
            match request.width {
                // SAFETY: the caller promises 4 writable bytes; they need not be aligned here.
                Width::W32 => unsafe { result.cast::<u32>().write_unaligned(old as u32) },
                // SAFETY: the caller promises 8 writable bytes.
                Width::W64 => unsafe { result.cast::<u64>().write_unaligned(old) },
            }
            return Ok(());
        }
        let pe = remote.pe;
        let peer = LanePeer { endpoint, pe };
        let result = Some(FetchInto {
            addr: result,
            until: Until::Posted,
        });
        // SAFETY: the caller's promise.
        unsafe { self.post_atomic(peer, remote, request, result) }
    }
}
