use std::time::Duration;

use oxshmem_transport::{Inbox, Pe, Reply, Result};

use super::Fault;

/// A right inbox with a fault in front of it.
#[derive(Debug)]
pub struct BrokenInbox {
    pub right: Box<dyn Inbox>,
    pub fault: Fault,
}

impl Inbox for BrokenInbox {
    fn drain(&mut self, handler: &mut dyn FnMut(Pe, &[u8]) -> Option<Reply>) -> Result<usize> {
        match self.fault {
            Fault::ReversesMessages => {
                let mut held = Vec::new();
                let taken = self.right.drain(&mut |pe, bytes| {
                    held.push((pe, bytes.to_vec()));
                    None
                })?;
                for (pe, bytes) in held.into_iter().rev() {
                    handler(pe, &bytes);
                }
                Ok(taken)
            }
            Fault::RepeatsMessages => self.right.drain(&mut |pe, bytes| {
                handler(pe, bytes);
                handler(pe, bytes)
            }),
            Fault::CutsMessages => self
                .right
                .drain(&mut |pe, bytes| handler(pe, &bytes[..bytes.len().min(8)])),
            Fault::AnswersNobody => self.right.drain(&mut |pe, bytes| {
                handler(pe, bytes);
                None
            }),
            Fault::AnswersTheNumberAlone => self.right.drain(&mut |pe, bytes| {
                let answer = handler(pe, bytes)?;
                // A value that was never written.
                let value = 0;
                Some(Reply { value, ..answer })
            }),
            _ => self.right.drain(handler),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.right.wait(timeout)
    }
}
