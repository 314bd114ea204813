//! The layout of a team's symmetric memory, by the shape of the job.

use oxshmem_engine::group::Group;

use crate::dissemination::{Dissemination, HierarchicalRadix, Round};

/// Words in a cache line.
pub(crate) const LINE: usize = 64 / size_of::<u64>();
/// The radix of a packed team's rounds, in which the words of one round share a line.
const PACKED_RADIX: usize = LINE;
/// Bytes of each half of a packed team's scratch memory.
const PACKED_HALF: usize = 256;
/// Eager slots of the world's teams: the number of calls that a root may be ahead of the others. Where PEs are
/// oversubscribed, each arrival between takes a time slice of each member.
const EAGER_SLOTS: usize = 256;
/// Eager slots of other teams, which have less memory.
const PACKED_EAGER_SLOTS: usize = 32;

/// The layout of a team's symmetric memory.
///
/// First come the arrival words by \[epoch parity\]\[slot\], and the words of the [eager](super::call::eager) calls. Then
/// comes scratch memory in two halves, one for each parity, and a third part of the same size for eager calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The dissemination among all members, whatever their hosts.
    flat: Dissemination,
    /// The dissemination host by host.
    pub hierarchical: HierarchicalRadix,
    /// Arrival words of an epoch.
    pub slots: usize,
    /// Whether members may be oversubscribed.
    pub oversubscribed: bool,
    /// Words from one slot to the next.
    pub stride: usize,
    /// Slots of eager calls. The last one is for a [waiting](super::team::TeamState::waiting_word) member.
    pub eager_slots: usize,
    /// Bytes of each half of the scratch memory.
    pub half: usize,
}

/// The spread of a job's PEs over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobShape {
    /// Number of PEs.
    pub pes: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// PEs of the host that has most.
    pub max_pes_per_host: usize,
    /// Whether PEs of some host outnumber its CPUs.
    pub oversubscribed: bool,
}

/// Spacing and number of a layout's slots.
struct SlotSpacing {
    stride: usize,
    eager_slots: usize,
}

impl Layout {
    /// The layout of the team of all PEs: a line for each word, and few rounds.
    pub(crate) fn wide(shape: JobShape, half: usize) -> Self {
        // One round up to 8 PEs. Where PEs take turns on few CPUs a round costs a turn of each, so
        // one round serves longer there. Where they run at once, messages cost more than rounds.
        let one_round = if shape.oversubscribed { 64 } else { 8 };
        let radix = |count: usize, one_round: usize| {
            if count <= one_round {
                count.max(2)
            } else {
                count.isqrt() + 1
            }
        };
        let hierarchical = HierarchicalRadix {
            on_host: radix(shape.max_pes_per_host, one_round),
            // Each of a host's members has its share of the words across.
            across: radix(shape.hosts, 8 * shape.max_pes_per_host),
        };
        let flat = radix(shape.pes, one_round);
        let spacing = SlotSpacing {
            stride: LINE,
            eager_slots: EAGER_SLOTS,
        };
        Self::new(shape, flat, hierarchical, spacing, half)
    }

    /// The layout of other teams: a line for each round's words.
    pub(crate) fn packed(shape: JobShape) -> Self {
        let hierarchical = HierarchicalRadix {
            on_host: PACKED_RADIX,
            across: PACKED_RADIX,
        };
        let spacing = SlotSpacing {
            stride: 1,
            eager_slots: PACKED_EAGER_SLOTS,
        };
        Self::new(shape, PACKED_RADIX, hierarchical, spacing, PACKED_HALF)
    }

    fn new(
        shape: JobShape,
        radix: usize,
        hierarchical: HierarchicalRadix,
        spacing: SlotSpacing,
        half: usize,
    ) -> Self {
        let flat = Dissemination { radix, first: 0 };
        let slots = flat.rounds(shape.pes) * flat.slots();
        let two_levels = if 1 < shape.hosts && shape.hosts < shape.pes {
            hierarchical.slots(shape.max_pes_per_host, shape.hosts)
        } else {
            0
        };
        Layout {
            flat,
            hierarchical,
            slots: slots.max(two_levels),
            oversubscribed: shape.oversubscribed,
            stride: spacing.stride,
            eager_slots: spacing.eager_slots,
            half,
        }
    }

    /// Bytes of all words.
    pub(crate) fn word_bytes(self) -> usize {
        (2 * self.slots + self.eager_slots) * self.stride * size_of::<u64>()
    }

    /// Bytes that a team needs.
    pub(crate) fn bytes(self) -> usize {
        self.word_bytes() + 3 * self.half
    }

    /// The rounds of an arrival of these members, whatever their hosts.
    pub(crate) fn rounds(self, members: &Group) -> Box<[Round]> {
        let all = (members.len(), members.me());
        self.flat.of(all, |_| true, |at, _| at as u32).into()
    }
}
