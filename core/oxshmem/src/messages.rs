//! What PEs tell each other by the bootstrap once the job runs. It reaches a PE that makes no call.

use crate::{Error, Result, World};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender takes part in no collective call any more.
    GaveUp,
    /// Make visible to your GPU what NICs have placed in its memory (M27), then answer with this
    /// number.
    FlushGpu(u64),
    /// Done; or why not, if there are words.
    Flushed(u64, String),
}

impl Message {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, number, words) = match self {
            Message::GaveUp => (0, 0, ""),
            Message::FlushGpu(number) => (1, *number, ""),
            Message::Flushed(number, why) => (2, *number, why.as_str()),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(words.as_bytes());
        bytes
    }

    /// None for what no version of this library sends.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Message> {
        let (kind, rest) = bytes.split_first()?;
        let (number, words) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match kind {
            0 => Some(Message::GaveUp),
            1 => Some(Message::FlushGpu(number)),
            2 => Some(Message::Flushed(
                number,
                String::from_utf8_lossy(words).into_owned(),
            )),
            _ => None,
        }
    }
}

impl World {
    /// Sends a message to a PE.
    pub(crate) fn send(&self, call: &'static str, to: usize, message: &Message) -> Result<()> {
        let sent = self.inner.bootstrap.send(to as u32, &message.to_bytes());
        sent.map_err(|error| match error {
            oxshmem_bootstrap::Error::PeerGone { .. } => Error::PeerLost { call, pe: to },
            other => other.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_come_back_as_they_were_sent() {
        for message in [
            Message::GaveUp,
            Message::FlushGpu(u64::MAX),
            Message::Flushed(7, String::new()),
            Message::Flushed(8, "no GPU".into()),
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
    }
}
