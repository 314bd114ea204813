//! What is outstanding on a lane towards a PE, and whether the lane itself keeps it before what
//! follows. Everything is derived from [`Guarantees`].

use oxshmem_transport::{Guarantees, MemoryKind};

/// A set of kinds of operations: puts and atomics, on host and on GPU memory, and active messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u8);

/// A put (or put-with-signal), an atomic that changes its word, or a message that has the target's
/// CPU change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Put,
    Atomic,
    Message,
}

impl Classes {
    pub(crate) const NONE: Classes = Classes(0);
    /// Puts to memory of one kind.
    const PUT: u8 = 1;
    const ATOMIC: u8 = 2;
    /// Messages, which only host memory's CPU serves.
    const MESSAGE: u8 = 16;

    pub(crate) fn of(class: Class, kind: MemoryKind) -> Self {
        let bit = match class {
            Class::Put => Self::PUT,
            Class::Atomic => Self::ATOMIC,
            Class::Message => return Classes(Self::MESSAGE),
        };
        Classes(bit << shift(kind))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, other: Classes) {
        self.0 |= other.0;
    }

    pub(crate) fn has(self, class: Class, kind: MemoryKind) -> bool {
        self.0 & Classes::of(class, kind).0 != 0
    }

    /// Whether there are messages in it, and nothing else.
    pub(crate) fn only_messages(self) -> bool {
        self.0 == Self::MESSAGE
    }

    /// The (class, kind) pairs in it.
    fn pairs(self) -> impl Iterator<Item = (Class, MemoryKind)> {
        MemoryKind::ALL
            .into_iter()
            .flat_map(|kind| [(Class::Put, kind), (Class::Atomic, kind)])
            .chain([(Class::Message, MemoryKind::Host)])
            .filter(move |(class, kind)| self.has(*class, *kind))
    }
}

fn shift(kind: MemoryKind) -> u32 {
    match kind {
        MemoryKind::Host => 0,
        _ => 2,
    }
}

/// Whether a lane itself performs all of `earlier` before any of `later`, towards one PE. Between
/// kinds of memory it must promise the order for both.
pub(crate) fn keeps(
    guarantees: impl Fn(MemoryKind) -> Guarantees,
    earlier: Classes,
    later: Classes,
) -> bool {
    let promised = |g: Guarantees, first: Class, second: Class| match (first, second) {
        (Class::Put, Class::Put) => g.put_put,
        (Class::Put, Class::Atomic) => g.put_atomic,
        (Class::Atomic, Class::Put) => g.atomic_put,
        (Class::Atomic, Class::Atomic) => g.atomic_atomic,
        (Class::Put, Class::Message) => g.put_message,
        // One service takes them in their order; when it does, who else can tell?
        (Class::Message, Class::Message) => true,
        (Class::Atomic, Class::Message) | (Class::Message, _) => false,
    };
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
        let puts = Classes::of(Class::Put, MemoryKind::Host);
        let atomics = Classes::of(Class::Atomic, MemoryKind::Host);
        let mut both = puts;
        both.add(atomics);
        let ordered_puts = |_| Guarantees {
            put_put: true,
            ..Guarantees::NONE
        };
        assert!(keeps(ordered_puts, puts, puts));
        assert!(!keeps(ordered_puts, puts, atomics));
        assert!(!keeps(ordered_puts, atomics, puts));
        assert!(!keeps(ordered_puts, puts, both));
        assert!(!keeps(ordered_puts, both, puts));
        assert!(keeps(ordered_puts, Classes::NONE, both));
        let rc = |_| Guarantees {
            put_put: true,
            put_atomic: true,
            atomic_put: true,
            atomic_atomic: true,
            put_message: false,
            ..Guarantees::NONE
        };
        assert!(keeps(rc, both, both));
    }

    #[test]
    fn m17_a_message_is_before_later_ones_and_before_nothing_else() {
        let puts = Classes::of(Class::Put, MemoryKind::Host);
        let atomics = Classes::of(Class::Atomic, MemoryKind::Host);
        let messages = Classes::of(Class::Message, MemoryKind::Host);
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
        assert!(keeps(all(true), messages, messages));
        assert!(keeps(all(true), puts, messages));
        assert!(!keeps(all(false), puts, messages));
        assert!(!keeps(all(true), messages, puts));
        assert!(!keeps(all(true), messages, atomics));
        assert!(!keeps(all(true), atomics, messages));
        assert!(messages.only_messages());
        let mut both = messages;
        both.add(puts);
        assert!(!both.only_messages() && both.has(Class::Message, MemoryKind::Host));
    }

    #[test]
    fn m17_between_kinds_of_memory_both_must_promise() {
        let host = Classes::of(Class::Put, MemoryKind::Host);
        let gpu = Classes::of(Class::Put, MemoryKind::Cuda);
        let only = |which: MemoryKind| {
            move |kind: MemoryKind| Guarantees {
                put_put: kind == which,
                ..Guarantees::NONE
            }
        };
        assert!(keeps(only(MemoryKind::Host), host, host));
        assert!(!keeps(only(MemoryKind::Host), host, gpu));
        assert!(!keeps(only(MemoryKind::Cuda), host, gpu));
        assert!(!keeps(only(MemoryKind::Host), gpu, gpu));
    }
}
