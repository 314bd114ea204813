//! Proposals of slots for a new team, by which its PEs choose one.

use std::ops::Range;

/// The proposal of a PE before it is in a team, or the joint one of several PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotProposal {
    /// The slots that are free, a bit for each.
    pub free: Vec<u64>,
    /// Whether all members' memory is loaded and stored.
    pub mapped: bool,
    /// The epoch beyond which the team's must begin.
    pub epoch: u32,
}

impl SlotProposal {
    /// Words of a proposal where PEs have so many slots.
    pub(crate) fn len(slots: usize) -> usize {
        2 + slots.div_ceil(64)
    }

    /// The proposal of a PE that is not in the team: it has no say.
    pub fn any(slots: usize) -> Self {
        SlotProposal {
            free: vec![u64::MAX; slots.div_ceil(64)],
            mapped: true,
            epoch: 0,
        }
    }

    /// The words that are sent.
    pub fn words(&self) -> Vec<u64> {
        let head = [u64::from(self.mapped), self.epoch.into()];
        head.iter().chain(&self.free).copied().collect()
    }

    /// The proposal in these words; no free slots where there are none.
    pub(crate) fn of(words: &[u64]) -> Self {
        match words {
            [mapped, epoch, free @ ..] => SlotProposal {
                free: free.to_vec(),
                mapped: *mapped == 1,
                epoch: *epoch as u32,
            },
            _ => SlotProposal {
                free: Vec::new(),
                mapped: false,
                epoch: 0,
            },
        }
    }

    /// The joint proposal of several PEs.
    pub(crate) fn together(all: impl Iterator<Item = SlotProposal>) -> Self {
        all.reduce(SlotProposal::and)
            .unwrap_or_else(|| SlotProposal::of(&[]))
    }

    /// The joint proposal with another.
    pub(crate) fn and(mut self, other: SlotProposal) -> Self {
        self.free.truncate(other.free.len());
        let both = self.free.iter_mut().zip(&other.free);
        both.for_each(|(mine, theirs)| *mine &= theirs);
        self.mapped &= other.mapped;
        self.epoch = self.epoch.max(other.epoch);
        self
    }

    /// The lowest of these slots that is free, other than `not`.
    pub(crate) fn slot(&self, mut among: Range<usize>, not: Option<usize>) -> Option<usize> {
        let free = |slot: usize| {
            let word = self.free.get(slot / 64).copied().unwrap_or_default();
            word & 1 << (slot % 64) != 0
        };
        among.find(|slot| Some(*slot) != not && free(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_slot_that_all_have_free_is_chosen() {
        let proposal = |free: &[u64]| SlotProposal {
            free: free.to_vec(),
            ..SlotProposal::any(0)
        };
        let all = [[0b1100, 7], [0b0111, 7], [0b1110, 1]];
        let all = SlotProposal::together(all.iter().map(|free| proposal(free)));
        assert_eq!(all.slot(0..128, None), Some(2));
        assert_eq!(all.slot(0..128, Some(2)), Some(64));
        assert_eq!(
            (all.slot(3..128, None), all.slot(0..2, None)),
            (Some(64), None)
        );
        let none = SlotProposal::together([1, 2].iter().map(|free| proposal(&[*free])));
        assert_eq!(none.slot(0..128, None), None);
        // A PE that sent less than the others has less.
        assert_eq!(
            proposal(&[0, 1]).and(proposal(&[1])).slot(0..128, None),
            None
        );
        assert_eq!(
            SlotProposal::together([].into_iter()).slot(0..128, None),
            None
        );
    }

    #[test]
    fn an_offer_is_what_it_was_when_it_has_travelled() {
        let proposal = SlotProposal {
            free: vec![5, 9],
            mapped: true,
            epoch: 7,
        };
        assert_eq!(proposal.words().len(), SlotProposal::len(100));
        assert_eq!(SlotProposal::of(&proposal.words()), proposal);
        let other = SlotProposal {
            mapped: false,
            epoch: 8,
            ..SlotProposal::any(100)
        };
        let both = proposal.clone().and(other);
        assert_eq!(
            (&both.free, both.mapped, both.epoch),
            (&proposal.free, false, 8)
        );
    }
}
