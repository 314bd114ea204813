//! The lane: per connected PE one queue pair, for all of them one completion queue and one pool of
//! registered blocks.
//!
//! # Signals
//!
//! A request that is not signalled makes no completion; the next signalled one behind it tells of it
//! too. So a batch's last request is signalled where it brings what somebody waits for (gets, fetches,
//! flushes), where it sends from memory in place and no completion is to come, and else when a quarter
//! of the queue pair's requests or of the window would be untold. Puts that nothing else follows are
//! told of by an empty write, which `progress` sends when they are awaited, or once it has found
//! nothing else to do for a while.
//!
//! # Failure
//!
//! A failed completion, or the news that a PE is lost, ends its queue pair at once, and with it every
//! access to local memory. Completions of it that are in the queue already are then taken out before
//! their room there is used again.

pub(crate) mod batch;
mod farewell;
mod pool;
mod ring;
mod stage;
mod way;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use oxshmem_transport::{Counters, Error, Lane, Op, Pe, Posted, Result};

use self::batch::{Batch, Do, LONGEST, Near, Request};
use self::pool::Pool;
use self::ring::Slot;
pub(crate) use self::stage::PER_OPERATION;
use self::stage::{LARGEST, Stage, Stop};
use self::way::{End, Way};
use crate::NAME;
use crate::domain::{Opened, depth};
use crate::fault::{Cause, NearEnd};
use crate::ibv::sys::ibv_atomic_cap;
use crate::ibv::{Completion, CompletionQueue};
use crate::shared::Fault;
use crate::statistics::Counts;

/// Completions taken with one call.
const POLL: usize = 32;

/// Calls of `progress` that find nothing before untold requests are told of.
const IDLE: u32 = 4096;

/// Bytes under way towards one PE, beyond which a lane of a software device is full: such a device does
/// not put its retransmission off while acknowledgements come, and sends again what takes longer than the
/// timeout to arrive, until its retries are used up.
const WINDOW: u64 = 2 << 20;

/// How long a software device may leave what is awaited undone before it is given one request more: rxe's
/// sender waits on flags that its receiving side clears without a lock (for a fence, for a read's turn, for
/// a retry), so that a wake-up can get lost, and only another request wakes it.
const STALL: Duration = Duration::from_millis(300);
/// Calls of `progress` from one look for that to the next.
const STALLS: u32 = 64;

/// Calls of `progress` from one look for the device's events to the next, which is a system call, where
/// no inbox waits for them.
pub(crate) const EVENTS: u32 = 4096;

#[derive(Debug)]
pub(crate) struct VerbsLane {
    // Before the blocks that their queue pairs use.
    ways: Vec<Way>,
    pool: Pool,
    batch: Batch,
    taken: [Completion; POLL],
    queue: Arc<CompletionQueue>,
    /// Completions that the queue has room for beside those of outstanding requests.
    room: u32,
    /// Completions of ended queue pairs that may still be in the queue.
    stale: u32,
    /// Operations outstanding towards one PE at most, and requests.
    depth: u32,
    /// Bytes outstanding towards one PE before the lane is full.
    window: u64,
    /// Whether the device is made of software.
    software: bool,
    most: u32,
    max: u64,
    changing: bool,
    /// PEs towards which the last request was not signalled.
    untold: Vec<Pe>,
    /// Some of them are to be told of at once.
    hurried: bool,
    idle: u32,
    /// Of `progress`.
    calls: u32,
    /// Whether an operation waits for a block.
    starved: bool,
    news: VecDeque<Error>,
    generation: u64,
    closed: bool,
    counts: Arc<Counts>,
    opened: Arc<Opened>,
}

// SAFETY: the raw pointers in outstanding requests are the poster's, who promised their validity
// until the lane is done with them, wherever the lane is moved to.
unsafe impl Send for VerbsLane {}

impl VerbsLane {
    pub(crate) fn new(opened: &Arc<Opened>) -> Result<VerbsLane> {
        let port = &opened.port;
        let depth = depth(port, &opened.settings);
        let most = PER_OPERATION * depth + 2;
        let size = opened.shared.job.size;
        let entries = (most * size.min(4)).min(port.limits.completions);
        let queue = CompletionQueue::new(&port.context, entries, None)?;
        let mut lane = VerbsLane {
            ways: (0..size).map(|_| Way::new()).collect(),
            pool: Pool::new(&opened.domain, opened.settings.bounce)?,
            batch: Batch::new(),
            taken: [Completion::none(); POLL],
            room: queue.capacity(),
            queue: Arc::new(queue),
            stale: 0,
            depth,
            window: if port.software { WINDOW } else { u64::MAX },
            software: port.software,
            most,
            max: u64::from(port.state.largest_message).min(1 << 30),
            changing: port.limits.atomics != ibv_atomic_cap::IBV_ATOMIC_NONE,
            untold: Vec::with_capacity(size as usize),
            hurried: false,
            idle: 0,
            calls: 0,
            starved: false,
            news: VecDeque::new(),
            generation: 0,
            closed: false,
            counts: opened.totals.enter(),
            opened: Arc::clone(opened),
        };
        lane.refresh();
        Ok(lane)
    }

    /// Learns what has changed in the domain: gives up those that are lost.
    #[cold]
    fn refresh(&mut self) {
        let (generation, state) = self.opened.shared.copy();
        self.generation = generation;
        self.closed = state.closed;
        let known = state.imported.into_iter().zip(state.lost);
        for (way, (regions, lost)) in self.ways.iter_mut().zip(known) {
            way.regions = regions;
            if lost {
                self.stale += way.give_up(Cause::Lost, &mut self.pool);
                way.end = End::Failed(Cause::Lost);
            }
        }
        if let Some(why) = state.failed {
            self.fail_all(&why);
        }
        if self.stale > 0 {
            self.clear_stale();
        }
    }

    #[inline]
    fn look(&mut self) {
        if self.opened.shared.generation() != self.generation {
            self.refresh();
        }
    }

    /// That the lane is open and `pe` of the job.
    fn check(&mut self, pe: Pe) -> Result<()> {
        self.look();
        self.opened.shared.check(pe)
    }

    /// Makes room for one more connection's completions, if the device has it. Where it has not,
    /// connections share what there is.
    fn grow(&mut self) {
        let made = |way: &&Way| matches!(way.end, End::Made(_) | End::Connected(_));
        let connections = self.ways.iter().filter(made).count() as u32 + 1;
        let wanted = connections.saturating_mul(self.most);
        let most = self.opened.port.limits.completions;
        let before = self.queue.capacity();
        if wanted <= before || before >= most {
            return;
        }
        match self.queue.resize(wanted.next_power_of_two().min(most)) {
            Ok(()) => self.room += self.queue.capacity().saturating_sub(before),
            Err(error) => tracing::debug!(%error, "connections share their completion queue"),
        }
    }

    /// Takes up to [`POLL`] completions; how many there were.
    #[inline]
    fn poll(&mut self) -> Result<usize> {
        let count = self.queue.poll(&mut self.taken)?;
        self.counts.polled(count as u64);
        for at in 0..count {
            let completion = self.taken[at];
            let pe = Pe((completion.id() >> 32) as u32);
            let Some(way) = self.ways.get_mut(pe.index()) else {
                continue;
            };
            if completion.succeeded() {
                self.room += way.retire(completion.id() as u32, &mut self.pool);
            } else if let End::Connected(link) = &way.end {
                // What the device knows about it comes first.
                self.opened.events();
                let end = NearEnd {
                    port: &self.opened.port.name(),
                    route: &link.words,
                    answered: link.answered,
                    down: self.opened.port_down(),
                };
                let cause = Cause::of(&completion, &end);
                self.fail(pe, cause);
            }
        }
        Ok(count)
    }

    /// Ends a connection that has failed, which `progress` will tell.
    #[cold]
    fn fail(&mut self, pe: Pe, cause: Cause) {
        let error = cause.error(pe);
        tracing::warn!(%pe, status = %error, "a connection failed");
        self.news.push_back(error);
        if let Some(way) = self.ways.get_mut(pe.index()) {
            self.stale += way.give_up(cause, &mut self.pool);
        }
    }

    /// Ends all connections, when the device does no more.
    #[cold]
    fn fail_all(&mut self, why: &str) {
        for at in 0..self.ways.len() {
            let cause = Cause::Failed(why.to_owned());
            match self.ways[at].end {
                End::Made(_) | End::Connected(_) => self.fail(Pe(at as u32), cause),
                End::None => self.ways[at].end = End::Failed(cause),
                End::Failed(_) => {}
            }
        }
    }

    /// Empties the completion queue: nothing of an ended queue pair is in it then, and its room is
    /// there again.
    #[cold]
    fn clear_stale(&mut self) {
        loop {
            match self.poll() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    self.news.push_back(error);
                    return;
                }
            }
        }
        self.room += std::mem::take(&mut self.stale);
    }

    /// Posts what was staged. If that fails, so does the connection.
    ///
    /// # Safety
    ///
    /// As for [`Batch::post`].
    #[inline]
    unsafe fn submit(&mut self, pe: Pe, awaited: bool) -> Result<(), Fault> {
        let count = self.batch.len();
        if count == 0 {
            return Ok(());
        }
        let Some(way) = self.ways.get_mut(pe.index()) else {
            return Ok(());
        };
        let End::Connected(link) = &mut way.end else {
            return Ok(());
        };
        let many = link.ring.unsignalled() >= self.most / 4;
        if awaited || many || link.ring.unsignalled_bytes() >= self.window / 4 {
            self.batch.signal_last();
            link.ring.signal();
        } else if !way.listed {
            way.listed = true;
            self.untold.push(pe);
        }
        self.counts.posted(count as u64);
        // SAFETY: the caller's promise.
        match unsafe { self.batch.post(&link.pair) } {
            Ok(()) => Ok(()),
            Err(code) => Err(self.refused_by_device(pe, code)),
        }
    }

    #[cold]
    fn refused_by_device(&mut self, pe: Pe, code: i32) -> Fault {
        let source = std::io::Error::from_raw_os_error(code);
        let port = self.opened.port.name();
        let cause = Cause::Failed(format!("ibv_post_send on {port}: {source}"));
        let error = cause.error(pe);
        if let Some(way) = self.ways.get_mut(pe.index()) {
            self.stale += way.give_up(cause, &mut self.pool);
        }
        self.clear_stale();
        Box::new(error)
    }

    /// Wakes a software device that has slept over what it was given.
    #[cold]
    fn wake_stalled(&mut self) {
        let now = Instant::now();
        for at in 0..self.ways.len() {
            let Some(way) = self.ways.get_mut(at) else {
                continue;
            };
            let End::Connected(link) = &mut way.end else {
                continue;
            };
            if !link.stalls(now) || self.room == 0 || link.ring.free() == 0 {
                continue;
            }
            let pe = Pe(at as u32);
            tracing::debug!(%pe, "nothing was done for a while: another request may wake the device");
            self.push_empty(pe);
        }
    }

    /// Sends an empty write that is told of, and with it all before it. There must be room.
    fn push_empty(&mut self, pe: Pe) {
        let Some(End::Connected(link)) = self.ways.get_mut(pe.index()).map(|way| &mut way.end)
        else {
            return;
        };
        let slot = Slot {
            ends: false,
            ..Slot::PLAIN
        };
        let number = link.ring.push(slot);
        self.room -= 1;
        let request = Request {
            what: Do::Write(0, 0),
            near: Near::Nothing,
            fenced: false,
        };
        self.batch
            .push(u64::from(pe.0) << 32 | u64::from(number), request);
        // SAFETY: the request has no near side.
        if let Err(error) = unsafe { self.submit(pe, true) } {
            self.news.push_back(*error);
        }
    }

    /// Has untold requests told of, where no completion will come that does, or they are awaited.
    #[cold]
    fn tell(&mut self) {
        // Those that stay listed move to the front; nothing here adds to the list.
        let mut left = 0;
        for at in 0..self.untold.len() {
            let pe = self.untold[at];
            let Some(way) = self.ways.get_mut(pe.index()) else {
                continue;
            };
            way.listed = false;
            let hurried = std::mem::take(&mut way.hurried);
            let End::Connected(link) = &mut way.end else {
                continue;
            };
            if link.ring.unsignalled() == 0 {
                continue;
            }
            let later = link.ring.expects() && !hurried;
            if later || self.room == 0 || link.ring.free() == 0 {
                way.listed = true;
                way.hurried = hurried;
                self.hurried |= hurried;
                self.untold[left] = pe;
                left += 1;
                continue;
            }
            self.push_empty(pe);
        }
        self.untold.truncate(left);
    }
}

impl Lane for VerbsLane {
    fn endpoint(&mut self, pe: Pe) -> Result<Vec<u8>> {
        self.check(pe)?;
        if self
            .ways
            .get(pe.index())
            .is_some_and(|way| matches!(way.end, End::None))
        {
            self.grow();
        }
        match self.ways.get_mut(pe.index()) {
            Some(way) => way.endpoint(&self.opened, pe, &self.queue, self.most),
            None => Ok(Vec::new()),
        }
    }

    fn connect(&mut self, pe: Pe, endpoint: &[u8]) -> Result<()> {
        self.check(pe)?;
        match self.ways.get_mut(pe.index()) {
            Some(way) => way.connect(&self.opened, pe, endpoint),
            None => Ok(()),
        }
    }

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        self.look();
        if self.closed {
            return Posted::refused(0, Error::Closed { transport: NAME });
        }
        let (mut posted, mut staged, mut awaited) = (0, 0, false);
        let mut stop = None;
        while posted + staged < ops.len() {
            let Some(way) = self.ways.get_mut(pe.index()) else {
                let error = self.opened.shared.check(pe).err();
                let error = error.unwrap_or(Error::Closed { transport: NAME });
                return Posted::refused(0, error);
            };
            let End::Connected(link) = &mut way.end else {
                return Posted::refused(posted, way.refusal(pe));
            };
            let outstanding = way.counters.posted - way.counters.completed + staged as u64;
            let op = &ops[posted + staged];
            let room = link.ring.free().min(self.room);
            let long = link.ring.bytes() >= self.window;
            if outstanding >= u64::from(self.depth) || room <= PER_OPERATION || long {
                // Untold requests towards others may hold what room the completion queue has.
                self.starved |= self.room <= PER_OPERATION;
                stop = Some(None);
                break;
            }
            if self.batch.len() + LARGEST > LONGEST {
                // SAFETY: the caller's promise about the operations staged.
                if let Err(error) = unsafe { self.submit(pe, awaited) } {
                    return Posted::refused(posted, *error);
                }
                posted += staged;
                self.count(pe, staged);
                (staged, awaited) = (0, false);
                continue;
            }
            let before = link.ring.outstanding();
            let mut stage = Stage {
                pe,
                regions: &way.regions,
                link,
                batch: &mut self.batch,
                pool: &mut self.pool,
                max: self.max,
                changing: self.changing,
                fences: !self.software,
                awaited,
            };
            // SAFETY: the caller's promise.
            let taken = unsafe { stage.operation(op) };
            awaited = stage.awaited;
            self.room -= link.ring.outstanding() - before;
            match taken {
                Ok(()) => staged += 1,
                Err(Stop::NoBlock | Stop::Behind) => {
                    // What it needs to be over may be untold.
                    self.starved = true;
                    stop = Some(None);
                    break;
                }
                Err(Stop::Refused(error)) => {
                    stop = Some(Some(error));
                    break;
                }
            }
        }
        // SAFETY: the caller's promise about the operations staged.
        if let Err(error) = unsafe { self.submit(pe, awaited) } {
            return Posted::refused(posted, *error);
        }
        self.count(pe, staged);
        posted += staged;
        match stop {
            None => Posted::all(posted),
            Some(None) => Posted::full(posted),
            Some(Some(error)) => Posted::refused(posted, *error),
        }
    }

    fn progress(&mut self) -> Result<()> {
        self.look();
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        self.calls = self.calls.wrapping_add(1);
        // Relaxed: whoever looks is early enough.
        if self.calls.is_multiple_of(EVENTS) && !self.opened.inbox_taken.load(Relaxed) {
            self.opened.events();
        }
        let count = self.poll()?;
        if self.stale > 0 {
            self.clear_stale();
        }
        if count > 0 {
            self.idle = 0;
        } else if !self.untold.is_empty() {
            self.idle += 1;
        }
        if self.software && count == 0 && self.calls.is_multiple_of(STALLS) {
            self.wake_stalled();
        }
        // What waits for a block may wait for one of an untold request, whatever else completes.
        if self.starved || self.hurried || self.idle >= IDLE {
            (self.idle, self.starved, self.hurried) = (0, false, false);
            self.tell();
        }
        match self.news.pop_front() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    fn counters(&self, pe: Pe) -> Counters {
        self.ways
            .get(pe.index())
            .map(|way| way.counters)
            .unwrap_or_default()
    }

    fn request_completion(&mut self, pe: Pe) {
        if let Some(way) = self.ways.get_mut(pe.index())
            && way.listed
        {
            (way.hurried, self.hurried) = (true, true);
        }
    }
}

impl VerbsLane {
    #[inline]
    fn count(&mut self, pe: Pe, staged: usize) {
        if let Some(way) = self.ways.get_mut(pe.index()) {
            way.counters.posted += staged as u64;
        }
    }
}

#[cfg(test)]
mod tests;
