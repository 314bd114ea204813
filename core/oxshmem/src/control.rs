//! What PEs tell and ask each other by the bootstrap once the job runs. It reaches a PE that makes no
//! call: the bootstrap's service answers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::gpu::StageRequest;
use crate::hang::{self, WaitedFor};
use crate::lock::Broken;
use crate::{Context, Error, Result};

/// How long a look for an answer sleeps.
const SLICE: Duration = Duration::from_millis(20);

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender takes part in no collective call any more.
    Disconnect,
    /// Answer with this number.
    Ask(u64, ControlRequest),
    /// The answer to the question of this number, or why there is none.
    Answer(u64, Result<Vec<u8>, String>),
    /// The lock at this offset is broken.
    LockBroken(u64, Broken),
    /// The sender ends, and has not finalized.
    Forgot,
}

/// What a PE is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlRequest {
    /// Make visible to your GPU what NICs have placed in its memory (M27).
    FlushGpu,
    /// Answer to this endpoint of a lane of this transport.
    Connect {
        transport: String,
        endpoint: Vec<u8>,
    },
    /// Do your part of a transfer by way of your host memory, or of an atomic on your GPU's.
    Stage(StageRequest),
}

impl Message {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let with = |kind: u8, number: u64, rest: &[&[u8]]| {
            let mut bytes = vec![kind];
            bytes.extend_from_slice(&number.to_le_bytes());
            rest.iter().for_each(|part| bytes.extend_from_slice(part));
            bytes
        };
        match self {
            Message::Disconnect => with(0, 0, &[]),
            Message::Ask(number, ControlRequest::FlushGpu) => with(1, *number, &[]),
            Message::Ask(
                number,
                ControlRequest::Connect {
                    transport,
                    endpoint,
                },
            ) => {
                let len = (transport.len() as u32).to_le_bytes();
                with(2, *number, &[&len, transport.as_bytes(), endpoint])
            }
            Message::Ask(number, ControlRequest::Stage(request)) => {
                with(5, *number, &[&request.to_bytes()])
            }
            Message::Answer(number, Ok(answer)) => with(3, *number, &[answer]),
            Message::Answer(number, Err(why)) => with(4, *number, &[why.as_bytes()]),
            Message::Forgot => with(7, 0, &[]),
            Message::LockBroken(offset, broken) => with(6, *offset, &[&broken.to_bytes()]),
        }
    }

    /// None for what no version of this library sends.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Message> {
        let (kind, rest) = bytes.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match kind {
            0 => Some(Message::Disconnect),
            1 => Some(Message::Ask(number, ControlRequest::FlushGpu)),
            2 => {
                let (len, rest) = rest.split_first_chunk()?;
                let (name, endpoint) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                let question = ControlRequest::Connect {
                    transport: String::from_utf8(name.to_vec()).ok()?,
                    endpoint: endpoint.to_vec(),
                };
                Some(Message::Ask(number, question))
            }
            3 => Some(Message::Answer(number, Ok(rest.to_vec()))),
            4 => {
                let why = String::from_utf8_lossy(rest).into_owned();
                Some(Message::Answer(number, Err(why)))
            }
            5 => {
                let request = StageRequest::of_bytes(rest)?;
                Some(Message::Ask(number, ControlRequest::Stage(request)))
            }
            6 => Some(Message::LockBroken(number, Broken::of_bytes(rest)?)),
            7 => Some(Message::Forgot),
            _ => None,
        }
    }
}

/// The questions that this PE has asked and that are not settled.
#[derive(Clone, Default)]
pub(crate) struct ControlRequests(Arc<Asked>);

#[derive(Default)]
struct Asked {
    state: Mutex<OpenRequests>,
    changed: Condvar,
}

/// What came back, or why nothing did.
type Answered = Result<Vec<u8>, String>;

#[derive(Default)]
struct OpenRequests {
    last: u64,
    /// Whom each question went to, and what came back.
    questions: HashMap<u64, (usize, Option<Answered>)>,
}

impl fmt::Debug for ControlRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}

impl ControlRequests {
    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer has come.
    pub(crate) fn answered(&self, from: usize, number: u64, answer: Result<Vec<u8>, String>) {
        // One to a question that was given up counts no more.
        if let Some((whom, slot)) = self.open().questions.get_mut(&number)
            && *whom == from
        {
            *slot = Some(answer);
            self.0.changed.notify_all();
        }
    }
}

/// A question that was asked. Dropped, it is given up.
#[must_use]
pub(crate) struct PendingCall<'w> {
    questions: &'w ControlRequests,
    pe: usize,
    number: u64,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.questions.open().questions.remove(&self.number);
    }
}

/// The bootstrap's error, in a call that needs a PE which is gone.
pub(crate) fn of_bootstrap(call: &'static str, error: oxshmem_bootstrap::Error) -> Error {
    match error {
        oxshmem_bootstrap::Error::PeerGone { rank, .. } => Error::PeerLost {
            call,
            pe: rank as usize,
        },
        other => other.into(),
    }
}

impl Context<'_> {
    /// Sends a message to a PE.
    pub(crate) fn send(&self, call: &'static str, to: usize, message: &Message) -> Result<()> {
        let sent = self.shared.bootstrap.send(to as u32, &message.to_bytes());
        sent.map_err(|error| of_bootstrap(call, error))
    }

    /// Asks a PE, and waits for its answer. It needs make no call for it, so that nothing simulated
    /// takes part in this wait. `what` tells what is waited for.
    pub(crate) fn call(
        &self,
        call: &'static str,
        pe: usize,
        question: ControlRequest,
        what: &str,
    ) -> Result<Vec<u8>> {
        let asked = self.begin_call(call, pe, question)?;
        self.await_reply(call, asked, what)
    }

    /// Asks a PE, whose answer [`answer_to`](Self::answer_to) then waits for.
    pub(crate) fn begin_call(
        &self,
        call: &'static str,
        pe: usize,
        question: ControlRequest,
    ) -> Result<PendingCall<'_>> {
        let questions = &self.shared.requests;
        let number = {
            let mut open = questions.open();
            open.last += 1;
            let number = open.last;
            open.questions.insert(number, (pe, None));
            number
        };
        let asked = PendingCall {
            questions,
            pe,
            number,
        };
        self.send(call, pe, &Message::Ask(number, question))?;
        Ok(asked)
    }

    /// Waits for the answer to what was asked.
    pub(crate) fn await_reply(
        &self,
        call: &'static str,
        asked: PendingCall<'_>,
        what: &str,
    ) -> Result<Vec<u8>> {
        self.await_answer(call, asked.pe, asked.number, what)
    }

    fn await_answer(
        &self,
        call: &'static str,
        pe: usize,
        number: u64,
        what: &str,
    ) -> Result<Vec<u8>> {
        let questions = &self.shared.requests;
        let mut wait = hang::Wait::new(&self.shared, call);
        let mut open = questions.open();
        loop {
            let slot = open.questions.get_mut(&number);
            if let Some(answer) = slot.and_then(|(_, answer)| answer.take()) {
                return answer.map_err(|why| Error::FailedElsewhere { call, pe, why });
            }
            if self.shared.liveness.is_lost(pe) {
                return Err(Error::PeerLost { call, pe });
            }
            wait.goes_on(&|| (WaitedFor::Lane(pe), what.into()))?;
            let waited = questions.0.changed.wait_timeout(open, SLICE);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let broken = |lost, why: &str| Broken {
            by: 0,
            lost,
            why: why.into(),
        };
        let connect = ControlRequest::Connect {
            transport: "weak(tiny)".into(),
            endpoint: vec![0, 255, 7],
        };
        for message in [
            Message::Disconnect,
            Message::Ask(u64::MAX, ControlRequest::FlushGpu),
            Message::Ask(9, connect),
            Message::Ask(10, ControlRequest::Stage(StageRequest::Done)),
            Message::Answer(7, Ok(vec![1, 2])),
            Message::Answer(8, Err("no GPU".into())),
            Message::LockBroken(64, broken(Some(3), "it died")),
            Message::LockBroken(u64::MAX, broken(None, "")),
        ] {
            assert_eq!(Message::of_bytes(&message.to_bytes()), Some(message));
        }
        assert_eq!(Message::of_bytes(b""), None);
        assert_eq!(Message::of_bytes(&[1, 2, 3]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(bytes: Vec<u8>) {
            if let Some(message) = Message::of_bytes(&bytes) {
                prop_assert!(Message::of_bytes(&message.to_bytes()).is_some());
            }
        }

        #[test]
        fn what_is_cut_off_within_a_name_is_no_message(cut in 0_usize..18) {
            let question = ControlRequest::Connect { transport: "tiny".into(), endpoint: vec![3] };
            let mut bytes = Message::Ask(1, question).to_bytes();
            bytes.truncate(cut.min(16));
            prop_assert_eq!(Message::of_bytes(&bytes), None);
        }
    }
}
