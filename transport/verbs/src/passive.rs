//! The side that answers: for each lane of a peer that was connected, a queue pair that the device
//! serves by itself, and the buffers and completion queues that all of these share for messages.

mod pair;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{Error, Pe, Result};

pub(crate) use self::pair::PassivePair;
use crate::domain::{Opened, bad};
use crate::ibv::result::failed;
use crate::ibv::{Channel, Completion, CompletionQueue, SharedReceiveQueue};
use crate::region::Arena;
use crate::wire::Endpoint;
use crate::{MESSAGE, NAME};

/// Messages that may wait to be served.
const BUFFERS: u32 = 1024;

/// Completions and messages taken at once.
pub(crate) const BATCH: usize = 32;

/// How often the queue is looked at before a pair ends.
const SETTLING: u32 = 2;

/// What has come: a message that lies in a buffer, or the word that a lane has ended.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) buffer: u64,
    pub(crate) len: usize,
    pub(crate) goodbye: bool,
    pub(crate) from: Arc<PassivePair>,
}

#[derive(Debug)]
pub(crate) struct Passive {
    /// By the queue pair's number.
    pairs: Mutex<HashMap<u32, Arc<PassivePair>>>,
    /// How often pairs were removed.
    removals: AtomicU64,
    /// Pairs made.
    serials: AtomicU64,
    /// Messages taken from their queue, not served yet.
    come: Mutex<VecDeque<Message>>,
    /// Buffers that the device did not take when they were offered.
    refused: Mutex<Vec<u64>>,
    pub(crate) receive: Arc<CompletionQueue>,
    pub(crate) send: Arc<CompletionQueue>,
    pub(crate) channel: Arc<Channel>,
    buffers: Arc<SharedReceiveQueue>,
    arena: Arena,
    doorbell: OwnedFd,
    pub(crate) opened: Arc<Opened>,
}

impl Passive {
    pub(crate) fn new(opened: &Arc<Opened>) -> Result<Passive> {
        let (context, limits) = (&opened.port.context, opened.port.limits);
        let count = BUFFERS.min(limits.receive_depth).max(1);
        let channel = Arc::new(Channel::new(context)?);
        let buffers = Arc::new(SharedReceiveQueue::new(&opened.domain, count)?);
        let arena = Arena::new(&opened.domain, count as usize * MESSAGE)?;
        let entries = |wanted: u32| wanted.min(limits.completions).max(1);
        let receive = CompletionQueue::new(context, entries(count + 64), Some(&channel))?;
        let send = CompletionQueue::new(context, entries(4096), None)?;
        // SAFETY: no memory is involved.
        let doorbell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if doorbell < 0 {
            return Err(failed("eventfd", std::io::Error::last_os_error()));
        }
        let passive = Passive {
            pairs: Mutex::default(),
            removals: AtomicU64::new(0),
            serials: AtomicU64::new(0),
            come: Mutex::default(),
            refused: Mutex::default(),
            receive: Arc::new(receive),
            send: Arc::new(send),
            channel,
            buffers,
            arena,
            // SAFETY: a descriptor that the call made, owned from here on.
            doorbell: unsafe { OwnedFd::from_raw_fd(doorbell) },
            opened: Arc::clone(opened),
        };
        for number in 0..count {
            passive.try_offer(number.into())?;
        }
        Ok(passive)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<PassivePair>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come from the queue. Messages wait for the inbox; a goodbye waits behind those
    /// of its queue pair, and behind all while there is an inbox, else it ends its queue pair. So does
    /// the device's word that one has failed.
    pub(crate) fn look(&self) -> Result<()> {
        self.offer_again();
        let hurt = self.opened.take_hurt();
        if !hurt.is_empty() {
            let known: Vec<_> = {
                let pairs = self.lock();
                hurt.iter()
                    .filter_map(|number| pairs.get(number))
                    .map(Arc::clone)
                    .collect()
            };
            self.end(known);
        }
        let ended = self.drain()?;
        self.end(ended);
        Ok(())
    }

    /// Empties the queue of what was received; gives the pairs that are to end: those that failed, and
    /// those whose lane has ended with nothing left to be served. What comes is known by its queue pair here, while that is there: its
    /// number may be another's later.
    fn drain(&self) -> Result<Vec<Arc<PassivePair>>> {
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ended = Vec::new();
        let mut come = [Completion::none(); BATCH];
        loop {
            let count = self.receive.poll(&mut come)?;
            if count > 0 {
                let pairs = self.lock();
                for completion in &come[..count] {
                    let Some(from) = pairs.get(&completion.queue_pair()).map(Arc::clone) else {
                        // Of a pair that has ended.
                        self.offer(completion.id());
                        continue;
                    };
                    if !completion.succeeded() {
                        // Its queue pair is in the error state.
                        self.offer(completion.id());
                        ended.push(from);
                        continue;
                    }
                    let goodbye = completion.has_immediate();
                    // Acquire: an inbox that was given back has put back what it had taken.
                    let alone = !self.opened.inbox_taken.load(Ordering::Acquire)
                        && waiting.iter().all(|other| other.from.serial != from.serial);
                    if goodbye && alone {
                        self.offer(completion.id());
                        ended.push(from);
                    } else {
                        waiting.push_back(Message {
                            buffer: completion.id(),
                            len: completion.len().min(MESSAGE),
                            goodbye,
                            from,
                        });
                    }
                }
            }
            if count < BATCH {
                return Ok(ended);
            }
        }
    }

    /// Ends pairs. When this returns, nothing that comes by them is written here any more, whoever
    /// else still holds them.
    pub(crate) fn end(&self, mut pairs: Vec<Arc<PassivePair>>) {
        while !pairs.is_empty() {
            for pair in &pairs {
                pair.stop();
            }
            // What they received before is known as theirs while they are there, and their buffers
            // are not lost with them. A few looks, for what the device is about to tell.
            let mut more = Vec::new();
            for _ in 0..SETTLING {
                match self.drain() {
                    Ok(ended) => more.extend(ended),
                    Err(error) => {
                        tracing::warn!(%error, "what was received before an end");
                        break;
                    }
                }
                std::thread::yield_now();
            }
            {
                let mut known = self.lock();
                for pair in &pairs {
                    let number = pair.pair.number();
                    if known
                        .get(&number)
                        .is_some_and(|at| at.serial == pair.serial)
                    {
                        known.remove(&number);
                    }
                }
            }
            // Release: who sees the number sees that they have ended.
            self.removals.fetch_add(1, Ordering::Release);
            self.discard_ended();
            more.retain(|pair| !pair.ended());
            pairs = more;
        }
    }

    /// Offers the buffers again whose senders get no answer any more.
    fn discard_ended(&self) {
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|message| {
            if message.from.ended() {
                self.offer(message.buffer);
            }
            !message.from.ended()
        });
    }

    /// The oldest messages that wait, at most [`BATCH`]. Their buffers are to be offered again.
    pub(crate) fn take(&self, into: &mut VecDeque<Message>) -> Result<()> {
        self.look()?;
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.len().min(BATCH);
        into.extend(waiting.drain(..count));
        Ok(())
    }

    /// Puts back what was taken and not served.
    pub(crate) fn put_back(&self, taken: &mut VecDeque<Message>) {
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(message) = taken.pop_back() {
            waiting.push_front(message);
        }
    }

    /// Offers a buffer that nobody else uses, after its message was copied. One that the device does
    /// not take is offered again later.
    pub(crate) fn offer(&self, number: u64) {
        if let Err(error) = self.try_offer(number) {
            tracing::warn!(%error, "a buffer for messages is offered again later");
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.push(number);
        }
    }

    fn offer_again(&self) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|&number| self.try_offer(number).is_err());
    }

    fn try_offer(&self, number: u64) -> Result<()> {
        let (at, len) = (self.buffer(number), MESSAGE as u32);
        // SAFETY: the buffer is the arena's, which is registered. Its completion comes before it is
        // offered again; the arena ends after the queue pairs, which hold the domain's objects and
        // are dropped first.
        unsafe { self.buffers.offer(number, at, len, self.arena.lkey()) }
    }

    /// Where a buffer's message lies.
    pub(crate) fn buffer(&self, number: u64) -> *mut u8 {
        self.arena.at(number as usize * MESSAGE)
    }

    /// Makes the end that answers an endpoint; the same for the same one.
    pub(crate) fn accept(&self, pe: Pe, endpoint: &[u8]) -> Result<Vec<u8>> {
        let bad = |why| bad("the endpoint of a lane", pe, why);
        let endpoint = Endpoint::from_bytes(endpoint).map_err(bad)?;
        let opened = &self.opened;
        if (endpoint.from, endpoint.to) != (pe.0, opened.shared.job.me.0) {
            return Err(bad(format!(
                "it is PE {}'s, towards PE {}",
                endpoint.from, endpoint.to
            )));
        }
        opened.events();
        // Lanes that have ended are let go of here too, where nobody serves the inbox.
        self.look()?;
        let known = |pairs: &HashMap<u32, Arc<PassivePair>>| {
            let mut known = pairs.values().filter(|known| known.endpoint == endpoint);
            known.next().map(|known| known.answer.to_bytes())
        };
        // The number of a queue pair that is gone was given again.
        let stale: Vec<_> = {
            let pairs = self.lock();
            if let Some(answer) = known(&pairs) {
                return Ok(answer);
            }
            let stale = pairs
                .values()
                .filter(|known| known.pe == pe && known.endpoint.queue_pair == endpoint.queue_pair);
            stale.map(Arc::clone).collect()
        };
        self.end(stale);
        // Relaxed: only the numbers matter.
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        // Not under the lock: to find the peer's address may take long.
        let made = self.make(pe, endpoint.clone(), serial)?;
        let answer = made.answer.to_bytes();
        let mut pairs = self.lock();
        if let Some(answer) = known(&pairs) {
            return Ok(answer);
        }
        // Under the lock: who loses the PE from here on finds the pair.
        opened.shared.check(pe)?;
        pairs.insert(made.pair.number(), Arc::new(made));
        Ok(answer)
    }

    fn make(&self, pe: Pe, endpoint: Endpoint, serial: u64) -> Result<PassivePair> {
        let queues = (&self.send, &self.receive);
        PassivePair::new(&self.opened, queues, &self.buffers, pe, endpoint, serial)
    }

    /// All that there are.
    pub(crate) fn pairs(&self) -> Vec<Arc<PassivePair>> {
        self.lock().values().map(Arc::clone).collect()
    }

    /// How often pairs were removed: who keeps some looks again when this changes.
    pub(crate) fn removals(&self) -> u64 {
        // Acquire: pairs with the additions, which follow the removal.
        self.removals.load(Ordering::Acquire)
    }

    /// Ends those of a PE, so that nothing of it is written here any more.
    pub(crate) fn lose(&self, pe: Pe) {
        let mut lost = self.pairs();
        lost.retain(|pair| pair.pe == pe);
        self.end(lost);
        self.wake();
    }

    /// Ends the inbox's sleep.
    pub(crate) fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes 8 bytes from an array of 8. That it may be full is as good as written.
        unsafe { libc::write(self.doorbell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes what `wake` left, so that the next sleep is one.
    pub(crate) fn calm(&self) {
        let mut taken = [0; 8];
        // SAFETY: reads 8 bytes into an array of 8; it does not block.
        unsafe {
            libc::read(
                self.doorbell.as_raw_fd(),
                taken.as_mut_ptr().cast(),
                taken.len(),
            )
        };
    }

    /// What to sleep on.
    pub(crate) fn descriptors(&self) -> [i32; 3] {
        let channel = self.channel.descriptor().as_raw_fd();
        let events = self.opened.port.context.event_descriptor();
        [
            channel,
            self.doorbell.as_fd().as_raw_fd(),
            events.as_raw_fd(),
        ]
    }

    /// Takes the right to be the inbox.
    pub(crate) fn take_inbox(&self) -> Result<()> {
        // Acquire and release: one inbox after the other sees the queues as the last left them.
        match self.opened.inbox_taken.swap(true, Ordering::AcqRel) {
            false => Ok(()),
            true => Err(Error::Unsupported {
                transport: NAME,
                what: "a second inbox of one domain".into(),
            }),
        }
    }

    pub(crate) fn give_inbox_back(&self) {
        self.opened.inbox_taken.store(false, Ordering::Release);
    }
}

impl Drop for Passive {
    fn drop(&mut self) {
        // Before the buffers that they use; who else holds a pair is gone, since it holds this too.
        let mut come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        come.clear();
        drop(come);
        self.lock().clear();
    }
}
