//! Teams apart from a context, for threads that each have one.

use std::fmt;
use std::ops::Deref;

use crate::context::Context;
use crate::context::options::ContextOptions;
use crate::error::{Error, Result};
use crate::team::{Held, Team, TeamConfig, create_context};
use oxshmem_collectives::team::TeamState;

/// A team that is not bound to a thread's context: it may go to any thread, and be shared by them. Made by
/// [`Team::detach`].
///
/// A thread makes the team's calls once it has [attached](Self::attach) it to a context of its own. Threads of one PE
/// make calls of different teams at once, and beside those of the thread that has the world. Calls of *one*
/// team come in the same order on all members, so that a program does not let two threads of a PE make them at once: the second
/// waits until the first has returned, and which one that is may differ from PE to PE.
///
/// ```
/// use oxshmem::{ContextOptions, Fold, Result, Team, testing::spmd};
///
/// fn main() -> Result<()> {
///     spmd(2, |world| {
///         let sums = world.alloc_zeroed::<u64>(2)?;
///         let make = |_| -> Result<_> {
///             let team = world.team().split_strided(0, 1, 2)?.map(Team::detach);
///             Ok((team, world.create_context(ContextOptions::NONE)?))
///         };
///         let made: Vec<_> = (0..2).map(make).collect::<Result<_>>()?;
///         std::thread::scope(|threads| {
///             for (i, (team, context)) in made.into_iter().enumerate() {
///                 threads.spawn(move || -> Result<()> {
///                     let Some(team) = team else { return Ok(()) };
///                     let team = team.into_team(&context)?;
///                     let sum = sums.at(i)?;
///                     context.write(sum, &[i as u64 + 1])?;
///                     team.reduce(sum, sum, Fold::Sum)?;
///                     team.destroy()
///                 });
///             }
///         });
///         assert_eq!(world.g(sums.at(1)?, world.my_pe())?, 4);
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
///
/// It names the team and keeps nothing of the world alive; with a context of another world it is refused.
#[doc(alias = "shmem_team_t")]
pub struct DetachedTeam {
    /// The world's tag.
    tag: u32,
    which: Which,
    config: TeamConfig,
}

enum Which {
    All,
    Shared,
    Owned(Box<TeamState>),
}

/// A [`DetachedTeam`] on a thread's context: it has the calls of a [`Team`], but for those that end it.
///
/// ```compile_fail,E0507
/// # fn f(team: &oxshmem::DetachedTeam, context: &oxshmem::Context<'_>) -> oxshmem::Result<()> {
/// team.attach(context)?.destroy() // others may have it: `into_team` is for that
/// # }
/// ```
pub struct AttachedTeam<'t>(Team<'t>);

impl<'t> Deref for AttachedTeam<'t> {
    type Target = Team<'t>;
    fn deref(&self) -> &Team<'t> {
        &self.0
    }
}

impl fmt::Debug for AttachedTeam<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AttachedTeam").field(&self.0).finish()
    }
}

impl fmt::Debug for DetachedTeam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut team = f.debug_struct("DetachedTeam");
        match &self.which {
            Which::All => team.field("members", &"all PEs"),
            Which::Shared => team.field("members", &"the PEs that share memory"),
            Which::Owned(state) => team.field("members", &state.members),
        };
        team.finish()
    }
}

impl Team<'_> {
    /// The team without its context, for other threads. Not collective.
    ///
    /// Contexts that the team made have ended:
    ///
    /// ```compile_fail,E0505
    /// # fn f(team: oxshmem::Team<'_>) -> oxshmem::Result<()> {
    /// let context = team.create_context(oxshmem::ContextOptions::NONE)?;
    /// let team = team.detach();
    /// context.quiet()
    /// # }
    /// ```
    #[must_use]
    pub fn detach(self) -> DetachedTeam {
        let all = &self.context.pe.sync_area.all;
        DetachedTeam {
            tag: self.context.worker.tag,
            which: match self.held {
                Held::Owned(state) => Which::Owned(state),
                // There are two of these.
                Held::Borrowed(state) if std::ptr::eq(state, all) => Which::All,
                Held::Borrowed(_) => Which::Shared,
            },
            config: self.config,
        }
    }
}

impl DetachedTeam {
    /// The team on a context: calls go by its lanes, and a [barrier](Team::barrier) completes what was
    /// issued on it. Not collective.
    ///
    /// While it is attached anywhere, it is not ended:
    ///
    /// ```compile_fail,E0505
    /// # fn f(team: oxshmem::DetachedTeam, context: oxshmem::Context<'_>) -> oxshmem::Result<()> {
    /// let attached = team.attach(&context)?;
    /// team.into_team(&context)?.destroy()?;
    /// attached.sync()
    /// # }
    /// ```
    ///
    /// nor is its context:
    ///
    /// ```compile_fail,E0505
    /// # fn f(team: oxshmem::DetachedTeam, context: oxshmem::Context<'_>) -> oxshmem::Result<()> {
    /// let attached = team.attach(&context)?;
    /// context.destroy()?;
    /// attached.sync()
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] where the context is another world's; [`Error::Argument`] where it was made for a
    /// team that is not all PEs in the world's order, and so has numbers of its own for them.
    #[inline]
    pub fn attach<'t>(&'t self, context: &'t Context<'_>) -> Result<AttachedTeam<'t>> {
        self.check(context)?;
        let state = self.state(context);
        Ok(AttachedTeam(Team {
            context,
            held: Held::Borrowed(state),
            config: self.config,
        }))
    }

    /// Announces that this PE makes no further call of the team, whatever the others do. Not collective: a member
    /// that waits for this PE in a call, or enters one later, gets [`Error::CollectivesEnded`]. It is for a PE that
    /// is about to [quiesce](crate::bindings::quiesce), and keeps teams that others may be in calls of; for the
    /// world's own team that call does the same. If another thread is in a call of the team it does nothing.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    pub fn leave(&self, context: &Context<'_>) -> Result<()> {
        self.check(context)?;
        if !matches!(self.which, Which::All) {
            self.state(context)
                .leave(&context.worker, &context.pe.sync_area);
        }
        Ok(())
    }

    /// Makes a context for operations towards the team's PEs, as [`Team::create_context`]. Not collective. It ends
    /// before the team, and uses nothing of `of`, which only names the world.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] where `of` is another world's; and as of [`Context::create_context`].
    pub fn create_context<'c>(
        &'c self,
        of: &'c Context<'_>,
        options: ContextOptions,
    ) -> Result<Context<'c>> {
        if of.worker.tag != self.tag {
            return Err(Error::Foreign {
                call: "create_context",
            });
        }
        create_context(self.state(of), of, options)
    }

    #[inline]
    fn state<'t>(&'t self, context: &'t Context<'_>) -> &'t TeamState {
        let area = &context.pe.sync_area;
        match &self.which {
            Which::All => &area.all,
            Which::Shared => &area.shared,
            Which::Owned(state) => state,
        }
    }

    /// The team for one thread alone again, which can [destroy](Team::destroy) it. Not collective.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach). The team is gone then, and keeps its room.
    pub fn into_team<'c>(self, context: &'c Context<'_>) -> Result<Team<'c>> {
        self.check(context)?;
        let area = &context.pe.sync_area;
        Ok(Team {
            context,
            held: match self.which {
                Which::All => Held::Borrowed(&area.all),
                Which::Shared => Held::Borrowed(&area.shared),
                Which::Owned(state) => Held::Owned(state),
            },
            config: self.config,
        })
    }

    #[inline]
    fn check(&self, context: &Context<'_>) -> Result<()> {
        const CALL: &str = "attach";
        if context.worker.tag != self.tag {
            return Err(Error::Foreign { call: CALL });
        }
        if context.counts_as_world() {
            return Ok(());
        }
        Err(Error::Argument {
            call: CALL,
            what: "this context has a team's numbers for its PEs; use one that the world has made"
                .into(),
        })
    }
}
