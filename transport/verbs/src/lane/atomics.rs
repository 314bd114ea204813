//! The requests of atomics, and of reads and writes of one word that are ordered as atomics are.

use oxshmem_transport::{AtomicOp, Local, Width};

use super::batch::Operation;
use super::send_queue::WorkRequest;
use super::wqe_builder::{Blocked, WqeBuilder, unsupported};
use super::write_order::{Hold, word_hold};
use crate::limits::NAME;
use crate::remote_region::{RemoteAddress, boxed};

impl WqeBuilder<'_> {
    /// Refuses an atomic that the capabilities do not list.
    #[inline]
    pub(super) fn declared(
        &self,
        op: AtomicOp,
        width: Width,
        fetch: Option<&Local>,
    ) -> Result<(), Blocked> {
        let known = match op {
            AtomicOp::Fetch => true,
            // A write does not give the old value.
            AtomicOp::Set => fetch.is_none(),
            AtomicOp::Add | AtomicOp::CompareSwap => self.requester.has_atomics,
            _ => false,
        };
        let changes = matches!(op, AtomicOp::Add | AtomicOp::CompareSwap);
        if known && changes && !self.requester.order.has_atomics {
            let what = format!("an atomic {op} towards a NIC without atomics");
            return Err(unsupported(what));
        }
        if width != Width::W64 || !known {
            let fetching = if fetch.is_some() { "fetching " } else { "" };
            return Err(unsupported(format!(
                "a {fetching}atomic {op} of {width} bits"
            )));
        }
        if let Some(into) = fetch {
            into.check_fetch(NAME, width).map_err(boxed)?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        remote: RemoteAddress,
        operand: u64,
        compare: u64,
        fetch: Option<&Local>,
    ) -> Result<(), Blocked> {
        let queue = &self.requester.send_queue;
        let outstanding = |number: Option<u32>| number.is_some_and(|number| queue.contains(number));
        let reads = outstanding(self.requester.last_read);
        let atomics = outstanding(self.requester.last_atomic);
        let hold = match op {
            AtomicOp::Fetch | AtomicOp::Set => {
                let (order, in_flight) = (self.requester.order, queue.outstanding() > 0);
                word_hold(order, op == AtomicOp::Set, in_flight, self.has_fences)
            }
            // The target holds atomics itself.
            _ => Some(Hold::default()),
        };
        let is_fenced = match op {
            AtomicOp::Fetch => false,
            // A write may be performed before a read or atomic that was sent before it.
            AtomicOp::Set => reads || atomics,
            // And so may an atomic before a read.
            _ => reads,
        };
        let Some(hold) = hold.filter(|_| !is_fenced || self.has_fences) else {
            return Err(Blocked::Unfenced);
        };
        let is_fenced = is_fenced || hold.is_fenced();
        let (addr, rkey) = (remote.addr, remote.strict_rkey);
        self.requester.gpu_written |= remote.on_gpu && op != AtomicOp::Fetch;
        if op == AtomicOp::Set {
            let (local, block) = self.word(operand)?;
            self.hold(hold, remote);
            let work = WorkRequest {
                block,
                ..WorkRequest::PLAIN
            };
            self.push(Operation::Write(addr, rkey), local, is_fenced, work);
            return Ok(());
        }
        let (local, work) = match fetch {
            None => (self.sink(), WorkRequest::PLAIN),
            Some(into) => {
                self.wants_completion = true;
                self.fetch_buffer(into)?
            }
        };
        self.hold(hold, remote);
        let operation = match op {
            AtomicOp::Fetch => Operation::Read(addr, rkey),
            AtomicOp::Add => Operation::FetchAdd(addr, rkey, operand),
            _ => Operation::CompareSwap(addr, rkey, compare, operand),
        };
        let number = self.push(operation, local, is_fenced, work);
        match op {
            AtomicOp::Fetch => self.requester.last_read = Some(number),
            _ => self.requester.last_atomic = Some(number),
        }
        Ok(())
    }
}
