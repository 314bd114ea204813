//! Teams that their members make among themselves, without the other PEs: for OpenSHMEM's active sets.
//!
//! They meet by telling the first one something, in a mailbox of symmetric memory, who answers all when it has heard
//! all. First they only come; then they choose room for the team, as in a split, when all have their free slots to
//! themselves: while another call of a member has its, all leave theirs and meet again. In the last meeting each has
//! reserved the room: who failed before has no part in the team, nor has anyone else; who fails after that leaves
//! it reserved, since others may write into it.
//!
//! A mailbox has two places for each PE, into which it alone writes: as a member, and as the first one of others.
//! What it writes carries the number of the call, by these PEs, so that no late word of one that has failed is taken
//! for another's.

use oxshmem_transport::Width;

use super::Team;
use super::members::Members;
use super::offer::Offer;
use super::pool::{Choosing, Pool, Strided};
use crate::mapped::Bytes;
use crate::messages::Message;
use crate::order::Inserted;
use crate::sync::Digest;
use crate::wait::{Needs, Reason};
use crate::{Context, Error, Result, Sym};

const CALL: &str = "team_among";
/// Stands for an offer of a PE that has not its free slots to itself.
const NOTHING: u64 = u64::MAX;

impl Context<'_> {
    /// How many words the mailbox of [`team_among`](Self::team_among) needs.
    #[must_use]
    pub fn mailbox_words(&self) -> usize {
        Self::mailbox_of(self.n_pes(), &self.shared.internal.pool)
    }

    /// A mailbox that was [set aside](crate::Builder::mailbox), if one was.
    #[must_use]
    pub fn mailbox(&self) -> Option<Sym<u64>> {
        self.shared.mailbox
    }

    pub(crate) fn mailbox_of(pes: usize, pool: &Pool) -> usize {
        2 * pes * Self::place_of(pool)
    }

    /// A flag, and what is told.
    fn place_words(&self) -> usize {
        Self::place_of(&self.shared.internal.pool)
    }

    fn place_of(pool: &Pool) -> usize {
        1 + Offer::len(pool.count())
    }

    /// Makes a team of `size` PEs of the world from `start` on, each `stride` after the one before. Collective over
    /// these PEs alone, with the same arguments; all others need not know. `mailbox` is an object of
    /// [`mailbox_words`](Self::mailbox_words) words for these calls alone, zero at first, the same for all. No other
    /// thread of this PE is in such a call meanwhile. It may be on any context that has the world's numbers for the PEs.
    ///
    /// # Errors
    ///
    /// Where the team would leave the world, or this PE is no member; [`Error::TooManyTeams`] on all members where
    /// one is in too many; [`Error::PeerLost`] where a member is lost. One that fails by itself is lost to the others, and
    /// room for the team may stay taken until the world ends.
    ///
    /// Arguments that differ are not found out, as there is no team yet whose members hear of each other: such PEs wait for
    /// one another until `OXSHMEM_TIMEOUT`, if that is set.
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
        if !self.counts_as_world() {
            return Err(refused(
                "this context has a team's numbers for its PEs".into(),
            ));
        }
        let meeting = self.meeting((start, stride, size), &members, mailbox);
        let agreed = meeting.agree();
        let made = agreed.and_then(|(slot, all)| Team::made(self, members.clone(), (slot, &all)));
        made.inspect_err(|error| meeting.abandon(error))
    }

    /// The next call of these members.
    fn meeting<'m>(&'m self, pes: Strided, members: &'m Members, mailbox: Sym<u64>) -> Meeting<'m> {
        let (start, stride, size) = pes;
        let number = self.shared.internal.pool.count_among(pes);
        let set = Digest::of(CALL).and(start as u64).and(stride as u64);
        Meeting {
            context: self,
            members,
            mailbox,
            call: set.and(size as u64).and(number),
        }
    }
}

/// A call of some PEs for a team among themselves.
struct Meeting<'m> {
    context: &'m Context<'m>,
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
    /// The members meet until they have reserved room for the team. Gives which, and what they offer together.
    fn agree(&self) -> Result<(usize, Offer)> {
        let pool = &self.context.shared.internal.pool;
        self.after_earlier_words()?;
        let mapped = self.members.pes().all(|pe| self.context.maps(pe));
        let mut rounds = 0..;
        let mut meet = |mine| self.hear_all(rounds.next().unwrap_or_default(), mine);
        let mut choosing = None;
        let all = loop {
            let mine = choosing.as_ref().and_then(Choosing::take);
            let mine = mine.map(|mine| Offer { mapped, ..mine });
            if let Some(all) = meet(mine)? {
                break all;
            }
            choosing.iter().for_each(Choosing::leave);
            choosing.get_or_insert_with(|| pool.choose(self.rank()));
        };
        let slot = all.slot(None).ok_or(Error::TooManyTeams {
            call: CALL,
            limit: pool.count(),
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
            Error::PeerLost { pe, .. } => context.hears_of_end(*pe),
            _ => false,
        };
        if told {
            return;
        }
        for pe in self.members.pes().filter(|pe| *pe != context.my_pe()) {
            // Who is gone waits for nothing.
            let _ = context.send(CALL, pe, &Message::GaveUp);
        }
    }

    /// What this PE wrote to these PEs in a call that failed is not on its way any more: it could come after this
    /// call's words, and into their place.
    fn after_earlier_words(&self) -> Result<()> {
        let pes: Vec<usize> = self.members.pes().collect();
        self.context.pe_quiet(&pes)
    }

    /// All members come to this round of the call. Gives what they offer together; nothing where one offers nothing.
    fn hear_all(&self, round: u64, mine: Option<Offer>) -> Result<Option<Offer>> {
        let flag = self.flag(round);
        let others = || self.members.pes().skip(1);
        if self.members.me() > 0 {
            let first = self.members.pe(0);
            self.send(Place::Told, flag, mine.as_ref(), first)?;
            return self.take(Place::Answer, flag, first);
        }
        let mut all = mine;
        for pe in others() {
            let told = self.take(Place::Told, flag, pe)?;
            all = all.zip(told).map(|(all, told)| all.and(told));
        }
        others().try_for_each(|pe| self.send(Place::Answer, flag, all.as_ref(), pe))?;
        Ok(all)
    }

    /// Among this PE's calls that choose room: beyond those of teams, which have less.
    fn rank(&self) -> usize {
        (self.call.value() | 1 << 63) as usize
    }

    fn flag(&self, round: u64) -> u64 {
        // No place has 0 but before its first word.
        self.call.and(round).value() | 1
    }

    /// A place of PE `of`: its flag, and what follows.
    fn place(&self, place: Place, of: usize) -> Result<(Sym<u64>, Sym<u64>)> {
        let words = self.context.place_words();
        let start = (2 * of + place as usize) * words;
        let room = self.mailbox.range(start + 1..start + words)?;
        Ok((self.mailbox.at(start)?, room))
    }

    fn send(&self, place: Place, flag: u64, told: Option<&Offer>, to: usize) -> Result<()> {
        let (word, room) = self.place(place, self.context.my_pe())?;
        let told = told.map_or_else(|| vec![NOTHING; room.len()], Offer::words);
        self.context.put(room, &told, to)?;
        self.context.pe_quiet(&[to])?;
        // As the library's other words: who waits for one that is lost with its way is told so.
        self.context.tell(CALL, word, flag, to)
    }

    fn take(&self, place: Place, flag: u64, from: usize) -> Result<Option<Offer>> {
        let (word, room) = self.place(place, from)?;
        self.context.check_own(CALL, word, 1)?;
        let tell = || (format!("PE {from}"), "its part in the call".into());
        let reason = Reason {
            call: CALL,
            needs: Needs::Members(self.members),
            tell: &tell,
        };
        let own = self.context.own(word);
        self.context.wait(&reason, None, || {
            (own.look(Width::W64, Inserted::Wait) == flag).then_some(())
        })?;
        let mut told = vec![0; room.len()];
        self.context.read(&mut told, room)?;
        Ok((told.first() != Some(&NOTHING)).then(|| Offer::of(&told)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
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
                    failed.send(place, failed.flag(1), Some(&late), to)?;
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
