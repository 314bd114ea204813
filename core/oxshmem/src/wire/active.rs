//! Active messages: atomics that the target's CPU executes, where no lane performs them as a CPU does
//! (M28, M29). Its [service](crate::service) answers into this PE's memory.

use std::cell::RefCell;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use oxshmem_transport::{AtomicOp, Local, Op, Pe, Status, Width};

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

/// A message, and the way that it took.
#[derive(Clone, Copy)]
struct Sent {
    slot: usize,
    number: u64,
    pe: usize,
    context: usize,
    transport: usize,
}

/// How often a PE that owes an answer is asked for a sign of life on the way that the message took: an
/// answer that got lost on its way back leaves nothing outstanding here that could fail.
const PROBE: Duration = Duration::from_secs(1);

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
    fn towards(&self, context: usize, pe: usize) -> Vec<Sent> {
        let slots = self.slots.borrow();
        let all = slots.slots.iter().flatten();
        all.filter(|sent| (sent.context, sent.pe) == (context, pe))
            .copied()
            .collect()
    }
}

impl World {
    /// Sends an atomic to the CPU of the PE that has the word; gives the old value if it is
    /// `fetching`, and is else under way until a fence or quiet.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(super) fn message_atomic(
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
        self.await_answer_of(call, ticket)?;
        let words = self.own(answer);
        let old = words.part(0, 8).look(Width::W64, Inserted::Nothing);
        self.free_slot(ticket);
        Ok(old)
    }

    /// Waits until all messages of this context to a PE have been answered.
    pub(super) fn await_answers(&self, call: &'static str, pe: usize) -> Result<()> {
        let active = &self.inner.wire.active;
        for sent in active.towards(self.inner.wire.context(), pe) {
            self.await_answer_of(call, sent)?;
            self.free_slot(sent);
        }
        Ok(())
    }

    /// The words into which the answer to the message in a slot goes.
    fn answer_words(&self, slot: usize) -> Result<Sym<u64>> {
        let at = slot * WORDS;
        self.inner.internal.answers.range(at..at + WORDS)
    }

    /// Whether a message was answered.
    fn is_answered(&self, sent: Sent) -> Result<bool> {
        let number = self.own(self.answer_words(sent.slot)?).part(8, 8);
        Ok(number.look(Width::W64, Inserted::Fetch) == sent.number)
    }

    /// A free slot for a message to a PE. Those whose answers can come no more because the way or the
    /// PE was lost are never used again: one might still be under way.
    fn take_slot(&self, call: &'static str, via: &Opened, pe: usize) -> Result<Sent> {
        let active = &self.inner.wire.active;
        for _ in 0..SLOTS {
            let (slot, sent) = {
                let mut slots = active.slots.borrow_mut();
                let slot = slots.next;
                slots.next = (slot + 1) % SLOTS;
                (slot, slots.slots.get(slot).copied().flatten())
            };
            if let Some(sent) = sent
                && !self.is_answered(sent)?
            {
                match self.await_answer_of(call, sent) {
                    Ok(()) => {}
                    Err(Error::PeerLost { .. } | Error::LaneFailed { .. }) => continue,
                    Err(error) => return Err(error),
                }
            }
            let wire = &self.inner.wire;
            let transport = wire.transports.iter().position(|t| std::ptr::eq(t, via));
            let mut slots = active.slots.borrow_mut();
            slots.last += 1;
            let sent = Sent {
                slot,
                number: slots.last,
                pe,
                context: wire.context(),
                transport: transport.unwrap_or(0),
            };
            if let Some(free) = slots.slots.get_mut(slot) {
                *free = Some(sent);
            }
            return Ok(sent);
        }
        Err(Error::LaneFailed {
            call,
            transport: via.name,
            why: format!(
                "all {SLOTS} messages that may be unanswered at once are owed by PEs that were lost"
            ),
        })
    }

    fn free_slot(&self, sent: Sent) {
        let mut slots = self.inner.wire.active.slots.borrow_mut();
        if let Some(slot) = slots.slots.get_mut(sent.slot) {
            *slot = None;
        }
    }

    fn await_answer_of(&self, call: &'static str, sent: Sent) -> Result<()> {
        let Sent {
            number,
            pe,
            context,
            ..
        } = sent;
        let tell = || {
            let what = format!("its answer to active message {number}");
            (format!("PE {pe}"), what)
        };
        let reason = Reason {
            call,
            needs: Needs::Pe(pe),
            tell: &tell,
        };
        let wire = &self.inner.wire;
        let Some(via) = wire.transports.get(sent.transport) else {
            return Ok(());
        };
        let answered = self.own(self.answer_words(sent.slot)?).part(8, 8);
        let mut probe_at = None;
        self.wait(&reason, None, || {
            if answered.look(Width::W64, Inserted::Fetch) == number {
                return Some(Ok(()));
            }
            let now = Instant::now();
            if *probe_at.get_or_insert(now + PROBE) <= now {
                probe_at = Some(now + PROBE);
                // SAFETY: a flush has no local memory. Whether it fails shows in what follows.
                let probed = unsafe { via.post(context, Pe(pe as u32), Op::Flush) };
                wire.busy.set(true);
                match probed {
                    Ok((Status::Refused(oxshmem_transport::Error::PeerLost { .. }), _)) => {
                        self.lost_by_lane(pe);
                    }
                    // A way that has failed is noted with the lane.
                    Ok((Status::Refused(oxshmem_transport::Error::Connection { .. }), _)) => {}
                    Ok((Status::Refused(error), _)) => return Some(Err(error.into())),
                    Ok(_) | Err(_) => {}
                }
            }
            let why = via.gone(context).or_else(|| via.cut(context, pe))?;
            Some(Err(via.failed(call, why)))
        })??;
        // Later accesses come after what the target's CPU did.
        fence(Ordering::Acquire);
        Ok(())
    }
}
