//! The request of an atomic, as an active message carries it.

use oxshmem_transport::{AtomicOp, Width};

/// An atomic for the CPU of the PE that has the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmRequest {
    /// The operation.
    pub op: AtomicOp,
    /// The width of the word.
    pub width: Width,
    /// The word, in bytes from the start of the heap.
    pub offset: u64,
    /// The operand; of a compare-and-swap the new value.
    pub operand: u64,
    /// The value that a compare-and-swap compares with.
    pub compare: u64,
    /// The address of the reply in the sender's heap: the old value, then the number.
    pub reply: u64,
    /// The number of the message, which the reply repeats.
    pub number: u64,
}

impl AmRequest {
    pub(crate) const BYTES: usize = 48;

    /// The bytes of the message.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let kind = [self.op as u8, self.width as u8, 0, 0, 0, 0, 0, 0];
        let mut bytes = [0; Self::BYTES];
        let (words, _) = bytes.as_chunks_mut::<8>();
        let all = [
            u64::from_le_bytes(kind),
            self.offset,
            self.operand,
            self.compare,
            self.reply,
            self.number,
        ];
        for (to, word) in words.iter_mut().zip(all) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// None for bytes that no PE of this version sends.
    pub fn of_bytes(bytes: &[u8]) -> Option<AmRequest> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let [kind, rest @ ..] = words else {
            return None;
        };
        let [op, width, 0, 0, 0, 0, 0, 0] = *kind else {
            return None;
        };
        let mut rest = rest.iter().map(|word| u64::from_le_bytes(*word));
        let request = AmRequest {
            op: *AtomicOp::ALL.get(usize::from(op))?,
            width: *Width::ALL.get(usize::from(width))?,
            offset: rest.next()?,
            operand: rest.next()?,
            compare: rest.next()?,
            reply: rest.next()?,
            number: rest.next()?,
        };
        rest.next().is_none().then_some(request)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn request(op: AtomicOp, offset: u64) -> AmRequest {
        AmRequest {
            op,
            width: Width::W64,
            offset,
            operand: 5,
            compare: 0,
            reply: 4096,
            number: 77,
        }
    }

    #[test]
    fn requests_come_back_as_they_were_sent() {
        for op in AtomicOp::ALL {
            for width in Width::ALL {
                let sent = AmRequest {
                    width,
                    ..request(op, u64::MAX)
                };
                assert_eq!(AmRequest::of_bytes(&sent.to_bytes()), Some(sent));
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(bytes in proptest::collection::vec(0_u8..10, 0..60)) {
            if let Some(request) = AmRequest::of_bytes(&bytes) {
                prop_assert_eq!(&request.to_bytes()[..], &bytes[..]);
            }
        }
    }
}
