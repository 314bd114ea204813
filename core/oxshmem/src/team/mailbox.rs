//! Letters of a few words from PE to PE, for calls that not all PEs make.
//!
//! In its symmetric memory a PE has a place for each other one, into which that one alone writes: one letter at a
//! time, the next when this PE has taken that out, which it does whenever it waits for a letter of that PE, whatever
//! that is about. A letter says what it is about: so threads of a PE may be in different calls, in another order than
//! other PEs' threads, and none waits for another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use oxshmem_transport::Width;

use crate::hang::WaitedFor;
use crate::mapped::HostMemory;
use crate::order::FenceSite;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

/// Words of a place before the letter: how many have come, and how many of this PE's the other one has taken out.
const HEAD: usize = 2;

/// A PE's letters.
#[derive(Debug)]
pub(crate) struct Mailbox {
    memory: Sym<u64>,
    /// Of a letter: what it is about, and what it says.
    words: usize,
    state: Mutex<MailboxState>,
}

#[derive(Debug, Default)]
struct MailboxState {
    peers: HashMap<usize, Peer>,
    /// The letters that were taken out, and nobody has waited for yet, by sender and by what they are about.
    came: HashMap<(usize, u64), Vec<u64>>,
}

/// What went to a PE and came from it.
#[derive(Debug, Default)]
struct Peer {
    sent: u64,
    is_sending: bool,
    taken: u64,
}

impl MailboxState {
    fn peer(&mut self, pe: usize) -> &mut Peer {
        self.peers.entry(pe).or_default()
    }
}

impl Mailbox {
    /// How many words of memory it is for so many PEs and letters of so many words.
    pub(crate) fn len(pes: usize, words: usize) -> usize {
        pes * (HEAD + 1 + words)
    }

    /// In zeroed memory of as many words.
    pub(crate) fn new(memory: Sym<u64>, words: usize) -> Self {
        Mailbox {
            memory,
            words: 1 + words,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of the head, and the letter, in the place of a PE.
    fn place(&self, of: usize) -> Result<(Sym<u64>, Sym<u64>, Sym<u64>)> {
        let start = of * (HEAD + self.words);
        let letter = self.memory.range(start + HEAD..start + HEAD + self.words)?;
        Ok((self.memory.at(start)?, self.memory.at(start + 1)?, letter))
    }
}

/// A letter's way, and what the call that waits for it needs.
#[derive(Clone, Copy)]
pub(super) struct MailboxMessage<'m> {
    pub call: &'static str,
    pub mailbox: &'m Mailbox,
    pub needs: WaitsOn<'m>,
    /// The same on both PEs, and of no other letter between them this way.
    pub about: u64,
}

impl Context<'_> {
    /// Sends a letter to a PE, when it has taken out the one before.
    pub(super) fn send_to_mailbox(
        &self,
        letter: MailboxMessage<'_>,
        to: usize,
        words: &[u64],
    ) -> Result<()> {
        let mailbox = letter.mailbox;
        let (_, taken, _) = mailbox.place(to)?;
        let taken = self.own(taken);
        let tell = || (WaitedFor::Pe(to), "it to take out a letter".into());
        let number = self.wait(&letter.reason(&tell), None, || {
            let taken = taken.load_word(Width::W64, FenceSite::Wait);
            let mut state = mailbox.state();
            let peer = state.peer(to);
            let free = !peer.is_sending && taken == peer.sent;
            peer.is_sending |= free;
            free.then_some(peer.sent + 1)
        })?;
        let sent = self.write_message(letter, (to, number), words);
        let mut state = mailbox.state();
        let peer = state.peer(to);
        peer.is_sending = false;
        if sent.is_ok() {
            peer.sent = number;
        }
        sent
    }

    fn write_message(
        &self,
        letter: MailboxMessage<'_>,
        (to, number): (usize, u64),
        words: &[u64],
    ) -> Result<()> {
        let (count, _, room) = letter.mailbox.place(self.shared.me)?;
        self.put(room, &[&[letter.about], words].concat(), to)?;
        self.pe_quiet(&[to])?;
        // As the library's other words: who waits for one that is lost with its way is told so.
        self.tell(letter.call, count, number, to)
    }

    /// Waits for a PE's letter.
    pub(super) fn receive_from_mailbox(
        &self,
        letter: MailboxMessage<'_>,
        from: usize,
        what: &str,
    ) -> Result<Vec<u64>> {
        let mailbox = letter.mailbox;
        let (count, ..) = mailbox.place(from)?;
        self.check_own(letter.call, count, 1)?;
        let count = self.own(count);
        let tell = || (WaitedFor::Pe(from), what.to_owned());
        loop {
            let came = self.wait(&letter.reason(&tell), None, || {
                let count = count.load_word(Width::W64, FenceSite::Wait);
                let mut state = mailbox.state();
                match state.came.remove(&(from, letter.about)) {
                    None if count == state.peer(from).taken => None,
                    came => Some(came),
                }
            })?;
            match came {
                Some(words) => return Ok(words),
                None => self.drain(letter, from)?,
            }
        }
    }

    /// Takes out what has come from a PE, unless another thread has done so.
    fn drain(&self, letter: MailboxMessage<'_>, from: usize) -> Result<()> {
        let mailbox = letter.mailbox;
        let (count, _, room) = mailbox.place(from)?;
        let number;
        {
            let mut state = mailbox.state();
            // With the lock: until it is told that this one is out, the sender writes no other.
            number = self.own(count).load_word(Width::W64, FenceSite::Wait);
            if state.peer(from).taken == number {
                return Ok(());
            }
            let mut about = vec![0; room.len()];
            self.read(&mut about, room)?;
            let words = about.split_off(1);
            let about = about.first().copied().unwrap_or_default();
            state.peer(from).taken = number;
            state.came.insert((from, about), words);
        }
        let (_, taken, _) = mailbox.place(self.shared.me)?;
        self.tell(letter.call, taken, number, from)
    }
}

impl<'m> MailboxMessage<'m> {
    fn reason<'r>(self, tell: &'r dyn Fn() -> (WaitedFor, String)) -> WaitReason<'r>
    where
        'm: 'r,
    {
        WaitReason {
            call: self.call,
            needs: self.needs,
            describe: tell,
        }
    }
}

impl Context<'_> {
    /// The mailbox, where room for one [was set aside](crate::Builder::active_sets).
    pub(super) fn mailbox(&self, call: &'static str) -> Result<&Mailbox> {
        self.shared.mailbox.as_ref().ok_or_else(|| Error::Argument {
            call,
            what: "no room was set aside for such teams; call Builder::active_sets before joining"
                .into(),
        })
    }
}
