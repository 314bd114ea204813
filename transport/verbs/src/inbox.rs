//! The messages that come to a PE, and the answers to them.
//!
//! An answer is two writes on the queue pair that its message came by: value, then number. They
//! leave at once where there is room, else as soon as earlier ones are through.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::{Error, Inbox, Pe, Reply, Result};

use crate::ibv::Completion;
use crate::ibv::result::failed;
use crate::lane::EVENTS;
use crate::passive::{BATCH, Message, Passive, PassivePair};
use crate::shared::{Far, State, find_word};
use crate::{MESSAGE, NAME};

/// Value and number, each with its place, which was checked.
type Checked = [(Far, u64); 2];

/// A queue pair that messages came by.
#[derive(Debug)]
struct Way {
    pair: Arc<PassivePair>,
    waiting: VecDeque<Checked>,
}

#[derive(Debug)]
pub(crate) struct VerbsInbox {
    /// By the pair's serial number.
    ways: HashMap<u64, Way>,
    /// Answers that wait, over all ways.
    waiting: usize,
    /// Of `drain`.
    calls: u32,
    /// Room in the completion queue of the answers.
    room: u32,
    /// Completions of ended pairs that may still be there.
    stale: u32,
    state: State,
    generation: u64,
    removals: u64,
    /// Whether it has told an error after which nobody serves on.
    broken: bool,
    /// Taken, not served yet.
    come: VecDeque<Message>,
    passive: Arc<Passive>,
}

impl VerbsInbox {
    pub(crate) fn new(passive: Arc<Passive>) -> Result<VerbsInbox> {
        passive.take_inbox()?;
        let (generation, state) = passive.opened.shared.copy();
        // The last inbox may have left answers under way.
        let pairs = passive.pairs().into_iter();
        let ways: HashMap<u64, Way> = pairs
            .filter(|pair| pair.outstanding() > 0)
            .map(|pair| (pair.serial, Way::new(pair)))
            .collect();
        let used: u32 = ways.values().map(|way| way.pair.outstanding()).sum();
        Ok(VerbsInbox {
            ways,
            waiting: 0,
            calls: 0,
            room: passive.send.capacity().saturating_sub(used),
            stale: 0,
            state,
            generation,
            removals: passive.removals(),
            broken: false,
            come: VecDeque::with_capacity(BATCH),
            passive,
        })
    }

    /// Learns what has changed; an error once the domain is shut down, or its device has failed.
    fn refresh(&mut self) -> Result<()> {
        if self.passive.opened.shared.generation() != self.generation {
            (self.generation, self.state) = self.passive.opened.shared.copy();
        }
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        if let Some(why) = &self.state.failed {
            return Err(failed(why, std::io::Error::from_raw_os_error(libc::EIO)));
        }
        let removals = self.passive.removals();
        if removals != self.removals {
            self.removals = removals;
            let ended = self.ways.iter().filter(|(_, way)| way.pair.ended());
            let ended: Vec<u64> = ended.map(|(serial, _)| *serial).collect();
            ended.into_iter().for_each(|serial| self.forget(serial));
        }
        Ok(())
    }

    /// Gives up what was to be sent by a queue pair.
    fn forget(&mut self, serial: u64) {
        if let Some(way) = self.ways.remove(&serial) {
            self.waiting -= way.waiting.len();
            self.stale += way.pair.outstanding();
        }
    }

    /// Ends a pair: its lane finds that out, and nobody else is concerned.
    #[cold]
    fn end(&mut self, pair: &Arc<PassivePair>) {
        self.forget(pair.serial);
        self.passive.end(vec![Arc::clone(pair)]);
    }

    /// Takes the completions of answers.
    fn reap(&mut self) -> Result<()> {
        let mut done = [Completion::none(); BATCH];
        loop {
            let count = self.passive.send.poll(&mut done)?;
            for completion in &done[..count] {
                // Those of pairs that have ended are in `stale`.
                let Some(way) = self.ways.get(&completion.id()) else {
                    continue;
                };
                if completion.succeeded() {
                    way.pair.answered();
                    self.room += 2;
                } else {
                    let pair = Arc::clone(&way.pair);
                    tracing::debug!(pe = %pair.pe, status = completion.status(),
                        "a message's sender does not take its answer");
                    self.end(&pair);
                }
            }
            if count < BATCH {
                // The queue is empty.
                self.room += std::mem::take(&mut self.stale);
                return Ok(());
            }
        }
    }

    /// Takes the completions of answers, and sends what waited for them.
    fn push_answers(&mut self) -> Result<()> {
        self.reap()?;
        if self.waiting > 0 {
            let serials: Vec<u64> = self.ways.keys().copied().collect();
            serials.into_iter().for_each(|serial| self.send(serial));
        }
        Ok(())
    }

    /// Sends what waits for one way and has room.
    fn send(&mut self, serial: u64) {
        while self.room >= 2
            && let Some(way) = self.ways.get_mut(&serial)
            && way.pair.has_room()
            && let Some(answer) = way.waiting.pop_front()
        {
            self.waiting -= 1;
            if way.pair.post(answer) {
                self.room -= 2;
            } else {
                let pair = Arc::clone(&way.pair);
                tracing::warn!(pe = %pair.pe, "an answer could not be posted");
                self.end(&pair);
            }
        }
    }

    /// An answer's places, or what is wrong with them.
    fn checked(&self, pe: Pe, answer: &Reply) -> Result<Checked> {
        let regions = self.state.imported.get(pe.index());
        let regions = regions.map_or(&[][..], |regions| &regions[..]);
        let word = |at| find_word(regions, pe, at, "an answer").map_err(|error| *error);
        let value = (word(answer.to)?, answer.value);
        Ok([value, (word(answer.done)?, answer.number)])
    }

    /// Takes messages from those that have come.
    fn look(&mut self) -> Result<()> {
        match self.come.is_empty() {
            true => self.passive.take(&mut self.come),
            false => Ok(()),
        }
    }
}

impl Way {
    fn new(pair: Arc<PassivePair>) -> Way {
        let waiting = VecDeque::new();
        Way { pair, waiting }
    }
}

impl VerbsInbox {
    fn drain_some(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        self.refresh()?;
        self.push_answers()?;
        self.look()?;
        let mut taken = 0;
        while let Some(message) = self.come.pop_front() {
            let mut bytes = [0; MESSAGE];
            let bytes = &mut bytes[..message.len.min(MESSAGE)];
            // SAFETY: the buffer holds `MESSAGE` bytes, which the device has filled, and leaves
            // alone until it is offered again.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.passive.buffer(message.buffer).cast_const(),
                    bytes.as_mut_ptr(),
                    bytes.len(),
                );
            }
            self.passive.offer(message.buffer);
            let pair = message.from;
            if pair.ended() {
                // Its sender is lost.
                continue;
            }
            if message.goodbye {
                // Its lane has ended.
                self.end(&pair);
                continue;
            }
            taken += 1;
            let Some(answer) = handler(pair.pe, bytes) else {
                continue;
            };
            match self.checked(pair.pe, &answer) {
                Ok(checked) => {
                    let serial = pair.serial;
                    let way = self.ways.entry(serial).or_insert_with(|| Way::new(pair));
                    way.waiting.push_back(checked);
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
        Ok(taken)
    }

    fn sleep(&mut self, timeout: Duration) -> Result<()> {
        self.refresh()?;
        self.passive.channel.drain();
        self.passive.receive.arm()?;
        // What came before it was armed tells nobody.
        self.look()?;
        if !self.come.is_empty() {
            return Ok(());
        }
        // Answers that wait for room are sent by the next call, so it must come soon.
        let timeout = match self.waiting {
            0 => timeout,
            _ => timeout.min(Duration::from_millis(1)),
        };
        let mut wanted = self.passive.descriptors().map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: an array of three, a time, and no mask.
        let code =
            unsafe { libc::ppoll(wanted.as_mut_ptr(), 3, &raw const timeout, std::ptr::null()) };
        if code < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(failed("ppoll", error));
            }
        }
        self.passive.calm();
        let broken = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        if wanted[2].revents != 0 {
            self.passive.opened.events();
        }
        if wanted[2].revents & broken != 0 {
            let port = self.passive.opened.port.name();
            self.passive
                .opened
                .shared
                .fail(&format!("the device of {port} is gone"));
        }
        self.refresh()
    }

    fn note<T>(&mut self, result: Result<T>) -> Result<T> {
        self.broken |= !matches!(result, Ok(_) | Err(Error::Closed { .. }));
        result
    }
}

impl Inbox for VerbsInbox {
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        // Who is never without messages does not come to sleep, which is when it hears of these.
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(EVENTS) {
            self.passive.opened.events();
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
        if self.broken || std::thread::panicking() {
            // Nobody serves on: those who wait for answers are to learn it.
            self.passive.end(self.passive.pairs());
        }
        // The next one serves what was taken, and counts on from what is under way.
        self.passive.put_back(&mut self.come);
        if let Err(error) = self.reap() {
            tracing::debug!(%error, "an inbox ends");
        }
        self.passive.give_inbox_back();
    }
}
