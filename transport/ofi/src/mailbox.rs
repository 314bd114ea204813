//! Messages of other PEs' lanes on their way to the inbox, or to a function that serves them at once.

use std::collections::VecDeque;
use std::fmt;

use oxshmem_transport::{Pe, Reply, ServeAtOnce};

use crate::limits::MESSAGE;

/// A message for the inbox, with its sender and the lane that it came from.
#[derive(Debug)]
pub(crate) struct Mail {
    pub from: Pe,
    pub lane: u64,
    len: usize,
    bytes: [u8; MESSAGE],
}

impl Mail {
    /// A message; bytes beyond the longest are left out.
    pub(crate) fn new(from: Pe, lane: u64, data: &[u8]) -> Mail {
        let len = data.len().min(MESSAGE);
        let mut bytes = [0; MESSAGE];
        bytes[..len].copy_from_slice(&data[..len]);
        Mail {
            from,
            lane,
            len,
            bytes,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Serves messages where they arrive.
struct AtOnce(ServeAtOnce);

impl fmt::Debug for AtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AtOnce")
    }
}

/// The messages that nobody has served.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pub is_taken: bool,
    mails: VecDeque<Mail>,
    /// Those that the inbox serves now.
    taken: usize,
    at_once: Option<AtOnce>,
}

impl Mailbox {
    /// Has messages served where they arrive.
    pub(crate) fn serve_at_once(&mut self, serve: ServeAtOnce) {
        self.at_once = Some(AtOnce(serve));
    }

    /// The inbox is gone: messages wait for the next.
    pub(crate) fn release(&mut self) {
        self.is_taken = false;
        self.taken = 0;
        self.at_once = None;
    }

    /// Serves a message, or keeps it for the inbox: always, while the inbox has earlier ones. Gives the reply.
    pub(crate) fn deliver(&mut self, mail: Mail) -> Option<Reply> {
        let in_order = self.mails.is_empty() && self.taken == 0;
        let at_once = self.at_once.as_ref().filter(|_| in_order);
        let reply = at_once.and_then(|AtOnce(serve)| serve(mail.from, mail.bytes()));
        if reply.is_none() {
            self.mails.push_back(mail);
        }
        reply
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mails.is_empty()
    }

    /// The next message, which counts as unserved until [`served`](Self::served).
    pub(crate) fn take(&mut self) -> Option<Mail> {
        let mail = self.mails.pop_front()?;
        self.taken += 1;
        Some(mail)
    }

    /// A message that was taken has been served.
    pub(crate) fn served(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// Forgets the messages of a PE.
    pub(crate) fn forget(&mut self, pe: u32) {
        self.mails.retain(|mail| mail.from.0 != pe);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use oxshmem_transport::{RegionId, Remote};

    use super::*;

    #[test]
    fn m17_no_message_is_served_at_once_before_an_earlier_one_of_the_inbox() {
        let mut mailbox = Mailbox::default();
        mailbox.serve_at_once(Arc::new(|_, bytes| {
            let to = Remote {
                region: RegionId(0),
                offset: 0,
            };
            let number = u64::from(*bytes.first()?);
            (number != 0).then_some(Reply {
                to,
                value: 0,
                number,
            })
        }));
        let deliver = |mailbox: &mut Mailbox, first| {
            let reply = mailbox.deliver(Mail::new(Pe(1), 3, &[first]));
            reply.map(|reply| reply.number)
        };
        assert_eq!(deliver(&mut mailbox, 1), Some(1));
        // The function does not serve this one, so the inbox gets the next, too.
        assert_eq!(deliver(&mut mailbox, 0), None);
        assert_eq!(deliver(&mut mailbox, 2), None);
        for bytes in [[0], [2]] {
            assert_eq!(mailbox.take().unwrap().bytes(), bytes);
            // Taken is not served.
            assert_eq!(deliver(&mut mailbox, 3), None);
        }
        assert_eq!(mailbox.take().unwrap().bytes(), [3]);
        assert_eq!(mailbox.take().unwrap().bytes(), [3]);
        for _ in 0..4 {
            mailbox.served();
        }
        assert_eq!(deliver(&mut mailbox, 4), Some(4));
    }
}
