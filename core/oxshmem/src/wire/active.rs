//! Active messages: atomics that the target's CPU executes, where no lane performs them as a CPU does
//! (M28, M29). Its [service](crate::service) answers into this PE's memory.

use std::cell::RefCell;
use std::sync::atomic::{Ordering, fence};

use oxshmem_transport::{AtomicOp, Local, Op, Width};

use super::{Far, Leaves, Opened, Until};
use crate::mapped::Bytes;
use crate::order::{Class, Classes, Inserted};
use crate::service::Request;
use crate::wait::{Needs, Reason};
use crate::{Error, Result, Sym, World};

/// How many messages may be unanswered at once.
pub(crate) const SLOTS: usize = 256;
/// The words of an answer: the value, and the number of the message.
pub(crate) const WORDS: usize = 2;

/// The messages that were sent and not answered yet, as far as this PE has looked.
pub(crate) struct Active {
    slots: RefCell<Slots>,
}

struct Slots {
    /// Taken in turn.
    next: usize,
    /// The number of the last message; numbers begin at 1, because answers' words begin as 0.
    last: u64,
    slots: Vec<Option<Sent>>,
}

#[derive(Clone, Copy)]
struct Sent {
    number: u64,
    pe: usize,
    context: usize,
}

/// A message whose answer is awaited.
#[derive(Clone, Copy)]
struct Ticket {
    slot: usize,
    number: u64,
}

impl Active {
    pub(super) fn new() -> Self {
        Active {
            slots: RefCell::new(Slots {
                next: 0,
                last: 0,
                slots: vec![None; SLOTS],
            }),
        }
    }

    /// Those of a context towards a PE that are not known to be answered.
    fn towards(&self, context: usize, pe: usize) -> Vec<Ticket> {
        let slots = self.slots.borrow();
        let all = slots.slots.iter().enumerate();
        all.filter_map(|(slot, sent)| {
            let sent = sent.filter(|sent| (sent.context, sent.pe) == (context, pe))?;
            Some(Ticket {
                slot,
                number: sent.number,
            })
        })
        .collect()
    }
}

impl World {
    /// Sends an atomic to the CPU of the PE that has the word; gives the old value if it is
    /// `fetching`, and is else under way until a fence or quiet.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(crate) fn message_atomic(
        &self,
        call: &'static str,
        via: &Opened,
        far: Far,
        width: Width,
        op: AtomicOp,
        (operand, compare): (u64, u64),
        fetching: bool,
    ) -> Result<u64> {
        // It sees this PE's own puts, as a get does.
        if !via.guarantees(far.kind).put_message && self.inserts(Inserted::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        let ticket = self.take_slot(call, via, far.pe)?;
        let answer = self.answer_words(ticket.slot)?;
        let request = Request {
            op,
            width,
            offset: far.offset,
            operand,
            compare,
            answer: answer.offset(),
            number: ticket.number,
        };
        let bytes = request.to_bytes();
        let message = Op::Message {
            from: Local {
                addr: bytes.as_ptr().cast_mut(),
                len: bytes.len(),
                key: None,
            },
        };
        let leaves = match fetching {
            true => Leaves::Nothing,
            false => Leaves::Update(Classes::of(Class::Message, far.kind)),
        };
        // SAFETY: a message's bytes may be reused once it is posted.
        let posted = unsafe { self.post(call, via, far.pe, message, Until::Posted, leaves) };
        if let Err(error) = posted {
            self.free_slot(ticket);
            return Err(error);
        }
        if !fetching {
            return Ok(0);
        }
        self.await_answer_of(call, via, far.pe, ticket)?;
        let words = self.own(answer);
        let old = words.part(0, 8).look(Width::W64, Inserted::Nothing);
        self.free_slot(ticket);
        Ok(old)
    }

    /// Waits until all messages of this context to a PE have been answered.
    pub(super) fn await_answers(&self, call: &'static str, via: &Opened, pe: usize) -> Result<()> {
        let active = &self.inner.wire.active;
        for ticket in active.towards(self.inner.wire.context(), pe) {
            self.await_answer_of(call, via, pe, ticket)?;
            self.free_slot(ticket);
        }
        Ok(())
    }

    /// The words into which the answer to the message in a slot goes.
    fn answer_words(&self, slot: usize) -> Result<Sym<u64>> {
        let at = slot * WORDS;
        self.inner.internal.answers.range(at..at + WORDS)
    }

    /// A free slot for a message to a PE. Those of lost PEs are never used again: an answer might
    /// still come.
    fn take_slot(&self, call: &'static str, via: &Opened, pe: usize) -> Result<Ticket> {
        let active = &self.inner.wire.active;
        for _ in 0..SLOTS {
            let (slot, sent) = {
                let mut slots = active.slots.borrow_mut();
                let slot = slots.next;
                slots.next = (slot + 1) % SLOTS;
                (slot, slots.slots.get(slot).copied().flatten())
            };
            if let Some(sent) = sent {
                if self.peers.is_lost(sent.pe) {
                    continue;
                }
                let ticket = Ticket {
                    slot,
                    number: sent.number,
                };
                match self.await_answer_of(call, via, sent.pe, ticket) {
                    Ok(()) => {}
                    Err(Error::PeerLost { .. } | Error::LaneFailed { .. }) => continue,
                    Err(error) => return Err(error),
                }
            }
            let mut slots = active.slots.borrow_mut();
            slots.last += 1;
            let number = slots.last;
            if let Some(free) = slots.slots.get_mut(slot) {
                *free = Some(Sent {
                    number,
                    pe,
                    context: self.inner.wire.context(),
                });
            }
            return Ok(Ticket { slot, number });
        }
        Err(Error::Argument {
            call,
            what: format!(
                "all {SLOTS} slots for active messages were in use towards PEs that were lost"
            ),
        })
    }

    fn free_slot(&self, ticket: Ticket) {
        let mut slots = self.inner.wire.active.slots.borrow_mut();
        if let Some(slot) = slots.slots.get_mut(ticket.slot) {
            *slot = None;
        }
    }

    fn await_answer_of(
        &self,
        call: &'static str,
        via: &Opened,
        pe: usize,
        ticket: Ticket,
    ) -> Result<()> {
        let tell = || {
            let what = format!("its answer to active message {}", ticket.number);
            (format!("PE {pe}"), what)
        };
        let reason = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        let number = self.own(self.answer_words(ticket.slot)?).part(8, 8);
        self.wait(&reason, None, || {
            match number.look(Width::W64, Inserted::Fetch) {
                answered if answered == ticket.number => Some(Ok(())),
                _ => self.cut(call, via, pe).map(Err),
            }
        })??;
        // Later accesses come after what the target's CPU did.
        fence(Ordering::Acquire);
        Ok(())
    }
}
