//! Teams: some of a world's PEs, in an order of their own, that make collective calls together.

mod active_set;
mod call;
mod detached;
mod eager;
mod explain;
mod group;
mod hierarchy;
mod mailbox;
mod proposal;
mod slots;
mod split;
mod state;

use std::fmt;

pub(crate) use self::call::{CallInfo, CollectiveCall};
pub use self::detached::{AttachedTeam, DetachedTeam};
pub(crate) use self::group::Group;
pub(crate) use self::hierarchy::HostGroups;
pub(crate) use self::mailbox::Mailbox;
use self::proposal::SlotProposal;
pub(crate) use self::slots::{Pool, SlotBudget};
pub(crate) use self::state::{JobShape, Layout, TeamState};
use crate::place::placed;
use crate::sync_area::CallSignature;
use crate::{Context, ContextOptions, Error, Result, World};

/// Some of a world's PEs, numbered from 0 in an order of their own, that make collective calls together.
///
/// There is always the team of all PEs ([`World::team`]) and that of the PEs that share memory
/// ([`World::shared_team`]); others are split off a *parent* team, by a call that is collective over the
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
/// which. What streams have to do with them before is synchronized, and the result is there for streams when the
/// call returns.
///
/// A lost member ends each of the team's calls with [`Error::PeerLost`]; a lost PE that is not a member
/// does not disturb it, but for the quiet of a [`barrier`](Team::barrier) where something was on its way there
/// ([`World::acknowledge_lost`]). Errors name PEs by their numbers in the world.
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
    pub(crate) world: &'w Context<'w>,
    held: Held<'w>,
    config: TeamConfig,
}

/// What a program says about its use of a team.
#[doc(alias = "shmem_team_config_t")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TeamConfig {
    /// How many contexts it means to have at a time. A hint: as many are made as are asked for.
    pub num_contexts: usize,
}

enum Held<'w> {
    /// One that is always there, or that a [`DetachedTeam`] has.
    Always(&'w TeamState),
    /// One that was made, and can be destroyed.
    Made(Box<TeamState>),
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("pe", &self.my_pe())
            .field("pes", &self.n_pes())
            .field("members", &self.core().members)
            .finish()
    }
}

/// Whether both are one team, not just teams of the same PEs.
impl PartialEq for Team<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.core(), other.core())
    }
}
impl Eq for Team<'_> {}

impl World {
    /// The team of all PEs, with their numbers in the world.
    #[doc(alias("SHMEM_TEAM_WORLD", "NVSHMEM_TEAM_WORLD", "MPI_COMM_WORLD"))]
    #[must_use]
    pub fn team(&self) -> Team<'_> {
        Team::always(self, &self.shared.sync_area.all)
    }

    /// The team of the PEs whose memory this PE loads and stores, and they its (M8), in ascending order:
    /// those of its host, or this one alone where one of them does not map another, and in checked mode.
    #[doc(alias("SHMEM_TEAM_SHARED", "NVSHMEM_TEAM_SHARED", "NVSHMEMX_TEAM_NODE"))]
    #[doc(alias = "MPI_Comm_split_type")]
    #[must_use]
    pub fn shared_team(&self) -> Team<'_> {
        Team::always(self, &self.shared.sync_area.shared)
    }

    /// [`bindings::team_room`](crate::bindings::team_room).
    pub(crate) fn team_room(&self) -> usize {
        self.shared.sync_area.pool.room().splits().len()
    }
}

impl<'w> Team<'w> {
    fn always(world: &'w Context<'w>, core: &'w TeamState) -> Self {
        Team {
            world,
            held: Held::Always(core),
            config: TeamConfig::default(),
        }
    }

    /// A new one in a slot that all members have reserved, given what they told of themselves together.
    fn made(
        world: &'w Context<'w>,
        members: Group,
        (slot, told): (usize, &SlotProposal),
    ) -> Result<Self> {
        let internal = &world.shared.sync_area;
        let core = internal
            .pool
            .acquire(slot, members, told.mapped, told.epoch)?
            .on_hosts(internal.hosts.as_deref());
        Ok(Team {
            world,
            held: Held::Made(Box::new(core)),
            config: TeamConfig::default(),
        })
    }

    pub(crate) fn core(&self) -> &TeamState {
        match &self.held {
            Held::Always(core) => core,
            Held::Made(core) => core,
        }
    }

    /// This PE's number in the team, from 0.
    #[doc(alias("shmem_team_my_pe", "nvshmem_team_my_pe", "MPI_Comm_rank"))]
    #[must_use]
    pub fn my_pe(&self) -> usize {
        self.core().members.me()
    }

    /// Number of PEs in the team.
    #[doc(alias("shmem_team_n_pes", "nvshmem_team_n_pes", "MPI_Comm_size"))]
    #[must_use]
    pub fn n_pes(&self) -> usize {
        self.core().members.len()
    }

    /// The number that PE `pe` of this team has in another team; none if one of the two does not have it, or
    /// if they are of two worlds.
    #[doc(alias("shmem_team_translate_pe", "nvshmem_team_translate_pe"))]
    #[doc(alias = "MPI_Group_translate_ranks")]
    #[must_use]
    pub fn translate(&self, pe: usize, to: &Team<'_>) -> Option<usize> {
        if self.world.tag != to.world.tag {
            return None;
        }
        // No team has the number that stands for none.
        to.core().members.rank_of(self.core().members.pe(pe))
    }

    /// The numbers in the world of the team's PEs, in its order.
    pub fn world_pes(&self) -> impl Iterator<Item = usize> + '_ {
        self.core().members.pes()
    }

    /// What was said about the team's use.
    #[doc(alias = "shmem_team_get_config")]
    #[must_use]
    pub fn config(&self) -> TeamConfig {
        self.config
    }

    /// Says how this PE will use the team. Not collective.
    #[must_use]
    pub fn with_config(mut self, config: TeamConfig) -> Self {
        self.config = config;
        self
    }

    /// Whether its room is for one call, of a team that its members have made [among
    /// themselves](crate::Context::team_among): they destroy it after that, and make another for the next. They have got
    /// none of the room for those that are kept. The same on all members.
    #[must_use]
    pub fn is_for_one_call(&self) -> bool {
        let room = self.world.shared.sync_area.pool.room();
        self.core().slot().is_some_and(|slot| room.is_passing(slot))
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
        placed(|| self.core().context(self.world, options))
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
        let Held::Made(core) = self.held else {
            return Err(Error::Argument {
                call: CALL,
                what: "this team is always there, and ends with the world".into(),
            });
        };
        let call = CallInfo {
            name: CALL,
            digest: const { CallSignature::of(CALL) },
            words: &|| "team destroy()".into(),
        };
        let mut turn = core.turn(self.world, call, None);
        turn.arrive(Ok(()))?;
        // That all came, and that nobody gave the call up, whose word would come late.
        turn.part()?;
        // Each word that was sent to this PE in this epoch it has heard, and by that all before: nothing
        // is on its way any more.
        turn.clean();
        if let Some(slot) = core.slot() {
            let pool = &self.world.shared.sync_area.pool;
            pool.release(slot, turn.epoch());
        }
        Ok(())
    }
}
