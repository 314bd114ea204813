//! New teams of a team's PEs: all members of the parent team agree on a free slot for each.

use oxshmem_engine::group::Group;

use crate::call::CollectiveCall;
use crate::error::{Error, Result};
use crate::slots::pool::SlotClaim;
use crate::slots::proposal::SlotProposal;
use crate::team::TeamState;

/// A team that this PE is to be in.
#[derive(Debug)]
pub struct NewTeam {
    /// Its members.
    pub members: Group,
    /// Whether this PE, or all members, load and store every member's memory.
    pub mapped: bool,
}

impl CollectiveCall<'_> {
    /// Makes `K` teams in as many slots (two at most): each of `teams`, if this PE is one of its members. The call fails
    /// with the words of an error, on all members.
    pub fn split<const K: usize>(
        &mut self,
        teams: Result<[Option<NewTeam>; K], String>,
    ) -> Result<[Option<TeamState>; K]> {
        let (parent, pool, call) = (self.team, &self.area.pool, self.name());
        let (valid, teams) = match teams {
            Ok(teams) => (Ok(()), teams),
            Err(what) => (Err(Error::Argument { call, what }), [const { None }; K]),
        };
        self.arrive(valid)?;
        // Held until the slots are reserved.
        let claim = pool.claim(self.area.number_of(parent));
        let all = self.exchange_proposals(&claim, &teams)?;
        let words = pool.proposal_words();
        let proposal = |k: usize, rank: usize| {
            let proposals = all.get(rank).map(Vec::as_slice).unwrap_or_default();
            SlotProposal::of(
                proposals
                    .get(k * words..(k + 1) * words)
                    .unwrap_or_default(),
            )
        };
        // First all slots are chosen: if one is missing, none is reserved.
        let mut slots = [0; K];
        let mut last = None;
        for (k, slot) in slots.iter_mut().enumerate() {
            let all = (0..parent.members.len()).map(|rank| proposal(k, rank));
            last = SlotProposal::together(all).slot(pool.budget().splits(), last);
            *slot = last.ok_or(Error::TooManyTeams {
                call,
                limit: pool.budget().splits().len(),
            })?;
        }
        for (slot, _) in slots.iter().zip(&teams).filter(|(_, team)| team.is_some()) {
            pool.reserve(*slot);
        }
        // A member that could not read the proposals has no team, and so nobody has. A member that fails in this arrival
        // itself does not know whether others have come through it: the slots stay reserved.
        self.arrive(Ok(()))?;
        let mut made = [const { None }; K];
        for (k, (team, made)) in teams.into_iter().zip(&mut made).enumerate() {
            let (Some(NewTeam { members, .. }), Some(slot)) = (team, slots.get(k)) else {
                continue;
            };
            let rank_of = |pe| parent.members.rank_of(pe).unwrap_or(usize::MAX);
            let all = members.pes().map(|pe| proposal(k, rank_of(pe)));
            let joint = SlotProposal::together(all);
            *made = Some(self.area.new_team(*slot, members, &joint)?);
        }
        Ok(made)
    }

    /// Exchanges the members' proposals for new teams, when each has its free slots exclusively. Gives all members' words.
    fn exchange_proposals(
        &mut self,
        claim: &SlotClaim<'_>,
        teams: &[Option<NewTeam>],
    ) -> Result<Vec<Vec<u64>>> {
        let pool = &self.area.pool;
        loop {
            // A member that does not hold the free slots exclusively sends nothing.
            let mine: Vec<u8> = match claim.try_hold() {
                Some(mine) => {
                    let proposal = |team: &Option<NewTeam>| match team {
                        Some(team) => SlotProposal {
                            mapped: team.mapped,
                            ..mine.clone()
                        },
                        None => SlotProposal::any(pool.budget().slots()),
                    };
                    let words = teams.iter().flat_map(|team| proposal(team).words());
                    words.flat_map(u64::to_ne_bytes).collect()
                }
                None => Vec::new(),
            };
            let all = self.allgather_small(Ok(()), &mine)?;
            let all: Vec<Vec<u64>> = all.iter().map(|bytes| words_of(bytes)).collect();
            if all.iter().all(|words| !words.is_empty()) {
                return Ok(all);
            }
            claim.yield_slots();
        }
    }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}
