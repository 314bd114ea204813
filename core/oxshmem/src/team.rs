//! Teams: some of a world's PEs, in an order of their own, that make collective calls together.

pub(crate) mod collectives;
pub(crate) mod creation;
pub(crate) mod detached;
pub(crate) mod reductions;
pub(crate) mod world;

use std::fmt;

use crate::context::Context;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::place::placed;
use oxshmem_collectives::call::CallInfo;
use oxshmem_collectives::signature::CallSignature;
use oxshmem_collectives::team::TeamState;

/// Some of a world's PEs, numbered from 0 in an order of their own, that make collective calls together.
///
/// There is always the team of all PEs ([`World::team`](crate::World::team)) and that of the PEs that share memory
/// ([`World::shared_team`](crate::World::shared_team)); others are split off a *parent* team, by a call that is collective over the
/// parent: a PE that the new team does not have gets `None`, and so cannot call it. Teams are used at once
/// and freely beside each other; calls of one team come in the same order on all its members.
///
/// ```
/// use oxshmem::{Result, testing::spmd};
///
/// fn main() -> Result<()> {
///     spmd(4, |world| {
///         let evens = world.team().split_strided(0, 2, 2)?; // PEs 0 and 2
///         if let Some(evens) = &evens {
///             assert_eq!(evens.my_pe(), world.my_pe() / 2);
///             assert_eq!(evens.translate(1, &world.team()), Some(2));
///             evens.sync()?;
///         }
///         if let Some(evens) = evens { evens.destroy()?; }
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
///
/// Objects of a call lie in host or in GPU memory, destination and source each in either; all members agree on
/// which. The caller synchronizes the streams that use them before, and streams see the result when the
/// call returns.
///
/// A lost member ends each of the team's calls with [`Error::PeerLost`]. A lost PE that is not a member
/// does not disturb it, but for the quiet of a [`barrier`](Team::barrier) where operations towards it were in flight
/// ([`World::acknowledge_lost`](crate::World::acknowledge_lost)). Errors name PEs by their numbers in the world.
///
/// A PE has room for `OXSHMEM_TEAMS` teams at the same time, 256 by default, and a new team needs the same
/// room on all its members: where they are in different other teams, that may be fewer. Room for one is 1,152
/// to 1,536 bytes of each PE's symmetric heap in worlds of up to 4,096 PEs on one host, up to 2,432 where they are
/// on several of one size, and up to 4,096 where hosts differ much; set aside when the world is joined.
///
/// A team is bound to a context, the world's default one at first, and is used by one thread at a time, as that.
/// [Detached](Team::detach), it goes to another thread:
///
/// ```compile_fail,E0277
/// # oxshmem::testing::spmd(1, |world| {
/// let team = world.team();
/// std::thread::scope(|threads| {
///     threads.spawn(|| team.sync()); // `Team` is neither `Sync` nor `Send`: does not compile
/// });
/// # Ok(()) });
/// ```
///
/// It cannot be used once it is destroyed:
///
/// ```compile_fail,E0382
/// # fn f(team: oxshmem::Team<'_>) -> oxshmem::Result<()> {
/// team.destroy()?;
/// team.sync()
/// # }
/// ```
///
/// nor outlive its world:
///
/// ```compile_fail,E0505
/// # fn f(world: oxshmem::World) -> oxshmem::Result<()> {
/// let team = world.team();
/// world.finalize()?;
/// team.sync()
/// # }
/// ```
#[doc(alias = "shmem_team_t")]
pub struct Team<'w> {
    /// The context that it is bound to.
    context: &'w Context<'w>,
    held: Held<'w>,
    config: TeamConfig,
}

/// A program's hints about its use of a team.
#[doc(alias = "shmem_team_config_t")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TeamConfig {
    /// The number of contexts that it means to have at a time. A hint: as many are made as are asked for.
    pub num_contexts: usize,
}

enum Held<'w> {
    /// A permanent team, or one that a [`DetachedTeam`](crate::DetachedTeam) has.
    Borrowed(&'w TeamState),
    /// A team that was made, and can be destroyed.
    Owned(Box<TeamState>),
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("pe", &self.my_pe())
            .field("pes", &self.n_pes())
            .field("members", &self.state().members)
            .finish()
    }
}

/// Whether both are one team, not just teams of the same PEs.
impl PartialEq for Team<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.state(), other.state())
    }
}
impl Eq for Team<'_> {}

impl<'w> Team<'w> {
    /// A team that is always there.
    fn permanent(context: &'w Context<'w>, state: &'w TeamState) -> Self {
        Team {
            context,
            held: Held::Borrowed(state),
            config: TeamConfig::default(),
        }
    }

    /// A new team.
    fn owned(context: &'w Context<'w>, state: TeamState) -> Self {
        Team {
            context,
            held: Held::Owned(Box::new(state)),
            config: TeamConfig::default(),
        }
    }

    /// The context that it is bound to.
    #[cfg(feature = "cuda")]
    pub(crate) fn context(&self) -> &Context<'w> {
        self.context
    }

    pub(crate) fn state(&self) -> &TeamState {
        match &self.held {
            Held::Borrowed(state) => state,
            Held::Owned(state) => state,
        }
    }

    /// This PE's number in the team, from 0.
    #[doc(alias("shmem_team_my_pe", "nvshmem_team_my_pe", "MPI_Comm_rank"))]
    #[must_use]
    pub fn my_pe(&self) -> usize {
        self.state().members.me()
    }

    /// Number of PEs in the team.
    #[doc(alias("shmem_team_n_pes", "nvshmem_team_n_pes", "MPI_Comm_size"))]
    #[must_use]
    pub fn n_pes(&self) -> usize {
        self.state().members.len()
    }

    /// The number that PE `pe` of this team has in another team; none if one of the two does not have it, or
    /// if they are of two worlds.
    #[doc(alias("shmem_team_translate_pe", "nvshmem_team_translate_pe"))]
    #[doc(alias = "MPI_Group_translate_ranks")]
    #[must_use]
    pub fn translate(&self, pe: usize, to: &Team<'_>) -> Option<usize> {
        if self.context.worker.tag != to.context.worker.tag {
            return None;
        }
        // No team has the number that stands for none.
        to.state().members.rank_of(self.state().members.pe(pe))
    }

    /// The numbers in the world of the team's PEs, in its order.
    pub fn world_pes(&self) -> impl Iterator<Item = usize> + '_ {
        self.state().members.pes()
    }

    /// The hints about the team's use.
    #[doc(alias = "shmem_team_get_config")]
    #[must_use]
    pub fn config(&self) -> TeamConfig {
        self.config
    }

    /// Sets the hints about this PE's use of the team. Not collective.
    #[must_use]
    pub fn with_config(mut self, config: TeamConfig) -> Self {
        self.config = config;
        self
    }

    /// Whether the team's slot is for one call, of a team of an [active set](crate::Context::active_set_team): its members
    /// destroy it after that, and make another for the next. They have got
    /// no slot of those for teams that are kept. The same on all members.
    #[must_use]
    pub fn is_for_one_call(&self) -> bool {
        let budget = self.context.pe.sync_area.pool.budget();
        self.state()
            .slot()
            .is_some_and(|slot| budget.is_passing(slot))
    }

    /// Makes a context for operations towards the team's PEs, by their numbers in the team. Not collective.
    /// It ends before the team.
    ///
    /// # Errors
    ///
    /// As [`Context::create_context`].
    #[doc(alias = "shmem_team_create_ctx")]
    #[track_caller]
    pub fn create_context(&self, options: ContextOptions) -> Result<Context<'_>> {
        placed(|| create_context(self.state(), self.context, options))
    }

    /// Ends the team and gives its room back. Collective over the team, whose members have ended their
    /// other calls of it. A team that is merely dropped keeps its room until its world ends; so does one that has lost
    /// a member, since a late word of that could be taken for another team's.
    ///
    /// # Errors
    ///
    /// The teams that are always there cannot be destroyed. Where a member calls another collective or is
    /// lost, as of any collective call; the team is gone then, and keeps its room.
    #[doc(alias("shmem_team_destroy", "nvshmem_team_destroy", "MPI_Comm_free"))]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        placed(|| self.destroy_inner())
    }

    fn destroy_inner(self) -> Result<()> {
        const CALL: &str = "team destroy";
        let Held::Owned(state) = self.held else {
            return Err(Error::Argument {
                call: CALL,
                what: "this team is always there, and ends with the world".into(),
            });
        };
        let info = CallInfo {
            name: CALL,
            signature: const { CallSignature::of(CALL) },
            words: &|| "team destroy()".into(),
        };
        let area = &self.context.pe.sync_area;
        let call = area.begin(&self.context.worker, &state, info, None);
        Ok(call.destroy()?)
    }
}

/// Makes a context for operations towards a team's members, by their numbers in the team. The caller says how long it
/// lives: no longer than the team.
fn create_context<'c>(
    team: &TeamState,
    of: &Context<'_>,
    options: ContextOptions,
) -> Result<Context<'c>> {
    if std::ptr::eq(team, &raw const of.pe.sync_area.all) {
        return of.context_of(None, options);
    }
    let pes = team.members.pes().map(|pe| pe as u32).collect();
    of.context_of(Some(&pes), options)
}
