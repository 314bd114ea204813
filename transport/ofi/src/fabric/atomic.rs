//! Atomics of the provider, on words of 64 bits.

use std::ffi::c_void;

use oxshmem_transport::{AtomicOp, AtomicRequest, Result};

use super::endpoint::{Endpoint, PeerAddress, RemotePlace, Taken};
use super::queue::MISSING;
use super::slots::SlotId;
use super::sys::{self, fi_datatype::FI_UINT64, fi_op};
use crate::facts::bits;

/// The places of the operand, the expected value and the old value in the buffer of an atomic's slot.
const OPERAND: usize = 0;
const COMPARE: usize = 8;
const RESULT: usize = 16;
const ALL: usize = 24;

fn code(op: AtomicOp) -> fi_op::Type {
    match op {
        AtomicOp::Fetch => fi_op::FI_ATOMIC_READ,
        AtomicOp::Set | AtomicOp::Swap => fi_op::FI_ATOMIC_WRITE,
        AtomicOp::Add => fi_op::FI_SUM,
        AtomicOp::And => fi_op::FI_BAND,
        AtomicOp::Or => fi_op::FI_BOR,
        AtomicOp::Xor => fi_op::FI_BXOR,
        AtomicOp::CompareSwap => fi_op::FI_CSWAP,
    }
}

/// The call of an atomic. Those that read their word give the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Write,
    ReadWrite,
    CompareWrite,
}

/// The calls that an operation needs: the first if its old value is wanted, the second if not.
fn calls(op: AtomicOp) -> [Call; 2] {
    match op {
        AtomicOp::Set => [Call::Write; 2],
        AtomicOp::Fetch | AtomicOp::Swap => [Call::ReadWrite; 2],
        AtomicOp::CompareSwap => [Call::CompareWrite; 2],
        AtomicOp::Add | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
            [Call::ReadWrite, Call::Write]
        }
    }
}

impl Endpoint {
    /// Whether the provider has an atomic on one word, with its old value and without.
    pub(crate) fn has_atomic(&self, op: AtomicOp) -> bool {
        let code = code(op);
        let ep = self.raw();
        // SAFETY: the endpoint is open, and its table is there as long as it is.
        let Some(table) = (unsafe { (*ep).atomic.as_ref() }) else {
            return false;
        };
        calls(op).into_iter().all(|call| {
            let valid = match call {
                Call::Write => table.writevalid,
                Call::ReadWrite => table.readwritevalid,
                Call::CompareWrite => table.compwritevalid,
            };
            let mut count = 0;
            // SAFETY: the endpoint is open; the count is written during the call.
            let code = valid.map(|valid| unsafe { valid(ep, FI_UINT64, code, &raw mut count) });
            code == Some(0) && count > 0
        })
    }

    /// An atomic. Its event says that it was performed, and is visible at its target; the slot then has the
    /// [old value](Self::old_value), if that was wanted.
    pub(crate) fn atomic(
        &mut self,
        slot: SlotId,
        request: AtomicRequest,
        fetches: bool,
        to: PeerAddress,
        place: RemotePlace,
    ) -> Result<Taken> {
        let AtomicRequest {
            op,
            operand,
            compare,
            ..
        } = request;
        let buffer = self.bytes(slot);
        for (at, value) in [(OPERAND, operand), (COMPARE, compare)] {
            if let Some(room) = buffer.get_mut(at..at + 8) {
                room.copy_from_slice(&value.to_ne_bytes());
            }
        }
        let local = self.in_slot(slot, ALL);
        let at = |offset: usize| sys::fi_ioc {
            addr: local.addr.wrapping_add(offset).cast::<c_void>(),
            count: 1,
        };
        let [with, without] = calls(op);
        let call = if fetches { with } else { without };
        self.post("an atomic", slot, |ep, context| {
            let (operand, compare, mut result) = (at(OPERAND), at(COMPARE), at(RESULT));
            let remote = sys::fi_rma_ioc {
                addr: place.addr,
                count: 1,
                key: place.key,
            };
            let mut descriptors = [local.descriptor; 3];
            let [operand_desc, compare_desc, result_desc] = descriptors.each_mut();
            let message = sys::fi_msg_atomic {
                msg_iov: &raw const operand,
                desc: operand_desc,
                iov_count: 1,
                addr: to.number(),
                rma_iov: &raw const remote,
                rma_iov_count: 1,
                datatype: FI_UINT64,
                op: code(op),
                context,
                data: 0,
            };
            let message = &raw const message;
            let flags = bits::COMPLETION | bits::DELIVERY_COMPLETE;
            let missing = MISSING as isize;
            // SAFETY: the endpoint is open, and has atomics, or none was posted. The message and its lists live during the
            // call; the buffer and the context are the slot's, busy until its event.
            unsafe {
                let table = &*(*ep).atomic;
                match call {
                    Call::Write => table.writemsg.map_or(missing, |f| f(ep, message, flags)),
                    Call::ReadWrite => table.readwritemsg.map_or(missing, |f| {
                        f(ep, message, &raw mut result, result_desc, 1, flags)
                    }),
                    Call::CompareWrite => table.compwritemsg.map_or(missing, |f| {
                        let expected = &raw const compare;
                        let old = &raw mut result;
                        f(
                            ep,
                            message,
                            expected,
                            compare_desc,
                            1,
                            old,
                            result_desc,
                            1,
                            flags,
                        )
                    }),
                }
            }
        })
    }

    /// The old value of a word, after the event of the slot's atomic.
    pub(crate) fn old_value(&mut self, slot: SlotId) -> [u8; 8] {
        let bytes = self.bytes(slot);
        let old = bytes.get(RESULT..).and_then(<[u8]>::first_chunk);
        old.copied().unwrap_or_default()
    }
}
