//! The requests of atomics, and of reads and writes of one word that are ordered as atomics are.

use oxshmem_transport::{AtomicOp, Local, Width};

use super::batch::{LocalBuffer, Operation};
use super::send_queue::WorkRequest;
use super::wqe_builder::{Blocked, WqeBuilder, unsupported};
use super::write_order::{Hold, word_hold};
use crate::limits::NAME;
use crate::remote_region::{RemoteAddress, boxed};

#[cold]
fn not_at_target(op: AtomicOp) -> Blocked {
    unsupported(format!("an atomic {op} towards a NIC without atomics"))
}

#[cold]
fn undeclared(op: AtomicOp, width: Width, is_fetching: bool) -> Blocked {
    let fetching = if is_fetching { "fetching " } else { "" };
    unsupported(format!("a {fetching}atomic {op} of {width} bits"))
}

impl WqeBuilder<'_> {
    /// Refuses an atomic that the capabilities do not list.
    #[inline(always)]
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
            return Err(not_at_target(op));
        }
        if width != Width::W64 || !known {
            return Err(undeclared(op, width, fetch.is_some()));
        }
        if let Some(into) = fetch {
            into.check_fetch(NAME, width).map_err(boxed)?;
        }
        Ok(())
    }

    /// An atomic, or the read or write of one word.
    #[inline]
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        remote: RemoteAddress,
        operand: u64,
        compare: u64,
        fetch: Option<&Local>,
    ) -> Result<(), Blocked> {
        let (addr, rkey) = (remote.addr, remote.strict_rkey);
        let operation = match op {
            AtomicOp::Fetch => return self.read_word(remote, fetch),
            AtomicOp::Set => return self.write_word(remote, operand),
            AtomicOp::Add => Operation::FetchAdd(addr, rkey, operand),
            _ => Operation::CompareSwap(addr, rkey, compare, operand),
        };
        self.modify_word(remote, operation, fetch)
    }

    /// Whether a request of this number has not completed.
    #[inline]
    fn is_outstanding(&self, number: Option<u32>) -> bool {
        number.is_some_and(|number| self.requester.send_queue.contains(number))
    }

    /// The requests that hold the read or the write of a word behind the writes before it; `is_fenced` if it waits for
    /// something else, too. [`Blocked::Unfenced`] if this side's NIC cannot hold it back.
    fn hold_of_word(&self, is_write: bool, is_fenced: bool) -> Result<Hold, Blocked> {
        let (order, in_flight) = (
            self.requester.order,
            self.requester.send_queue.outstanding() > 0,
        );
        match word_hold(order, is_write, in_flight, self.has_fences) {
            Some(hold) if !is_fenced || self.has_fences => Ok(hold),
            _ => Err(Blocked::Unfenced),
        }
    }

    /// The local buffer of a value that is fetched, or that no caller wants.
    #[inline]
    fn old_value(&mut self, fetch: Option<&Local>) -> Result<(LocalBuffer, WorkRequest), Blocked> {
        match fetch {
            None => Ok((self.sink(), WorkRequest::PLAIN)),
            Some(into) => {
                self.wants_completion = true;
                self.fetch_buffer(into)
            }
        }
    }

    fn read_word(&mut self, remote: RemoteAddress, fetch: Option<&Local>) -> Result<(), Blocked> {
        let hold = self.hold_of_word(false, false)?;
        let (local, work) = self.old_value(fetch)?;
        self.hold(hold, remote);
        let read = Operation::Read(remote.addr, remote.strict_rkey);
        let number = self.push(read, local, hold.is_fenced(), work);
        self.requester.last_read = Some(number);
        Ok(())
    }

    fn write_word(&mut self, remote: RemoteAddress, value: u64) -> Result<(), Blocked> {
        // A write may be performed before a read or atomic that was sent before it.
        let is_fenced = self.is_outstanding(self.requester.last_read)
            || self.is_outstanding(self.requester.last_atomic);
        let hold = self.hold_of_word(true, is_fenced)?;
        self.requester.gpu_written |= remote.on_gpu;
        let (local, block) = self.word(value)?;
        self.hold(hold, remote);
        let work = WorkRequest {
            block,
            ..WorkRequest::PLAIN
        };
        let write = Operation::Write(remote.addr, remote.strict_rkey);
        self.push(write, local, is_fenced || hold.is_fenced(), work);
        Ok(())
    }

    /// An atomic that the target's NIC performs, after the writes before it.
    #[inline(always)]
    fn modify_word(
        &mut self,
        remote: RemoteAddress,
        operation: Operation,
        fetch: Option<&Local>,
    ) -> Result<(), Blocked> {
        // The atomic may pass a read that was sent before it.
        let is_fenced = self.is_outstanding(self.requester.last_read);
        if is_fenced && !self.has_fences {
            return Err(Blocked::Unfenced);
        }
        self.requester.gpu_written |= remote.on_gpu;
        let (local, work) = self.old_value(fetch)?;
        let number = self.push(operation, local, is_fenced, work);
        self.requester.last_atomic = Some(number);
        Ok(())
    }
}
