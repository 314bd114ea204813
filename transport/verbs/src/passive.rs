//! The side that answers: for each lane of a peer that was connected, a queue pair that the device
//! serves by itself, and the buffers and completion queues that all of these share for messages.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxshmem_transport::{Error, Pe, Result};

use crate::domain::{Opened, bad};
use crate::ibv::result::failed;
use crate::ibv::{Channel, Completion, CompletionQueue, QueuePair, QueueSizes, SharedReceiveQueue};
use crate::port::path;
use crate::region::Arena;
use crate::wire::{Answer, Endpoint};
use crate::{MESSAGE, NAME};

/// Requests that the inbox may have outstanding towards one lane: two for each answer.
pub(crate) const ANSWER_REQUESTS: u32 = 32;

/// Messages that may wait to be served.
const BUFFERS: u32 = 1024;

/// Completions and messages taken at once.
pub(crate) const BATCH: usize = 32;

/// A queue pair that answers a peer's lane.
#[derive(Debug)]
pub(crate) struct PassivePair {
    pub(crate) pe: Pe,
    pub(crate) pair: QueuePair,
    endpoint: Endpoint,
    answer: Answer,
}

#[derive(Debug)]
pub(crate) struct Passive {
    /// By the queue pair's number.
    pairs: Mutex<HashMap<u32, Arc<PassivePair>>>,
    /// How often pairs were removed.
    removals: AtomicU64,
    /// Messages taken from their queue, not served yet.
    come: Mutex<VecDeque<Completion>>,
    inbox_taken: AtomicBool,
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
            come: Mutex::default(),
            inbox_taken: AtomicBool::new(false),
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
            passive.offer(number.into())?;
        }
        Ok(passive)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<PassivePair>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come from the queue. Messages wait for the inbox; a goodbye waits behind those
    /// of its queue pair, and behind all while there is an inbox, else it ends its queue pair.
    fn look(&self) -> Result<()> {
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        let mut come = [Completion::none(); BATCH];
        loop {
            let count = self.receive.poll(&mut come)?;
            for completion in &come[..count] {
                let pair = completion.queue_pair();
                // Acquire: an inbox that was given back has put back what it had taken.
                let alone = !self.inbox_taken.load(Ordering::Acquire)
                    && waiting.iter().all(|other| other.queue_pair() != pair);
                if completion.has_immediate() && alone {
                    self.offer(completion.id())?;
                    self.remove(pair);
                } else {
                    waiting.push_back(*completion);
                }
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// The oldest messages that wait, at most [`BATCH`]. Their buffers are to be offered again.
    pub(crate) fn take(&self, into: &mut VecDeque<Completion>) -> Result<()> {
        self.look()?;
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.len().min(BATCH);
        into.extend(waiting.drain(..count));
        Ok(())
    }

    /// Puts back what was taken and not served.
    pub(crate) fn put_back(&self, taken: &mut VecDeque<Completion>) {
        let mut waiting = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(message) = taken.pop_back() {
            waiting.push_front(message);
        }
    }

    /// Offers a buffer that nobody else uses: at first, and after its message was copied.
    pub(crate) fn offer(&self, number: u64) -> Result<()> {
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
        let (opened, port) = (&self.opened, &self.opened.port);
        if (endpoint.from, endpoint.to) != (pe.0, opened.shared.job.me.0) {
            return Err(bad(format!(
                "it is PE {}'s, towards PE {}",
                endpoint.from, endpoint.to
            )));
        }
        // Lanes that have ended are let go of here too, where nobody serves the inbox.
        self.look()?;
        let mut pairs = self.lock();
        if let Some(known) = pairs.values().find(|known| known.endpoint == endpoint) {
            return Ok(known.answer.to_bytes());
        }
        // The number of a queue pair that is gone was given again.
        let stale = |known: &PassivePair| {
            known.pe == pe && known.endpoint.queue_pair == endpoint.queue_pair
        };
        if pairs.values().any(|known| stale(known)) {
            pairs.retain(|_, known| !stale(known));
            self.removals.fetch_add(1, Ordering::Release);
        }
        let path = path(&port.place(), &endpoint.place, opened.route_needed()).map_err(bad)?;
        let sizes = QueueSizes {
            depth: ANSWER_REQUESTS,
            inline: 8,
        };
        let (send, receive) = (&self.send, &self.receive);
        let pair = QueuePair::new(&opened.domain, send, receive, Some(&self.buffers), sizes)?;
        if pair.inline() < 8 {
            return Err(Error::Unsupported {
                transport: NAME,
                what: format!("{}, which carries no inline data,", port.name()),
            });
        }
        let nonce = opened.nonce();
        let answer = Answer {
            nonce: endpoint.nonce,
            queue_pair: pair.number(),
            sequence: (nonce >> 40) as u32,
            reads: endpoint.reads.min(port.limits.reads_in).max(1),
            mtu: path.mtu,
            lid: port.state.lid,
            route: path.route.map(|(ours, theirs)| (theirs, ours)),
        };
        let connect = opened
            .connection(
                &path,
                endpoint.place.lid,
                endpoint.queue_pair,
                (answer.sequence, endpoint.sequence),
                (1, answer.reads),
            )
            .map_err(bad)?;
        pair.prepare(port.number, port.partition)?;
        pair.connect(&connect)?;
        let number = pair.number();
        let made = PassivePair {
            pe,
            pair,
            endpoint,
            answer,
        };
        pairs.insert(number, Arc::new(made));
        Ok(answer.to_bytes())
    }

    /// The queue pair of this number, while it is there.
    pub(crate) fn pair(&self, number: u32) -> Option<Arc<PassivePair>> {
        self.lock().get(&number).map(Arc::clone)
    }

    /// How often pairs were removed: who keeps some looks again when this changes.
    pub(crate) fn removals(&self) -> u64 {
        // Acquire: pairs with the additions, which follow the removal.
        self.removals.load(Ordering::Acquire)
    }

    /// Ends one that failed.
    pub(crate) fn remove(&self, number: u32) {
        self.lock().remove(&number);
        self.removals.fetch_add(1, Ordering::Release);
    }

    /// Ends those of a PE, so that nothing of it is written here any more.
    pub(crate) fn lose(&self, pe: Pe) {
        self.lock().retain(|_, pair| pair.pe != pe);
        self.removals.fetch_add(1, Ordering::Release);
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
    pub(crate) fn descriptors(&self) -> [i32; 2] {
        let channel = self.channel.descriptor().as_raw_fd();
        [channel, self.doorbell.as_fd().as_raw_fd()]
    }

    /// Takes the right to be the inbox.
    pub(crate) fn take_inbox(&self) -> Result<()> {
        // Acquire and release: one inbox after the other sees the queues as the last left them.
        match self.inbox_taken.swap(true, Ordering::AcqRel) {
            false => Ok(()),
            true => Err(Error::Unsupported {
                transport: NAME,
                what: "a second inbox of one domain".into(),
            }),
        }
    }

    pub(crate) fn give_inbox_back(&self) {
        self.inbox_taken.store(false, Ordering::Release);
    }
}

impl Drop for Passive {
    fn drop(&mut self) {
        // Before the buffers that they use; who else holds a pair is gone, since it holds this too.
        self.lock().clear();
    }
}
