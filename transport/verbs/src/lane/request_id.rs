//! The numbers by which completions name their requests.

use oxshmem_transport::Pe;

/// PEs of a job at most: their numbers share a word with those of queue pairs.
pub(crate) const MOST_PES: u32 = 1 << 24;

/// The name of a request, which its completion carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    pub(crate) pe: Pe,
    /// The queue pair towards that PE: 0 is the primary one.
    pub(crate) queue: u8,
    /// The request's number in its send queue.
    pub(crate) number: u32,
}

impl RequestId {
    /// The name of a request of the primary queue pair.
    #[inline]
    pub(crate) fn primary(pe: Pe, number: u32) -> RequestId {
        RequestId {
            pe,
            queue: 0,
            number,
        }
    }

    #[inline]
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.queue) << 56 | u64::from(self.pe.0) << 32 | u64::from(self.number)
    }

    #[inline]
    pub(crate) fn from_u64(id: u64) -> RequestId {
        RequestId {
            pe: Pe((id >> 32) as u32 & (MOST_PES - 1)),
            queue: (id >> 56) as u8,
            number: id as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_names_the_request_that_was_posted() {
        for (pe, queue, number) in [(0, 0, 0), (MOST_PES - 1, 64, u32::MAX), (7, 255, 1 << 31)] {
            let id = RequestId {
                pe: Pe(pe),
                queue,
                number,
            };
            assert_eq!(RequestId::from_u64(id.to_u64()), id);
        }
        assert_eq!(RequestId::primary(Pe(3), 5).to_u64(), 3 << 32 | 5);
    }
}
