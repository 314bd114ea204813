//! The layout of the device library's memory.

use oxshmem_device_library::inbox::Inbox;
use oxshmem_device_library::layout::{Shared, Team};
use oxshmem_device_library::ring::Ring;

use crate::sym::Sym;

/// The teams that always are: the world, and that of the PEs that share memory.
pub(super) const PERMANENT: usize = 2;
/// The bytes of a member's slot in the scratch memory of the world's team, and of others.
pub(super) const SCRATCH_SLOT_BYTES: [usize; 2] = [4096, 256];
/// The most bytes of the first chunk of teams other than these, unless the least number of teams takes more.
const FIRST_CHUNK_BYTES: usize = 1 << 20;
/// The bytes of the memory for elements of members that are not mapped, on streams; a word that one call at a time holds lies
/// before it.
pub(super) const STAGING_BYTES: usize = 1 << 20;
/// The bytes of that word, and behind it.
pub(super) const STAGING_LOCK: usize = 64;
/// The least number of teams in that chunk, whatever they take.
const MIN_FIRST_TEAMS: usize = 16;

/// The memory that exists once, in each PE's GPU heap: the same on all PEs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLayout {
    pub block: Sym<u8>,
    pub pes: usize,
    /// The entries of the table of teams: as many as a PE may be in.
    pub teams: usize,
}

// No structure reaches into the next one.
const _: () = {
    assert!(size_of::<Shared>() <= DeviceLayout::RING);
    assert!(DeviceLayout::RING + size_of::<Ring>() <= DeviceLayout::CREDIT);
    assert!(DeviceLayout::INBOX + size_of::<Inbox>() <= DeviceLayout::CLAIMED);
};

impl DeviceLayout {
    /// The ring's description, its known credit, and its counter of tickets.
    pub(super) const RING: usize = 64;
    pub(super) const CREDIT: usize = 128;
    pub(super) const HEAD: usize = 192;
    /// The inbox's description, and its counter of claims.
    pub(super) const INBOX: usize = 256;
    pub(super) const CLAIMED: usize = 320;
    /// The table of the distances to each PE's heap.
    pub(super) const DISTANCES: usize = 384;

    pub(super) fn bytes(pes: usize, teams: usize) -> usize {
        Self::DISTANCES + (pes + teams) * size_of::<u64>()
    }

    pub(super) fn start(&self) -> usize {
        self.block.offset() as usize
    }

    /// The entry of a team in their table.
    pub(super) fn pointer(&self, team: usize) -> usize {
        self.start() + Self::DISTANCES + (self.pes + team) * size_of::<u64>()
    }
}

/// The memory of some teams, in each PE's GPU heap: the same on all PEs. Those of one chunk have neighbouring numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TeamChunk {
    pub block: Sym<u8>,
    pub pes: usize,
    /// The first team's number, and how many there are.
    pub first: usize,
    pub count: usize,
    /// The bytes of a member's slot in a team's scratch memory.
    pub slot_bytes: usize,
}

impl TeamChunk {
    /// The bytes of a team: its description, the members' words, heaps and PEs, and the scratch memory.
    pub(super) fn bytes_of_team(pes: usize, slot_bytes: usize) -> usize {
        let words = pes * (2 * size_of::<u64>() + size_of::<u32>());
        (size_of::<Team>() + words).next_multiple_of(64) + 2 * pes * slot_bytes
    }

    /// The number of teams in the first chunk, of so many.
    pub(super) fn first_teams(pes: usize, teams: usize) -> usize {
        let [_, slot_bytes] = SCRATCH_SLOT_BYTES;
        let fit = FIRST_CHUNK_BYTES / Self::bytes_of_team(pes, slot_bytes);
        teams.min(MIN_FIRST_TEAMS.max(fit))
    }

    /// The layout of a team, if it is in this chunk.
    pub(super) fn find(&self, team: usize) -> Option<TeamLayout> {
        let at = team.checked_sub(self.first).filter(|at| *at < self.count)?;
        let start =
            self.block.offset() as usize + at * Self::bytes_of_team(self.pes, self.slot_bytes);
        let words = start + size_of::<Team>();
        let heaps = words + self.pes * size_of::<u64>();
        let members = heaps + self.pes * size_of::<u64>();
        let end = members + self.pes * size_of::<u32>();
        Some(TeamLayout {
            team: start,
            words,
            heaps,
            members,
            scratch: end.next_multiple_of(64),
            slot_bytes: self.slot_bytes,
        })
    }
}

/// The offsets of a team's memory in each PE's GPU heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TeamLayout {
    /// Its description.
    pub team: usize,
    /// A word of each member.
    pub words: usize,
    /// The address of each member's heap for this PE's GPU; 0 where it is not mapped.
    pub heaps: usize,
    /// The members' PEs.
    pub members: usize,
    /// Two halves, each with a slot for each member.
    pub scratch: usize,
    pub slot_bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_of_a_chunk_lie_beside_each_other_and_end_with_it() {
        for pes in [1, 3, 1000] {
            let bytes = TeamChunk::bytes_of_team(pes, 256);
            let block = Sym::new(2, 0, 4096, 5 * bytes);
            let (first, count, slot_bytes) = (7, 5, 256);
            let chunk = TeamChunk {
                block,
                pes,
                first,
                count,
                slot_bytes,
            };
            assert_eq!((chunk.find(6), chunk.find(12)), (None, None));
            let mut end = 4096;
            for team in 7..12 {
                let at = chunk.find(team).unwrap();
                assert!(
                    at.team == end && at.words.is_multiple_of(8) && at.scratch.is_multiple_of(64)
                );
                assert!(at.words + 8 * pes <= at.heaps && at.heaps + 8 * pes <= at.members);
                assert!(at.members + 4 * pes <= at.scratch);
                end = at.scratch + 2 * pes * slot_bytes;
            }
            assert_eq!(end, 4096 + 5 * bytes);
        }
    }

    #[test]
    fn the_first_chunk_has_all_teams_of_few_members_and_some_of_many() {
        assert_eq!(TeamChunk::first_teams(4, 256), 256);
        assert_eq!(TeamChunk::first_teams(10_000, 256), 16);
        assert_eq!(TeamChunk::first_teams(10_000, 3), 3);
    }
}
