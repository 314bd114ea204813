//! New teams: splits of a team, and teams of active sets.

use oxshmem_engine::group::Group;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::placed;
use crate::team::Team;
use oxshmem_collectives::call::CallInfo;
use oxshmem_collectives::signature::CallSignature;
use oxshmem_collectives::slots::active_set::{Agreement, CALL as ACTIVE_SET};
use oxshmem_collectives::slots::mailbox::Mailbox;
use oxshmem_collectives::slots::pool::ActiveSet;
use oxshmem_collectives::slots::split::NewTeam;

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
        let info = CallInfo {
            name: CALL,
            signature: CallSignature::of(CALL)
                .and(start as u64)
                .and(stride as u64)
                .and(size as u64),
            words: &|| format!("split_strided(start {start}, stride {stride}, size {size})"),
        };
        let members = self.state().members.strided(start, stride, size);
        let [team] = self.split(info, members.map(|team| [team]))?;
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
        let signature = CallSignature::of(CALL).and(pes.len() as u64);
        let signature = pes
            .iter()
            .fold(signature, |signature, pe| signature.and(*pe as u64));
        let info = CallInfo {
            name: CALL,
            signature,
            words: &|| match pes.len() {
                0..=16 => format!("split_list({pes:?})"),
                n => format!("split_list of {n} PEs ({signature:?})"),
            },
        };
        let members = self.state().members.listed(pes);
        let [team] = self.split(info, members.map(|team| [team]))?;
        Ok(team)
    }

    /// Splits this team into teams of members with one colour each, and gives this PE's: its members in this team's order. `colors` has
    /// a colour for each member. Collective over this team, with the same list.
    ///
    /// ```
    /// use oxshmem::{Result, testing::spmd};
    ///
    /// fn main() -> Result<()> {
    ///     spmd(4, |world| {
    ///         let team = world.team().split_colors(&[7, 5, 7, 7])?;
    ///         let of_five = world.my_pe() == 1;
    ///         assert_eq!(team.world_pes().collect::<Vec<_>>(), if of_five { vec![1] } else { vec![0, 2, 3] });
    ///         team.destroy()
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split_strided`](Self::split_strided); and where the list has another length.
    #[doc(alias = "MPI_Comm_split")]
    #[track_caller]
    pub fn split_colors(&self, colors: &[usize]) -> Result<Team<'w>> {
        placed(|| self.split_colors_inner(colors))
    }

    fn split_colors_inner(&self, colors: &[usize]) -> Result<Team<'w>> {
        const CALL: &str = "split_colors";
        let parent = &self.state().members;
        let signature = CallSignature::of(CALL).and(colors.len() as u64);
        let signature = colors
            .iter()
            .fold(signature, |signature, color| signature.and(*color as u64));
        let info = CallInfo {
            name: CALL,
            signature,
            words: &|| format!("split_colors of {} members ({signature:?})", colors.len()),
        };
        let members = || {
            if colors.len() != parent.len() {
                return Err(format!(
                    "{} colours for {} members; give one for each",
                    colors.len(),
                    parent.len()
                ));
            }
            let mine = colors[parent.me()];
            let same = colors
                .iter()
                .enumerate()
                .filter(|(_, color)| **color == mine);
            let same: Vec<usize> = same.map(|(member, _)| member).collect();
            parent.listed(&same)
        };
        match self.split(info, members().map(|team| [team]))? {
            [Some(team)] => Ok(team),
            // Each member has its own colour.
            [None] => Err(Error::Argument {
                call: CALL,
                what: "this PE has no colour".into(),
            }),
        }
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
        let parent = &self.state().members;
        let (n, me) = (parent.len(), parent.me());
        let teams = || {
            let width = xrange.min(n);
            if width == 0 {
                return Err("a row has one PE at least".to_owned());
            }
            let (row, column) = (me / width * width, me % width);
            let x = parent.strided(row, 1, width.min(n - row))?;
            let y = parent.strided(column, width as isize, (n - column).div_ceil(width))?;
            Ok([x, y])
        };
        let info = CallInfo {
            name: CALL,
            signature: CallSignature::of(CALL).and(xrange as u64),
            words: &|| format!("split_2d({xrange})"),
        };
        match self.split(info, teams())? {
            [Some(x), Some(y)] => Ok((x, y)),
            // Each PE is in a row and in a column.
            _ => Err(Error::Argument {
                call: CALL,
                what: "this PE is in no row or no column".into(),
            }),
        }
    }

    /// Makes `K` teams (two at most), of each of which this PE has the members if it is one of them.
    fn split<const K: usize>(
        &self,
        info: CallInfo<'_>,
        teams: Result<[Option<Group>; K], String>,
    ) -> Result<[Option<Team<'w>>; K]> {
        let (context, parent) = (self.context, self.state());
        let new_team = |members: Group| NewTeam {
            mapped: parent.mapped || context.maps_all(&members),
            members,
        };
        let teams = teams.map(|teams| teams.map(|members| members.map(new_team)));
        let area = &context.pe.sync_area;
        let made = area
            .begin(&context.worker, parent, info, None)
            .split(teams)?;
        Ok(made.map(|team| team.map(|state| Team::owned(context, state))))
    }
}

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
    /// Arguments that differ are not detected, as there is no team yet in which members could compare them: such PEs
    /// wait for one another until `OXSHMEM_TIMEOUT`, if that is set.
    pub fn active_set_team(
        &self,
        (start, stride, size): (usize, isize, usize),
    ) -> Result<Team<'_>> {
        let refused = |what| Error::Argument {
            call: ACTIVE_SET,
            what,
        };
        let area = &self.pe.sync_area;
        let members = area.all.members.strided(start, stride, size);
        let members = members.map_err(refused)?;
        let members = members.ok_or_else(|| refused("this PE is none of the members".into()))?;
        if !self.counts_as_world() {
            return Err(refused(
                "this context has a team's numbers for its PEs".into(),
            ));
        }
        let set = ActiveSet {
            start,
            stride,
            size,
        };
        let (mailbox, mapped) = (self.mailbox(ACTIVE_SET)?, self.maps_all(&members));
        let agreement = Agreement::new(&self.worker, area, mailbox, set, &members, mapped);
        Ok(Team::owned(self, agreement.make()?))
    }

    /// The mailbox, where room for one [was set aside](crate::Builder::active_sets).
    fn mailbox(&self, call: &'static str) -> Result<&Mailbox> {
        self.pe.mailbox.as_ref().ok_or_else(|| Error::Argument {
            call,
            what: "no room was set aside for such teams; call Builder::active_sets before joining"
                .into(),
        })
    }

    /// Whether this PE's CPU loads and stores the symmetric memory of all members.
    fn maps_all(&self, members: &Group) -> bool {
        members.pes().all(|pe| self.maps(pe))
    }

    /// Whether this PE's CPU loads and stores a PE's symmetric memory.
    pub(crate) fn maps(&self, pe: usize) -> bool {
        !self.pe.config.check
            && self
                .pe
                .engine
                .routes
                .get(pe)
                .is_some_and(|route| route.mapped)
    }
}
