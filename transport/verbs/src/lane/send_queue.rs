//! The send queue of one queue pair: its outstanding work requests in order, each with the action
//! that its completion asks for.
//!
//! Work requests complete in the order posted, so one signaled request completes all before it.

use super::bounce_pool::Block;

/// The action for the data that a request has fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deliver {
    /// No data, or data that is in place already.
    Nothing,
    /// Copy as many bytes from the block.
    Bytes(*mut u8, u32),
    /// Store the block's word.
    Word(*mut u64),
}

/// The kind of a work request, as it counts for a connection that is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A write or an atomic. A write without bytes changes nothing.
    Update,
    Read,
    /// A write of a part of a long put: it may be written again.
    Part,
    /// An atomic that changes nothing.
    Barrier,
    Message,
}

/// The two sides of a read, or of a part of a long put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
    pub(crate) lkey: u32,
    pub(crate) into: *mut u8,
}

impl Read {
    const NONE: Read = Read {
        addr: 0,
        rkey: 0,
        lkey: 0,
        into: std::ptr::null_mut(),
    };
}

/// One outstanding work request, with all that is needed to post it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) request: WorkRequest,
    /// Of a read or a part.
    pub(crate) read: Read,
}

impl Sent {
    /// Whether it may access memory that is not the lane's, whose reads without a taker go to `sink`. Requests with more than a word of
    /// inline data do not, and count as if they did.
    pub(crate) fn is_in_place(&self, sink: *mut u8) -> bool {
        let is_foreign = match self.request.kind {
            RequestKind::Read => self.read.into != sink,
            RequestKind::Part => true,
            RequestKind::Update | RequestKind::Message => self.request.bytes > 8,
            RequestKind::Barrier => false,
        };
        is_foreign && self.request.block.is_none() && self.request.bytes > 0
    }
}

/// One outstanding work request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkRequest {
    pub(crate) deliver: Deliver,
    pub(crate) block: Option<Block>,
    /// Whether it is the last request of its operation.
    pub(crate) is_last: bool,
    /// Bytes that it moves.
    pub(crate) bytes: u32,
    pub(crate) kind: RequestKind,
}

impl WorkRequest {
    /// Whether it does no harm to perform it twice.
    pub(crate) fn may_be_repeated(&self) -> bool {
        match self.kind {
            RequestKind::Update => self.bytes == 0,
            RequestKind::Read | RequestKind::Part | RequestKind::Barrier => true,
            RequestKind::Message => false,
        }
    }

    /// The last request of an operation that fetches nothing.
    pub(crate) const PLAIN: WorkRequest = WorkRequest {
        deliver: Deliver::Nothing,
        block: None,
        is_last: true,
        bytes: 0,
        kind: RequestKind::Update,
    };
}

/// A ring of outstanding requests. Request `n` lies at `n` modulo its length, a power of two.
#[derive(Debug)]
pub(crate) struct SendQueue {
    requests: Box<[WorkRequest]>,
    /// The two sides of the reads and parts among them, at the same places; empty before the first.
    reads: Box<[Read]>,
    /// The queue pair's depth.
    capacity: u32,
    /// The next request's number. Numbers wrap.
    head: u32,
    /// The number of the oldest outstanding request.
    tail: u32,
    /// One more than the number of the last signaled request.
    signaled: u32,
    /// Bytes that all outstanding requests move.
    bytes: u64,
    /// Bytes that the requests after the last signaled one move.
    unsignaled_bytes: u64,
}

impl SendQueue {
    pub(crate) fn new(capacity: u32) -> SendQueue {
        let requests = vec![WorkRequest::PLAIN; capacity.next_power_of_two() as usize];
        SendQueue {
            requests: requests.into(),
            reads: Box::default(),
            capacity,
            head: 0,
            tail: 0,
            signaled: 0,
            bytes: 0,
            unsignaled_bytes: 0,
        }
    }

    #[inline]
    fn index(&self, number: u32) -> usize {
        number as usize & (self.requests.len() - 1)
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.head.wrapping_sub(self.tail)
    }

    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.capacity - self.outstanding()
    }

    /// Requests that it holds.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The number of the oldest outstanding request, or of the next one.
    #[inline]
    pub(crate) fn oldest(&self) -> u32 {
        self.tail
    }

    /// The number of the request entered last.
    #[inline]
    pub(crate) fn newest(&self) -> u32 {
        self.head.wrapping_sub(1)
    }

    /// The number of requests entered since the one of this number.
    #[inline]
    pub(crate) fn since(&self, number: u32) -> u32 {
        self.newest().wrapping_sub(number)
    }

    /// Bytes in flight.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether request `number` is outstanding.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        number.wrapping_sub(self.tail) < self.outstanding()
    }

    /// Enters a request; gives its number. At least one must be [free](Self::free).
    #[inline]
    pub(crate) fn push(&mut self, request: WorkRequest) -> u32 {
        debug_assert!(self.free() > 0);
        let number = self.head;
        let index = self.index(number);
        self.requests[index] = request;
        self.bytes += u64::from(request.bytes);
        self.unsignaled_bytes += u64::from(request.bytes);
        self.head = number.wrapping_add(1);
        number
    }

    /// The request entered last completes no operation by itself: it is a part of one.
    pub(crate) fn make_last_a_part(&mut self) {
        let index = self.index(self.newest());
        self.requests[index].is_last = false;
    }

    /// [Enters](Self::push) a read.
    #[inline]
    pub(crate) fn push_read(&mut self, request: WorkRequest, read: Read) -> u32 {
        let kind = RequestKind::Read;
        self.push_with_sides(WorkRequest { kind, ..request }, read)
    }

    /// [Enters](Self::push) a part of a long put.
    pub(crate) fn push_part(&mut self, request: WorkRequest, sides: Read) -> u32 {
        let kind = RequestKind::Part;
        self.push_with_sides(WorkRequest { kind, ..request }, sides)
    }

    #[inline]
    fn push_with_sides(&mut self, request: WorkRequest, read: Read) -> u32 {
        let number = self.push(request);
        let index = self.index(number);
        match self.reads.get_mut(index) {
            Some(place) => *place = read,
            None => self.note_first_read(index, read),
        }
        number
    }

    #[cold]
    fn note_first_read(&mut self, index: usize, read: Read) {
        self.reads = vec![Read::NONE; self.requests.len()].into();
        self.reads[index] = read;
    }

    /// [Enters](Self::push) a request that another queue pair has not carried out.
    pub(crate) fn enter(&mut self, sent: Sent) -> u32 {
        match sent.request.kind {
            RequestKind::Read | RequestKind::Part => self.push_with_sides(sent.request, sent.read),
            _ => self.push(sent.request),
        }
    }

    /// The outstanding requests, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sent> {
        (0..self.outstanding()).map(|at| {
            let index = self.index(self.tail.wrapping_add(at));
            Sent {
                request: self.requests[index],
                read: self.reads.get(index).copied().unwrap_or(Read::NONE),
            }
        })
    }

    /// The number of unsignaled requests after the last signaled one.
    #[inline]
    pub(crate) fn unsignaled(&self) -> u32 {
        self.head.wrapping_sub(self.signaled)
    }

    /// Bytes that those move.
    #[inline]
    pub(crate) fn unsignaled_bytes(&self) -> u64 {
        self.unsignaled_bytes
    }

    /// Notes that the last request entered is signaled.
    #[inline]
    pub(crate) fn mark_signaled(&mut self) {
        self.signaled = self.head;
        self.unsignaled_bytes = 0;
    }

    /// Whether a signaled request is outstanding, so that a completion will arrive.
    #[inline]
    pub(crate) fn expects_completion(&self) -> bool {
        self.outstanding() > self.unsignaled()
    }

    /// The number of outstanding requests up to `number`, itself included; 0 if it is not outstanding.
    #[inline]
    pub(crate) fn count_up_to(&self, number: u32) -> u32 {
        let more = number.wrapping_sub(self.tail);
        if more < self.outstanding() {
            more + 1
        } else {
            0
        }
    }

    /// Removes the oldest request, if there is one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&WorkRequest> {
        if self.outstanding() == 0 {
            return None;
        }
        let index = self.index(self.tail);
        let request = self.requests.get(index)?;
        self.tail = self.tail.wrapping_add(1);
        self.bytes -= u64::from(request.bytes);
        Some(request)
    }

    /// Removes all requests, which another queue pair is to carry out. Gives them in order.
    pub(crate) fn take_all(&mut self) -> Vec<Sent> {
        let all = self.iter().collect();
        self.drain().for_each(drop);
        all
    }

    /// Removes all requests, once their queue pair is destroyed.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = WorkRequest> {
        std::iter::from_fn(|| self.pop().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue whose numbers are about to wrap.
    fn queue(capacity: u32) -> SendQueue {
        let mut queue = SendQueue::new(capacity);
        (queue.head, queue.tail, queue.signaled) = (u32::MAX - 1, u32::MAX - 1, u32::MAX - 1);
        queue
    }

    fn numbered(number: u32) -> WorkRequest {
        WorkRequest {
            deliver: Deliver::Bytes(std::ptr::null_mut(), number),
            ..WorkRequest::PLAIN
        }
    }

    fn number(request: WorkRequest) -> u32 {
        match request.deliver {
            Deliver::Bytes(_, number) => number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_completion_retires_all_before_it_in_order() {
        let mut queue = queue(6);
        let numbers: Vec<u32> = (0..6).map(|n| queue.push(numbered(n))).collect();
        assert_eq!(queue.free(), 0);
        let upto = numbers[3];
        let count = queue.count_up_to(upto);
        let retired: Vec<u32> = (0..count)
            .filter_map(|_| queue.pop().copied().map(number))
            .collect();
        assert_eq!(retired, [0, 1, 2, 3]);
        assert_eq!((queue.outstanding(), queue.free()), (2, 4));
        assert!(!queue.contains(upto) && queue.contains(numbers[4]));
        assert_eq!(queue.count_up_to(upto), 0, "completed twice");
        let left: Vec<u32> = queue.drain().map(number).collect();
        assert_eq!(left, [4, 5]);
        assert_eq!(queue.free(), 6);
    }

    #[test]
    fn requests_after_the_last_signaled_one_are_counted() {
        let mut queue = queue(6);
        let long = WorkRequest {
            bytes: 100,
            ..WorkRequest::PLAIN
        };
        queue.push(long);
        assert!(!queue.expects_completion() && queue.unsignaled_bytes() == 100);
        let signaled = queue.push(long);
        queue.mark_signaled();
        assert_eq!((queue.unsignaled_bytes(), queue.bytes()), (0, 200));
        assert!(queue.expects_completion() && queue.unsignaled() == 0);
        queue.push(WorkRequest::PLAIN);
        assert!(queue.expects_completion() && queue.unsignaled() == 1);
        for _ in 0..queue.count_up_to(signaled) {
            queue.pop();
        }
        assert!(!queue.expects_completion() && queue.unsignaled() == 1 && queue.outstanding() == 1);
    }

    #[test]
    fn outstanding_requests_are_given_in_order_with_both_sides_of_reads() {
        let mut queue = queue(6);
        let read = |addr| Read { addr, ..Read::NONE };
        queue.push(numbered(0));
        for addr in 1..4 {
            queue.push_read(numbered(addr as u32), read(addr));
        }
        queue.pop();
        let sent: Vec<_> = queue.iter().collect();
        let kinds = sent.iter().map(|sent| sent.request.kind);
        assert!(kinds.eq([RequestKind::Read; 3]));
        let addresses: Vec<u64> = sent.iter().map(|sent| sent.read.addr).collect();
        assert_eq!(addresses, [1, 2, 3]);
        // The next queue pair carries them out with numbers of its own.
        let mut next = SendQueue::new(6);
        let numbers: Vec<u32> = sent.iter().map(|sent| next.enter(*sent)).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let again: Vec<u64> = next.iter().map(|sent| sent.read.addr).collect();
        assert_eq!(again, addresses);
    }

    #[test]
    fn reads_and_what_changes_nothing_may_be_repeated() {
        let of = |kind, bytes| WorkRequest {
            kind,
            bytes,
            ..WorkRequest::PLAIN
        };
        assert!(of(RequestKind::Read, 8).may_be_repeated());
        assert!(of(RequestKind::Barrier, 8).may_be_repeated());
        assert!(of(RequestKind::Part, 8).may_be_repeated());
        assert!(of(RequestKind::Update, 0).may_be_repeated());
        assert!(!of(RequestKind::Update, 8).may_be_repeated());
        assert!(!of(RequestKind::Message, 0).may_be_repeated());
    }

    #[test]
    fn the_kind_of_a_request_takes_no_room() {
        assert!(size_of::<WorkRequest>() <= 40);
    }
}
