//! The nvlink lane: one stream, its bounce pool, and the operations in flight on it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_cuda::{DevicePtr, Event, Stream, StreamOptions};
use oxshmem_transport::{
    AtomicOp, AtomicRequest, Counters, Error, Lane, Local, Op, Pe, Posted, Result, Width,
};

use crate::bounce_pool::{Block, BouncePool};
use crate::device_state::DeviceState;
use crate::domain_state::DomainState;
use crate::driver_error::{driver_error, error_of};
use crate::limits::{DEPTH, NAME, UNREGISTERED};
use crate::local_region::PINNED;

/// How long a lane that is dropped waits for its operations in flight.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// An operation in flight, with the action for its completion.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    pe: Pe,
    block: Option<Block>,
    /// The destination of the bytes that the block has received, and their number.
    deliver: Option<(*mut u8, usize)>,
    /// Its PE was lost: it is not counted.
    cancelled: bool,
}

impl InFlight {
    fn new(pe: Pe, block: Option<Block>) -> InFlight {
        InFlight {
            pe,
            block,
            deliver: None,
            cancelled: false,
        }
    }
}

/// A number of operations with one event behind them.
#[derive(Debug)]
struct Batch {
    event: Event,
    count: usize,
}

/// One PE's lane towards all peers.
#[derive(Debug)]
pub(crate) struct NvlinkLane {
    stream: Stream,
    pool: BouncePool,
    /// Oldest first.
    in_flight: VecDeque<InFlight>,
    /// The events behind those, oldest first.
    batches: VecDeque<Batch>,
    /// Events to use again.
    spare: Vec<Event>,
    counters: Vec<Counters>,
    state: DomainState,
    generation: u64,
    /// The reason why it failed.
    broken: Option<String>,
    device_state: Arc<DeviceState>,
}

// SAFETY: the raw pointers in operations in flight are the poster's, who promised their validity until the lane is
// done with them, wherever the lane is moved to.
unsafe impl Send for NvlinkLane {}

/// The reason why an operation is not taken.
enum Blocked {
    Full,
    Refused(Error),
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Blocked {
        Blocked::Refused(error)
    }
}

fn unsupported(what: String) -> Blocked {
    Blocked::Refused(Error::Unsupported {
        transport: NAME,
        what,
    })
}

const NOWHERE: DevicePtr = DevicePtr::from_raw(0);

impl NvlinkLane {
    pub(crate) fn new(device_state: &Arc<DeviceState>) -> Result<NvlinkLane> {
        let context = &device_state.context;
        let stream = Stream::new(context, &StreamOptions::default());
        let stream = stream.map_err(|error| driver_error("a lane's stream", &error))?;
        let pool = BouncePool::new(context, &device_state.pinned);
        let pool = pool.map_err(|error| driver_error("a lane's pool", &error))?;
        let (generation, state) = device_state.published.copy();
        Ok(NvlinkLane {
            stream,
            pool,
            in_flight: VecDeque::with_capacity(DEPTH as usize),
            batches: VecDeque::new(),
            spare: Vec::new(),
            counters: vec![Counters::default(); device_state.job.size as usize],
            state,
            generation,
            broken: None,
            device_state: Arc::clone(device_state),
        })
    }

    fn refresh_if_changed(&mut self) {
        if self.device_state.published.generation() != self.generation {
            (self.generation, self.state) = self.device_state.published.copy();
            self.cancel_lost();
        }
    }

    /// Cancels operations towards lost PEs: they are not counted any more, and access local memory no more.
    #[cold]
    fn cancel_lost(&mut self) {
        let lost = &self.state.lost;
        let mut touched = false;
        for operation in self
            .in_flight
            .iter_mut()
            .filter(|operation| lost.contains(&operation.pe))
        {
            touched |= !operation.cancelled;
            (operation.cancelled, operation.deliver) = (true, None);
        }
        // Writes of the stream to GPU memory are over then, since no work on it waits for a peer.
        if touched && let Err(error) = self.stream.synchronize_within(DRAIN_TIMEOUT) {
            tracing::error!(%error, "operations towards a lost PE are under way");
        }
    }

    /// Whether no more operations towards a PE are taken for now.
    fn is_full(&self, pe: Pe, accepted: usize) -> bool {
        let counters = self.counters.get(pe.index()).copied().unwrap_or_default();
        counters.posted + accepted as u64 >= counters.completed + u64::from(DEPTH)
    }

    fn check(&mut self, pe: Pe) -> Result<()> {
        self.refresh_if_changed();
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if self.state.lost.contains(&pe) {
            return Err(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        if pe.0 >= self.device_state.job.size {
            return Err(Error::Unreachable {
                transport: NAME,
                pe,
                why: format!("the job has {} PEs", self.device_state.job.size),
            });
        }
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Error::Connection {
                transport: NAME,
                pe,
                why: why.clone(),
            }),
        }
    }

    /// Marks the lane as failed, since its GPU's context has failed.
    #[cold]
    fn fail(&mut self, what: &str, error: &oxshmem_cuda::Error) -> Error {
        self.broken.get_or_insert_with(|| error.to_string());
        driver_error(what, error)
    }

    /// The local address of a source: GPU memory and long page-locked memory in place, others copied.
    ///
    /// # Safety
    ///
    /// The bytes are valid.
    unsafe fn source(&mut self, from: &Local) -> Result<(DevicePtr, Option<Block>), Blocked> {
        let copied = match from.key {
            None => true,
            // A short source may be reused when it is posted.
            Some(key) => key == PINNED && from.len <= UNREGISTERED,
        };
        if !copied {
            return Ok((DevicePtr::from_host(from.addr), None));
        }
        if from.len > UNREGISTERED {
            let what = format!("a transfer of {} unregistered bytes", from.len);
            return Err(unsupported(what));
        }
        let block = self.pool.acquire(from.len).ok_or(Blocked::Full)?;
        // SAFETY: the source is valid, as this function's caller promises; the block is at least as long, and
        // nobody else's.
        unsafe { oxshmem_heap::copy::copy(self.pool.host(block), from.addr, from.len) };
        Ok((self.pool.device(block), Some(block)))
    }

    /// The local address of a destination.
    fn destination(&mut self, pe: Pe, into: &Local) -> Result<(DevicePtr, InFlight), Blocked> {
        let mut operation = InFlight::new(pe, None);
        if into.key.is_some() {
            return Ok((DevicePtr::from_host(into.addr), operation));
        }
        if into.len > UNREGISTERED {
            let what = format!("a transfer of {} unregistered bytes", into.len);
            return Err(unsupported(what));
        }
        let block = self.pool.acquire(into.len).ok_or(Blocked::Full)?;
        (operation.block, operation.deliver) = (Some(block), Some((into.addr, into.len)));
        Ok((self.pool.device(block), operation))
    }

    /// Queues one operation.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    unsafe fn queue(&mut self, pe: Pe, op: &Op) -> Result<InFlight, Blocked> {
        let plain = |block| InFlight::new(pe, block);
        match *op {
            Op::Put { from, to } => {
                let remote = self.state.find(pe, to, (from.len as u64, 1), "a put")?;
                // SAFETY: the source is valid, as this function's caller promises.
                let (local, block) = unsafe { self.source(&from) }?;
                // SAFETY: the remote bytes are mapped while the table that the lane holds says so; the
                // local ones are the caller's, or the block's.
                let queued = unsafe { self.stream.copy(remote, local, from.len) };
                self.queued(queued)?;
                Ok(plain(block))
            }
            Op::Get { into, from } => {
                let remote = self.state.find(pe, from, (into.len as u64, 1), "a get")?;
                let (local, operation) = self.destination(pe, &into)?;
                // SAFETY: as for put.
                let queued = unsafe { self.stream.copy(local, remote, into.len) };
                self.queued(queued)?;
                Ok(operation)
            }
            Op::PutSignal {
                from,
                to,
                signal,
                op,
                value,
            } => {
                let remote = self.state.find(pe, to, (from.len as u64, 1), "a put")?;
                let word = self.state.find(pe, signal, (8, 8), "a signal")?;
                // SAFETY: the source is valid, as this function's caller promises.
                let (local, block) = unsafe { self.source(&from) }?;
                // SAFETY: as for put; the word is mapped as the remote bytes are.
                let queued = unsafe {
                    let copied = self.stream.copy(remote, local, from.len);
                    copied.and_then(|()| {
                        let kernels = &self.device_state.kernels;
                        kernels.signal(&self.stream, word, value, op)
                    })
                };
                self.queued(queued)?;
                Ok(plain(block))
            }
            Op::Atomic {
                op,
                width,
                on,
                operand,
                compare,
                fetch,
            } => {
                let bytes = width.bytes() as u64;
                let word = self.state.find(pe, on, (bytes, bytes), "an atomic")?;
                let (result, operation) = match fetch {
                    None => (NOWHERE, plain(None)),
                    Some(into) => self.fetch_buffer(pe, op, width, &into)?,
                };
                let kernels = &self.device_state.kernels;
                let request = AtomicRequest {
                    op,
                    width,
                    operand,
                    compare,
                };
                // SAFETY: the word is mapped while the table that the lane holds says so, and the
                // result is the caller's GPU memory or the block; both are aligned.
                let queued = unsafe { kernels.atomic(&self.stream, request, word, result) };
                self.queued(queued)?;
                Ok(operation)
            }
            // The stream is in order, and a completed operation is placed.
            Op::Flush => Ok(plain(None)),
            ref other => Err(unsupported(format!("{other:?}"))),
        }
    }

    /// The local address for an atomic's old value.
    fn fetch_buffer(
        &mut self,
        pe: Pe,
        op: AtomicOp,
        width: Width,
        into: &Local,
    ) -> Result<(DevicePtr, InFlight), Blocked> {
        if op == AtomicOp::Set {
            return Err(unsupported("a fetch by atomic set".into()));
        }
        into.check_fetch(NAME, width)?;
        self.destination(pe, into)
    }

    /// Checks the driver's result of an operation. On an error, part of it may have been queued: the lane
    /// fails, and the block is not released, since the stream may still use it.
    fn queued(&mut self, queued: oxshmem_cuda::Result<()>) -> Result<(), Blocked> {
        queued
            .map_err(|error| Blocked::Refused(self.fail("an operation on a lane's stream", &error)))
    }

    /// An event for the operations about to be queued. It is created before them, so that their completion can
    /// always be detected.
    fn event(&mut self) -> Result<Event> {
        match self.spare.pop() {
            Some(event) => Ok(event),
            None => Event::new(&self.device_state.context)
                .map_err(|error| driver_error("a lane's event", &error)),
        }
    }

    /// Records an event behind the queued operations. If that fails, their completion can never be detected:
    /// they deliver nothing, and the lane fails.
    fn record(&mut self, event: Event, count: usize) -> Result<()> {
        if let Err(error) = self.stream.record(&event) {
            let queued = self.in_flight.len().saturating_sub(count);
            for operation in self.in_flight.iter_mut().skip(queued) {
                (operation.cancelled, operation.deliver) = (true, None);
            }
            return Err(self.fail("an event on a lane's stream", &error));
        }
        self.batches.push_back(Batch { event, count });
        Ok(())
    }

    /// Delivers the data of the oldest operations, and counts them.
    fn retire(&mut self, count: usize) {
        for operation in self.in_flight.drain(..count.min(self.in_flight.len())) {
            if let (Some(block), Some((to, len))) = (operation.block, operation.deliver) {
                // SAFETY: the poster promised `len` bytes here until the operation is counted, which
                // it is after this; the block has as many, which the stream has filled.
                unsafe { oxshmem_heap::copy::copy(to, self.pool.host(block), len) };
            }
            if let Some(block) = operation.block {
                self.pool.release(block);
            }
            if let Some(counters) = self.counters.get_mut(operation.pe.index())
                && !operation.cancelled
            {
                counters.completed += 1;
            }
        }
    }
}

impl Lane for NvlinkLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.check(pe)?;
        Ok(Vec::new())
    }

    fn connect(&mut self, pe: Pe, _endpoint: &[u8]) -> Result<()> {
        self.check(pe)
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        if let Err(error) = self.check(pe) {
            return Posted::refused(0, error);
        }
        let context = self.device_state.context.clone();
        // SAFETY: the operations' local memory is valid, as this function's caller promises.
        context.beside_captures(|| unsafe { self.post_beside(pe, ops) })
    }

    fn progress(&mut self) -> Result<()> {
        let context = self.device_state.context.clone();
        context.beside_captures(|| self.progress_beside())
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.counters.get(pe.index()).copied().unwrap_or_default()
    }
}

/// Posting and progress, while no thread's capture is in the way.
impl NvlinkLane {
    /// # Safety
    ///
    /// As [`Lane::post`].
    unsafe fn post_beside(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        let event = match self.event() {
            Ok(event) => event,
            Err(error) => return Posted::refused(0, error),
        };
        let mut accepted = 0;
        let mut stop = None;
        for op in ops {
            if self.is_full(pe, accepted) {
                stop = Some(Blocked::Full);
                break;
            }
            // SAFETY: the operation's local memory is valid, as this function's caller promises.
            match unsafe { self.queue(pe, op) } {
                Ok(operation) => self.in_flight.push_back(operation),
                Err(why) => {
                    stop = Some(why);
                    break;
                }
            }
            accepted += 1;
        }
        if accepted == 0 {
            self.spare.push(event);
        } else {
            if let Err(error) = self.record(event, accepted) {
                return Posted::refused(0, error);
            }
            if let Some(counters) = self.counters.get_mut(pe.index()) {
                counters.posted += accepted as u64;
            }
        }
        match stop {
            None => Posted::all(accepted),
            Some(Blocked::Full) => Posted::full(accepted),
            Some(Blocked::Refused(error)) => Posted::refused(accepted, error),
        }
    }

    fn progress_beside(&mut self) -> Result<()> {
        self.refresh_if_changed();
        if let Some(why) = &self.broken {
            return Err(error_of("a lane's stream, earlier", why.clone()));
        }
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        while let Some(batch) = self.batches.front() {
            match batch.event.has_happened() {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => {
                    self.batches.clear();
                    return Err(self.fail("a lane's stream", &error));
                }
            }
            if let Some(Batch { event, count }) = self.batches.pop_front() {
                self.retire(count);
                self.spare.push(event);
            }
        }
        Ok(())
    }
}

impl Drop for NvlinkLane {
    fn drop(&mut self) {
        // No operation in flight accesses local memory after this, unless the GPU hangs: its work then uses the
        // pool, heaps, memory that the program has page-locked, which the driver keeps until then, and slices,
        // for which oxshmem waits once more before the program has them back.
        let context = &self.device_state.context;
        let ended = context.beside_captures(|| self.stream.synchronize_within(DRAIN_TIMEOUT));
        if let Err(error) = ended {
            self.pool.leak();
            tracing::error!(%error, "a lane ends with work under way");
        }
    }
}
