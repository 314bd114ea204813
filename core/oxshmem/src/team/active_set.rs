//! Teams that their members make among themselves, without the other PEs: for OpenSHMEM's active sets.
//!
//! They meet by [letters](super::mailbox) to the first one, who answers all when it has heard all. First they only
//! come; then they choose room for the team, as in a split, when all have their free slots to themselves: while another
//! call of a member has its, all leave theirs and meet again. In the last meeting each has reserved the room: who
//! failed before has no part in the team, nor has anyone else; who fails after that leaves it reserved, since others may
//! write into it.
//!
//! What they tell carries the number of the call, by these PEs, so that no late word of one that has failed is taken for
//! another's, and threads of a PE may be in several of these calls at once.

use super::Team;
use super::group::Group;
use super::mailbox::{Mailbox, MailboxMessage};
use super::proposal::SlotProposal;
use super::slots::{SlotClaim, Strided};
use crate::control::Message;
use crate::sync_area::CallSignature;
use crate::wait::WaitsOn;
use crate::{Context, Error, Result};

const CALL: &str = "team_among";
/// Stands for an offer of a PE that has not its free slots to itself.
const NOTHING: u64 = u64::MAX;

impl Context<'_> {
    /// Makes a team of `size` PEs of the world from `start` on, each `stride` after the one before. Collective over
    /// these PEs alone, with the same arguments; all others need not know. A [builder](crate::Builder::active_sets) has
    /// set room aside for these teams. Threads of a PE may make teams of different PEs at once, in any order. It may be on
    /// any context that has the world's numbers for the PEs.
    ///
    /// # Errors
    ///
    /// Where the team would leave the world, or this PE is no member; [`Error::TooManyTeams`] on all members where
    /// one is in too many; [`Error::PeerLost`] where a member is lost. One that fails by itself is lost to the others, and
    /// room for the team may stay taken until the world ends.
    ///
    /// Arguments that differ are not found out, as there is no team yet whose members hear of each other: such PEs wait for
    /// one another until `OXSHMEM_TIMEOUT`, if that is set.
    pub fn active_set_team(
        &self,
        (start, stride, size): (usize, isize, usize),
    ) -> Result<Team<'_>> {
        let refused = |what| Error::Argument { call: CALL, what };
        let internal = &self.shared.sync_area;
        let members = internal.all.members.strided(start, stride, size);
        let members = members.map_err(refused)?;
        let members = members.ok_or_else(|| refused("this PE is none of the members".into()))?;
        if !self.counts_as_world() {
            return Err(refused(
                "this context has a team's numbers for its PEs".into(),
            ));
        }
        let meeting = self.meeting((start, stride, size), &members)?;
        let agreed = meeting.agree();
        let made = agreed.and_then(|(slot, all)| Team::made(self, members.clone(), (slot, &all)));
        made.inspect_err(|error| meeting.abandon(error))
    }

    /// The next call of these members.
    fn meeting<'m>(&'m self, pes: Strided, members: &'m Group) -> Result<Agreement<'m>> {
        let (start, stride, size) = pes;
        let mailbox = self.mailbox(CALL)?;
        let number = self.shared.sync_area.pool.count_among(pes);
        let set = CallSignature::of(CALL).and(start as u64).and(stride as u64);
        Ok(Agreement {
            context: self,
            members,
            mailbox,
            call: set.and(size as u64).and(number),
        })
    }
}

/// A call of some PEs for a team among themselves.
struct Agreement<'m> {
    context: &'m Context<'m>,
    members: &'m Group,
    mailbox: &'m Mailbox,
    /// The PEs, and the number of their call.
    call: CallSignature,
}

impl Agreement<'_> {
    /// The members meet until they have reserved room for the team. Gives which, and what they offer together.
    fn agree(&self) -> Result<(usize, SlotProposal)> {
        let pool = &self.context.shared.sync_area.pool;
        let mapped = self.members.pes().all(|pe| self.context.maps(pe));
        let mut rounds = 0..;
        let mut meet = |mine| self.hear_all(rounds.next().unwrap_or_default(), mine);
        let mut choosing = None;
        let all = loop {
            let mine = choosing.as_ref().and_then(SlotClaim::take);
            let mine = mine.map(|mine| SlotProposal { mapped, ..mine });
            if let Some(all) = meet(mine)? {
                break all;
            }
            choosing.iter().for_each(SlotClaim::leave);
            choosing.get_or_insert_with(|| pool.choose(self.rank()));
        };
        let room = pool.room();
        let slot = all.slot(room.among(), None).ok_or(Error::TooManyTeams {
            call: CALL,
            limit: room.among().len(),
        })?;
        pool.reserve(slot);
        meet(Some(all.clone()))?;
        Ok((slot, all))
    }

    /// Tells the other members, who may wait for this PE, that it has failed, unless they hear of the reason.
    #[cold]
    fn abandon(&self, error: &Error) {
        let context = self.context;
        let told = match error {
            Error::TooManyTeams { .. } => true,
            Error::PeerLost { pe, .. } => context.exit_was_reported(*pe),
            _ => false,
        };
        if told {
            return;
        }
        for pe in self.members.pes().filter(|pe| *pe != context.my_pe()) {
            // Who is gone waits for nothing.
            let _ = context.send(CALL, pe, &Message::Disconnect);
        }
    }

    /// All members come to this round of the call. Gives what they offer together; nothing where one offers nothing.
    fn hear_all(&self, round: u64, mine: Option<SlotProposal>) -> Result<Option<SlotProposal>> {
        let others = || self.members.pes().skip(1);
        if self.members.me() > 0 {
            let first = self.members.pe(0);
            self.send(round, mine.as_ref(), first)?;
            return self.hear(round, first);
        }
        let mut all = mine;
        for pe in others() {
            let told = self.hear(round, pe)?;
            all = all.zip(told).map(|(all, told)| all.and(told));
        }
        others().try_for_each(|pe| self.send(round, all.as_ref(), pe))?;
        Ok(all)
    }

    /// Among this PE's calls that choose room: beyond those of teams, which have less.
    fn rank(&self) -> usize {
        (self.call.value() | 1 << 63) as usize
    }

    fn letter(&self, round: u64) -> MailboxMessage<'_> {
        MailboxMessage {
            call: CALL,
            mailbox: self.mailbox,
            needs: WaitsOn::Members(self.members),
            about: self.call.and(round).value(),
        }
    }

    fn send(&self, round: u64, told: Option<&SlotProposal>, to: usize) -> Result<()> {
        let pool = &self.context.shared.sync_area.pool;
        let told = told.map_or_else(|| vec![NOTHING; pool.words_of_offer()], SlotProposal::words);
        self.context.send_to_mailbox(self.letter(round), to, &told)
    }

    fn hear(&self, round: u64, from: usize) -> Result<Option<SlotProposal>> {
        let what = "its part in the call";
        let told = self
            .context
            .receive_from_mailbox(self.letter(round), from, what)?;
        Ok((told.first() != Some(&NOTHING)).then(|| SlotProposal::of(&told)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use crate::lane::tests::LIMIT;
    use crate::testing::spmd_with;

    #[test]
    fn late_words_of_a_call_that_failed_are_not_taken_for_those_of_the_next() {
        let pes = (0, 1, 3);
        let builder = World::builder().active_sets().timeout(LIMIT);
        let slots = spmd_with(builder, 3, |world| {
            let members = Group::all(3, world.my_pe());
            let failed = world.meeting(pes, &members)?;
            // By them the room would be another.
            let late = SlotProposal {
                free: vec![0, 0, 0, 0, 1 << 5, 0],
                ..SlotProposal::any(0)
            };
            let hearers = match world.my_pe() {
                0 => 1..3,
                _ => 0..1,
            };
            for to in hearers {
                world.send_to_mailbox(failed.letter(1), to, &late.words())?;
            }
            world.barrier_all()?;
            let team = world.active_set_team(pes)?;
            team.sync()?;
            let slot = team.core().slot();
            team.destroy()?;
            Ok(slot)
        });
        // The first behind those of splits.
        assert_eq!(slots.unwrap(), [Some(256); 3]);
    }
}
