//! Requests of queue pairs that have ended, as others carry them out.

use std::collections::VecDeque;

use super::batch::{LocalBuffer, Operation, SendRequest};
use super::long_operations::LongNumber;
use super::requester::NicPair;
use super::send_queue::{RequestKind, Sent};
use super::stripes::Repeat;

/// The requests of a lost queue pair that are to be posted again, in order; `nics`: its NICs; `sink`: where reads go whose data nobody wants.
pub(super) fn repeats(
    sent: Vec<Sent>,
    mut parts: VecDeque<LongNumber>,
    nics: NicPair,
    sink: *mut u8,
) -> Vec<Repeat> {
    let mut of = |sent: Sent| {
        let part_of = sent.request.is_last.then(|| parts.pop_front()).flatten();
        let moves_data = match sent.request.kind {
            RequestKind::Part => true,
            RequestKind::Read => sent.read.into != sink,
            RequestKind::Update | RequestKind::Barrier | RequestKind::Message => false,
        };
        match (moves_data, part_of) {
            (true, _) => Some(Repeat::Request(sent, part_of, nics)),
            // Of the requests of a flush the last one stands for all.
            (false, Some(number)) => Some(Repeat::Flush(number)),
            (false, None) => None,
        }
    };
    sent.into_iter().filter_map(&mut of).collect()
}

/// A request as it is posted again. Barriers have nothing to hold back: no write is in flight. `nothing`: what stands for
/// these, and for all that moves no data.
pub(super) fn repeated(sent: &Sent, nothing: Operation) -> SendRequest {
    let (operation, local) = match sent.request.kind {
        RequestKind::Part => {
            let (to, len) = (sent.read, sent.request.bytes);
            (
                Operation::Write(to.addr, to.rkey),
                LocalBuffer::Registered(to.into, len, to.lkey),
            )
        }
        RequestKind::Read => {
            let (read, len) = (sent.read, sent.request.bytes);
            (
                Operation::Read(read.addr, read.rkey),
                LocalBuffer::Registered(read.into, len, read.lkey),
            )
        }
        _ => (nothing, LocalBuffer::Empty),
    };
    SendRequest {
        operation,
        local,
        is_fenced: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::long_operations::LongOperations;
    use super::super::send_queue::{SendQueue, WorkRequest};
    use super::*;

    const NICS: NicPair = NicPair { here: 1, there: 2 };

    #[test]
    fn data_is_moved_again_in_order_and_a_flush_is_made_anew() {
        let (mut buffers, mut queue) = ([0_u8; 16], SendQueue::new(16));
        let (sink, into) = (buffers.as_mut_ptr(), buffers.as_mut_ptr().wrapping_add(8));
        let mut long = LongOperations::default();
        let numbers = [
            long.enter(0, None),
            long.enter(1, None),
            long.enter(2, None),
        ];
        let first = WorkRequest {
            is_last: false,
            bytes: 3,
            ..WorkRequest::PLAIN
        };
        let read = |into| super::super::send_queue::Read {
            addr: 1,
            rkey: 2,
            lkey: 3,
            into,
        };
        // A put whose head is a request of its own, an empty write, a get, a flush of two requests.
        queue.push_part(first, read(into));
        queue.push_part(WorkRequest::PLAIN, read(into));
        queue.push(first);
        queue.push_read(WorkRequest::PLAIN, read(into));
        queue.push(WorkRequest {
            kind: RequestKind::Barrier,
            ..first
        });
        queue.push_read(WorkRequest::PLAIN, read(sink));
        let all = repeats(queue.take_all(), numbers.into(), NICS, sink);
        assert_eq!(queue.outstanding(), 0);
        let told: Vec<_> = all
            .iter()
            .map(|repeat| match repeat {
                Repeat::Request(sent, of, NICS) => (Some(sent.request.kind), *of),
                Repeat::Request(_, _, other) => panic!("{other:?}"),
                Repeat::Flush(of) => (None, Some(*of)),
                Repeat::Probe => panic!("none was lost"),
            })
            .collect();
        let (part, read) = (Some(RequestKind::Part), Some(RequestKind::Read));
        let [one, two, three] = numbers.map(Some);
        assert_eq!(
            told,
            [(part, None), (part, one), (read, two), (None, three)]
        );
    }
}
