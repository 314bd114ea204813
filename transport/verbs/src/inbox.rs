//! The messages that come to a PE, and the answers to them.
//!
//! An answer is two writes on the queue pair that its message came by: value, then number. They
//! leave at once where there is room, else as soon as earlier ones are through.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::{Answer, Error, Inbox, Pe, Remote, Result};
use rdma_sys::{ibv_send_flags as flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

use crate::ibv::Completion;
use crate::ibv::result::failed;
use crate::passive::{ANSWER_REQUESTS, BATCH, Passive, PassivePair};
use crate::shared::{Far, State, find_word};
use crate::{MESSAGE, NAME};

/// An answer whose places were checked.
#[derive(Debug)]
struct Checked {
    value: (Far, u64),
    number: (Far, u64),
}

/// A queue pair that messages came by.
#[derive(Debug)]
struct Way {
    pair: Arc<PassivePair>,
    /// Requests outstanding.
    outstanding: u32,
    waiting: VecDeque<Checked>,
}

#[derive(Debug)]
pub(crate) struct VerbsInbox {
    ways: HashMap<u32, Way>,
    /// Answers that wait, over all ways.
    waiting: usize,
    /// Room in the completion queue of the answers.
    room: u32,
    state: State,
    generation: u64,
    removals: u64,
    /// Taken, not served yet.
    come: VecDeque<Completion>,
    passive: Arc<Passive>,
}

impl VerbsInbox {
    pub(crate) fn new(passive: Arc<Passive>) -> Result<VerbsInbox> {
        passive.take_inbox()?;
        let (generation, state) = passive.opened.shared.copy();
        Ok(VerbsInbox {
            ways: HashMap::new(),
            waiting: 0,
            room: passive.send.capacity(),
            state,
            generation,
            removals: passive.removals(),
            come: VecDeque::with_capacity(BATCH),
            passive,
        })
    }

    /// Learns what has changed; an error once the domain is shut down.
    fn refresh(&mut self) -> Result<()> {
        if self.passive.opened.shared.generation() != self.generation {
            (self.generation, self.state) = self.passive.opened.shared.copy();
        }
        if self.state.closed {
            return Err(Error::Closed { transport: NAME });
        }
        let removals = self.passive.removals();
        if removals != self.removals {
            self.removals = removals;
            let gone: Vec<u32> = self
                .ways
                .keys()
                .copied()
                .filter(|&number| self.passive.pair(number).is_none())
                .collect();
            gone.into_iter().for_each(|number| self.forget(number));
        }
        Ok(())
    }

    /// Gives up what was to be sent by a queue pair.
    fn forget(&mut self, number: u32) {
        if let Some(way) = self.ways.remove(&number) {
            self.waiting -= way.waiting.len();
            self.room += way.outstanding;
        }
    }

    /// Takes the completions of answers, and sends what waited for them.
    fn push_answers(&mut self) -> Result<()> {
        let mut done = [Completion::none(); BATCH];
        let count = self.passive.send.poll(&mut done)?;
        for completion in &done[..count] {
            let number = completion.id() as u32;
            let Some(way) = self.ways.get_mut(&number) else {
                continue;
            };
            if completion.succeeded() {
                way.outstanding = way.outstanding.saturating_sub(2);
                self.room = (self.room + 2).min(self.passive.send.capacity());
            } else {
                tracing::debug!(pe = %way.pair.pe, status = completion.status(),
                    "a message's sender does not take its answer");
                self.passive.remove(number);
                self.forget(number);
            }
        }
        if self.waiting > 0 {
            let numbers: Vec<u32> = self.ways.keys().copied().collect();
            numbers.into_iter().for_each(|number| self.send(number));
        }
        Ok(())
    }

    /// Sends what waits for one way and has room.
    fn send(&mut self, number: u32) {
        while let Some(way) = self.ways.get_mut(&number)
            && way.outstanding + 2 <= ANSWER_REQUESTS
            && self.room >= 2
            && let Some(answer) = way.waiting.pop_front()
        {
            self.waiting -= 1;
            if post(&way.pair, &answer, number) {
                way.outstanding += 2;
                self.room -= 2;
            } else {
                self.passive.remove(number);
                self.forget(number);
            }
        }
    }

    /// An answer's places, or what is wrong with them.
    fn checked(&self, pe: Pe, answer: &Answer) -> Result<Checked> {
        let regions = self.state.imported.get(pe.index());
        let regions = regions.map_or(&[][..], |regions| &regions[..]);
        let word = |at: Remote| find_word(regions, pe, at, "an answer");
        Ok(Checked {
            value: (word(answer.to)?, answer.value),
            number: (word(answer.done)?, answer.number),
        })
    }

    /// Takes messages from those that have come.
    fn look(&mut self) -> Result<()> {
        match self.come.is_empty() {
            true => self.passive.take(&mut self.come),
            false => Ok(()),
        }
    }
}

/// Posts both writes of an answer, with one doorbell; whether it could.
fn post(pair: &PassivePair, answer: &Checked, number: u32) -> bool {
    let words = [answer.value.1, answer.number.1];
    let mut pieces = [ibv_sge {
        addr: 0,
        length: 8,
        lkey: 0,
    }; 2];
    // SAFETY: integers and null pointers, for which zero is a value.
    let mut requests: [ibv_send_wr; 2] = unsafe { std::mem::zeroed() };
    for at in 0..2 {
        let far = [answer.value.0, answer.number.0][at];
        pieces[at].addr = (&raw const words[at]).addr() as u64;
        let request = &mut requests[at];
        request.wr_id = number.into();
        request.sg_list = &raw mut pieces[at];
        request.num_sge = 1;
        request.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
        request.send_flags = flags::IBV_SEND_INLINE.0;
        request.wr.rdma = rdma_sys::rdma_t {
            remote_addr: far.addr,
            rkey: far.strict,
        };
    }
    requests[1].send_flags |= flags::IBV_SEND_SIGNALED.0;
    requests[0].next = &raw mut requests[1];
    // SAFETY: two sound requests, whose data is copied by the call since it is inline.
    unsafe { pair.pair.post(&raw mut requests[0]) }.is_ok()
}

impl Inbox for VerbsInbox {
    fn serve(&mut self, serve: &mut dyn FnMut(Pe, &[u8]) -> Option<Answer>) -> Result<usize> {
        self.refresh()?;
        self.push_answers()?;
        self.look()?;
        let mut taken = 0;
        let mut wrong = None;
        while let Some(message) = self.come.pop_front() {
            let buffer = message.id();
            let mut bytes = [0; MESSAGE];
            let sound = message.succeeded();
            let bytes = &mut bytes[..message.len().min(MESSAGE)];
            // SAFETY: the buffer holds `MESSAGE` bytes, which the device has filled, and leaves
            // alone until it is offered again.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.passive.buffer(buffer).cast_const(),
                    bytes.as_mut_ptr(),
                    bytes.len(),
                );
            }
            self.passive.offer(buffer)?;
            if !sound {
                continue;
            }
            let number = message.queue_pair();
            if message.has_immediate() {
                // Its lane has ended.
                self.passive.remove(number);
                self.forget(number);
                continue;
            }
            if !self.ways.contains_key(&number) {
                let Some(pair) = self.passive.pair(number) else {
                    // Its sender is lost.
                    continue;
                };
                let (outstanding, waiting) = (0, VecDeque::new());
                self.ways.insert(
                    number,
                    Way {
                        pair,
                        outstanding,
                        waiting,
                    },
                );
            }
            let Some(pe) = self.ways.get(&number).map(|way| way.pair.pe) else {
                continue;
            };
            taken += 1;
            let Some(answer) = serve(pe, bytes) else {
                continue;
            };
            match self.checked(pe, &answer) {
                Ok(checked) => {
                    if let Some(way) = self.ways.get_mut(&number) {
                        way.waiting.push_back(checked);
                        self.waiting += 1;
                    }
                    self.send(number);
                }
                Err(error) => wrong = Some(error),
            }
        }
        match wrong {
            None => Ok(taken),
            Some(error) => Err(error),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
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
        // SAFETY: an array of two, a time, and no mask.
        let code =
            unsafe { libc::ppoll(wanted.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
        if code < 0 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(failed("ppoll", error));
            }
        }
        self.passive.calm();
        self.refresh()
    }
}

impl Drop for VerbsInbox {
    fn drop(&mut self) {
        // The next one serves what was taken.
        self.passive.put_back(&mut self.come);
        // Answers under way are told of by nobody now: their queue pairs go on, the next inbox counts
        // from what is left of the queue.
        while let Ok(1..) = self.passive.send.poll(&mut [Completion::none(); BATCH]) {}
        self.passive.give_inbox_back();
    }
}
