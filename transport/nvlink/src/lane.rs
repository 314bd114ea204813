//! The lane: one stream, its page-locked pool, and what is under way on it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use oxshmem_cuda::{DevicePtr, Event, Stream, StreamOptions};
use oxshmem_transport::{AtomicOp, Counters, Error, Lane, Local, Op, Pe, Posted, Result, Width};

use crate::domain::Opened;
use crate::fault::{driver, told};
use crate::local::PINNED;
use crate::pool::{Block, Pool};
use crate::shared::State;
use crate::{NAME, UNREGISTERED};

/// Operations under way towards one PE at most; those whose near side is unregistered host memory also
/// end where the pool does.
pub(crate) const DEPTH: u32 = 256;
/// How long a lane that is dropped waits for what is under way.
const FAREWELL: Duration = Duration::from_secs(10);

/// What to do once an operation is done.
#[derive(Clone, Copy, Debug)]
struct Slot {
    pe: Pe,
    block: Option<Block>,
    /// Where what the block has received goes, and how many bytes.
    deliver: Option<(*mut u8, usize)>,
    /// Its PE was lost.
    given_up: bool,
}

impl Slot {
    fn new(pe: Pe, block: Option<Block>) -> Slot {
        Slot {
            pe,
            block,
            deliver: None,
            given_up: false,
        }
    }
}

/// Operations with one event behind them.
#[derive(Debug)]
struct Batch {
    event: Event,
    slots: usize,
}

#[derive(Debug)]
pub(crate) struct NvlinkLane {
    stream: Stream,
    pool: Pool,
    /// Under way, oldest first, and by how many one event tells of.
    slots: VecDeque<Slot>,
    batches: VecDeque<Batch>,
    spare: Vec<Event>,
    counters: Vec<Counters>,
    state: State,
    generation: u64,
    /// Why it does no more.
    broken: Option<String>,
    opened: Arc<Opened>,
}

// SAFETY: the raw pointers in slots are the poster's, who promised their validity until the lane is
// done with them, wherever the lane is moved to.
unsafe impl Send for NvlinkLane {}

/// Why an operation is not taken.
enum Stop {
    Full,
    Refused(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Refused(error)
    }
}

fn unsupported(what: String) -> Stop {
    Stop::Refused(Error::Unsupported {
        transport: NAME,
        what,
    })
}

const NOWHERE: DevicePtr = DevicePtr::from_raw(0);

impl NvlinkLane {
    pub(crate) fn new(opened: &Arc<Opened>) -> Result<NvlinkLane> {
        let context = &opened.context;
        let stream = Stream::new(context, &StreamOptions::default());
        let stream = stream.map_err(|error| driver("a lane's stream", &error))?;
        let pool = Pool::new(context, &opened.memories);
        let pool = pool.map_err(|error| driver("a lane's pool", &error))?;
        let (generation, state) = opened.shared.copy();
        Ok(NvlinkLane {
            stream,
            pool,
            slots: VecDeque::with_capacity(DEPTH as usize),
            batches: VecDeque::new(),
            spare: Vec::new(),
            counters: vec![Counters::default(); opened.job.size as usize],
            state,
            generation,
            broken: None,
            opened: Arc::clone(opened),
        })
    }

    fn look(&mut self) {
        if self.opened.shared.generation() != self.generation {
            (self.generation, self.state) = self.opened.shared.copy();
            self.give_up_lost();
        }
    }

    /// Operations towards lost PEs are not counted any more, and touch local memory no more.
    #[cold]
    fn give_up_lost(&mut self) {
        let lost = &self.state.lost;
        let mut touched = false;
        for slot in self.slots.iter_mut().filter(|slot| lost.contains(&slot.pe)) {
            touched |= !slot.given_up;
            (slot.given_up, slot.deliver) = (true, None);
        }
        // What the stream still writes to GPU memory is written when this is over: it waits for nobody.
        if touched && let Err(error) = self.stream.synchronize_within(FAREWELL) {
            tracing::error!(%error, "operations towards a lost PE are under way");
        }
    }

    /// Whether no more operations towards a PE are taken for now.
    fn is_full(&self, pe: Pe, accepted: usize) -> bool {
        let counters = self.counters.get(pe.index()).copied().unwrap_or_default();
        counters.posted + accepted as u64 >= counters.completed + u64::from(DEPTH)
    }

    fn check(&mut self, pe: Pe) -> Result<()> {
        self.look();
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if self.state.lost.contains(&pe) {
            return Err(Error::PeerLost {
                transport: NAME,
                pe,
            });
        }
        if pe.0 >= self.opened.job.size {
            return Err(Error::Unreachable {
                transport: NAME,
                pe,
                why: format!("the job has {} PEs", self.opened.job.size),
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

    /// The stream does no more: its GPU's context has failed.
    #[cold]
    fn broke(&mut self, what: &str, error: &oxshmem_cuda::Error) -> Error {
        self.broken.get_or_insert_with(|| error.to_string());
        driver(what, error)
    }

    /// The near side of what is sent: GPU memory and long page-locked memory as they are, else copied.
    ///
    /// # Safety
    ///
    /// The bytes are valid.
    unsafe fn source(&mut self, from: &Local) -> Result<(DevicePtr, Option<Block>), Stop> {
        let copied = match from.key {
            None => true,
            // What is short may be reused when it is posted.
            Some(key) => key == PINNED && from.len <= UNREGISTERED,
        };
        if !copied {
            return Ok((DevicePtr::from_host(from.addr), None));
        }
        if from.len > UNREGISTERED {
            let what = format!("a transfer of {} unregistered bytes", from.len);
            return Err(unsupported(what));
        }
        let block = self.pool.take(from.len).ok_or(Stop::Full)?;
        // SAFETY: the source is the caller's promise; the block is at least as long, and nobody else's.
        unsafe { oxshmem_heap::copy::copy(self.pool.host(block), from.addr, from.len) };
        Ok((self.pool.device(block), Some(block)))
    }

    /// The near side of what comes.
    fn destination(&mut self, pe: Pe, into: &Local) -> Result<(DevicePtr, Slot), Stop> {
        let mut slot = Slot::new(pe, None);
        if into.key.is_some() {
            return Ok((DevicePtr::from_host(into.addr), slot));
        }
        if into.len > UNREGISTERED {
            let what = format!("a transfer of {} unregistered bytes", into.len);
            return Err(unsupported(what));
        }
        let block = self.pool.take(into.len).ok_or(Stop::Full)?;
        (slot.block, slot.deliver) = (Some(block), Some((into.addr, into.len)));
        Ok((self.pool.device(block), slot))
    }

    /// Queues one operation.
    ///
    /// # Safety
    ///
    /// As [`Lane::post`].
    unsafe fn operation(&mut self, pe: Pe, op: &Op) -> Result<Slot, Stop> {
        let plain = |block| Slot::new(pe, block);
        match *op {
            Op::Put { from, to } => {
                let far = self.state.find(pe, to, (from.len as u64, 1), "a put")?;
                // SAFETY: the caller's promise.
                let (near, block) = unsafe { self.source(&from) }?;
                // SAFETY: the far bytes are mapped while the table that the lane holds says so; the
                // near ones are the caller's, or the block's.
                let queued = unsafe { self.stream.copy(far, near, from.len) };
                self.queued(queued)?;
                Ok(plain(block))
            }
            Op::Get { into, from } => {
                let far = self.state.find(pe, from, (into.len as u64, 1), "a get")?;
                let (near, slot) = self.destination(pe, &into)?;
                // SAFETY: as for put.
                let queued = unsafe { self.stream.copy(near, far, into.len) };
                self.queued(queued)?;
                Ok(slot)
            }
            Op::PutSignal {
                from,
                to,
                signal,
                op,
                value,
            } => {
                let far = self.state.find(pe, to, (from.len as u64, 1), "a put")?;
                let word = self.state.find(pe, signal, (8, 8), "a signal")?;
                // SAFETY: the caller's promise.
                let (near, block) = unsafe { self.source(&from) }?;
                // SAFETY: as for put; the word is as the far bytes are.
                let queued = unsafe {
                    let copied = self.stream.copy(far, near, from.len);
                    copied.and_then(|()| {
                        let kernels = &self.opened.kernels;
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
                let (result, slot) = match fetch {
                    None => (NOWHERE, plain(None)),
                    Some(into) => self.fetched(pe, (op, width), &into)?,
                };
                let kernels = &self.opened.kernels;
                let operands = (operand, compare);
                // SAFETY: the word is mapped while the table that the lane holds says so, and the
                // result is the caller's GPU memory or the block; both are aligned.
                let queued =
                    unsafe { kernels.atomic(&self.stream, (op, width), word, operands, result) };
                self.queued(queued)?;
                Ok(slot)
            }
            // The stream is in order, and what has completed is placed.
            Op::Flush => Ok(plain(None)),
            ref other => Err(unsupported(format!("{other:?}"))),
        }
    }

    /// Where an atomic's old value goes.
    fn fetched(
        &mut self,
        pe: Pe,
        (op, width): (AtomicOp, Width),
        into: &Local,
    ) -> Result<(DevicePtr, Slot), Stop> {
        if op == AtomicOp::Set {
            return Err(unsupported("a fetch by atomic set".into()));
        }
        into.check_fetch(NAME, width)?;
        self.destination(pe, into)
    }

    /// What the driver said to an operation. Where part of it may have been queued, the lane ends; its
    /// block is not given back, since the stream may still use it.
    fn queued(&mut self, queued: oxshmem_cuda::Result<()>) -> Result<(), Stop> {
        queued.map_err(|error| Stop::Refused(self.broke("an operation on a lane's stream", &error)))
    }

    /// An event for the operations about to be queued: had before, so that those that are queued can be
    /// told of.
    fn event(&mut self) -> Result<Event> {
        match self.spare.pop() {
            Some(event) => Ok(event),
            None => {
                Event::new(&self.opened.context).map_err(|error| driver("a lane's event", &error))
            }
        }
    }

    /// Puts an event behind what was queued. If that fails, nothing is ever known of those operations:
    /// they touch local memory no more, and the lane ends.
    fn record(&mut self, event: Event, slots: usize) -> Result<()> {
        if let Err(error) = self.stream.record(&event) {
            let queued = self.slots.len().saturating_sub(slots);
            for slot in self.slots.iter_mut().skip(queued) {
                (slot.given_up, slot.deliver) = (true, None);
            }
            return Err(self.broke("an event on a lane's stream", &error));
        }
        self.batches.push_back(Batch { event, slots });
        Ok(())
    }

    /// Delivers what the oldest batch brought, and counts it.
    fn retire(&mut self, slots: usize) {
        for slot in self.slots.drain(..slots.min(self.slots.len())) {
            if let (Some(block), Some((to, len))) = (slot.block, slot.deliver) {
                // SAFETY: the poster promised `len` bytes here until the operation is counted, which
                // it is after this; the block has as many, which the stream has filled.
                unsafe { oxshmem_heap::copy::copy(to, self.pool.host(block), len) };
            }
            if let Some(block) = slot.block {
                self.pool.give(block);
            }
            if let Some(counters) = self.counters.get_mut(slot.pe.index())
                && !slot.given_up
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
        let context = self.opened.context.clone();
        // SAFETY: the caller's promise.
        context.beside_captures(|| unsafe { self.post_beside(pe, ops) })
    }

    fn progress(&mut self) -> Result<()> {
        let context = self.opened.context.clone();
        context.beside_captures(|| self.progress_beside())
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.counters.get(pe.index()).copied().unwrap_or_default()
    }
}

/// What posting and progress do while no thread's capture is in the way.
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
                stop = Some(Stop::Full);
                break;
            }
            // SAFETY: the caller's promise.
            match unsafe { self.operation(pe, op) } {
                Ok(slot) => self.slots.push_back(slot),
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
            Some(Stop::Full) => Posted::full(accepted),
            Some(Stop::Refused(error)) => Posted::refused(accepted, error),
        }
    }

    fn progress_beside(&mut self) -> Result<()> {
        self.look();
        if let Some(why) = &self.broken {
            return Err(told("a lane's stream, earlier", why.clone()));
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
                    return Err(self.broke("a lane's stream", &error));
                }
            }
            if let Some(Batch { event, slots }) = self.batches.pop_front() {
                self.retire(slots);
                self.spare.push(event);
            }
        }
        Ok(())
    }
}

impl Drop for NvlinkLane {
    fn drop(&mut self) {
        // Nothing under way touches local memory after this, but for a GPU that hangs: its work uses the pool,
        // heaps, memory that the program has page-locked, which the driver keeps until then, and slices, for
        // which oxshmem waits once more before the program has them back.
        let context = &self.opened.context;
        let ended = context.beside_captures(|| self.stream.synchronize_within(FAREWELL));
        if let Err(error) = ended {
            self.pool.lose();
            tracing::error!(%error, "a lane ends with work under way");
        }
    }
}
