//! The responder's side of a domain: for each connected lane of a peer, a queue pair that the device serves
//! by itself, and the receive buffers and completion queues that all of these share for messages.

mod pair_table;
mod queue_pair;
mod receives;

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oxshmem_transport::{Error, Pe, Result};

use self::pair_table::{PairName, PairTable};
pub(crate) use self::queue_pair::{ReplyWords, ResponderQueuePair, Role};
use self::receives::Receives;
pub(crate) use self::receives::{BATCH, message_window};
use crate::arena::Arena;
use crate::ibv::result::failed;
use crate::ibv::{Access, Channel, Completion, CompletionQueue};
use crate::limits::{MESSAGE, NAME};
use crate::port_state::{PortState, bad_peer_data};

use crate::wire::{Endpoint, EndpointReply, FlushWord, TargetOrder, previous_nonce};

/// Polls of the completion queue before a queue pair ends.
const FINAL_POLLS: u32 = 2;

/// The longest wait for the device's word that a queue pair that was stopped has given back its buffers. The others go on
/// meanwhile.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// Words for barriers, dealt out to the queue pairs in turn: atomics on one word wait for each other.
const FLUSH_WORDS: u64 = 512;

/// A received message, or the disconnect of a lane, in its receive buffer.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) buffer: u32,
    pub(crate) len: usize,
    pub(crate) is_disconnect: bool,
    pub(crate) from: Arc<ResponderQueuePair>,
}

/// A receive buffer whose message was copied, or that got none.
#[derive(Debug)]
pub(crate) struct UnusedBuffer {
    number: u32,
    /// Its queue pair, if it is not shared.
    of: Option<Arc<ResponderQueuePair>>,
}

impl UnusedBuffer {
    /// A buffer that a queue pair has filled, or was to fill.
    pub(crate) fn of(from: &Arc<ResponderQueuePair>, number: u32) -> UnusedBuffer {
        UnusedBuffer {
            number,
            of: from.ring.is_some().then(|| Arc::clone(from)),
        }
    }

    /// Whether both are posted to one queue.
    fn goes_with(&self, other: &UnusedBuffer) -> bool {
        let serial = |one: &UnusedBuffer| one.of.as_ref().map(|of| of.serial);
        serial(self) == serial(other)
    }
}

/// The queue pairs that respond to lanes of peers, and what they share.
#[derive(Debug)]
pub(crate) struct Responder {
    pairs: Mutex<PairTable<ResponderQueuePair>>,
    /// The number of removals of pairs so far.
    removals: AtomicU64,
    /// The number of pairs made so far.
    serials: AtomicU64,
    /// Pairs that were stopped and may still hold shared buffers, with the time at which they are destroyed at the latest.
    /// They are among `pairs`.
    stopped: Mutex<Vec<(Arc<ResponderQueuePair>, Instant)>>,
    /// Messages taken from the completion queue that no inbox has taken yet.
    received: Mutex<VecDeque<Message>>,
    receives: Receives,
    pub(crate) send: Arc<CompletionQueue>,
    pub(crate) channel: Arc<Channel>,
    /// Words for barriers, where writes are placed in any order and the device has atomics.
    flush_words: Option<Arena>,
    doorbell: OwnedFd,
    /// Whether it has ever had a queue pair for all operations, so that messages may come.
    has_primaries: AtomicBool,
    pub(crate) port_state: Arc<PortState>,
}

impl Responder {
    pub(crate) fn new(port_state: &Arc<PortState>) -> Result<Responder> {
        let (context, limits) = (&port_state.port.context, port_state.port.limits);
        let channel = Arc::new(Channel::new(context)?);
        let has_words = !port_state.placement.in_order() && port_state.has_atomics();
        let flush_words = has_words.then(|| {
            let bytes = FLUSH_WORDS as usize * size_of::<u64>();
            Arena::with(&port_state.protection_domain, bytes, Access::Remote)
        });
        let send = CompletionQueue::new(context, 4096.min(limits.completions).max(1), None)?;
        // SAFETY: no memory is involved.
        let doorbell = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if doorbell < 0 {
            return Err(failed("eventfd", std::io::Error::last_os_error()));
        }
        Ok(Responder {
            pairs: Mutex::default(),
            removals: AtomicU64::new(0),
            serials: AtomicU64::new(0),
            stopped: Mutex::default(),
            received: Mutex::default(),
            receives: Receives::new(port_state, &channel)?,
            send: Arc::new(send),
            channel,
            flush_words: flush_words.transpose()?,
            // SAFETY: a descriptor that the call made, owned from here on.
            doorbell: unsafe { OwnedFd::from_raw_fd(doorbell) },
            has_primaries: AtomicBool::new(false),
            port_state: Arc::clone(port_state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, PairTable<ResponderQueuePair>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes completions of receives. Messages wait for the inbox. A disconnect waits behind the messages of
    /// its queue pair, and behind all while there is an inbox; else it ends its queue pair. So does the
    /// device's event that one has failed.
    pub(crate) fn poll(&self) -> Result<()> {
        self.receives.post_refused();
        let failed = self.port_state.take_failed_pairs();
        if !failed.is_empty() {
            let known: Vec<_> = {
                let pairs = self.lock();
                failed
                    .iter()
                    .filter_map(|number| pairs.get(*number))
                    .map(Arc::clone)
                    .collect()
            };
            self.end(known);
        }
        let ended = self.drain_receives()?;
        self.end(ended);
        self.remove_drained();
        Ok(())
    }

    /// Empties the completion queue of receives. Gives the pairs that are to end: those that failed, and those
    /// that are disconnected with no message left to be served. A completion is matched with its queue pair
    /// here, while that exists: its number may be another's later.
    fn drain_receives(&self) -> Result<Vec<Arc<ResponderQueuePair>>> {
        let mut waiting = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ended = Vec::new();
        let mut completions = [Completion::none(); BATCH];
        let mut unused = Vec::new();
        self.receives.each_queue(|queue| {
            loop {
                let count = queue.poll(&mut completions)?;
                if count > 0 {
                    let known = (&mut *waiting, &mut ended, &mut unused);
                    self.received(&completions[..count], known);
                    self.post_buffers(&mut unused);
                }
                if count < BATCH {
                    return Ok(());
                }
            }
        })?;
        Ok(ended)
    }

    /// Matches completions of receives with their queue pairs: messages that wait, pairs that are to end, buffers that are
    /// not used.
    fn received(
        &self,
        completions: &[Completion],
        (waiting, ended, unused): (
            &mut VecDeque<Message>,
            &mut Vec<Arc<ResponderQueuePair>>,
            &mut Vec<UnusedBuffer>,
        ),
    ) {
        let pairs = self.lock();
        for completion in completions {
            // Numbers of buffers are this side's.
            let buffer = completion.id() as u32;
            let Some(from) = pairs.get(completion.queue_pair()).map(Arc::clone) else {
                // Of a pair that has ended. A ring has ended with it.
                if self.receives.are_shared() {
                    unused.push(UnusedBuffer {
                        number: buffer,
                        of: None,
                    });
                }
                continue;
            };
            if from.ended() {
                unused.push(UnusedBuffer::of(&from, buffer));
                continue;
            }
            if !completion.succeeded() {
                // Its queue pair is in the error state.
                unused.push(UnusedBuffer::of(&from, buffer));
                if !ended.iter().any(|known| known.serial == from.serial) {
                    ended.push(from);
                }
                continue;
            }
            let is_disconnect = completion.has_immediate();
            if is_disconnect {
                from.note_disconnect();
            }
            // Acquire: an inbox that was given back has put back what it had taken.
            let alone = !self.port_state.inbox_taken.load(Ordering::Acquire)
                && waiting.iter().all(|other| other.from.serial != from.serial);
            if is_disconnect && alone {
                unused.push(UnusedBuffer::of(&from, buffer));
                ended.push(from);
            } else {
                waiting.push_back(Message {
                    buffer,
                    len: completion.len().min(MESSAGE),
                    is_disconnect,
                    from,
                });
            }
        }
    }

    /// Ends pairs. Once this has returned, the device writes nothing here that arrives by them, whoever else
    /// still holds them.
    pub(crate) fn end(&self, mut pairs: Vec<Arc<ResponderQueuePair>>) {
        while !pairs.is_empty() {
            for pair in &pairs {
                pair.stop();
            }
            // Messages that they received before are matched with them while they exist, and their buffers
            // are not lost with them. A few polls, for completions that the device is about to make.
            let mut more = Vec::new();
            for _ in 0..FINAL_POLLS {
                match self.drain_receives() {
                    Ok(ended) => more.extend(ended),
                    Err(error) => {
                        tracing::warn!(%error, "what was received before an end");
                        break;
                    }
                }
                std::thread::yield_now();
            }
            self.remove_or_wait(&pairs);
            // Release: a reader that sees the number sees that they have ended.
            self.removals.fetch_add(1, Ordering::Release);
            self.discard_ended();
            more.retain(|pair| !pair.ended());
            pairs = more;
        }
    }

    /// Removes stopped pairs, those that may hold shared buffers as soon as the device has given these back: the library
    /// loses a buffer whose completion comes after its queue pair was destroyed.
    fn remove_or_wait(&self, pairs: &[Arc<ResponderQueuePair>]) {
        // A software device tells nothing.
        let tells = self.receives.are_shared() && !self.port_state.port.software;
        let latest = Instant::now() + DRAIN_TIMEOUT;
        for pair in pairs {
            if tells && pair.may_hold_buffers() {
                let mut stopped = self.stopped();
                if stopped.iter().all(|(known, _)| known.serial != pair.serial) {
                    stopped.push((Arc::clone(pair), latest));
                }
            } else {
                self.remove(pair);
            }
        }
    }

    fn stopped(&self) -> MutexGuard<'_, Vec<(Arc<ResponderQueuePair>, Instant)>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, pair: &ResponderQueuePair) {
        let number = pair.pair.number();
        let mut known = self.lock();
        if known.get(number).is_some_and(|at| at.serial == pair.serial) {
            // While it exists no other has its number.
            self.port_state.forget_drained(number);
            known.remove(number);
        }
    }

    /// Removes the stopped pairs that have given back their buffers.
    fn remove_drained(&self) {
        let drained: Vec<_> = {
            let mut stopped = self.stopped();
            if stopped.is_empty() {
                return;
            }
            let now = Instant::now();
            let port_state = &self.port_state;
            let is_over = |(pair, latest): &mut (Arc<ResponderQueuePair>, Instant)| {
                port_state.is_drained(pair.pair.number()) || now >= *latest
            };
            stopped.extract_if(.., is_over).collect()
        };
        // Their last completions came before the event.
        match self.drain_receives() {
            Ok(ended) => self.end(ended),
            Err(error) => tracing::warn!(%error, "what was received before an end"),
        }
        drained.iter().for_each(|(pair, _)| self.remove(pair));
    }

    /// Reposts the buffers of messages whose queue pair has ended.
    fn discard_ended(&self) {
        let mut waiting = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused = Vec::new();
        waiting.retain(|message| {
            // Asked once: another thread may end it meanwhile.
            let ended = message.from.ended();
            if ended {
                unused.push(UnusedBuffer::of(&message.from, message.buffer));
            }
            !ended
        });
        self.post_buffers(&mut unused);
    }

    /// Takes the oldest waiting messages, at most [`BATCH`]. Their buffers are to be reposted.
    pub(crate) fn take(&self, into: &mut VecDeque<Message>) -> Result<()> {
        self.poll()?;
        let mut waiting = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.len().min(BATCH);
        into.extend(waiting.drain(..count));
        Ok(())
    }

    /// Puts messages back that were taken and not served.
    pub(crate) fn put_back(&self, taken: &mut VecDeque<Message>) {
        let mut waiting = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(message) = taken.pop_back() {
            waiting.push_front(message);
        }
    }

    /// Posts receive buffers that nothing else uses, after their messages were copied: all shared ones together, and those
    /// of one queue pair that follow each other.
    pub(crate) fn post_buffers(&self, unused: &mut Vec<UnusedBuffer>) {
        let mut numbers = [0; BATCH];
        let mut rest = &unused[..];
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|one| one.goes_with(first));
            let count = alike
                .zip(&mut numbers)
                .map(|(one, number)| *number = one.number)
                .count();
            self.post_of(first.of.as_deref(), &numbers[..count]);
            rest = &rest[count..];
        }
        unused.clear();
    }

    /// Posts shared buffers, or those of a queue pair.
    fn post_of(&self, of: Option<&ResponderQueuePair>, numbers: &[u32]) {
        let Some((from, ring)) = of.and_then(|from| Some((from, from.ring.as_deref()?))) else {
            return self.receives.post_shared(numbers);
        };
        if from.ended() {
            return;
        }
        if let Err(error) = ring.post(&from.pair, numbers) {
            let pe = from.pe;
            tracing::warn!(%pe, %error, "a queue pair that takes no buffer for messages ends");
            self.port_state.pair_failed(from.pair.number());
        }
    }

    /// The first byte of a buffer of a queue pair.
    pub(crate) fn buffer(&self, message: &Message) -> *mut u8 {
        let ring = message.from.ring.as_deref();
        self.receives.buffer(ring, message.buffer)
    }

    /// Requests an event for the next message.
    pub(crate) fn arm(&self) -> Result<()> {
        self.receives.each_queue(CompletionQueue::arm)
    }

    /// The reply to an endpoint that was accepted, while its queue pair lives.
    pub(crate) fn known(&self, pe: Pe, endpoint: &Endpoint) -> Option<EndpointReply> {
        known(&self.lock(), pe, endpoint)
    }

    /// Ends the queue pair of the endpoint before this one of its connection.
    pub(crate) fn end_before(&self, pe: Pe, endpoint: &Endpoint) {
        self.end_of_nonce(pe, previous_nonce(endpoint.nonce));
    }

    /// Ends the queue pair of an endpoint.
    pub(crate) fn end_endpoint(&self, pe: Pe, endpoint: &Endpoint) {
        self.end_of_nonce(pe, endpoint.nonce);
    }

    fn end_of_nonce(&self, pe: Pe, nonce: u64) {
        let found = self.lock().of_nonce(pe, nonce).map(Arc::clone);
        self.end(found.into_iter().filter(|pair| !pair.ended()).collect());
    }

    /// Ends the queue pairs for all operations: their peers connect with another NIC.
    pub(crate) fn end_primaries(&self) {
        let mut primaries = self.pairs();
        primaries.retain(|pair| pair.role == Role::Primary);
        self.end(primaries);
        self.wake();
    }

    /// Whether messages may come to it.
    pub(crate) fn has_primaries(&self) -> bool {
        // Relaxed: an inbox that sleeps is woken after it was set.
        self.has_primaries.load(Ordering::Relaxed)
    }

    /// Makes the queue pair that responds to one of a lane, and gives the reply; the same reply for the same endpoint.
    pub(crate) fn accept(&self, pe: Pe, endpoint: Endpoint, role: Role) -> Result<EndpointReply> {
        let bad = |why| bad_peer_data("the endpoint of a lane", pe, why);
        let port_state = &self.port_state;
        if (endpoint.from, endpoint.to) != (pe.0, port_state.published.job.me.0) {
            return Err(bad(format!(
                "it is PE {}'s, towards PE {}",
                endpoint.from, endpoint.to
            )));
        }
        port_state.events();
        // Here, too, disconnected lanes are released, for PEs that serve no inbox.
        self.poll()?;
        // The number of a queue pair that is gone was given again.
        let stale: Vec<_> = {
            let pairs = self.lock();
            if let Some(reply) = known(&pairs, pe, &endpoint) {
                return Ok(reply);
            }
            let stale = pairs.of_peer_number(pe, (endpoint.rail, endpoint.queue_pair));
            let stale = stale.filter(|known| !known.ended());
            stale.map(Arc::clone).into_iter().collect()
        };
        self.end(stale);
        // Relaxed: only the numbers matter.
        let serial = self.serials.fetch_add(1, Ordering::Relaxed);
        // Not under the lock: address resolution may take long.
        let made = self.make(pe, endpoint.clone(), serial, role)?;
        let reply = made.reply;
        let mut pairs = self.lock();
        if let Some(reply) = known(&pairs, pe, &endpoint) {
            return Ok(reply);
        }
        // Under the lock: a later `disconnect_peer` finds the pair.
        port_state.published.check(pe)?;
        let name = PairName {
            number: made.pair.number(),
            pe,
            nonce: endpoint.nonce,
            peer_number: (endpoint.rail, endpoint.queue_pair),
        };
        pairs.insert(name, Arc::new(made));
        if role == Role::Primary {
            self.has_primaries.store(true, Ordering::Relaxed);
        }
        Ok(reply)
    }

    fn make(
        &self,
        pe: Pe,
        endpoint: Endpoint,
        serial: u64,
        role: Role,
    ) -> Result<ResponderQueuePair> {
        let word = self.flush_words.as_ref().map(|arena| FlushWord {
            addr: arena
                .at((serial % FLUSH_WORDS) as usize * size_of::<u64>())
                .addr() as u64,
            rkey: arena.rkey(),
        });
        let order = TargetOrder {
            in_order: self.port_state.placement.in_order(),
            has_strict_keys: !self.port_state.protection_domain.relaxed_only(),
            has_atomics: self.port_state.has_atomics(),
            flush_word: word,
        };
        let receives = self.receives.of_pair(&self.port_state)?;
        ResponderQueuePair::new(
            &self.port_state,
            &self.send,
            receives,
            (pe, endpoint),
            (serial, role),
            order,
        )
    }

    /// All queue pairs that were not stopped.
    pub(crate) fn pairs(&self) -> Vec<Arc<ResponderQueuePair>> {
        let pairs = self.lock();
        let alive = pairs.values().filter(|pair| !pair.ended());
        alive.map(Arc::clone).collect()
    }

    /// The number of removals so far. A holder of pairs checks them again when this changes.
    pub(crate) fn removals(&self) -> u64 {
        // Acquire: pairs with the additions, which follow the removal.
        self.removals.load(Ordering::Acquire)
    }

    /// Ends the pairs of a PE, after which nothing of it is written here.
    pub(crate) fn disconnect_peer(&self, pe: Pe) {
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

    /// Clears the doorbell that [`wake`](Self::wake) rang, so that the next sleep lasts.
    pub(crate) fn clear_wake(&self) {
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

    /// The descriptors that end a sleep: messages, the doorbell, the device's events.
    pub(crate) fn descriptors(&self) -> [i32; 3] {
        let channel = self.channel.descriptor().as_raw_fd();
        let events = self.port_state.port.context.event_descriptor();
        [
            channel,
            self.doorbell.as_fd().as_raw_fd(),
            events.as_raw_fd(),
        ]
    }

    /// Claims the inbox, of which there is one.
    pub(crate) fn claim_inbox(&self) -> Result<()> {
        // Acquire and release: one inbox after the other sees the queues as the last left them.
        if self.port_state.inbox_taken.swap(true, Ordering::AcqRel) {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "a second inbox of one domain".into(),
            });
        }
        Ok(())
    }

    pub(crate) fn release_inbox(&self) {
        self.port_state.inbox_taken.store(false, Ordering::Release);
    }
}

/// The reply to an endpoint whose queue pair is among these, and lives.
fn known(
    pairs: &PairTable<ResponderQueuePair>,
    pe: Pe,
    endpoint: &Endpoint,
) -> Option<EndpointReply> {
    let known = pairs.of_nonce(pe, endpoint.nonce)?;
    (!known.ended() && known.endpoint == *endpoint).then_some(known.reply)
}

impl Drop for Responder {
    fn drop(&mut self) {
        // Before the buffers that they use. Any other holder of a pair is gone, since it holds this too.
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.clear();
        drop(received);
        self.stopped().clear();
        self.lock().clear();
    }
}
