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
    pub last: u64,
    pub slots: Vec<Option<PendingReply>>,
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
        if let Some(slot) = self.slots().slots.get_mut(sent.slot) {
            // After the reply another context may have claimed the slot.
            slot.take_if(|now| now.number == sent.number);
        }
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
        for slot in &mut self.slots().slots {
            slot.take_if(|sent| sent.context == context);
        }
    }
}

impl Slots {
    /// Claims a slot that the caller has found free.
    pub(crate) fn claim(
        &mut self,
        slot: usize,
        message: impl FnOnce(u64) -> PendingReply,
    ) -> PendingReply {
        self.next = (slot + 1) % SLOTS;
        self.last += 1;
        let sent = message(self.last);
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = Some(sent);
        }
        sent
    }
}
