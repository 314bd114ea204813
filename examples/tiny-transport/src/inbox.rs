//! The inbox: messages between PEs, and the replies to them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use oxshmem_transport::{Error, Inbox, Pe, Remote, Reply, Result};

use crate::operation::{RemoteAddress, find};
use crate::{NAME, Sender, Shared, lock};

/// Messages taken in one call.
const BATCH: usize = 16;

/// Where the lanes of others leave messages for one PE.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Mail {
    messages: VecDeque<(Sender, Vec<u8>)>,
    /// An inbox lives.
    taken: bool,
    closed: bool,
}

impl Mailbox {
    pub(crate) fn push(&self, from: Sender, message: Vec<u8>) {
        lock(&self.mail).messages.push_back((from, message));
        self.arrived.notify_all();
    }

    pub(crate) fn close(&self) {
        lock(&self.mail).closed = true;
        self.arrived.notify_all();
    }
}

/// The reader of a PE's mailbox.
#[derive(Debug)]
pub(crate) struct TinyInbox {
    me: Pe,
    mailbox: Arc<Mailbox>,
    shared: Arc<Mutex<Shared>>,
}

impl TinyInbox {
    pub(crate) fn open(
        me: Pe,
        mailbox: Arc<Mailbox>,
        shared: Arc<Mutex<Shared>>,
    ) -> Result<TinyInbox> {
        lock(&shared).check_open()?;
        if std::mem::replace(&mut lock(&mailbox.mail).taken, true) {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "a second inbox while the first lives".into(),
            });
        }
        Ok(TinyInbox {
            me,
            mailbox,
            shared,
        })
    }

    /// Writes the value first: a sender that sees the number sees the value.
    fn send(&self, sender: &Sender, reply: &Reply) -> Result<()> {
        let pe = sender.pe;
        let (to, done) = {
            let shared = lock(&self.shared);
            if shared.lost.contains(&pe) {
                return Ok(());
            }
            let number = Remote {
                offset: reply.to.offset + 8,
                ..reply.to
            };
            let word = |at: Remote, align| find(&shared, pe, at, "an answer", (8, align));
            (word(reply.to, Reply::BYTES)?, word(number, 8)?)
        };
        sender.take_reply_of(self.me, || {
            write(&to, reply.value);
            write(&done, reply.number);
        });
        Ok(())
    }
}

fn write(word: &RemoteAddress, value: u64) {
    // SAFETY: `find` found an aligned word inside the memory that `word` keeps; all PEs access it
    // atomically.
    unsafe { AtomicU64::from_ptr(word.ptr().cast()) }.store(value, Ordering::Release);
}

impl Inbox for TinyInbox {
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        lock(&self.shared).check_open()?;
        let mut taken = 0;
        while taken < BATCH {
            // The lock is not held while the message is served.
            let Some((sender, message)) = lock(&self.mailbox.mail).messages.pop_front() else {
                break;
            };
            taken += 1;
            if let Some(reply) = handler(sender.pe, &message) {
                self.send(&sender, &reply)?;
            }
        }
        Ok(taken)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        let idle = |mail: &mut Mail| mail.messages.is_empty() && !mail.closed;
        let mail = lock(&self.mailbox.mail);
        let slept = self.mailbox.arrived.wait_timeout_while(mail, timeout, idle);
        let (mail, _) = slept.unwrap_or_else(PoisonError::into_inner);
        if mail.closed {
            Err(Error::Closed { transport: NAME })
        } else {
            Ok(())
        }
    }
}

impl Drop for TinyInbox {
    fn drop(&mut self) {
        lock(&self.mailbox.mail).taken = false;
    }
}
