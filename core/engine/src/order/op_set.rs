//! Kinds of operations in flight on a lane towards a PE, and whether the lane itself performs them before later
//! operations. Everything is derived from [`Guarantees`].

use oxshmem_transport::{Guarantees, MemoryKind};

/// A set of kinds of operations: puts and atomics, on host and on GPU memory, and active messages. It also says whether some
/// of the puts are [long](oxshmem_transport::Limits::ordered): those keep no order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpSet(u8);

/// A put (or put-with-signal), an atomic that changes its word, or a message by which the target's
/// CPU changes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A put, or the data of a put-with-signal.
    Put,
    /// An atomic that a lane performs.
    Atomic,
    /// An active message.
    Message,
}

impl OpSet {
    pub(crate) const NONE: OpSet = OpSet(0);
    /// Puts to memory of one kind.
    const PUT: u8 = 1;
    const ATOMIC: u8 = 2;
    /// Messages, which the target's CPU serves, on host memory alone.
    const MESSAGE: u8 = 16;
    /// Puts that keep no order, beside their kinds.
    const LONG: u8 = 32;

    /// The set of this one kind of operation.
    #[inline]
    pub fn of(op: OpKind, kind: MemoryKind) -> Self {
        let bit = match op {
            OpKind::Put => Self::PUT,
            OpKind::Atomic => Self::ATOMIC,
            OpKind::Message => return OpSet(Self::MESSAGE),
        };
        OpSet(bit << shift(kind))
    }

    /// A put, or the data of a put-with-signal, on memory of this kind. `is_long`: whether it keeps no order.
    #[inline]
    pub(crate) fn put(kind: MemoryKind, is_long: bool) -> Self {
        let long = if is_long { Self::LONG } else { 0 };
        OpSet(OpSet::of(OpKind::Put, kind).0 | long)
    }

    /// Whether there are puts in it that keep no order.
    pub(crate) fn has_long(self) -> bool {
        self.0 & Self::LONG != 0
    }

    /// The same, as if all of its puts kept their order.
    pub(crate) fn without_long(self) -> Self {
        OpSet(self.0 & !Self::LONG)
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn add(&mut self, other: OpSet) {
        self.0 |= other.0;
    }

    pub(crate) fn has(self, op: OpKind, kind: MemoryKind) -> bool {
        self.0 & OpSet::of(op, kind).0 != 0
    }

    /// Whether there are messages in it, and nothing else.
    pub(crate) fn only_messages(self) -> bool {
        self.0 == Self::MESSAGE
    }

    /// The pairs of operation kind and memory kind in it.
    fn pairs(self) -> impl Iterator<Item = (OpKind, MemoryKind)> {
        MemoryKind::ALL
            .into_iter()
            .flat_map(|kind| [(OpKind::Put, kind), (OpKind::Atomic, kind)])
            .chain([(OpKind::Message, MemoryKind::Host)])
            .filter(move |(op, kind)| self.has(*op, *kind))
    }
}

fn shift(kind: MemoryKind) -> u32 {
    match kind {
        MemoryKind::Host => 0,
        _ => 2,
    }
}

/// Whether a lane itself performs all of `earlier` before any of `later`, towards one PE. Between
/// kinds of memory it must promise the order for both. Long puts are before nothing and after nothing.
pub(crate) fn preserves_order(
    guarantees: impl Fn(MemoryKind) -> Guarantees,
    earlier: OpSet,
    later: OpSet,
) -> bool {
    let promised = |g: Guarantees, first: OpKind, second: OpKind| match (first, second) {
        (OpKind::Put, OpKind::Put) => g.put_put,
        (OpKind::Put, OpKind::Atomic) => g.put_atomic,
        (OpKind::Atomic, OpKind::Put) => g.atomic_put,
        (OpKind::Atomic, OpKind::Atomic) => g.atomic_atomic,
        (OpKind::Put, OpKind::Message) => g.put_message,
        // Messages to one PE are served in order by one thread; the time of that is not observable.
        (OpKind::Message, OpKind::Message) => true,
        (OpKind::Atomic, OpKind::Message) | (OpKind::Message, _) => false,
    };
    let has_long = earlier.has_long() || later.has_long();
    if has_long && !earlier.is_empty() && !later.is_empty() {
        return false;
    }
    earlier.pairs().all(|(first, at)| {
        later.pairs().all(|(second, to)| {
            promised(guarantees(at), first, second)
                && (at == to || promised(guarantees(to), first, second))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m17_a_lane_keeps_an_order_only_where_each_pair_is_promised() {
        let puts = OpSet::of(OpKind::Put, MemoryKind::Host);
        let atomics = OpSet::of(OpKind::Atomic, MemoryKind::Host);
        let mut both = puts;
        both.add(atomics);
        let ordered_puts = |_| Guarantees {
            put_put: true,
            ..Guarantees::NONE
        };
        assert!(preserves_order(ordered_puts, puts, puts));
        assert!(!preserves_order(ordered_puts, puts, atomics));
        assert!(!preserves_order(ordered_puts, atomics, puts));
        assert!(!preserves_order(ordered_puts, puts, both));
        assert!(!preserves_order(ordered_puts, both, puts));
        assert!(preserves_order(ordered_puts, OpSet::NONE, both));
        let rc = |_| Guarantees {
            put_put: true,
            put_atomic: true,
            atomic_put: true,
            atomic_atomic: true,
            put_message: false,
            ..Guarantees::NONE
        };
        assert!(preserves_order(rc, both, both));
    }

    #[test]
    fn m17_a_message_is_before_later_ones_and_before_nothing_else() {
        let puts = OpSet::of(OpKind::Put, MemoryKind::Host);
        let atomics = OpSet::of(OpKind::Atomic, MemoryKind::Host);
        let messages = OpSet::of(OpKind::Message, MemoryKind::Host);
        let all = |put_message| {
            move |_| Guarantees {
                put_put: true,
                put_atomic: true,
                atomic_put: true,
                atomic_atomic: true,
                put_message,
                ..Guarantees::NONE
            }
        };
        assert!(preserves_order(all(true), messages, messages));
        assert!(preserves_order(all(true), puts, messages));
        assert!(!preserves_order(all(false), puts, messages));
        assert!(!preserves_order(all(true), messages, puts));
        assert!(!preserves_order(all(true), messages, atomics));
        assert!(!preserves_order(all(true), atomics, messages));
        assert!(messages.only_messages());
        let mut both = messages;
        both.add(puts);
        assert!(!both.only_messages() && both.has(OpKind::Message, MemoryKind::Host));
    }

    #[test]
    fn m17_a_long_put_is_before_nothing_and_after_nothing() {
        let all = |_| Guarantees {
            put_put: true,
            put_fence_put: true,
            put_atomic: true,
            atomic_put: true,
            atomic_atomic: true,
            put_message: true,
            ..Guarantees::NONE
        };
        let (long, short) = (
            OpSet::put(MemoryKind::Host, true),
            OpSet::put(MemoryKind::Host, false),
        );
        let message = OpSet::of(OpKind::Message, MemoryKind::Host);
        assert!(preserves_order(all, short, short));
        for other in [short, long, message] {
            assert!(!preserves_order(all, long, other));
            assert!(!preserves_order(all, other, long));
        }
        assert!(preserves_order(all, long, OpSet::NONE) && preserves_order(all, OpSet::NONE, long));
        // It is a put all the same.
        assert!(long.has(OpKind::Put, MemoryKind::Host) && !long.only_messages());
    }

    #[test]
    fn m17_between_kinds_of_memory_both_must_promise() {
        let host = OpSet::of(OpKind::Put, MemoryKind::Host);
        let gpu = OpSet::of(OpKind::Put, MemoryKind::Cuda);
        let only = |which: MemoryKind| {
            move |kind: MemoryKind| Guarantees {
                put_put: kind == which,
                ..Guarantees::NONE
            }
        };
        assert!(preserves_order(only(MemoryKind::Host), host, host));
        assert!(!preserves_order(only(MemoryKind::Host), host, gpu));
        assert!(!preserves_order(only(MemoryKind::Cuda), host, gpu));
        assert!(!preserves_order(only(MemoryKind::Host), gpu, gpu));
    }
}
