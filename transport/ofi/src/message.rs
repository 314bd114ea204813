//! The messages between domains: a head of fixed size, and data behind it.

use oxshmem_transport::SignalOp;

use crate::bytes::Reader;

/// Bytes of a head: a multiple of 8, so that data behind it is as aligned as the buffer.
pub(crate) const HEAD: usize = 80;

const MAGIC: u16 = 0x0f1c;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Data for a region, and then the update of a signal.
    Put {
        region: u32,
        offset: u64,
        signal: Option<Signal>,
    },
    /// Several puts, which [`Record`]s name.
    Batch,
    /// A message to the inbox.
    Message,
    /// Nothing: it asks for an acknowledgement.
    Ping,
    /// Nothing but what its head acknowledges.
    Acknowledge,
    /// A question: the messages before it were sent. It has a number of its own kind.
    Question { number: u64 },
    /// The answer to it, whose head says what was served.
    Answer { number: u64 },
    /// The reply to a message: two words.
    Reply {
        region: u32,
        offset: u64,
        value: u64,
        number: u64,
    },
    /// The answer to a message of a PE whose connection has failed on this side.
    Ended,
    /// The answer to a put that leaves the registered memory of this side: the put, and all behind it, are not served.
    Refused { region: u32 },
}

/// The update of a signal word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub region: u32,
    pub offset: u64,
    pub op: SignalOp,
    pub value: u64,
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The sender.
    pub pe: u32,
    /// The receiver's number, by which it knows that the message is meant for it.
    pub nonce: u64,
    /// The number of the message towards this receiver, from 1 on; 0 for those that need no order.
    pub number: u64,
    /// The sender's lane; of a reply, the lane that the message came from.
    pub lane: u64,
    /// The number of the receiver's last message that the sender has served.
    pub served: u64,
    pub body: Body,
}

impl Body {
    /// Whether such messages are numbered, served in order and acknowledged.
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(
            self,
            Body::Put { .. } | Body::Batch | Body::Message | Body::Ping | Body::Reply { .. }
        )
    }

    /// Whether the receiver waits for such a message before it sends others: it may take the last slots.
    pub(crate) fn is_owed(&self) -> bool {
        !self.is_numbered() || matches!(self, Body::Reply { .. })
    }
}

impl Head {
    pub(crate) fn write(&self, to: &mut [u8; HEAD]) {
        let (kind, words): (u64, [u64; 5]) = match self.body {
            Body::Put {
                region,
                offset,
                signal: None,
            } => (0, [region.into(), offset, 0, 0, 0]),
            Body::Put {
                region,
                offset,
                signal: Some(signal),
            } => {
                let kind = match signal.op {
                    SignalOp::Set => 1,
                    SignalOp::Add => 2,
                };
                let word = u64::from(signal.region);
                (
                    kind,
                    [region.into(), offset, word, signal.offset, signal.value],
                )
            }
            Body::Message => (3, [0; 5]),
            Body::Ping => (4, [0; 5]),
            Body::Acknowledge => (5, [0; 5]),
            Body::Reply {
                region,
                offset,
                value,
                number,
            } => (6, [region.into(), offset, value, number, 0]),
            Body::Ended => (7, [0; 5]),
            Body::Refused { region } => (8, [region.into(), 0, 0, 0, 0]),
            Body::Batch => (9, [0; 5]),
            Body::Question { number } => (10, [number, 0, 0, 0, 0]),
            Body::Answer { number } => (11, [number, 0, 0, 0, 0]),
        };
        let first = u64::from(MAGIC) | kind << 16 | u64::from(self.pe) << 32;
        let head = [first, self.nonce, self.number, self.lane];
        let (places, _) = to.as_chunks_mut::<8>();
        for (place, word) in places
            .iter_mut()
            .zip(head.iter().chain(&words).chain(&[self.served]))
        {
            *place = word.to_le_bytes();
        }
    }

    /// The head of a message, and its data; none if it makes no sense.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Head, &[u8])> {
        let (head, data) = bytes.split_at_checked(HEAD)?;
        let mut reader = Reader(head);
        if reader.u16()? != MAGIC {
            return None;
        }
        let (kind, _, pe) = (reader.u8()?, reader.u8()?, reader.u32()?);
        let (nonce, number, lane) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (first, offset) = (reader.u64()?, reader.u64()?);
        let (third, fourth, fifth) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let served = reader.u64()?;
        let region = |word: u64| u32::try_from(word).ok();
        let signal = |op| {
            Some(Signal {
                region: region(third)?,
                offset: fourth,
                op,
                value: fifth,
            })
        };
        let put = |signal| {
            Some(Body::Put {
                region: region(first)?,
                offset,
                signal,
            })
        };
        let body = match kind {
            0 => put(None)?,
            1 => put(Some(signal(SignalOp::Set)?))?,
            2 => put(Some(signal(SignalOp::Add)?))?,
            3 => Body::Message,
            4 => Body::Ping,
            5 => Body::Acknowledge,
            6 => Body::Reply {
                region: region(first)?,
                offset,
                value: third,
                number: fourth,
            },
            7 => Body::Ended,
            8 => Body::Refused {
                region: region(first)?,
            },
            9 => Body::Batch,
            10 => Body::Question { number: first },
            11 => Body::Answer { number: first },
            _ => return None,
        };
        let head = Head {
            pe,
            nonce,
            number,
            lane,
            served,
            body,
        };
        Some((head, data))
    }
}

/// One put of a batch: its place, and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub region: u32,
    pub offset: u64,
    pub data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Bytes before the data of a record.
    const PLACE: usize = 16;

    /// Bytes of a record with so many of data: a multiple of 8, so that data is as aligned as the buffer.
    pub(crate) fn len(data: usize) -> usize {
        Self::PLACE + data.next_multiple_of(8)
    }

    /// Appends a record whose data of `len` bytes is still to be written. Gives where.
    pub(crate) fn push(to: &mut Vec<u8>, region: u32, offset: u64, len: u32) -> &mut [u8] {
        to.extend(region.to_le_bytes());
        to.extend(len.to_le_bytes());
        to.extend(offset.to_le_bytes());
        let at = to.len();
        to.resize(at + (len as usize).next_multiple_of(8), 0);
        to.get_mut(at..at + len as usize).unwrap_or_default()
    }

    /// The first record, and the bytes behind it; none if there is no whole one.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
        let (place, rest) = bytes.split_at_checked(Self::PLACE)?;
        let mut reader = Reader(place);
        let (region, len, offset) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let data = rest.get(..len as usize)?;
        let rest = rest.get((len as usize).next_multiple_of(8)..)?;
        Some((
            Record {
                region,
                offset,
                data,
            },
            rest,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signal() -> impl Strategy<Value = Option<Signal>> {
        let op = prop_oneof![Just(SignalOp::Set), Just(SignalOp::Add)];
        let some = (any::<u32>(), any::<u64>(), op, any::<u64>());
        proptest::option::of(some.prop_map(|(region, offset, op, value)| Signal {
            region,
            offset,
            op,
            value,
        }))
    }

    fn body() -> impl Strategy<Value = Body> {
        let put =
            (any::<u32>(), any::<u64>(), signal()).prop_map(|(region, offset, signal)| Body::Put {
                region,
                offset,
                signal,
            });
        let words = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>());
        let reply = words.prop_map(|(region, offset, value, number)| Body::Reply {
            region,
            offset,
            value,
            number,
        });
        let plain = prop_oneof![
            Just(Body::Message),
            Just(Body::Ping),
            Just(Body::Acknowledge),
            Just(Body::Batch),
            Just(Body::Ended)
        ];
        let refused = any::<u32>().prop_map(|region| Body::Refused { region });
        let question = any::<u64>().prop_map(|number| Body::Question { number });
        let answer = any::<u64>().prop_map(|number| Body::Answer { number });
        prop_oneof![put, reply, plain, refused, question, answer]
    }

    proptest! {
        #[test]
        fn a_head_is_read_as_it_was_written(
            pe in any::<u32>(), words in any::<[u64; 4]>(), body in body(), data in any::<[u8; 5]>(),
        ) {
            let [nonce, number, lane, served] = words;
            let head = Head { pe, nonce, number, lane, served, body };
            let mut bytes = [0; HEAD];
            head.write(&mut bytes);
            let message = [&bytes[..], &data].concat();
            prop_assert_eq!(Head::read(&message), Some((head, &data[..])));
        }

        #[test]
        fn records_are_read_as_they_were_written(
            puts in proptest::collection::vec(
                (any::<u32>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..9,
            ),
        ) {
            let mut bytes = Vec::new();
            let mut len = 0;
            for (region, offset, data) in &puts {
                Record::push(&mut bytes, *region, *offset, data.len() as u32).copy_from_slice(data);
                len += Record::len(data.len());
            }
            prop_assert_eq!(bytes.len(), len);
            let mut rest = &bytes[..];
            for (region, offset, data) in &puts {
                let (record, behind) = Record::read(rest).unwrap();
                prop_assert_eq!((record.region, record.offset), (*region, *offset));
                prop_assert_eq!(record.data, &data[..]);
                rest = behind;
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_records_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Record::read(&bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Head::read(&bytes);
        }
    }

    #[test]
    fn what_is_short_or_strange_is_refused() {
        let mut bytes = [0; HEAD];
        Head {
            pe: 0,
            nonce: 0,
            number: 0,
            lane: 0,
            served: 0,
            body: Body::Ping,
        }
        .write(&mut bytes);
        assert!(Head::read(&bytes[..HEAD - 1]).is_none());
        bytes[2] = 12;
        assert!(Head::read(&bytes).is_none());
    }
}
