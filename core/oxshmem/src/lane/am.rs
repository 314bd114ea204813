//! Active messages: atomics that the target's CPU executes, where no lane performs them as a CPU does
//! (M28, M29). Its [service](crate::service) answers into this PE's memory.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oxshmem_transport::{AtomicOp, Local, Op, Pe, Status, Width};

use super::{Effect, Endpoint, RemoteTarget, Until};
use crate::hang::WaitedFor;
use crate::mapped::HostMemory;
use crate::order::{FenceSite, OpKind, OpSet};
use crate::service::AmRequest;
use crate::simulated::HostSpan;
use crate::wait::{WaitReason, WaitsOn};
use crate::{Context, Error, Result, Sym};

/// How many messages of a PE may be unanswered at once.
const SLOTS: usize = 256;
/// The words of an answer: the value, and the number of the message.
const WORDS: usize = 2;

/// The messages that a PE's contexts have sent and that were not answered yet, as far as somebody has
/// looked.
pub(crate) struct PendingReplies {
    /// Where the answers come.
    answers: Sym<u64>,
    slots: Mutex<Slots>,
}

struct Slots {
    /// Taken in turn.
    next: usize,
    /// The number of the last message; numbers begin at 1, because answers' words begin as 0.
    last: u64,
    slots: Vec<Option<PendingReply>>,
}

/// A message, and the way that it took.
#[derive(Clone, Copy)]
struct PendingReply {
    slot: usize,
    number: u64,
    pe: usize,
    /// The number of its context.
    context: u64,
    /// The index of its transport.
    transport: usize,
    /// Its context is about to read the answer.
    fetching: bool,
}

/// How often a PE that owes an answer is asked for a sign of life on the way that the message took: an
/// answer that got lost on its way back leaves nothing outstanding here that could fail.
const PROBE: Duration = Duration::from_secs(1);

impl PendingReplies {
    /// Bytes that the answers take.
    pub(crate) const BYTES: usize = SLOTS * WORDS * size_of::<u64>();

    /// Answers come into these words.
    pub(crate) fn new(answers: Sym<u64>) -> Self {
        PendingReplies {
            answers,
            slots: Mutex::new(Slots {
                next: 0,
                last: 0,
                slots: vec![None; SLOTS],
            }),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a context that are not known to be answered.
    fn of_context(&self, context: u64) -> Vec<PendingReply> {
        let slots = self.slots();
        let all = slots.slots.iter().flatten();
        all.filter(|sent| sent.context == context)
            .copied()
            .collect()
    }

    /// Whether a context has any.
    pub(crate) fn has_any_of(&self, context: u64) -> bool {
        self.slots()
            .slots
            .iter()
            .flatten()
            .any(|sent| sent.context == context)
    }

    /// A context has ended, and so have its lanes if any of its messages is unanswered: no answer comes.
    pub(crate) fn end(&self, context: u64) {
        for slot in &mut self.slots().slots {
            slot.take_if(|sent| sent.context == context);
        }
    }
}

/// Whether a context may send one more message.
enum SlotState {
    /// In this slot.
    Free(PendingReply),
    /// When this one of its own is answered.
    After(PendingReply),
    /// When it has given up those of its own that no answer can come to.
    GivenUp,
    /// When one of any context is answered.
    Full,
    /// When other contexts have given up theirs to this PE and others, which were lost.
    Lost(usize),
}

impl Context<'_> {
    /// Sends an atomic to the CPU of the PE that has the word; gives the old value if it is
    /// `fetching`, and is else under way until a fence or quiet.
    #[expect(clippy::too_many_arguments, reason = "an atomic has that many parts")]
    pub(super) fn message_atomic(
        &self,
        call: &'static str,
        via: &Endpoint,
        far: RemoteTarget,
        width: Width,
        op: AtomicOp,
        (operand, compare): (u64, u64),
        fetching: bool,
    ) -> Result<u64> {
        // It sees this PE's own puts, as a get does.
        if !via.guarantees(far.kind).put_message && self.inserts(FenceSite::ReadLane) {
            self.flush(call, via, far.pe)?;
        }
        let ticket = self.take_slot(call, via, far.pe, fetching)?;
        let answer = self.answer_words(ticket.slot)?;
        let request = AmRequest {
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
            true => Effect::Nothing,
            false => Effect::Update(OpSet::of(OpKind::Message, far.kind)),
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
        if let Err(error) = self.await_answer_of(call, ticket) {
            self.give_messages_up();
            return Err(error);
        }
        let words = self.own(answer);
        let old = words.part(0, 8).load_word(Width::W64, FenceSite::Nothing);
        self.free_slot(ticket);
        Ok(old)
    }

    /// Waits until all messages of this context to a PE have been answered.
    pub(super) fn await_answers(&self, call: &'static str, pe: usize) -> Result<()> {
        let sent = self.shared.pending_replies.of_context(self.state.number);
        for sent in sent.into_iter().filter(|sent| sent.pe == pe) {
            self.await_answer_of(call, sent)?;
            self.free_slot(sent);
        }
        Ok(())
    }

    /// Gives up this context's messages to which no answer can come any more, because the way that they
    /// took or the PE was lost. What they leave outstanding stays so.
    #[cold]
    pub(super) fn give_messages_up(&self) {
        for sent in self.shared.pending_replies.of_context(self.state.number) {
            let Some(via) = self.state.wire.channels.get(sent.transport) else {
                continue;
            };
            if self.shared.liveness.is_lost(sent.pe) {
                // From here on the lane takes no answer of that PE's.
                self.step(via);
            } else if via.gone().is_none() && via.failure_towards(sent.pe).is_none() {
                continue;
            }
            // Who waited for a value has been told.
            if !sent.fetching && !self.is_answered(sent).unwrap_or(false) {
                via.give_messages_up(sent.pe);
            }
            self.free_slot(sent);
        }
    }

    /// The words into which the answer to the message in a slot goes.
    fn answer_words(&self, slot: usize) -> Result<Sym<u64>> {
        let at = slot * WORDS;
        self.shared.pending_replies.answers.range(at..at + WORDS)
    }

    /// Whether a message was answered.
    fn is_answered(&self, sent: PendingReply) -> Result<bool> {
        let number = self.own(self.answer_words(sent.slot)?).part(8, 8);
        Ok(Self::answers(number, sent))
    }

    /// Whether this word, which holds the number of the last answer in a slot, says that a message was
    /// answered: another context may have taken the slot for a later one since.
    fn answers(number: HostSpan<'_>, sent: PendingReply) -> bool {
        number.load_word(Width::W64, FenceSite::Fetch) >= sent.number
    }

    /// A free slot for a message to a PE.
    fn take_slot(
        &self,
        call: &'static str,
        via: &Endpoint,
        pe: usize,
        fetching: bool,
    ) -> Result<PendingReply> {
        loop {
            match self.look_for_slot(via, pe, fetching)? {
                SlotState::Free(sent) => return Ok(sent),
                SlotState::After(sent) => match self.await_answer_of(call, sent) {
                    Ok(()) => self.free_slot(sent),
                    // Whose loss or failure it is, a quiet tells.
                    Err(Error::PeerLost { .. } | Error::LaneFailed { .. }) => {
                        self.give_messages_up();
                    }
                    Err(error) => return Err(error),
                },
                SlotState::GivenUp => self.give_messages_up(),
                SlotState::Full => {
                    let tell = || {
                        let what = "an answer to one of the messages of its other contexts";
                        (WaitedFor::Me, what.into())
                    };
                    let reason = WaitReason {
                        call,
                        needs: WaitsOn::Pe(pe),
                        describe: &tell,
                    };
                    let room = || match self.look_for_slot(via, pe, fetching) {
                        Ok(SlotState::Full) => None,
                        room => Some(room),
                    };
                    match self.wait(&reason, None, room)?? {
                        SlotState::Free(sent) => return Ok(sent),
                        _ => continue,
                    }
                }
                SlotState::Lost(lost) if !self.shared.liveness.is_acknowledged(lost) => {
                    return Err(Error::PeerLost { call, pe: lost });
                }
                SlotState::Lost(_) => {
                    return Err(Error::LaneFailed {
                        call,
                        transport: via.name,
                        why: format!(
                            "all {SLOTS} messages that may be unanswered at once are other contexts', to \
                             PEs that were lost; a quiet on each of those contexts gives them up"
                        ),
                    });
                }
            }
        }
    }

    /// Takes a slot that is free, or whose message was answered, whichever context's it was.
    fn look_for_slot(&self, via: &Endpoint, pe: usize, fetching: bool) -> Result<SlotState> {
        let context = self.state.number;
        let mut slots = self.shared.pending_replies.slots();
        let next = slots.next;
        let (mut oldest, mut alive, mut free) = (None::<PendingReply>, false, None);
        let (mut given_up, mut lost) = (false, None);
        for slot in (next..SLOTS).chain(0..next) {
            let Some(taken) = slots.slots.get(slot).copied().flatten() else {
                free = Some(slot);
                break;
            };
            let mine = taken.context == context;
            if (mine || !taken.fetching) && self.is_answered(taken)? {
                free = Some(slot);
                break;
            }
            if self.shared.liveness.is_lost(taken.pe) {
                given_up |= mine;
                lost = Some(taken.pe);
                continue;
            }
            alive = true;
            if mine {
                oldest = oldest.filter(|o| o.number < taken.number).or(Some(taken));
            }
        }
        match (free, oldest) {
            (Some(slot), _) => {
                slots.next = (slot + 1) % SLOTS;
                slots.last += 1;
                let sent = PendingReply {
                    slot,
                    number: slots.last,
                    pe,
                    context,
                    transport: via.index,
                    fetching,
                };
                if let Some(place) = slots.slots.get_mut(slot) {
                    *place = Some(sent);
                }
                Ok(SlotState::Free(sent))
            }
            _ if given_up => Ok(SlotState::GivenUp),
            (None, Some(oldest)) => Ok(SlotState::After(oldest)),
            (None, None) => match lost.filter(|_| !alive) {
                Some(pe) => Ok(SlotState::Lost(pe)),
                None => Ok(SlotState::Full),
            },
        }
    }

    /// A message was answered, or no answer can come.
    fn free_slot(&self, sent: PendingReply) {
        let mut slots = self.shared.pending_replies.slots();
        if let Some(slot) = slots.slots.get_mut(sent.slot) {
            // Answered, it may have been taken by another context meanwhile.
            slot.take_if(|now| now.number == sent.number);
        }
    }

    fn await_answer_of(&self, call: &'static str, sent: PendingReply) -> Result<()> {
        let PendingReply { number, pe, .. } = sent;
        let tell = || {
            let what = format!("its answer to active message {number}");
            (WaitedFor::Lane(pe), what)
        };
        let reason = WaitReason {
            call,
            needs: WaitsOn::Pe(pe),
            describe: &tell,
        };
        let wire = &self.state.wire;
        let Some(via) = wire.channels.get(sent.transport) else {
            return Ok(());
        };
        let answered = self.own(self.answer_words(sent.slot)?).part(8, 8);
        let mut probe_at = None;
        self.wait(&reason, None, || {
            if Self::answers(answered, sent) {
                return Some(Ok(()));
            }
            let now = Instant::now();
            if *probe_at.get_or_insert(now + PROBE) <= now {
                probe_at = Some(now + PROBE);
                // SAFETY: a flush has no local memory. Whether it fails shows in what follows.
                let probed = unsafe { via.post(Pe(pe as u32), Op::Flush) };
                wire.busy.set(true);
                match probed {
                    Ok((Status::Refused(oxshmem_transport::Error::PeerLost { .. }), _)) => {
                        self.report_unreachable(pe);
                    }
                    // A way that has failed is noted with the lane.
                    Ok((Status::Refused(oxshmem_transport::Error::Connection { .. }), _)) => {}
                    Ok((Status::Refused(error), _)) => return Some(Err(error.into())),
                    Ok(_) | Err(_) => {}
                }
            }
            let why = via.gone().or_else(|| via.failure_towards(pe))?;
            self.notify_stranded_peers(via);
            Some(Err(via.failed(call, why)))
        })??;
        // Later accesses come after what the target's CPU did.
        fence(Ordering::Acquire);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
