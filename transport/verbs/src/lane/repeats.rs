//! Requests of queue pairs that have ended, as others carry them out.

use std::collections::VecDeque;

use super::batch::{LocalBuffer, Operation, SendRequest};
use super::long_operations::LongNumber;
use super::requester::NicPair;
use super::send_queue::{RequestKind, Sent};
use super::stripes::Repeat;

/// The requests of a lost queue pair that are to be posted again, in order, each with the operation of which it is the last
/// request of a part; `nics`: its NICs; `sink`: where reads go whose data nobody wants.
fn repeats_of(
    sent: impl IntoIterator<Item = (Sent, Option<LongNumber>)>,
    nics: NicPair,
    sink: *mut u8,
) -> impl Iterator<Item = Repeat> {
    let of = move |(mut sent, part_of): (Sent, Option<LongNumber>)| {
        sent.request.is_last = part_of.is_some();
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
    sent.into_iter().filter_map(of)
}

/// Those of a bulk queue pair with these parts.
pub(super) fn repeats(
    sent: Vec<Sent>,
    mut parts: VecDeque<LongNumber>,
    nics: NicPair,
    sink: *mut u8,
) -> Vec<Repeat> {
    let with_part = |sent: Sent| {
        let part_of = sent.request.is_last.then(|| parts.pop_front()).flatten();
        (sent, part_of)
    };
    repeats_of(sent.into_iter().map(with_part), nics, sink).collect()
}

/// The requests of a primary queue pair, the first of which has number `first`: those of its own operations, and the parts of
/// long ones, which are posted again behind a flush of their own. `parts`: the numbers of these parts' last requests.
pub(super) fn split_primary(
    sent: Vec<Sent>,
    first: u32,
    parts: &VecDeque<(u32, LongNumber)>,
    nics: NicPair,
    sink: *mut u8,
) -> (Vec<Sent>, Vec<Repeat>) {
    let (mut own, mut repeats, mut group) = (Vec::new(), Vec::new(), Vec::new());
    let numbers = (0..).map(|at| first.wrapping_add(at));
    for (number, sent) in numbers.zip(sent) {
        let known = parts.iter().find(|(last, _)| *last == number);
        let part_of = known.map(|(_, long)| *long);
        group.push((sent, part_of));
        if part_of.is_some() {
            repeats.extend(repeats_of(group.drain(..), nics, sink));
        } else if sent.request.is_last {
            own.extend(group.drain(..).map(|(sent, _)| sent));
        }
    }
    own.extend(group.into_iter().map(|(sent, _)| sent));
    (own, repeats)
}

/// A request as it is posted again. Barriers of the primary queue pair's own operations have nothing to hold back: no write of
/// theirs is in flight. `nothing`: what stands for these, and for all that moves no data.
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
    use super::super::send_queue::{Read, SendQueue, WorkRequest};
    use super::*;

    const NICS: NicPair = NicPair { here: 1, there: 2 };

    fn read(into: *mut u8) -> Read {
        Read {
            addr: 1,
            rkey: 2,
            lkey: 3,
            into,
        }
    }

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

    /// A get, a noop, a part and its flush: the part is not left to an empty write in the place of the flush's barrier.
    #[test]
    fn m19_parts_of_a_primary_queue_pair_are_flushed_anew() {
        let (mut buffers, mut queue) = ([0_u8; 16], SendQueue::new(16));
        let (sink, into) = (buffers.as_mut_ptr(), buffers.as_mut_ptr().wrapping_add(8));
        let mut long = LongOperations::default();
        let [put, flush] = [long.enter(0, None), long.enter(1, None)];
        let part_of_one = WorkRequest {
            is_last: false,
            bytes: 3,
            ..WorkRequest::PLAIN
        };
        let barrier = WorkRequest {
            kind: RequestKind::Barrier,
            ..part_of_one
        };
        queue.push_read(WorkRequest::PLAIN, read(into));
        queue.push(WorkRequest {
            bytes: 0,
            ..part_of_one
        });
        let part = queue.push_part(part_of_one, read(into));
        queue.push(barrier);
        let last = queue.push_read(part_of_one, read(sink));
        queue.push_read(WorkRequest::PLAIN, read(into));
        let parts = VecDeque::from([(part, put), (last, flush)]);
        let (own, repeats) = split_primary(queue.take_all(), part - 2, &parts, NICS, sink);
        let own: Vec<_> = own.iter().map(|sent| sent.request.kind).collect();
        assert_eq!(own, [RequestKind::Read, RequestKind::Read]);
        let [Repeat::Request(sent, of, NICS), Repeat::Flush(number)] = repeats[..] else {
            panic!("{repeats:?}");
        };
        assert_eq!((sent.request.kind, of), (RequestKind::Part, Some(put)));
        assert!(sent.request.is_last && number == flush);
    }
}
