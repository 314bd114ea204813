//! Atomics on lanes.

use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{AtomicLevel, AtomicOp, Capabilities, Local, Op, Width};

use super::{AtomicsBy, Effect, Endpoint, RemoteTarget, Until};
use crate::order::{FenceSite, OpKind, OpSet};
use crate::{Context, Error, Result};

impl Context<'_> {
    /// An atomic; gives the old value if it is `fetching`, and is else under way until a fence or
    /// quiet. What the transport lacks is made of compare-swap, if that is of the same level (M29).
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(crate) fn lane_amo(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        width: Width,
        op: AtomicOp,
        (operand, compare): (u64, u64),
        fetching: bool,
    ) -> Result<u64> {
        if far.atomics == AtomicsBy::Target {
            return self.message_atomic(call, via, far, width, op, (operand, compare), fetching);
        }
        let caps = &via.caps;
        // A read sees this PE's own puts, as a get does.
        let reads = op == AtomicOp::Fetch && !via.guarantees(far.kind).put_atomic;
        if reads && self.inserts(FenceSite::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        if self.native_atomic(caps, far, op, width) {
            let operands = (operand, compare);
            return if fetching {
                self.fetch_atomic(call, via, far, width, op, operands)
            } else {
                // SAFETY: no local memory takes part.
                unsafe { self.post_atomic(call, via, far, width, op, operands, None)? };
                Ok(0)
            };
        }
        if !self.native_atomic(caps, far, AtomicOp::CompareSwap, width) {
            return Err(Error::Unsupported {
                call,
                transport: via.name,
                pe: far.pe,
                what: format!(
                    "{width}-bit atomic {op} coherent with the CPU, nor compare_swap to make it of"
                ),
            });
        }
        let mut seen = 0;
        loop {
            let next: u64 = match op {
                AtomicOp::Fetch => seen,
                AtomicOp::Set | AtomicOp::Swap => operand,
                AtomicOp::Add => seen.wrapping_add(operand),
                AtomicOp::And => seen & operand,
                AtomicOp::Or => seen | operand,
                AtomicOp::Xor => seen ^ operand,
                AtomicOp::CompareSwap => operand,
            };
            let next = if width == Width::W32 {
                next & 0xffff_ffff
            } else {
                next
            };
            let cas = AtomicOp::CompareSwap;
            let old = self.fetch_atomic(call, via, far, width, cas, (next, seen))?;
            if old == seen {
                return Ok(old);
            }
            seen = old;
        }
    }

    /// Whether to use the transport's own operation. All operations on a word must run in one domain
    /// (M29): the CPU's, or that of its PE's NIC. There a mere write could get lost within a NIC's
    /// atomic, so that one is made of atomics, too; a mere read cannot.
    fn native_atomic(
        &self,
        caps: &Capabilities,
        far: RemoteTarget,
        op: AtomicOp,
        width: Width,
    ) -> bool {
        match caps.atomics.level(op, width) {
            AtomicLevel::None => false,
            AtomicLevel::Nic => far.atomics == AtomicsBy::Nic,
            AtomicLevel::Cpu => match far.atomics {
                AtomicsBy::Lane => true,
                AtomicsBy::Nic => op == AtomicOp::Fetch,
                AtomicsBy::Target => false,
            },
        }
    }

    /// An atomic of which the old value is waited for.
    fn fetch_atomic(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        width: Width,
        op: AtomicOp,
        operands: (u64, u64),
    ) -> Result<u64> {
        let mut old = 0_u64;
        let addr = (&raw mut old).cast::<u8>();
        let result = Some((addr, Until::Completed));
        // SAFETY: `old` outlives the wait for completion.
        let post = || unsafe { self.post_atomic(call, via, far, width, op, operands, result) };
        self.lending(via, far.pe, post)?;
        fence(Ordering::Acquire);
        Ok(match width {
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
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    unsafe fn post_atomic(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        width: Width,
        op: AtomicOp,
        (operand, compare): (u64, u64),
        result: Option<(*mut u8, Until)>,
    ) -> Result<()> {
        let posted = Op::Atomic {
            op,
            width,
            on: far.word(via),
            operand,
            compare,
            fetch: result.map(|(addr, _)| Local {
                addr,
                len: width.bytes(),
                key: None,
            }),
        };
        let update = OpSet::of(OpKind::Atomic, far.kind);
        let (until, leaves) = match result {
            None => (Until::Posted, Effect::Update(update)),
            // Who has the old value knows that it was performed.
            Some((_, Until::Completed)) => (Until::Completed, Effect::Nothing),
            Some((_, Until::Posted)) if op == AtomicOp::Fetch => {
                (Until::Posted, Effect::Brings(OpSet::NONE))
            }
            Some((_, Until::Posted)) => (Until::Posted, Effect::Brings(update)),
        };
        if op != AtomicOp::Fetch {
            self.state.wire.gpu_due(via, far);
        }
        if result.is_none() && self.may_batch() {
            // SAFETY: no local memory takes part.
            return unsafe { self.post_together(call, via, far.pe, posted, leaves) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.post(call, via, far.pe, posted, until, leaves) }
    }

    /// A fetching atomic whose result the next quiet completes. `operands` are operand and compare.
    ///
    /// # Safety
    ///
    /// `result` stays writable for the width's bytes and untouched until then, or until the lane is
    /// dropped.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(crate) unsafe fn lane_amo_nbi(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        width: Width,
        op: AtomicOp,
        operands: (u64, u64),
        result: *mut u8,
    ) -> Result<()> {
        if !self.native_atomic(&via.caps, far, op, width) {
            let old = self.lane_amo(call, via, far, width, op, operands, true)?;
            match width {
                // SAFETY: the caller promises 4 writable bytes; they need not be aligned here.
                Width::W32 => unsafe { result.cast::<u32>().write_unaligned(old as u32) },
                // SAFETY: the caller promises 8 writable bytes.
                Width::W64 => unsafe { result.cast::<u64>().write_unaligned(old) },
            }
            return Ok(());
        }
        let result = Some((result, Until::Posted));
        // SAFETY: the caller's promise.
        unsafe { self.post_atomic(call, via, far, width, op, operands, result) }
    }
}
