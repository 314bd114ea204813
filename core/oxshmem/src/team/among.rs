//! Teams that their members make among themselves, without the other PEs: for OpenSHMEM's active sets.
//!
//! Each member tells the first one which room for teams it has free, in a mailbox of symmetric memory; the first one
//! chooses, and tells all. A member waits for the answer, so that each PE has one place in a mailbox, whatever
//! teams others make with its owner at the same time.

use super::pool::lowest_common;
use super::{Held, Team, TeamConfig};
use crate::sync::Digest;
use crate::wait_until::wait_word;
use crate::{Cmp, Error, Result, SignalOp, Sym, World};

const CALL: &str = "team_among";
/// What a member tells beside its free slots: whether it loads and stores all members' memory, and the epoch beyond
/// which the team's must begin. The answer is as long: the slot, then these two.
const TOLD: usize = 2;
/// The answer where no slot is free on all.
const NO_SLOT: u64 = u64::MAX;

impl World {
    /// How many words the mailbox of [`team_among`](Self::team_among) needs.
    #[must_use]
    pub fn mailbox_words(&self) -> usize {
        (self.n_pes() + 1) * self.place_words()
    }

    /// A flag, and what is told or answered.
    fn place_words(&self) -> usize {
        1 + TOLD + self.shared.internal.pool.count().div_ceil(64).max(1)
    }

    /// Makes a team of `size` PEs of the world from `start` on, each `stride` after the one before. Collective over
    /// these PEs alone, with the same arguments; all others need not know. `mailbox` is an object of
    /// [`mailbox_words`](Self::mailbox_words) words for these calls alone, zero at first, the same for all. No other
    /// thread of this PE splits a team meanwhile.
    ///
    /// # Errors
    ///
    /// Where the team would leave the world, or this PE is no member; [`Error::TooManyTeams`] on all members where
    /// one is in too many.
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
        let (free, after) = pool.free();
        let mine = members.pes().all(|pe| self.maps(pe));
        let answer = match members.me() {
            0 => {
                let key = key(start, stride, size);
                let (mut all, mut mapped, mut epoch) = (vec![free], mine, after);
                for pe in members.pes().skip(1) {
                    let told = self.take_mail(mailbox, pe, key)?;
                    let [theirs, after, free @ ..] = told.as_slice() else {
                        continue;
                    };
                    mapped &= *theirs == 1;
                    epoch = epoch.max(*after as u32);
                    all.push(free.to_vec());
                }
                let slot = lowest_common(all.iter().map(Vec::as_slice), None);
                let slot = slot.map_or(NO_SLOT, |slot| slot as u64);
                let answer = vec![slot, u64::from(mapped), epoch.into()];
                for pe in members.pes().skip(1) {
                    self.send_mail(mailbox, self.n_pes(), &answer, 1, pe)?;
                }
                answer
            }
            _ => {
                let told = [u64::from(mine), after.into()];
                let told: Vec<u64> = told.into_iter().chain(free).collect();
                let key = key(start, stride, size);
                self.send_mail(mailbox, self.my_pe(), &told, key, members.pe(0))?;
                self.take_mail(mailbox, self.n_pes(), 1)?
            }
        };
        let [slot, mapped, epoch, ..] = answer.as_slice() else {
            return Err(refused("the mailbox is too small".into()));
        };
        if *slot == NO_SLOT {
            return Err(Error::TooManyTeams {
                call: CALL,
                limit: pool.count(),
            });
        }
        let core = pool.lend(*slot as usize, members, *mapped == 1, *epoch as u32)?;
        let core = core.on_hosts(internal.hosts.as_deref());
        Ok(Team {
            world: self,
            held: Held::Made(Box::new(core)),
            config: TeamConfig::default(),
        })
    }

    /// A place of the mailbox: its flag, and what follows.
    fn mail_place(&self, mailbox: Sym<u64>, place: usize) -> Result<(Sym<u64>, Sym<u64>)> {
        let words = self.place_words();
        let (start, end) = (place * words, (place + 1) * words);
        Ok((mailbox.at(start)?, mailbox.range(start + 1..end)?))
    }

    fn send_mail(
        &self,
        mailbox: Sym<u64>,
        place: usize,
        told: &[u64],
        flag: u64,
        pe: usize,
    ) -> Result<()> {
        let (word, room) = self.mail_place(mailbox, place)?;
        self.put_signal(room, told, word, flag, SignalOp::Set, pe)
    }

    fn take_mail(&self, mailbox: Sym<u64>, place: usize, flag: u64) -> Result<Vec<u64>> {
        let (word, room) = self.mail_place(mailbox, place)?;
        wait_word(&**self, CALL, word, Cmp::Eq, flag)?;
        let mut told = vec![0; room.len()];
        self.read(&mut told, room)?;
        self.write(word, &[0])?;
        Ok(told)
    }
}

/// A flag that stands for a team's members; never 0.
fn key(start: usize, stride: isize, size: usize) -> u64 {
    let digest = Digest::of(CALL).and(start as u64).and(stride as u64);
    digest.and(size as u64).value() | 1
}
