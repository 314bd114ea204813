//! The decision of a fence about one endpoint and one PE (M17): a pure function of the operations in flight,
//! the endpoint's guarantees, and the paths to that PE.
//!
//! An order that the lane itself preserves before everything that may follow costs nothing. Little does an order that it
//! preserves once it was [told](oxshmem_transport::Lane::fence) of the fence. An order that it
//! preserves before its own later operations only is made now if this PE's CPU may store to the same PE,
//! and else when another endpoint is next used for it. A long operation, which keeps no order on its own endpoint, counts as
//! one on another.

use oxshmem_transport::{Guarantees, MemoryKind};

use crate::order::fence_site::FenceSite;
use crate::order::op_set::{OpKind, OpSet, preserves_order};
use crate::route::path::{Path, PeerPaths};

/// One endpoint and one PE as a fence sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FenceInput<'a> {
    /// The updates in flight there that the fence orders.
    pub to_order: OpSet,
    /// The index of the endpoint's transport.
    pub transport: usize,
    /// The paths to the PE.
    pub paths: &'a PeerPaths,
    /// Whether later operations of the endpoint may be long: they keep no order with those before them.
    pub long_may_follow: bool,
    /// Whether the PE is this one.
    pub is_own: bool,
    /// Whether this PE's CPU stores to memory that transports have mapped: not in checked mode.
    pub stores_to_mapped: bool,
}

/// The order that a fence needs towards a PE, with its site for the mutation check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceAction {
    /// A flush of the endpoint, now.
    Flush(FenceSite),
    /// None now.
    Preserved(Preserved),
}

/// The steps by which an order is preserved without a flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preserved {
    /// A [fence](oxshmem_transport::Lane::fence) of the lane, which orders its own puts.
    pub by_lane: Option<FenceSite>,
    /// A flush of the endpoint before the next long operation and the next one on another endpoint: the endpoint is marked as
    /// fenced.
    pub by_later_flush: Option<FenceSite>,
}

impl FenceAction {
    /// Preserved already.
    pub(crate) const NOTHING: FenceAction = FenceAction::Preserved(Preserved {
        by_lane: None,
        by_later_flush: None,
    });
}

/// The action of a fence for one endpoint, whose transport gives these guarantees, and one PE.
pub(crate) fn fence_plan(
    input: FenceInput<'_>,
    guarantees: impl Fn(MemoryKind) -> Guarantees,
) -> FenceAction {
    if input.to_order.is_empty() {
        return FenceAction::NOTHING;
    }
    let may_follow = input.may_follow();
    let preserved = preserves_order(&guarantees, input.to_order, may_follow);
    let with_fence = |kind| guarantees(kind).with_fence();
    if !preserved && !preserves_order(with_fence, input.to_order, may_follow) {
        let short = input.to_order.without_long();
        let site = match preserves_order(with_fence, short, may_follow) {
            true => FenceSite::FenceLong,
            false => FenceSite::FenceLane,
        };
        return FenceAction::Flush(site);
    }
    if input.cpu_may_store() {
        return FenceAction::Flush(FenceSite::FenceOtherPath);
    }
    let others = input.long_may_follow || input.other_transport_may_follow();
    FenceAction::Preserved(Preserved {
        by_lane: (!preserved).then_some(FenceSite::FenceLane),
        by_later_flush: others.then_some(FenceSite::FenceOtherPath),
    })
}

impl FenceInput<'_> {
    /// The later operations to the PE that may take this endpoint.
    fn may_follow(&self) -> OpSet {
        let takes_this = |path: Path| path.transport() == Some(self.transport);
        let mut ops = OpSet::NONE;
        for kind in MemoryKind::ALL {
            if takes_this(self.paths.copies(kind)) {
                ops.add(OpSet::of(OpKind::Put, kind));
            }
            let atomics = self.paths.atomics(kind);
            if takes_this(atomics) {
                let op = match atomics {
                    Path::Message(_) => OpKind::Message,
                    _ => OpKind::Atomic,
                };
                ops.add(OpSet::of(op, kind));
            }
        }
        if takes_this(self.paths.nic) {
            ops.add(OpSet::of(OpKind::Atomic, MemoryKind::Host));
        }
        ops
    }

    /// Whether this PE's CPU may store to the PE's memory. It stores to its own whatever a lane could do.
    fn cpu_may_store(&self) -> bool {
        let by_cpu =
            |path: &Path| path.is_mapped() && (self.stores_to_mapped || path.transport().is_none());
        let own = self.is_own && self.paths.host != Path::None;
        own || self.paths.each().iter().any(by_cpu)
    }

    /// Whether later operations to the PE may take another transport, or none.
    fn other_transport_may_follow(&self) -> bool {
        let other = |path: &Path| *path != Path::None && path.transport() != Some(self.transport);
        self.paths.each().iter().any(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flush before another endpoint is used.
    const LATER_FLUSH: FenceAction = FenceAction::Preserved(Preserved {
        by_lane: None,
        by_later_flush: Some(FenceSite::FenceOtherPath),
    });

    /// The endpoint of all tests is that of transport 0.
    const LANE: Path = Path::Lane(0);

    fn puts() -> OpSet {
        OpSet::of(OpKind::Put, MemoryKind::Host)
    }

    fn by_lane() -> PeerPaths {
        PeerPaths {
            host: LANE,
            host_atomics: LANE,
            ..PeerPaths::NONE
        }
    }

    fn input(to_order: OpSet, paths: &PeerPaths) -> FenceInput<'_> {
        FenceInput {
            to_order,
            transport: 0,
            paths,
            long_may_follow: false,
            is_own: false,
            stores_to_mapped: true,
        }
    }

    fn ordered(_: MemoryKind) -> Guarantees {
        Guarantees {
            put_put: true,
            put_atomic: true,
            atomic_put: true,
            atomic_atomic: true,
            put_message: true,
            ..Guarantees::NONE
        }
    }

    fn unordered(_: MemoryKind) -> Guarantees {
        Guarantees::NONE
    }

    #[test]
    fn m17_nothing_to_order_needs_nothing() {
        let paths = by_lane();
        let plan = fence_plan(input(OpSet::NONE, &paths), unordered);
        assert_eq!(plan, FenceAction::NOTHING);
    }

    #[test]
    fn m17_a_lane_that_preserves_the_order_of_all_that_may_follow_is_not_flushed() {
        let paths = by_lane();
        let plan = fence_plan(input(puts(), &paths), ordered);
        assert_eq!(plan, FenceAction::NOTHING);
    }

    #[test]
    fn m17_a_lane_that_preserves_no_order_is_flushed() {
        let paths = by_lane();
        let plan = fence_plan(input(puts(), &paths), unordered);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
    }

    #[test]
    fn m17_one_pair_that_is_not_preserved_is_enough_for_a_flush() {
        let puts_only = |_| Guarantees {
            put_put: true,
            ..Guarantees::NONE
        };
        let paths = by_lane();
        let plan = fence_plan(input(puts(), &paths), puts_only);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
        // Atomics that cannot take the lane need no order on it.
        let paths = PeerPaths {
            host_atomics: Path::None,
            ..by_lane()
        };
        let plan = fence_plan(input(puts(), &paths), puts_only);
        assert_eq!(plan, FenceAction::NOTHING);
    }

    fn after_a_fence(_: MemoryKind) -> Guarantees {
        Guarantees {
            put_fence_put: true,
            put_atomic: true,
            ..Guarantees::NONE
        }
    }

    #[test]
    fn m17_a_lane_that_orders_puts_by_its_own_fence_is_told_and_not_flushed() {
        let paths = by_lane();
        let told = Preserved {
            by_lane: Some(FenceSite::FenceLane),
            by_later_flush: None,
        };
        let plan = fence_plan(input(puts(), &paths), after_a_fence);
        assert_eq!(plan, FenceAction::Preserved(told));
        // An atomic before puts is none of its promises.
        let atomics = OpSet::of(OpKind::Atomic, MemoryKind::Host);
        let plan = fence_plan(input(atomics, &paths), after_a_fence);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
        // The lane knows nothing of other paths.
        let paths = PeerPaths {
            gpu: Path::Staged,
            ..by_lane()
        };
        let both = Preserved {
            by_later_flush: Some(FenceSite::FenceOtherPath),
            ..told
        };
        let plan = fence_plan(input(puts(), &paths), after_a_fence);
        assert_eq!(plan, FenceAction::Preserved(both));
        let paths = PeerPaths {
            host_atomics: Path::Mapped(1),
            ..by_lane()
        };
        let plan = fence_plan(input(puts(), &paths), after_a_fence);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceOtherPath));
    }

    #[test]
    fn m17_another_transport_that_leads_there_marks_the_endpoint_as_fenced() {
        for paths in [
            PeerPaths {
                host_atomics: Path::Lane(1),
                ..by_lane()
            },
            PeerPaths {
                gpu: Path::Staged,
                ..by_lane()
            },
        ] {
            let plan = fence_plan(input(puts(), &paths), ordered);
            assert_eq!(plan, LATER_FLUSH);
        }
    }

    #[test]
    fn m17_long_operations_are_flushed_and_flush_what_a_fence_has_put_before_them() {
        let paths = by_lane();
        let long = FenceInput {
            long_may_follow: true,
            ..input(OpSet::put(MemoryKind::Host, true), &paths)
        };
        for guarantees in [ordered, after_a_fence] {
            let plan = fence_plan(long, guarantees);
            assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLong));
        }
        let plan = fence_plan(long, |_| Guarantees::NONE);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
        // Short ones cost nothing until a long one follows.
        let short = FenceInput {
            to_order: puts(),
            ..long
        };
        assert_eq!(fence_plan(short, ordered), LATER_FLUSH);
    }

    #[test]
    fn m17_a_store_of_this_cpu_that_may_follow_needs_a_flush_now() {
        let paths = PeerPaths {
            host_atomics: Path::Mapped(1),
            ..by_lane()
        };
        let mapped = input(puts(), &paths);
        let plan = fence_plan(mapped, ordered);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceOtherPath));
        // In checked mode the CPU stores to nothing that a transport has mapped.
        let checked = FenceInput {
            stores_to_mapped: false,
            ..mapped
        };
        let plan = fence_plan(checked, ordered);
        assert_eq!(plan, LATER_FLUSH);
    }

    #[test]
    fn m17_this_pes_own_memory_is_its_cpus_whatever_a_lane_could_do() {
        let paths = by_lane();
        let own = FenceInput {
            is_own: true,
            stores_to_mapped: false,
            ..input(puts(), &paths)
        };
        let plan = fence_plan(own, ordered);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceOtherPath));
    }

    #[test]
    fn m17_messages_after_puts_need_the_promise_for_messages() {
        let paths = PeerPaths {
            host_atomics: Path::Message(0),
            ..by_lane()
        };
        let promised = fence_plan(input(puts(), &paths), ordered);
        assert_eq!(promised, FenceAction::NOTHING);
        let not_promised = |kind| Guarantees {
            put_message: false,
            ..ordered(kind)
        };
        let plan = fence_plan(input(puts(), &paths), not_promised);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
        let messages = OpSet::of(OpKind::Message, MemoryKind::Host);
        let plan = fence_plan(input(messages, &paths), ordered);
        assert_eq!(plan, FenceAction::Flush(FenceSite::FenceLane));
    }
}
