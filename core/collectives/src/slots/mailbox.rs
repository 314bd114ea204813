//! Messages of a few words from PE to PE, for calls that not all PEs make.
//!
//! In its symmetric memory a PE has an entry for each other one, into which that one alone writes: one message at a
//! time, the next when this PE has drained that one. It drains whenever it waits for a message of that PE, whatever
//! that is about. A message carries a tag: so threads of a PE may be in different calls, in another order than
//! other PEs' threads, and none waits for another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem_engine::memory::mapped::HostMemory;
use oxshmem_engine::order::fence_site::FenceSite;
use oxshmem_engine::progress::long_waits::WaitedFor;
use oxshmem_engine::progress::reason::{WaitReason, WaitsOn};
use oxshmem_transport::Width;

use crate::elements::Elements;
use crate::error::Result;
use crate::transfer::Transfer;
use oxshmem_engine::worker::Worker;

/// Words of an entry before the message: the number of messages that arrived, and the number of this PE's that the other
/// one has drained.
const HEADER: usize = 2;

/// A PE's mailbox.
#[derive(Debug)]
pub struct Mailbox {
    memory: Elements<u64>,
    /// Words of a message: its tag, and its payload.
    words: usize,
    state: Mutex<MailboxState>,
}

#[derive(Debug, Default)]
struct MailboxState {
    peers: HashMap<usize, Peer>,
    /// The messages that were drained, and nobody has waited for yet, by sender and tag.
    received: HashMap<(usize, u64), Vec<u64>>,
}

/// The messages to a PE and from it.
#[derive(Debug, Default)]
struct Peer {
    sent: u64,
    is_sending: bool,
    drained: u64,
}

impl MailboxState {
    fn peer(&mut self, pe: usize) -> &mut Peer {
        self.peers.entry(pe).or_default()
    }
}

/// The entry of a PE.
struct Entry {
    /// The number of messages that arrived.
    arrived: Elements<u64>,
    /// The number of messages the other way that were drained.
    drained: Elements<u64>,
    message: Elements<u64>,
}

/// The call and the tag of a message.
#[derive(Clone, Copy, Debug)]
pub struct MailboxMessage<'m> {
    /// The call that sends it.
    pub call: &'static str,
    /// The PEs whose loss ends a wait for it.
    pub needs: WaitsOn<'m>,
    /// The same on both PEs, and of no other message between them this way.
    pub tag: u64,
}

impl Mailbox {
    /// Words of memory for so many PEs and payloads of so many words.
    pub fn len(pes: usize, words: usize) -> usize {
        pes * (HEADER + 1 + words)
    }

    /// A mailbox in zeroed memory of as many words.
    pub fn new(memory: Elements<u64>, words: usize) -> Self {
        Mailbox {
            memory,
            words: 1 + words,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, of: usize) -> Result<Entry> {
        let start = of * (HEADER + self.words);
        Ok(Entry {
            arrived: self.memory.at(start)?,
            drained: self.memory.at(start + 1)?,
            message: self
                .memory
                .range(start + HEADER..start + HEADER + self.words)?,
        })
    }

    /// Sends a message to a PE, when it has drained the one before.
    pub fn send(
        &self,
        worker: &Worker,
        message: MailboxMessage<'_>,
        to: usize,
        words: &[u64],
    ) -> Result<()> {
        let drained = worker.own(self.entry(to)?.drained);
        let describe = || (WaitedFor::Pe(to), "it to take out a letter".into());
        let number = worker.wait(&message.reason(&describe), None, || {
            let drained = drained.load_word(Width::W64, FenceSite::Wait);
            let mut state = self.state();
            let peer = state.peer(to);
            let free = !peer.is_sending && drained == peer.sent;
            peer.is_sending |= free;
            free.then_some(peer.sent + 1)
        })?;
        let sent = self.write(worker, message, to, number, words);
        let mut state = self.state();
        let peer = state.peer(to);
        peer.is_sending = false;
        if sent.is_ok() {
            peer.sent = number;
        }
        sent
    }

    fn write(
        &self,
        worker: &Worker,
        message: MailboxMessage<'_>,
        to: usize,
        number: u64,
        words: &[u64],
    ) -> Result<()> {
        let entry = self.entry(worker.engine.me)?;
        let words = [&[message.tag], words].concat();
        worker.put_bytes(entry.message, bytemuck::cast_slice(&words), to)?;
        worker.quiet_towards(&[to])?;
        // A signal, as the library's others: if its lane fails, the PE that waits for it is notified.
        Transfer::new(worker, message.call).signal(entry.arrived, number, to)
    }

    /// Waits for a PE's message.
    pub(crate) fn receive(
        &self,
        worker: &Worker,
        message: MailboxMessage<'_>,
        from: usize,
        what: &str,
    ) -> Result<Vec<u64>> {
        let arrived = self.entry(from)?.arrived;
        worker.yield_point();
        let arrived = worker.own(arrived);
        let describe = || (WaitedFor::Pe(from), what.to_owned());
        loop {
            let received = worker.wait(&message.reason(&describe), None, || {
                let arrived = arrived.load_word(Width::W64, FenceSite::Wait);
                let mut state = self.state();
                match state.received.remove(&(from, message.tag)) {
                    None if arrived == state.peer(from).drained => None,
                    received => Some(received),
                }
            })?;
            match received {
                Some(words) => return Ok(words),
                None => self.drain(worker, message.call, from)?,
            }
        }
    }

    /// Drains the message that has arrived from a PE, unless another thread has done so.
    fn drain(&self, worker: &Worker, call: &'static str, from: usize) -> Result<()> {
        let entry = self.entry(from)?;
        let number;
        {
            let mut state = self.state();
            // With the lock: until it is signaled that this one is drained, the sender writes no other.
            number = worker
                .own(entry.arrived)
                .load_word(Width::W64, FenceSite::Wait);
            if state.peer(from).drained == number {
                return Ok(());
            }
            let mut tag = vec![0; entry.message.len()];
            worker
                .own(entry.message)
                .copy_to(bytemuck::cast_slice_mut(&mut tag));
            let words = tag.split_off(1);
            let tag = tag.first().copied().unwrap_or_default();
            state.peer(from).drained = number;
            state.received.insert((from, tag), words);
        }
        let drained = self.entry(worker.engine.me)?.drained;
        Transfer::new(worker, call).signal(drained, number, from)
    }
}

impl<'m> MailboxMessage<'m> {
    fn reason<'r>(self, describe: &'r dyn Fn() -> (WaitedFor, String)) -> WaitReason<'r>
    where
        'm: 'r,
    {
        WaitReason {
            call: self.call,
            needs: self.needs,
            describe,
        }
    }
}
