//! What PEs tell of themselves before they are in a new team, and the room that they choose by it.

use std::ops::Range;

/// What a PE tells of itself before it is in a team; or what several tell together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotProposal {
    /// The slots that are free, a bit for each.
    pub free: Vec<u64>,
    /// Whether all members' memory is loaded and stored.
    pub mapped: bool,
    /// The epoch beyond which the team's must begin.
    pub epoch: u32,
}

impl SlotProposal {
    /// How many words it is where PEs have so many slots.
    pub(super) fn len(slots: usize) -> usize {
        2 + slots.div_ceil(64)
    }

    /// Of a PE that the team does not have.
    pub(super) fn any(slots: usize) -> Self {
        SlotProposal {
            free: vec![u64::MAX; slots.div_ceil(64)],
            mapped: true,
            epoch: 0,
        }
    }

    /// As it travels.
    pub(super) fn words(&self) -> Vec<u64> {
        let head = [u64::from(self.mapped), self.epoch.into()];
        head.iter().chain(&self.free).copied().collect()
    }

    /// As it came; no room where there is nothing.
    pub(super) fn of(words: &[u64]) -> Self {
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

    /// What several PEs offer together.
    pub(super) fn together(all: impl Iterator<Item = SlotProposal>) -> Self {
        all.reduce(SlotProposal::and)
            .unwrap_or_else(|| SlotProposal::of(&[]))
    }

    pub(super) fn and(mut self, other: SlotProposal) -> Self {
        self.free.truncate(other.free.len());
        let both = self.free.iter_mut().zip(&other.free);
        both.for_each(|(mine, theirs)| *mine &= theirs);
        self.mapped &= other.mapped;
        self.epoch = self.epoch.max(other.epoch);
        self
    }

    /// The lowest of these slots that is free, but `not`.
    pub(super) fn slot(&self, mut among: Range<usize>, not: Option<usize>) -> Option<usize> {
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
        let offer = |free: &[u64]| SlotProposal {
            free: free.to_vec(),
            ..SlotProposal::any(0)
        };
        let all = [[0b1100, 7], [0b0111, 7], [0b1110, 1]];
        let all = SlotProposal::together(all.iter().map(|free| offer(free)));
        assert_eq!(all.slot(0..128, None), Some(2));
        assert_eq!(all.slot(0..128, Some(2)), Some(64));
        assert_eq!(
            (all.slot(3..128, None), all.slot(0..2, None)),
            (Some(64), None)
        );
        let none = SlotProposal::together([1, 2].iter().map(|free| offer(&[*free])));
        assert_eq!(none.slot(0..128, None), None);
        // One that told less than the others has less.
        assert_eq!(offer(&[0, 1]).and(offer(&[1])).slot(0..128, None), None);
        assert_eq!(
            SlotProposal::together([].into_iter()).slot(0..128, None),
            None
        );
    }

    #[test]
    fn an_offer_is_what_it_was_when_it_has_travelled() {
        let offer = SlotProposal {
            free: vec![5, 9],
            mapped: true,
            epoch: 7,
        };
        assert_eq!(offer.words().len(), SlotProposal::len(100));
        assert_eq!(SlotProposal::of(&offer.words()), offer);
        let other = SlotProposal {
            mapped: false,
            epoch: 8,
            ..SlotProposal::any(100)
        };
        let both = offer.clone().and(other);
        assert_eq!(
            (&both.free, both.mapped, both.epoch),
            (&offer.free, false, 8)
        );
    }
}
