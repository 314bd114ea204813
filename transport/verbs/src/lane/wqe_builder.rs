//! The translation of operations into send requests. Everything that can be wrong with an operation is
//! found before its first request is made.

use oxshmem_transport::{Error, Local, Op, Pe, Remote, SignalOp};

use super::batch::{Batch, LocalBuffer, Operation, SendRequest};
use super::bounce_pool::{Block, BouncePool};
use super::request_id::RequestId;
use super::requester::Requester;
use super::send_mode::split;
use super::send_queue::{Deliver, Read, RequestKind, WorkRequest};
use super::write_order::{FlushPlan, Hold, flush_plan, signal_hold};
use crate::limits::{MESSAGE, NAME, UNREGISTERED};
use crate::local_keys::LocalKeys;
use crate::port_state::REQUESTS_PER_OPERATION;
use crate::region::MrKey;
use crate::remote_region::{BoxedError, Imported, RemoteAddress, find, find_word};
use crate::wire::TargetOrder;

/// The reason why an operation was not taken.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// No bounce block is free.
    NoBlock,
    /// It must follow requests in flight, and nothing at the two devices holds it back.
    Unfenced,
    /// There is no room.
    Full,
    Refused(BoxedError),
}

impl From<BoxedError> for Blocked {
    fn from(error: BoxedError) -> Blocked {
        Blocked::Refused(error)
    }
}

/// Requests of the largest operation. It has two more than most: a barrier, and a read between a put to one
/// device's memory and a signal in another's.
pub(crate) const MAX_REQUESTS: usize = REQUESTS_PER_OPERATION as usize + 2;

/// Builds the requests of operations towards one PE.
#[derive(Debug)]
pub(crate) struct WqeBuilder<'a> {
    pub(crate) pe: Pe,
    /// The queue pair of its requester, by which completions name it.
    pub(crate) queue: u8,
    pub(crate) regions: &'a [Option<Imported>],
    pub(crate) requester: &'a mut Requester,
    pub(crate) batch: &'a mut Batch,
    pub(crate) pool: &'a mut BouncePool,
    /// The longest transfer, in bytes.
    pub(crate) max_transfer: u64,
    /// The keys of local memory at further NICs, where one of these has the primary queue pair.
    pub(crate) moved_keys: Option<&'a LocalKeys>,
    /// Whether a request may wait at the device for the reads and atomics before it. In rxe (Linux 6.1) such a request that
    /// is sent again waits for ever: it counts itself, and what came after it, among those.
    pub(crate) has_fences: bool,
    /// Whether a caller waits for data that the batch fetches: its last request is to be signaled.
    pub(crate) wants_completion: bool,
}

#[cold]
pub(super) fn unsupported(what: String) -> Blocked {
    Blocked::Refused(Box::new(Error::Unsupported {
        transport: NAME,
        what,
    }))
}

/// Refuses a put-with-signal that one of the two devices has not. `has_atomics`: whether this side's device has atomics.
#[inline]
pub(super) fn with_signals(has_atomics: bool, target: TargetOrder) -> Result<(), Blocked> {
    let what = match (has_atomics, target.has_atomics) {
        (true, true) => return Ok(()),
        (false, _) => "a put-with-signal by a device without atomics",
        (true, false) => "a put-with-signal towards a NIC without atomics",
    };
    Err(unsupported(what.into()))
}

#[inline]
pub(super) fn key(local: &Local) -> Option<MrKey> {
    local.key.map(MrKey::from_local_key)
}

/// A transfer's length, if the lane can do it.
#[inline]
pub(super) fn length(local: &Local, max_transfer: u64) -> Result<u64, Blocked> {
    let len = local.len as u64;
    if len > max_transfer {
        return Err(unsupported(format!("a transfer of {len} bytes")));
    }
    if local.key.is_none() && local.len > UNREGISTERED {
        return Err(unsupported(format!(
            "a transfer of {len} unregistered bytes"
        )));
    }
    Ok(len)
}

impl WqeBuilder<'_> {
    /// Builds an operation's requests, or none. There must be room for [`MAX_REQUESTS`].
    ///
    /// # Safety
    ///
    /// The operation's local memory is valid, as [`oxshmem_transport::Lane::post`] says.
    #[inline(always)]
    pub(crate) unsafe fn build(&mut self, op: &Op) -> Result<(), Blocked> {
        match *op {
            Op::Put { from, to } => {
                let remote = find(self.regions, self.pe, to, self.length(&from)?)?;
                // SAFETY: the source is valid, as this function's caller promises.
                let (local, block) = unsafe { self.source(&from) }?;
                self.write_words(remote, local, block, true);
                Ok(())
            }
            Op::Get { into, from } => {
                let remote = find(self.regions, self.pe, from, self.length(&into)?)?;
                self.get(&into, remote)
            }
            Op::PutSignal {
                from,
                to,
                signal,
                op,
                value,
            } => {
                // SAFETY: the source is valid, as this function's caller promises.
                unsafe { self.put_signal(&from, to, signal, op, value) }
            }
            Op::Atomic {
                op,
                width,
                on,
                operand,
                compare,
                fetch,
            } => {
                self.declared(op, width, fetch.as_ref())?;
                let remote = find_word(self.regions, self.pe, on, "an atomic")?;
                self.atomic(op, remote, operand, compare, fetch.as_ref())
            }
            Op::Message { from } => {
                // SAFETY: the source is valid, as this function's caller promises.
                unsafe { self.message(&from) }
            }
            Op::Flush => self.flush(),
            ref other => Err(unsupported(format!("{other:?}"))),
        }
    }

    /// A put, then the update of a signal word.
    ///
    /// # Safety
    ///
    /// As for [`source`](Self::source).
    #[inline]
    unsafe fn put_signal(
        &mut self,
        from: &Local,
        to: Remote,
        signal: Remote,
        op: SignalOp,
        value: u64,
    ) -> Result<(), Blocked> {
        with_signals(self.requester.has_atomics, self.requester.order)?;
        let remote = find(self.regions, self.pe, to, self.length(from)?)?;
        let signal = find_word(self.regions, self.pe, signal, "a signal")?;
        let across = remote.on_gpu != signal.on_gpu;
        let order = self.requester.order;
        let Some(hold) = signal_hold(order, op == SignalOp::Set, across, self.has_fences) else {
            return Err(unsupported(
                "a put-with-signal towards a NIC that does not keep writes in order".into(),
            ));
        };
        // SAFETY: the source is valid, as this function's caller promises.
        let (local, block) = unsafe { self.source(from) }?;
        let word = match op {
            SignalOp::Set => self.word(value).inspect_err(|_| {
                if let Some(block) = block {
                    self.pool.release(block);
                }
            })?,
            SignalOp::Add => (LocalBuffer::Empty, None),
        };
        let mut is_fenced = false;
        if from.len > 0 {
            self.write_words(remote, local, block, false);
            self.hold(hold, remote);
            is_fenced = hold.is_fenced();
        }
        self.requester.gpu_written |= signal.on_gpu;
        match op {
            SignalOp::Set => {
                let work = WorkRequest {
                    block: word.1,
                    ..WorkRequest::PLAIN
                };
                let operation = Operation::Write(signal.addr, signal.strict_rkey);
                self.push(operation, word.0, is_fenced, work);
            }
            SignalOp::Add => {
                let operation = Operation::FetchAdd(signal.addr, signal.strict_rkey, value);
                let local = self.sink();
                let number = self.push(operation, local, is_fenced, WorkRequest::PLAIN);
                self.requester.last_atomic = Some(number);
            }
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`source`](Self::source).
    #[inline]
    unsafe fn message(&mut self, from: &Local) -> Result<(), Blocked> {
        if from.len > MESSAGE {
            return Err(unsupported(format!("a message of {} bytes", from.len)));
        }
        if key(from).is_some_and(|key| key.on_gpu) {
            return Err(unsupported("a message from GPU memory".into()));
        }
        // SAFETY: the source is valid, as this function's caller promises.
        let (local, block) = unsafe { self.source(from) }?;
        let work = WorkRequest {
            block,
            kind: RequestKind::Message,
            ..WorkRequest::PLAIN
        };
        self.requester.has_sent_messages = true;
        self.push(Operation::Send, local, false, work);
        Ok(())
    }

    /// Requests that complete when all writes before them are placed.
    #[inline]
    pub(super) fn flush(&mut self) -> Result<(), Blocked> {
        self.wants_completion = true;
        let in_flight = self.requester.send_queue.outstanding() > 0;
        let gpu_written = self.requester.gpu_written;
        let plan = flush_plan(
            self.requester.order,
            in_flight,
            gpu_written,
            self.has_fences,
        );
        let first = |on_gpu| {
            let all = self.regions.iter().flatten();
            all.filter_map(Imported::first)
                .find(|remote| remote.on_gpu == on_gpu)
        };
        // Of each device's memory by itself: the bus keeps no order between two.
        let gpu = first(true).filter(|_| gpu_written);
        match (plan, gpu, first(false)) {
            (FlushPlan::Wait, ..) => return Err(Blocked::Unfenced),
            // The word lies in host memory: its atomic is that memory's flush.
            (FlushPlan::Barrier, ..) | (FlushPlan::BarrierThenRead, None, None) => {
                self.barrier(true);
            }
            // Nothing can have been written there.
            (FlushPlan::Read, None, None) => self.write(0, 0, LocalBuffer::Empty, None, true),
            (FlushPlan::Read | FlushPlan::BarrierThenRead, gpu, host) => {
                let is_fenced = plan == FlushPlan::BarrierThenRead;
                if is_fenced {
                    self.barrier(false);
                }
                if let Some(gpu) = gpu {
                    self.read_byte(gpu, is_fenced, host.is_none());
                }
                if let Some(host) = host {
                    self.read_byte(host, is_fenced, true);
                }
            }
        }
        self.requester.gpu_written = false;
        let last = self.requester.send_queue.newest();
        self.requester.put_keys.flush(last);
        Ok(())
    }

    /// The requests that hold the next one, which is to be fenced, behind writes, the last of them to `remote`.
    #[inline]
    pub(super) fn hold(&mut self, hold: Hold, remote: RemoteAddress) {
        if hold.barrier {
            self.barrier(false);
        }
        if hold.read_back {
            self.wants_completion = true;
            let number = self.read_byte(remote, hold.barrier, false);
            self.requester.last_read = Some(number);
        }
    }

    /// An atomic on the target's flush word, which adds nothing: it is performed after all writes before it.
    fn barrier(&mut self, is_last: bool) {
        let Some(word) = self.requester.order.flush_word else {
            return;
        };
        let work = WorkRequest {
            is_last,
            kind: RequestKind::Barrier,
            ..WorkRequest::PLAIN
        };
        let operation = Operation::FetchAdd(word.addr, word.rkey, 0);
        let number = self.push(operation, self.sink(), false, work);
        self.requester.last_atomic = Some(number);
    }

    // Inlined, because most arguments are constant at each call.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        operation: Operation,
        local: LocalBuffer,
        is_fenced: bool,
        work: WorkRequest,
    ) -> u32 {
        let (queue, work) = (
            &mut self.requester.send_queue,
            WorkRequest {
                bytes: local.len(),
                ..work
            },
        );
        let number = match (operation, local) {
            (Operation::Read(addr, rkey), LocalBuffer::Registered(into, _, lkey)) => {
                let read = Read {
                    addr,
                    rkey,
                    lkey,
                    into,
                };
                queue.push_read(work, read)
            }
            (Operation::Write(addr, rkey), LocalBuffer::Registered(into, _, lkey))
                if self.queue != 0 =>
            {
                let sides = Read {
                    addr,
                    rkey,
                    lkey,
                    into,
                };
                queue.push_part(work, sides)
            }
            _ => queue.push(work),
        };
        let id = RequestId {
            pe: self.pe,
            queue: self.queue,
            number,
        };
        self.batch.push(
            id,
            SendRequest {
                operation,
                local,
                is_fenced,
            },
        );
        number
    }

    /// Reads one byte. Writes that the target performs before it are in memory when it completes.
    #[inline]
    fn read_byte(&mut self, remote: RemoteAddress, is_fenced: bool, is_last: bool) -> u32 {
        let local =
            LocalBuffer::Registered(self.pool.sink(), 1, self.pool.lkey(self.requester.rail));
        let work = WorkRequest {
            is_last,
            ..WorkRequest::PLAIN
        };
        let operation = Operation::Read(remote.addr, remote.strict_rkey);
        self.push(operation, local, is_fenced, work)
    }

    #[inline]
    fn write(
        &mut self,
        addr: u64,
        rkey: u32,
        local: LocalBuffer,
        block: Option<Block>,
        is_last: bool,
    ) {
        let work = WorkRequest {
            block,
            is_last,
            ..WorkRequest::PLAIN
        };
        self.push(Operation::Write(addr, rkey), local, false, work);
    }

    /// A put. Packets end at multiples of their size from its start: if that is inside an aligned word,
    /// so are they, and the word would land in two pieces. In that case the bytes before the first whole
    /// word are a write of their own.
    #[inline]
    pub(super) fn write_words(
        &mut self,
        remote: RemoteAddress,
        local: LocalBuffer,
        block: Option<Block>,
        is_last: bool,
    ) {
        self.requester.gpu_written |= remote.on_gpu;
        let queue = &self.requester.send_queue;
        let is_outstanding = |number| queue.contains(number);
        let rkey = match self.requester.put_keys.are_strict(is_outstanding) {
            true => remote.strict_rkey,
            false => remote.relaxed_rkey,
        };
        let addr = remote.addr;
        match split(local, addr, self.requester.packet_bytes) {
            None => self.write(addr, rkey, local, block, is_last),
            Some((head, rest, len)) => {
                self.write(addr, rkey, head, None, false);
                self.write(addr + u64::from(len), rkey, rest, block, is_last);
            }
        }
    }

    #[inline]
    fn length(&self, local: &Local) -> Result<u64, Blocked> {
        length(local, self.max_transfer)
    }

    #[inline(always)]
    pub(super) fn get(&mut self, into: &Local, remote: RemoteAddress) -> Result<(), Blocked> {
        let len = into.len as u32;
        if len == 0 {
            self.write(
                remote.addr,
                remote.strict_rkey,
                LocalBuffer::Empty,
                None,
                true,
            );
            return Ok(());
        }
        let (local, work) = match self.local_key(into)? {
            Some(key) => (
                LocalBuffer::Registered(into.addr, len, key.lkey),
                WorkRequest::PLAIN,
            ),
            None => {
                let block = self.pool.acquire(into.len).ok_or(Blocked::NoBlock)?;
                let work = WorkRequest {
                    deliver: Deliver::Bytes(into.addr, len),
                    block: Some(block),
                    ..WorkRequest::PLAIN
                };
                let at = self.pool.address(block);
                (
                    LocalBuffer::Registered(at, len, self.pool.lkey(self.requester.rail)),
                    work,
                )
            }
        };
        self.wants_completion = true;
        let operation = Operation::Read(remote.addr, remote.relaxed_rkey);
        let number = self.push(operation, local, false, work);
        self.requester.last_read = Some(number);
        Ok(())
    }
}
