//! New teams of a team's PEs.

use super::Team;
use super::call::CallInfo;
use super::group::Group;
use super::proposal::SlotProposal;
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::{Error, Result};

impl<'w> Team<'w> {
    /// Splits a team off: `size` PEs of this team from `start` on, each `stride` after the one before.
    /// A negative stride counts down; one of 0 is for a team of one PE. Collective over this team, with
    /// the same arguments; a PE that is not in the new team gets `None`.
    ///
    /// Both teams may be used at once.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(5, |world| {
    ///         // PEs 4, 2 and 0, which are 0, 1 and 2 in the team.
    ///         let even = world.team().split_strided(4, -2, 3)?;
    ///         assert_eq!(even.is_some(), world.my_pe() % 2 == 0);
    ///         if let Some(even) = even {
    ///             assert_eq!(even.my_pe(), (4 - world.my_pe()) / 2);
    ///             even.destroy()?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// On every PE of this team: where the new one would leave it, and where the PEs' arguments differ
    /// (M36); [`Error::TooManyTeams`] where some member is in too many. Where a member fails by itself, room for
    /// the new team may stay taken until the world ends.
    #[doc(alias(
        "shmem_team_split_strided",
        "nvshmem_team_split_strided",
        "MPI_Comm_split"
    ))]
    #[track_caller]
    pub fn split_strided(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Team<'w>>> {
        placed(|| self.split_strided_inner(start, stride, size))
    }

    fn split_strided_inner(
        &self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Option<Team<'w>>> {
        const CALL: &str = "split_strided";
        let digest = CallSignature::of(CALL).and(start as u64).and(stride as u64);
        let words = || format!("split_strided(start {start}, stride {stride}, size {size})");
        let members = self.core().members.strided(start, stride, size);
        let [team] = self.split(
            CALL,
            digest.and(size as u64),
            &words,
            members.map(|team| [team]),
        )?;
        Ok(team)
    }

    /// Splits a team off: the PEs of this team that are listed, in this order. Collective over this team,
    /// with the same list; a PE that is not in it gets `None`.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let corners = world.team().split_list(&[3, 0])?;
    ///         if let Some(corners) = corners {
    ///             assert_eq!(corners.world_pes().collect::<Vec<_>>(), [3, 0]);
    ///             corners.destroy()?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split_strided`](Self::split_strided); and where a PE is named twice.
    #[doc(alias("nvshmemx_team_init", "MPI_Comm_split", "MPI_Comm_create"))]
    #[track_caller]
    pub fn split_list(&self, pes: &[usize]) -> Result<Option<Team<'w>>> {
        placed(|| self.split_list_inner(pes))
    }

    fn split_list_inner(&self, pes: &[usize]) -> Result<Option<Team<'w>>> {
        const CALL: &str = "split_list";
        let digest = CallSignature::of(CALL).and(pes.len() as u64);
        let digest = pes.iter().fold(digest, |digest, pe| digest.and(*pe as u64));
        let words = || match pes.len() {
            0..=16 => format!("split_list({pes:?})"),
            n => format!("split_list of {n} PEs ({digest:?})"),
        };
        let members = self.core().members.listed(pes);
        let [team] = self.split(CALL, digest, &words, members.map(|team| [team]))?;
        Ok(team)
    }

    /// Lays this team's PEs out in rows of `xrange`, the last of which may be shorter, and gives the teams
    /// of this PE's row and of its column. PE `p` is in row `p / xrange` and column `p % xrange`; these are
    /// its numbers in the column and in the row. Collective over this team, with the same argument.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(6, |world| {
    ///         let (row, column) = world.team().split_2d(3)?; // PEs 0 1 2, and below them 3 4 5
    ///         assert_eq!((row.n_pes(), row.my_pe()), (3, world.my_pe() % 3));
    ///         assert_eq!((column.n_pes(), column.my_pe()), (2, world.my_pe() / 3));
    ///         row.destroy()?;
    ///         column.destroy()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split_strided`](Self::split_strided); and where `xrange` is 0. One greater than the team counts
    /// as its size.
    #[doc(alias("shmem_team_split_2d", "nvshmem_team_split_2d", "MPI_Cart_sub"))]
    #[track_caller]
    pub fn split_2d(&self, xrange: usize) -> Result<(Team<'w>, Team<'w>)> {
        placed(|| self.split_2d_inner(xrange))
    }

    fn split_2d_inner(&self, xrange: usize) -> Result<(Team<'w>, Team<'w>)> {
        const CALL: &str = "split_2d";
        let words = || format!("split_2d({xrange})");
        let parent = &self.core().members;
        let (n, me) = (parent.len(), parent.me());
        let teams = || {
            let wide = xrange.min(n);
            if wide == 0 {
                return Err("a row has one PE at least".to_owned());
            }
            let (row, column) = (me / wide * wide, me % wide);
            let x = parent.strided(row, 1, wide.min(n - row))?;
            let y = parent.strided(column, wide as isize, (n - column).div_ceil(wide))?;
            Ok([x, y])
        };
        let digest = CallSignature::of(CALL).and(xrange as u64);
        match self.split(CALL, digest, &words, teams())? {
            [Some(x), Some(y)] => Ok((x, y)),
            // Each PE is in a row and in a column.
            _ => Err(Error::Argument {
                call: CALL,
                what: "this PE is in no row or no column".into(),
            }),
        }
    }

    /// Makes `K` teams in as many slots (two at most). Of each this PE has the members, if it
    /// is one of them.
    fn split<const K: usize>(
        &self,
        call: &'static str,
        digest: CallSignature,
        words: &dyn Fn() -> String,
        teams: Result<[Option<Group>; K], String>,
    ) -> Result<[Option<Team<'w>>; K]> {
        let (world, parent) = (self.world, self.core());
        let pool = &world.shared.sync_area.pool;
        let call = CallInfo {
            name: call,
            digest,
            words,
        };
        let mut turn = parent.turn(world, call, None);
        let (valid, teams) = match teams {
            Ok(teams) => (Ok(()), teams),
            Err(what) => {
                let call = call.name;
                (Err(Error::Argument { call, what }), [const { None }; K])
            }
        };
        turn.arrive(valid)?;
        let choosing = pool.choose(world.shared.sync_area.rank(parent));
        let all = loop {
            // One that has the free slots not to itself tells nothing.
            let mine: Vec<u8> = match choosing.take() {
                Some(mine) => {
                    let offer = |team: &Option<Group>| match team {
                        Some(members) => SlotProposal {
                            mapped: parent.mapped || members.pes().all(|pe| world.maps(pe)),
                            ..mine.clone()
                        },
                        None => SlotProposal::any(pool.room().slots()),
                    };
                    let words = teams.iter().flat_map(|team| offer(team).words());
                    words.flat_map(u64::to_ne_bytes).collect()
                }
                None => Vec::new(),
            };
            let all = turn.allgather_small(Ok(()), &mine)?;
            let all: Vec<Vec<u64>> = all.iter().map(|told| numbers(told)).collect();
            if all.iter().all(|told| !told.is_empty()) {
                break all;
            }
            choosing.leave();
        };
        let part = pool.words_of_offer();
        let told = |k: usize, place: usize| {
            let told = all.get(place).map(Vec::as_slice).unwrap_or_default();
            SlotProposal::of(told.get(k * part..(k + 1) * part).unwrap_or_default())
        };
        // First all slots are chosen: where one is wanting, none is taken.
        let mut slots = [0; K];
        let mut last = None;
        for (k, slot) in slots.iter_mut().enumerate() {
            let all = (0..parent.members.len()).map(|place| told(k, place));
            last = SlotProposal::together(all).slot(pool.room().splits(), last);
            *slot = last.ok_or(Error::TooManyTeams {
                call: call.name,
                limit: pool.room().splits().len(),
            })?;
        }
        for (slot, _) in slots.iter().zip(&teams).filter(|(_, team)| team.is_some()) {
            pool.reserve(*slot);
        }
        // Who could not read what was told has no team, and so nobody has. Who fails in this arrival itself
        // does not know whether others have come through it: the slots stay reserved.
        turn.arrive(Ok(()))?;
        let mut made = [const { None }; K];
        for (k, (team, made)) in teams.into_iter().zip(&mut made).enumerate() {
            let (Some(members), Some(slot)) = (team, slots.get(k)) else {
                continue;
            };
            let place_of = |pe| parent.members.rank_of(pe).unwrap_or(usize::MAX);
            let told = SlotProposal::together(members.pes().map(|pe| told(k, place_of(pe))));
            *made = Some(Team::made(world, members, (*slot, &told))?);
        }
        Ok(made)
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}
