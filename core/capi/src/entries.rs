//! Contexts and teams as the library's tables hold them.

use std::ffi::c_int;
use std::sync::OnceLock;

use oxshmem::{AttachedTeam, Context, DetachedTeam, SharedContext, World, bindings};

use crate::handles::{Table, Team};

/// A context, and its team.
pub(crate) struct CtxEntry {
    /// The context, if its user holds it exclusively, or else if threads share it by a lock. The default one is neither.
    own: Option<Box<Context<'static>>>,
    shared: Option<Box<SharedContext<'static>>>,
    pub team: Team,
}

impl CtxEntry {
    /// The default context, which the library itself holds.
    pub(crate) fn default_context() -> Self {
        CtxEntry {
            own: None,
            shared: None,
            team: Team::WORLD,
        }
    }

    /// A context that needs a lock or not.
    pub(crate) fn new(context: Context<'static>, needs_lock: bool, team: Team) -> Self {
        let (own, shared) = if needs_lock {
            (None, Some(Box::new(context.share())))
        } else {
            (Some(Box::new(context)), None)
        };
        CtxEntry { own, shared, team }
    }

    /// The context, if its users need no lock.
    #[inline(always)]
    pub(crate) fn own(&self) -> Option<&Context<'static>> {
        self.own.as_deref()
    }

    /// The same if they need a lock.
    pub(crate) fn shared(&self) -> Option<&SharedContext<'static>> {
        self.shared.as_deref()
    }

    /// Makes progress on operations in flight. Where threads make calls at once, shared contexts alone have any.
    pub(crate) fn progress(&self, several: bool) {
        match (&self.own, &self.shared) {
            (Some(own), _) if !several => own.progress(),
            (_, Some(shared)) => shared.progress(),
            _ => {}
        }
    }

    /// Completes what was issued, on the contexts of [`progress`](Self::progress).
    pub(crate) fn quiet(&self, several: bool) -> oxshmem::Result<()> {
        match (&self.own, &self.shared) {
            (Some(own), _) if !several => own.quiet(),
            (_, Some(shared)) => shared.lock().quiet(),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        self.own.is_none() && self.shared.is_none()
    }

    /// Completes and ends the context; none of the default one.
    pub(crate) fn destroy(self) -> Option<oxshmem::Result<()>> {
        match (self.own, self.shared) {
            (Some(own), _) => Some(own.destroy()),
            (_, Some(shared)) => Some(shared.destroy()),
            _ => None,
        }
    }
}

/// A team, and its configuration.
pub(crate) struct TeamEntry {
    /// Calls attach it to the context that they use. It is in use until it is taken out of the table: contexts of it refer
    /// to it.
    pub team: DetachedTeam,
    pub num_contexts: c_int,
}

impl TeamEntry {
    pub(crate) fn new(team: DetachedTeam, num_contexts: c_int) -> Self {
        TeamEntry { team, num_contexts }
    }

    /// The team, for questions about its members.
    pub(crate) fn members<'t>(&'t self, world: &'t World) -> Option<AttachedTeam<'t>> {
        self.team.attach(world).ok()
    }
}

/// The teams that are always there.
pub(crate) fn predefined_teams(world: &World) -> [oxshmem::Team<'_>; 2] {
    [world.team(), world.shared_team()]
}

/// A table with an entry for each team that the PE has room for, so that none is refused on one PE alone when all have room.
pub(crate) fn team_table(world: &World) -> Table<TeamEntry> {
    Table::new(predefined_teams(world).len() + bindings::team_room(world))
}

/// The arguments of a collective call for an active set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActiveSet {
    pub start: c_int,
    pub log_stride: c_int,
    pub size: c_int,
}

/// Active sets with their teams: a list, which only grows.
#[derive(Default)]
pub(crate) struct ActiveSets(OnceLock<Box<ActiveSetEntry>>);

struct ActiveSetEntry {
    set: ActiveSet,
    team: DetachedTeam,
    next: ActiveSets,
}

impl ActiveSets {
    /// The team of a set, if it has one. Takes no lock: calls find it here each time.
    #[inline(always)]
    pub(crate) fn find(&self, set: ActiveSet) -> Option<&DetachedTeam> {
        let mut at = self;
        while let Some(entry) = at.0.get() {
            if entry.set == set {
                return Some(&entry.team);
            }
            at = &entry.next;
        }
        None
    }

    /// Keeps a team for as long as the library is initialized; a few hundred bytes.
    pub(crate) fn add(&self, set: ActiveSet, team: DetachedTeam) -> &DetachedTeam {
        let mut added = Some(Box::new(ActiveSetEntry {
            set,
            team,
            next: ActiveSets::default(),
        }));
        let mut at = self;
        loop {
            // Another thread may be first at each link.
            added = added.and_then(|entry| at.0.set(entry).err());
            // One of the two has filled it now.
            let Some(entry) = at.0.get() else { continue };
            if added.is_none() {
                return &entry.team;
            }
            at = &entry.next;
        }
    }
}
