//! Teams that their members make among themselves, without the other PEs: for OpenSHMEM's active sets.
//!
//! They meet twice: each member tells the first one something, in a mailbox of symmetric memory, and the first one
//! answers all when it has heard all. First they choose room for the team by that. The second time each has
//! reserved it: who failed before has no part in the team, nor has anyone else; who fails after that leaves it
//! reserved, since others may write into it.
//!
//! A mailbox has two places for each PE, into which it alone writes: as a member, and as the first one of others.
//! What it writes carries the number of the call, by these PEs, so that no late word of one that has failed is taken
//! for another's.

use oxshmem_transport::Width;

use super::Team;
use super::members::Members;
use super::offer::Offer;
use super::pool::Strided;
use crate::mapped::Bytes;
use crate::order::Inserted;
use crate::sync::Digest;
use crate::wait::{Needs, Reason};
use crate::{Error, Result, SignalOp, Sym, World};

const CALL: &str = "team_among";

impl World {
    /// How many words the mailbox of [`team_among`](Self::team_among) needs.
    #[must_use]
    pub fn mailbox_words(&self) -> usize {
        2 * self.n_pes() * self.place_words()
    }

    /// A flag, and what is told.
    fn place_words(&self) -> usize {
        1 + Offer::len(self.shared.internal.pool.count())
    }

    /// Makes a team of `size` PEs of the world from `start` on, each `stride` after the one before. Collective over
    /// these PEs alone, with the same arguments; all others need not know. `mailbox` is an object of
    /// [`mailbox_words`](Self::mailbox_words) words for these calls alone, zero at first, the same for all. No other
    /// thread of this PE splits a team meanwhile.
    ///
    /// # Errors
    ///
    /// Where the team would leave the world, or this PE is no member; [`Error::TooManyTeams`] on all members where
    /// one is in too many; [`Error::PeerLost`] where a member is lost. Where one fails by itself, room for the team
    /// may stay taken until the world ends. Members that have all failed may call again.
    pub fn team_among(
        &self,
        (start, stride, size): (usize, isize, usize),
        mailbox: Sym<u64>,
    ) -> Result<Team<'_>> {
        let refused = |what| Error::Argument { call: CALL, what };
        let internal = &self.shared.internal;
        let members = internal.all.members.strided(start, stride, size);
        let members = members.map_err(refused)?;
        let members = members.ok_or_else(|| refused("this PE is none of the members".into()))?;
        let pool = &internal.pool;
        let meeting = self.meeting((start, stride, size), &members, mailbox);
        meeting.after_earlier_words()?;
        let mine = Offer {
            mapped: members.pes().all(|pe| self.maps(pe)),
            ..pool.offer()
        };
        let all = meeting.hear_all(0, mine)?;
        let slot = all.slot(None).ok_or(Error::TooManyTeams {
            call: CALL,
            limit: pool.count(),
        })?;
        pool.reserve(slot);
        let all = meeting.hear_all(1, all)?;
        Team::made(self, members, (slot, &all))
    }

    /// The next call of these members.
    fn meeting<'m>(&'m self, pes: Strided, members: &'m Members, mailbox: Sym<u64>) -> Meeting<'m> {
        let (start, stride, size) = pes;
        let number = self.shared.internal.pool.count_among(pes);
        let set = Digest::of(CALL).and(start as u64).and(stride as u64);
        Meeting {
            world: self,
            members,
            mailbox,
            call: set.and(size as u64).and(number),
        }
    }
}

/// A call of some PEs for a team among themselves.
struct Meeting<'m> {
    world: &'m World,
    members: &'m Members,
    mailbox: Sym<u64>,
    /// The PEs, and the number of their call.
    call: Digest,
}

/// Which of a PE's two places.
#[derive(Clone, Copy)]
enum Place {
    /// What it tells as a member.
    Told,
    /// What it answers as the first one.
    Answer,
}

impl Meeting<'_> {
    /// What this PE wrote to these PEs in a call that failed is not on its way any more: it could come after this
    /// call's words, and into their place.
    fn after_earlier_words(&self) -> Result<()> {
        let pes: Vec<usize> = self.members.pes().collect();
        self.world.pe_quiet(&pes)
    }

    /// All members come to this round of the call. Gives what they offer together.
    fn hear_all(&self, round: u64, mine: Offer) -> Result<Offer> {
        let flag = self.flag(round);
        let others = || self.members.pes().skip(1);
        if self.members.me() > 0 {
            let first = self.members.pe(0);
            self.send(Place::Told, flag, &mine, first)?;
            return self.take(Place::Answer, flag, first);
        }
        let all = others().try_fold(mine, |all, pe| {
            Ok::<_, Error>(all.and(self.take(Place::Told, flag, pe)?))
        })?;
        others().try_for_each(|pe| self.send(Place::Answer, flag, &all, pe))?;
        Ok(all)
    }

    fn flag(&self, round: u64) -> u64 {
        // No place has 0 but before its first word.
        self.call.and(round).value() | 1
    }

    /// A place of PE `of`: its flag, and what follows.
    fn place(&self, place: Place, of: usize) -> Result<(Sym<u64>, Sym<u64>)> {
        let words = self.world.place_words();
        let start = (2 * of + place as usize) * words;
        let room = self.mailbox.range(start + 1..start + words)?;
        Ok((self.mailbox.at(start)?, room))
    }

    fn send(&self, place: Place, flag: u64, told: &Offer, to: usize) -> Result<()> {
        let (word, room) = self.place(place, self.world.my_pe())?;
        self.world
            .put_signal(room, &told.words(), word, flag, SignalOp::Set, to)
    }

    fn take(&self, place: Place, flag: u64, from: usize) -> Result<Offer> {
        let (word, room) = self.place(place, from)?;
        self.world.check_own(CALL, word, 1)?;
        let tell = || (format!("PE {from}"), "its part in the call".into());
        let reason = Reason {
            call: CALL,
            needs: Needs::Members(self.members),
            tell: &tell,
        };
        let own = self.world.own(word);
        self.world.wait(&reason, None, || {
            (own.look(Width::W64, Inserted::Wait) == flag).then_some(())
        })?;
        let mut told = vec![0; room.len()];
        self.world.read(&mut told, room)?;
        Ok(Offer::of(&told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spmd_with;
    use crate::wire::tests::LIMIT;

    #[test]
    fn late_words_of_a_call_that_failed_are_not_taken_for_those_of_the_next() {
        let pes = (0, 1, 3);
        let slots = spmd_with(World::builder().timeout(LIMIT), 3, |world| {
            let mailbox = world.alloc_zeroed(world.mailbox_words())?;
            let members = Members::all(3, world.my_pe());
            let failed = world.meeting(pes, &members, mailbox);
            // By them the room would be another.
            let late = Offer {
                free: vec![1 << 5],
                ..Offer::any(0)
            };
            for to in 0..3 {
                for place in [Place::Told, Place::Answer] {
                    failed.send(place, failed.flag(0), &late, to)?;
                }
            }
            world.barrier_all()?;
            let team = world.team_among(pes, mailbox)?;
            team.sync()?;
            let slot = team.core().slot();
            team.destroy()?;
            world.free(mailbox)?;
            Ok(slot)
        });
        assert_eq!(slots.unwrap(), [Some(0); 3]);
    }
}
