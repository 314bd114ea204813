//! The active messages of a PE's contexts that have no reply yet, and the slots of its memory that replies
//! go to. Data only.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::target::Target;

/// The most messages of a PE without a reply.
pub const SLOTS: usize = 256;
/// The words of a reply: the value, and the number of the message.
const WORDS: usize = 2;

/// The messages that a PE's contexts have sent and that have no reply yet, as of the last poll.
pub struct PendingReplies {
    /// The words that replies go to.
    replies: Target,
    slots: Mutex<Slots>,
}

impl fmt::Debug for PendingReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReplies")
            .field("replies", &self.replies)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Slots {
    /// The slot to try first, round robin.
    pub next: usize,
    /// The number of the last message; numbers begin at 1, because replies' words begin as 0.
    last: u64,
    slots: Vec<Option<PendingReply>>,
    /// By PE, the number of slots with messages to it, as far as there were any.
    towards: Vec<u16>,
}

/// A message, and the lane that it took.
#[derive(Clone, Copy, Debug)]
pub struct PendingReply {
    /// The slot that its reply goes to.
    pub slot: usize,
    /// Its number; a slot has one message of a number.
    pub number: u64,
    /// The PE that has the word.
    pub pe: usize,
    /// The number of its context.
    pub context: u64,
    /// The index of its transport.
    pub transport: usize,
    /// The reader of its reply.
    pub reader: ReplyReader,
}

/// The reader of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyReader {
    /// None: a fence or quiet waits for it, and its value says nothing.
    Nobody,
    /// The call that sent the message, and that sends no other before it has the reply.
    Call,
    /// A quiet that sends messages to other PEs meanwhile: the reply stays until it was read.
    Quiet,
}

impl PendingReply {
    /// Whether another message of `context` may have the slot once the reply is there.
    pub(crate) fn is_spent_for(&self, context: u64) -> bool {
        match self.reader {
            ReplyReader::Nobody => true,
            // Its call has ended with an error.
            ReplyReader::Call => self.context == context,
            ReplyReader::Quiet => false,
        }
    }
}

/// The outcome of an attempt to claim a slot for one more message.
pub(crate) enum SlotState {
    /// A slot, claimed for the caller.
    Free(PendingReply),
    /// No free slot: the caller waits for the reply to this message of its own.
    After(PendingReply),
    /// No free slot: the caller first cancels its own messages to lost PEs.
    Cancellable,
    /// No free slot: all hold messages of other contexts, some of which may still get a reply.
    Full,
    /// No free slot: all hold messages of other contexts to lost PEs, of which this is one.
    Lost(usize),
}

impl PendingReplies {
    /// Bytes of the slots.
    pub const BYTES: usize = SLOTS * WORDS * size_of::<u64>();

    /// No messages; `replies` are the words that replies go into.
    pub fn new(replies: Target) -> Self {
        PendingReplies {
            replies,
            slots: Mutex::new(Slots {
                next: 0,
                last: 0,
                slots: vec![None; SLOTS],
                towards: Vec::new(),
            }),
        }
    }

    pub(crate) fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of the reply to the message in a slot.
    pub(crate) fn reply_words(&self, slot: usize) -> Target {
        const REPLY: usize = WORDS * size_of::<u64>();
        let words = self.replies.part(slot % SLOTS * REPLY, REPLY);
        words.unwrap_or(self.replies)
    }

    /// The messages of a context whose replies were not seen.
    pub(crate) fn of_context(&self, context: u64) -> Vec<PendingReply> {
        let slots = self.slots();
        let all = slots.slots.iter().flatten();
        all.filter(|sent| sent.context == context)
            .copied()
            .collect()
    }

    /// Whether a context has any messages without a reply.
    pub(crate) fn has_any_of(&self, context: u64) -> bool {
        let slots = self.slots();
        let mut all = slots.slots.iter().flatten();
        all.any(|sent| sent.context == context)
    }

    /// Frees the slot of a message that has its reply, or that no reply can arrive for.
    pub(crate) fn free(&self, sent: PendingReply) {
        // After the reply another context may have claimed the slot.
        self.slots()
            .free_if(sent.slot, |now| now.number == sent.number);
    }

    /// The quiet that sent a message waits for its reply no more, which may still arrive.
    pub(crate) fn leave(&self, sent: PendingReply) {
        if let Some(Some(now)) = self.slots().slots.get_mut(sent.slot)
            && now.number == sent.number
            && now.reader == ReplyReader::Quiet
        {
            now.reader = ReplyReader::Call;
        }
    }

    /// Frees the slots of a context that has ended. If a message of it has no reply, its lanes have ended, too: no
    /// reply can arrive late.
    pub(crate) fn end(&self, context: u64) {
        let mut slots = self.slots();
        for slot in 0..SLOTS {
            slots.free_if(slot, |sent| sent.context == context);
        }
    }
}

impl Slots {
    /// The message that has a slot.
    pub(crate) fn get(&self, slot: usize) -> Option<PendingReply> {
        self.slots.get(slot).copied().flatten()
    }

    /// The messages that have a slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingReply> {
        self.slots.iter().flatten()
    }

    /// The number of slots with messages to a PE, those among them that have their reply.
    pub(crate) fn towards(&self, pe: usize) -> usize {
        usize::from(self.towards.get(pe).copied().unwrap_or(0))
    }

    /// Gives a slot to a message, or to none.
    fn replace(&mut self, slot: usize, sent: Option<PendingReply>) {
        let Some(entry) = self.slots.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(entry, sent);
        if let Some(count) = before.and_then(|before| self.towards.get_mut(before.pe)) {
            *count -= 1;
        }
        if let Some(sent) = sent {
            let known = self.towards.len().max(sent.pe + 1);
            self.towards.resize(known, 0);
            if let Some(count) = self.towards.get_mut(sent.pe) {
                *count += 1;
            }
        }
    }

    /// Frees a slot if its message is such a one.
    fn free_if(&mut self, slot: usize, is_it: impl FnOnce(&PendingReply) -> bool) {
        if self.get(slot).is_some_and(|sent| is_it(&sent)) {
            self.replace(slot, None);
        }
    }

    /// Claims a slot that the caller has found free.
    pub(crate) fn claim(
        &mut self,
        slot: usize,
        message: impl FnOnce(u64) -> PendingReply,
    ) -> PendingReply {
        self.next = (slot + 1) % SLOTS;
        self.last += 1;
        let sent = message(self.last);
        self.replace(slot, Some(sent));
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies() -> PendingReplies {
        // SAFETY: no byte of it is accessed.
        let words = unsafe { Target::new(0, 0, PendingReplies::BYTES) };
        PendingReplies::new(words)
    }

    /// Claims a slot for a message of a context to a PE.
    fn claim(replies: &PendingReplies, slot: usize, context: u64, pe: usize) -> PendingReply {
        replies.slots().claim(slot, |number| PendingReply {
            slot,
            number,
            pe,
            context,
            transport: 0,
            reader: ReplyReader::Nobody,
        })
    }

    #[test]
    fn the_messages_to_each_pe_are_counted_until_their_slots_are_free_or_anothers() {
        let replies = replies();
        let counts = || [0, 1, 2, 9].map(|pe| replies.slots().towards(pe));
        assert_eq!(counts(), [0, 0, 0, 0]);
        let first = claim(&replies, 0, 1, 2);
        claim(&replies, 1, 1, 2);
        claim(&replies, 2, 7, 0);
        assert_eq!(counts(), [1, 0, 2, 0]);
        // Another context has the slot of a message with its reply.
        let later = claim(&replies, 0, 7, 9);
        assert_eq!(counts(), [1, 0, 1, 1]);
        replies.free(first);
        assert_eq!(counts(), [1, 0, 1, 1]);
        replies.free(later);
        replies.free(later);
        assert_eq!(counts(), [1, 0, 1, 0]);
        replies.end(1);
        assert_eq!(counts(), [1, 0, 0, 0]);
        replies.end(7);
        assert_eq!(counts(), [0, 0, 0, 0]);
    }
}
