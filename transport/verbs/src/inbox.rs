//! The inbox of a PE: the messages that arrive, and the replies to them.
//!
//! A reply is one write of two words on the queue pair that its message arrived by. It is posted at
//! once where there is a credit, else as soon as earlier ones have completed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use oxshmem_transport::{Error, Inbox, Pe, Reply, Result};

use crate::domain_state::{DomainState, has_bit};
use crate::ibv::Completion;
use crate::ibv::result::failed;
use crate::limits::{MESSAGE, MOST_RAILS, NAME};
use crate::port_state::EVENTS;
use crate::remote_region::{Regions, RemoteAddress, find_aligned};
use crate::responder::{BATCH, Message, ReplyWords, Responder, ResponderQueuePair, UnusedBuffer};

/// Calls of `drain` between two looks at the NICs to which no messages come.
const FURTHER_CALLS: u32 = 256;

/// Descriptors that end a sleep, of each NIC.
const DESCRIPTORS: usize = 3;

/// The write of a reply: its words, and their address, which was checked.
type ReplyWrite = (RemoteAddress, ReplyWords);

/// The replies that wait for one queue pair.
#[derive(Debug)]
struct PendingReplies {
    pair: Arc<ResponderQueuePair>,
    waiting: VecDeque<ReplyWrite>,
}

impl PendingReplies {
    fn new(pair: Arc<ResponderQueuePair>) -> PendingReplies {
        let waiting = VecDeque::new();
        PendingReplies { pair, waiting }
    }
}

/// The inbox's part at one NIC.
#[derive(Debug)]
struct NicInbox {
    /// By the queue pair's serial number.
    pending: HashMap<u64, PendingReplies>,
    /// Replies that wait, over all queue pairs.
    waiting: usize,
    /// Free entries of the replies' completion queue.
    cq_credits: u32,
    /// Ended queue pairs, with the replies of each that were outstanding: until one is gone, their completions may come.
    ended: Vec<(Weak<ResponderQueuePair>, u32)>,
    removals: u64,
    /// Messages taken from the responder, not served yet.
    received: VecDeque<Message>,
    /// Buffers of messages served, to be posted again.
    unused: Vec<UnusedBuffer>,
    responder: Arc<Responder>,
}

impl NicInbox {
    fn new(responder: Arc<Responder>) -> Result<NicInbox> {
        responder.claim_inbox()?;
        // The last inbox may have left replies in flight.
        let pairs = responder.pairs().into_iter();
        let pending: HashMap<u64, PendingReplies> = pairs
            .filter(|pair| pair.outstanding() > 0)
            .map(|pair| (pair.serial, PendingReplies::new(pair)))
            .collect();
        let used: u32 = pending
            .values()
            .map(|replies| replies.pair.outstanding())
            .sum();
        Ok(NicInbox {
            pending,
            waiting: 0,
            cq_credits: responder.send.capacity().saturating_sub(used),
            ended: Vec::new(),
            removals: responder.removals(),
            received: VecDeque::with_capacity(BATCH),
            unused: Vec::with_capacity(BATCH),
            responder,
        })
    }

    /// Discards the replies that wait for queue pairs which have ended meanwhile.
    fn refresh(&mut self) {
        let removals = self.responder.removals();
        if removals != self.removals {
            self.removals = removals;
            let ended = self.pending.iter().filter(|(_, of)| of.pair.ended());
            let ended: Vec<u64> = ended.map(|(serial, _)| *serial).collect();
            ended.into_iter().for_each(|serial| self.discard(serial));
        }
    }

    /// Discards the replies that wait for a queue pair.
    fn discard(&mut self, serial: u64) {
        if let Some(replies) = self.pending.remove(&serial) {
            self.waiting -= replies.waiting.len();
            let outstanding = replies.pair.outstanding();
            if outstanding > 0 {
                self.ended
                    .push((Arc::downgrade(&replies.pair), outstanding));
            }
        }
    }

    /// Ends a queue pair. Its lane gets an error; no other is concerned.
    #[cold]
    fn end(&mut self, pair: &Arc<ResponderQueuePair>) {
        self.discard(pair.serial);
        self.responder.end(vec![Arc::clone(pair)]);
    }

    /// Takes the completions of replies.
    fn poll_replies(&mut self) -> Result<()> {
        // Nothing more comes of those that are gone when the polls begin.
        let is_gone = |(pair, _): &mut (Weak<_>, _)| pair.strong_count() == 0;
        let gone = self.ended.extract_if(.., is_gone);
        let gone: u32 = gone.map(|(_, outstanding)| outstanding).sum();
        let mut completions = [Completion::none(); BATCH];
        loop {
            let count = self.responder.send.poll(&mut completions)?;
            for completion in &completions[..count] {
                // Those of queue pairs that have ended are in `ended`.
                let Some(replies) = self.pending.get(&completion.id()) else {
                    continue;
                };
                if completion.succeeded() {
                    replies.pair.reply_completed();
                    self.cq_credits += 1;
                } else {
                    let pair = Arc::clone(&replies.pair);
                    tracing::debug!(pe = %pair.pe, status = completion.status(),
                        "a message's sender does not take its answer");
                    self.end(&pair);
                }
            }
            if count < BATCH {
                // The queue is empty.
                self.cq_credits += gone;
                return Ok(());
            }
        }
    }

    /// Takes the completions of replies, and sends the replies that waited for them.
    fn send_pending(&mut self) -> Result<()> {
        self.poll_replies()?;
        if self.waiting > 0 {
            let serials: Vec<u64> = self.pending.keys().copied().collect();
            serials.into_iter().for_each(|serial| self.send(serial));
        }
        Ok(())
    }

    /// Sends the replies that wait for one queue pair, as far as there are credits.
    fn send(&mut self, serial: u64) {
        while self.cq_credits > 0
            && let Some(replies) = self.pending.get_mut(&serial)
            && replies.pair.has_credit()
            && let Some((to, words)) = replies.waiting.pop_front()
        {
            self.waiting -= 1;
            if replies.pair.post(to, words) {
                self.cq_credits -= 1;
            } else {
                let pair = Arc::clone(&replies.pair);
                tracing::warn!(pe = %pair.pe, "an answer could not be posted");
                self.end(&pair);
            }
        }
    }

    /// Takes messages from the responder, if none is left here.
    fn receive(&mut self) -> Result<()> {
        if self.received.is_empty() {
            self.responder.take(&mut self.received)?;
        }
        Ok(())
    }

    /// Serves messages and sends replies. Gives the number of messages that were not their lane's end, and whether any came.
    fn drain(
        &mut self,
        state: &DomainState,
        handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>,
    ) -> Result<(usize, bool)> {
        self.refresh();
        self.send_pending()?;
        self.receive()?;
        let has_received = !self.received.is_empty();
        let taken = self.handle(state, handler);
        // With one doorbell for all that were handled.
        self.responder.post_buffers(&mut self.unused);
        Ok((taken, has_received))
    }

    /// Handles the messages taken; gives the number of those that were not their lane's end.
    fn handle(
        &mut self,
        state: &DomainState,
        handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>,
    ) -> usize {
        let mut taken = 0;
        while let Some(message) = self.received.pop_front() {
            let mut bytes = [0; MESSAGE];
            let bytes = &mut bytes[..message.len.min(MESSAGE)];
            // SAFETY: the buffer holds `MESSAGE` bytes, which the device has filled, and leaves
            // alone until it is posted again.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.responder.buffer(&message).cast_const(),
                    bytes.as_mut_ptr(),
                    bytes.len(),
                );
            }
            self.unused
                .push(UnusedBuffer::of(&message.from, message.buffer));
            let pair = message.from;
            if pair.ended() {
                // Its sender is lost.
                continue;
            }
            if message.is_disconnect {
                // Its lane has ended.
                self.end(&pair);
                continue;
            }
            taken += 1;
            let Some(reply) = handler(pair.pe, bytes) else {
                continue;
            };
            match write_of(state, &pair, &reply) {
                Ok(write) => {
                    let serial = pair.serial;
                    let replies = self.pending.entry(serial);
                    let replies = replies.or_insert_with(|| PendingReplies::new(pair));
                    replies.waiting.push_back(write);
                    self.waiting += 1;
                    self.send(serial);
                }
                Err(error) => {
                    tracing::warn!(pe = %pair.pe, %error,
                        "a message cannot be answered: the way it came is ended, so that its sender \
                         learns it");
                    self.end(&pair);
                }
            }
        }
        taken
    }

    /// It cannot be used any more, for this reason. PEs that wait for replies get an error.
    #[cold]
    fn lose(&self, why: &Error) {
        let port_state = &self.responder.port_state;
        port_state.fail(&format!("{}: {why}", port_state.port.name()));
        let pairs = self.responder.pairs();
        if !pairs.is_empty() {
            self.responder.end(pairs);
        }
    }

    /// The descriptors that end a sleep; of a NIC that has failed only that by which threads do it.
    fn descriptors(&self, has_failed: bool) -> [i32; DESCRIPTORS] {
        let [channel, doorbell, events] = self.responder.descriptors();
        match has_failed {
            true => [-1, doorbell, -1],
            false => [channel, doorbell, events],
        }
    }

    /// Prepares a sleep: an event comes for the next message. Gives whether one has come already.
    fn arm(&mut self) -> Result<bool> {
        self.responder.channel.drain();
        self.responder.arm()?;
        // A message that arrived before it was armed makes no event.
        self.receive()?;
        Ok(!self.received.is_empty())
    }

    /// Notes what ended a sleep, by the results of a poll of the responder's [descriptors](Responder::descriptors).
    fn awake(&self, found: &[libc::pollfd]) {
        self.responder.clear_wake();
        let Some(events) = found.last() else {
            return;
        };
        let port_state = &self.responder.port_state;
        if events.revents != 0 {
            port_state.events();
        }
        if events.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
            port_state.fail(&format!("the device of {} is gone", port_state.port.name()));
        }
    }

    /// Gives what it has taken to the next inbox. `is_broken`: there is none.
    fn close(&mut self, is_broken: bool) {
        if is_broken {
            // Nobody drains on. PEs that wait for replies get an error by this.
            self.responder.end(self.responder.pairs());
        }
        self.responder.post_buffers(&mut self.unused);
        // The next inbox serves the messages taken, and counts on from the replies in flight.
        self.responder.put_back(&mut self.received);
        if let Err(error) = self.poll_replies() {
            tracing::debug!(%error, "an inbox ends");
        }
        self.responder.release_inbox();
    }
}

/// The write of a reply to a message that came by this queue pair, or the error in its address.
fn write_of(state: &DomainState, pair: &ResponderQueuePair, reply: &Reply) -> Result<ReplyWrite> {
    let pe = pair.pe;
    // As the peer's NIC at the other end knows them.
    let regions = match usize::from(pair.endpoint.rail) {
        0 => state.imported.get(pe.index()),
        rail => state
            .further
            .get(pe.index())
            .and_then(|further| further.get(rail - 1)),
    };
    let regions = regions.map_or(&[][..], |regions: &Regions| &regions[..]);
    let to = find_aligned(regions, pe, reply.to, Reply::BYTES, "an answer");
    let to = to.map_err(|error| *error)?;
    Ok((to, [reply.value, reply.number]))
}

/// The inbox of a domain. There is one.
#[derive(Debug)]
pub(crate) struct VerbsInbox {
    /// That of the first NIC.
    first: NicInbox,
    /// Those of the others: messages come to one of them once it has taken the place of the first.
    further: Vec<NicInbox>,
    /// Calls of `drain`.
    calls: u32,
    state: DomainState,
    generation: u64,
    /// Whether it has given an error after which its owner drains no more.
    broken: bool,
}

impl VerbsInbox {
    pub(crate) fn new(
        responder: Arc<Responder>,
        further: Vec<Arc<Responder>>,
    ) -> Result<VerbsInbox> {
        let (generation, state) = responder.port_state.published.copy();
        let mut inbox = VerbsInbox {
            first: NicInbox::new(responder)?,
            further: Vec::new(),
            calls: 0,
            state,
            generation,
            broken: false,
        };
        for responder in further {
            inbox.further.push(NicInbox::new(responder)?);
        }
        Ok(inbox)
    }

    /// Copies the domain's state if it has changed; an error once the domain is shut down or no device is left.
    fn refresh(&mut self) -> Result<()> {
        let published = &self.first.responder.port_state.published;
        if published.generation() != self.generation {
            (self.generation, self.state) = published.copy();
        }
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if let Some(why) = &self.state.failed {
            return Err(failed(why, std::io::Error::from_raw_os_error(libc::EIO)));
        }
        Ok(())
    }

    fn drain_some(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        self.refresh()?;
        let (mut taken, has_received) = match self.first.drain(&self.state, handler) {
            Ok(drained) => drained,
            Err(error) => {
                self.first.lose(&error);
                // Others may be left.
                self.refresh()?;
                (0, true)
            }
        };
        // A lane that has ended has ended at all NICs.
        let is_time = has_received || self.calls.is_multiple_of(FURTHER_CALLS);
        for nic in &mut self.further {
            let has_primaries = nic.responder.has_primaries();
            if !has_primaries && !is_time {
                continue;
            }
            if !has_primaries {
                nic.responder.port_state.events();
            }
            match nic.drain(&self.state, handler) {
                Ok((more, _)) => taken += more,
                Err(error) => nic.lose(&error),
            }
        }
        Ok(taken)
    }

    fn sleep(&mut self, timeout: Duration) -> Result<()> {
        self.refresh()?;
        let (first, further, state) = (&mut self.first, &mut self.further, &self.state);
        let listening = further
            .iter_mut()
            .filter(|nic| nic.responder.has_primaries());
        let mut listening: Vec<&mut NicInbox> = std::iter::once(first).chain(listening).collect();
        let mut wanted = [libc::pollfd {
            fd: -1,
            events: libc::POLLIN,
            revents: 0,
        }; DESCRIPTORS * MOST_RAILS];
        let mut timeout = timeout;
        for (nic, wanted) in listening.iter_mut().zip(wanted.chunks_mut(DESCRIPTORS)) {
            let has_failed = has_bit(state.failed_rails, nic.responder.port_state.rail);
            let armed = if has_failed { Ok(false) } else { nic.arm() };
            match armed {
                Ok(false) => {}
                Ok(true) => return Ok(()),
                // The next call finds out whether others are left.
                Err(error) => {
                    nic.lose(&error);
                    return Ok(());
                }
            }
            // Replies that wait for credits are sent by the next call, so the sleep must be short.
            if nic.waiting > 0 {
                timeout = timeout.min(Duration::from_millis(1));
            }
            let descriptors = nic.descriptors(has_failed);
            wanted
                .iter_mut()
                .zip(descriptors)
                .for_each(|(wanted, fd)| wanted.fd = fd);
        }
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let count = (DESCRIPTORS * listening.len()).min(wanted.len());
        // SAFETY: an array of at least so many, a time, and no mask.
        let code = unsafe {
            let count = count as libc::nfds_t;
            libc::ppoll(
                wanted.as_mut_ptr(),
                count,
                &raw const timeout,
                std::ptr::null(),
            )
        };
        if code < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(failed("ppoll", error));
            }
        }
        for (nic, found) in listening.iter().zip(wanted.chunks(DESCRIPTORS)) {
            nic.awake(found);
        }
        self.refresh()
    }

    /// Remembers an error after which its owner drains no more.
    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        self.broken |= !matches!(result, Ok(_) | Err(Error::Closed { .. }));
        result
    }
}

impl Inbox for VerbsInbox {
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        // An inbox that never runs out of messages does not sleep, and only a sleep handles these.
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(EVENTS) {
            self.first.responder.port_state.events();
            let further = self.further.iter();
            further.for_each(|nic| nic.responder.port_state.events());
        }
        let served = self.drain_some(handler);
        self.note(served)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        let slept = self.sleep(timeout);
        self.note(slept)
    }
}

impl Drop for VerbsInbox {
    fn drop(&mut self) {
        let is_broken = self.broken || std::thread::panicking();
        self.first.close(is_broken);
        self.further.iter_mut().for_each(|nic| nic.close(is_broken));
    }
}
