//! The messages of PEs to each other by the bootstrap, once the job runs.

use std::fmt::Display;

use crate::gpu::stage_request::StageRequest;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender takes part in no collective call any more, for this reason.
    Disconnect(String),
    /// A request; the reply has this number.
    Request(u64, ControlRequest),
    /// The reply to the request of this number, or the reason why there is none.
    Reply(u64, Result<Vec<u8>, String>),
    /// A notice of the layer above: a number, and bytes that the engine does not read.
    Notice(u64, Vec<u8>),
    /// The sender ends, and has not finalized.
    Forgot,
}

/// A request of one PE to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRequest {
    /// Make the data that NICs have placed in your GPU's memory visible to it (M27).
    FlushGpu,
    /// Connect a lane of this transport with this endpoint, and reply with yours.
    Connect {
        /// The name of the transport.
        transport: String,
        /// The address of the requester's endpoint.
        endpoint: Vec<u8>,
    },
    /// Do your part of a staged transfer, or an atomic on your GPU's memory.
    Stage(StageRequest),
}

/// The most characters of a reason that a PE sends to another. A reason may quote that of a third PE.
const MAX_REASON: usize = 1000;

impl Message {
    /// The message that this PE takes part in no collective call any more, for this reason.
    pub fn disconnect(why: &dyn Display) -> Message {
        Message::Disconnect(why.to_string().chars().take(MAX_REASON).collect())
    }

    /// The bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let with = |kind: u8, number: u64, rest: &[&[u8]]| {
            let mut bytes = vec![kind];
            bytes.extend_from_slice(&number.to_le_bytes());
            rest.iter().for_each(|part| bytes.extend_from_slice(part));
            bytes
        };
        match self {
            Message::Disconnect(why) => with(0, 0, &[why.as_bytes()]),
            Message::Request(number, ControlRequest::FlushGpu) => with(1, *number, &[]),
            Message::Request(
                number,
                ControlRequest::Connect {
                    transport,
                    endpoint,
                },
            ) => {
                let len = (transport.len() as u32).to_le_bytes();
                with(2, *number, &[&len, transport.as_bytes(), endpoint])
            }
            Message::Request(number, ControlRequest::Stage(request)) => {
                with(5, *number, &[&request.to_bytes()])
            }
            Message::Reply(number, Ok(reply)) => with(3, *number, &[reply]),
            Message::Reply(number, Err(why)) => with(4, *number, &[why.as_bytes()]),
            Message::Forgot => with(7, 0, &[]),
            Message::Notice(number, bytes) => with(6, *number, &[bytes]),
        }
    }

    /// None for bytes that no version of this library sends.
    pub fn of_bytes(bytes: &[u8]) -> Option<Message> {
        let (kind, rest) = bytes.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match kind {
            0 => Some(Message::Disconnect(
                String::from_utf8_lossy(rest).into_owned(),
            )),
            1 => Some(Message::Request(number, ControlRequest::FlushGpu)),
            2 => {
                let (len, rest) = rest.split_first_chunk()?;
                let (name, endpoint) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
                let request = ControlRequest::Connect {
                    transport: String::from_utf8(name.to_vec()).ok()?,
                    endpoint: endpoint.to_vec(),
                };
                Some(Message::Request(number, request))
            }
            3 => Some(Message::Reply(number, Ok(rest.to_vec()))),
            4 => {
                let why = String::from_utf8_lossy(rest).into_owned();
                Some(Message::Reply(number, Err(why)))
            }
            5 => {
                let request = StageRequest::of_bytes(rest)?;
                Some(Message::Request(number, ControlRequest::Stage(request)))
            }
            6 => Some(Message::Notice(number, rest.to_vec())),
            7 => Some(Message::Forgot),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let connect = ControlRequest::Connect {
            transport: "weak(tiny)".into(),
            endpoint: vec![0, 255, 7],
        };
        for message in [
            Message::Disconnect("its lane has failed".into()),
            Message::Request(u64::MAX, ControlRequest::FlushGpu),
            Message::Request(9, connect),
            Message::Request(10, ControlRequest::Stage(StageRequest::Done)),
            Message::Reply(7, Ok(vec![1, 2])),
            Message::Reply(8, Err("no GPU".into())),
            Message::Notice(64, vec![3, 0, 255]),
            Message::Notice(u64::MAX, Vec::new()),
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
            let request = ControlRequest::Connect { transport: "tiny".into(), endpoint: vec![3] };
            let mut bytes = Message::Request(1, request).to_bytes();
            bytes.truncate(cut.min(16));
            prop_assert_eq!(Message::of_bytes(&bytes), None);
        }
    }
}
