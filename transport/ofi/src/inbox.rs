//! The inbox: messages of other PEs' lanes, and the replies to them.

use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::{Error, Inbox, Pe, Reply, Result, ServeAtOnce};

use crate::limits::NAME;
use crate::shared::Shared;

/// Messages taken in one call.
const BATCH: usize = 16;

#[derive(Debug)]
pub(crate) struct OfiInbox(Arc<Shared>);

impl OfiInbox {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<OfiInbox> {
        let mut state = shared.lock();
        state.check()?;
        if state.mailbox.is_taken {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "a second inbox while the first lives".into(),
            });
        }
        state.mailbox.is_taken = true;
        Ok(OfiInbox(Arc::clone(shared)))
    }
}

impl Inbox for OfiInbox {
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        let mut taken = 0;
        while taken < BATCH {
            let mut state = self.0.lock();
            state.check()?;
            let Some(mail) = state.mailbox.take() else {
                break;
            };
            drop(state);
            taken += 1;
            // The lock is not held while the message is served.
            let reply = handler(mail.from, mail.bytes());
            let mut state = self.0.lock();
            state.mailbox.served();
            let Some(reply) = reply else {
                continue;
            };
            if mail.from == state.job.me {
                if state.lanes.contains_key(&mail.lane) {
                    state.regions.reply(&reply);
                }
                continue;
            }
            let pe = mail.from.0;
            if let Some(peer) = state.peer(pe).filter(|peer| !peer.is_gone()) {
                peer.replies.push_back((mail.lane, reply));
                state.owe(pe);
            }
        }
        if taken > 0 {
            let mut state = self.0.lock();
            state.pay();
            self.0.pump(&mut state);
        }
        Ok(taken)
    }

    fn serve_at_once(&mut self, serve: ServeAtOnce) {
        self.0.lock().mailbox.serve_at_once(serve);
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.0.await_mail(timeout)
    }
}

impl Drop for OfiInbox {
    fn drop(&mut self) {
        self.0.lock().mailbox.release();
    }
}
