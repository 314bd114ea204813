use std::time::Duration;

use oxshmem_transport::{Answer, Inbox, Pe, Result};

use super::Fault;

/// A right inbox with a fault in front of it.
#[derive(Debug)]
pub struct BrokenInbox {
    pub right: Box<dyn Inbox>,
    pub fault: Fault,
}

impl Inbox for BrokenInbox {
    fn serve(&mut self, serve: &mut dyn FnMut(Pe, &[u8]) -> Option<Answer>) -> Result<usize> {
        match self.fault {
            Fault::ReversesMessages => {
                let mut held = Vec::new();
                let taken = self.right.serve(&mut |pe, bytes| {
                    held.push((pe, bytes.to_vec()));
                    None
                })?;
                for (pe, bytes) in held.into_iter().rev() {
                    serve(pe, &bytes);
                }
                Ok(taken)
            }
            Fault::RepeatsMessages => self.right.serve(&mut |pe, bytes| {
                serve(pe, bytes);
                serve(pe, bytes)
            }),
            Fault::CutsMessages => self
                .right
                .serve(&mut |pe, bytes| serve(pe, &bytes[..bytes.len().min(8)])),
            Fault::AnswersNobody => self.right.serve(&mut |pe, bytes| {
                serve(pe, bytes);
                None
            }),
            Fault::AnswersTheNumberAlone => self.right.serve(&mut |pe, bytes| {
                let answer = serve(pe, bytes)?;
                Some(Answer {
                    to: answer.done,
                    value: answer.number,
                    ..answer
                })
            }),
            _ => self.right.serve(serve),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.right.wait(timeout)
    }
}
