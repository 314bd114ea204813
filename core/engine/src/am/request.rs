//! The requests that active messages carry to a PE's progress thread.

use oxshmem_transport::{AtomicOp, AtomicRequest, Capabilities, Width};

/// A request to the progress thread of a PE.
#[derive(Clone, Copy, Debug)]
pub struct AmRequest {
    /// The work that is asked for.
    pub action: Action,
    /// The address of the reply in the sender's heap: the value, then the number.
    pub reply: u64,
    /// The number of the message, which the reply repeats.
    pub number: u64,
}

/// The work that a progress thread does for another PE.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// An atomic by this PE's CPU; the reply's value is the old value.
    Atomic {
        /// The operation.
        atomic: AtomicRequest,
        /// The word, in bytes from the start of the heap.
        offset: u64,
    },
    /// Make the data that NICs have placed in your GPU's memory visible to it (M27). The reply's value is one of
    /// [`FLUSHED`] and [`NOT_FLUSHED`].
    FlushGpu,
}

/// The reply's value if the GPU was flushed.
pub(crate) const FLUSHED: u64 = 0;
/// The reply's value if the GPU's flush failed.
pub(crate) const NOT_FLUSHED: u64 = 1;

/// The first byte of a request for a flush, where an atomic has its operation.
const FLUSH_GPU: u8 = u8::MAX;

impl AmRequest {
    pub(crate) const BYTES: usize = 48;

    /// Whether messages of a transport are long enough for a request.
    pub fn fits(capabilities: &Capabilities) -> bool {
        capabilities.message as usize >= Self::BYTES
    }

    /// The bytes of the message.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (kind, words) = match self.action {
            Action::Atomic { atomic, offset } => (
                [atomic.op as u8, atomic.width as u8, 0, 0, 0, 0, 0, 0],
                [offset, atomic.operand, atomic.compare],
            ),
            Action::FlushGpu => ([FLUSH_GPU, 0, 0, 0, 0, 0, 0, 0], [0; 3]),
        };
        let [offset, operand, compare] = words;
        let mut bytes = [0; Self::BYTES];
        let (words, _) = bytes.as_chunks_mut::<8>();
        let all = [
            u64::from_le_bytes(kind),
            offset,
            operand,
            compare,
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
        let rest: &[[u8; 8]; 5] = rest.try_into().ok()?;
        let [offset, operand, compare, reply, number] = rest.map(u64::from_le_bytes);
        let action = match *kind {
            [FLUSH_GPU, 0, 0, 0, 0, 0, 0, 0] if [offset, operand, compare] == [0; 3] => {
                Action::FlushGpu
            }
            [op, width, 0, 0, 0, 0, 0, 0] => Action::Atomic {
                atomic: AtomicRequest {
                    op: *AtomicOp::ALL.get(usize::from(op))?,
                    width: *Width::ALL.get(usize::from(width))?,
                    operand,
                    compare,
                },
                offset,
            },
            _ => return None,
        };
        Some(AmRequest {
            action,
            reply,
            number,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn request(action: Action) -> AmRequest {
        AmRequest {
            action,
            reply: 4096,
            number: 77,
        }
    }

    pub(in super::super) fn atomic(op: AtomicOp, width: Width, offset: u64) -> Action {
        Action::Atomic {
            atomic: AtomicRequest {
                op,
                width,
                operand: 5,
                compare: 0,
            },
            offset,
        }
    }

    #[test]
    fn requests_come_back_as_they_were_sent() {
        let ops = AtomicOp::ALL.into_iter();
        let atomics = ops.flat_map(|op| Width::ALL.map(|width| atomic(op, width, u64::MAX)));
        for action in atomics.chain([Action::FlushGpu]) {
            let bytes = request(action).to_bytes();
            let came = AmRequest::of_bytes(&bytes).unwrap();
            assert_eq!((came.reply, came.number), (4096, 77));
            assert_eq!(format!("{:?}", came.action), format!("{action:?}"));
            assert_eq!(came.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_flush_with_operands_is_no_request() {
        let bytes = request(Action::FlushGpu).to_bytes();
        for at in 1..32 {
            let mut other = bytes;
            other[at] = 1;
            assert!(AmRequest::of_bytes(&other).is_none(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(
            first in prop_oneof![0_u8..10, Just(FLUSH_GPU)],
            rest in proptest::collection::vec(prop_oneof![8 => Just(0_u8), 2 => 0_u8..10], 0..60),
        ) {
            let bytes: Vec<u8> = std::iter::once(first).chain(rest).collect();
            if let Some(request) = AmRequest::of_bytes(&bytes) {
                prop_assert_eq!(&request.to_bytes()[..], &bytes[..]);
            }
        }
    }
}
