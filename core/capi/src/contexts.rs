//! Contexts.

use std::ffi::{c_int, c_long};

use oxshmem::{Context, ContextOptions, Session, SharedContext};

use crate::failure::{Done, Failure, or_end, tell};
use crate::handles::{Ctx, SessionConfig, Team};
use crate::library::{self, Library, on};

const SERIALIZED: c_long = 1;
const PRIVATE: c_long = 2;
const NOSTORE: c_long = 4;
const SESSION_BATCH: c_long = 1;
const SESSION_TOTAL_OPS: c_long = 1;

/// A context, and of which team it is.
pub(crate) struct CtxEntry {
    /// What its user has for itself; what threads share by a lock. The default one is neither.
    own: Option<Box<Context<'static>>>,
    shared: Option<Box<SharedContext<'static>>>,
    pub team: Team,
}

impl CtxEntry {
    /// The context, if who uses it needs no lock.
    #[inline(always)]
    pub(crate) fn own(&self) -> Option<&Context<'static>> {
        self.own.as_deref()
    }

    /// The same if a lock is needed.
    pub(crate) fn shared(&self) -> Option<&SharedContext<'static>> {
        self.shared.as_deref()
    }

    /// Drives what is under way. Where threads make calls at once there is something to drive on shared ones alone.
    pub(crate) fn drive(&self, several: bool) {
        match (&self.own, &self.shared) {
            (Some(own), _) if !several => own.progress(),
            (_, Some(shared)) => shared.progress(),
            _ => {}
        }
    }

    /// Completes what was issued, as in [`drive`](Self::drive).
    pub(crate) fn complete(&self, several: bool) -> oxshmem::Result<()> {
        match (&self.own, &self.shared) {
            (Some(own), _) if !several => own.quiet(),
            (_, Some(shared)) => shared.lock().quiet(),
            _ => Ok(()),
        }
    }

    fn is_default(&self) -> bool {
        self.own.is_none() && self.shared.is_none()
    }
}

pub(crate) fn add_default(library: &Library) {
    library.contexts.add(CtxEntry {
        own: None,
        shared: None,
        team: Team::WORLD,
    });
}

pub(crate) unsafe fn create(call: &'static str, options: c_long, ctx: *mut Ctx) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { create_of_team(call, Team::WORLD, options, ctx) }
}

pub(crate) unsafe fn create_of_team(
    call: &'static str,
    team: Team,
    options: c_long,
    ctx: *mut Ctx,
) -> c_int {
    let made = make(team, options);
    let (handle, status) = match made {
        Ok(handle) => (handle, 0),
        Err(failure) => {
            if team != Team::INVALID {
                tell(call, &failure);
            }
            (Ctx::INVALID, -1)
        }
    };
    if !ctx.is_null() {
        // SAFETY: the caller gives a place for a handle.
        unsafe { ctx.write(handle) };
    }
    status
}

fn make(team: Team, options: c_long) -> Done<Ctx> {
    let library = library::get()?;
    let entry = library.team(team)?;
    if options & !(SERIALIZED | PRIVATE | NOSTORE) != 0 {
        return Err(Failure::argument(
            "options",
            format!("{options:#x} has bits that mean nothing"),
        ));
    }
    let mut wanted = ContextOptions::NONE;
    for (bit, option) in [
        (SERIALIZED, ContextOptions::SERIALIZED),
        (PRIVATE, ContextOptions::PRIVATE),
        (NOSTORE, ContextOptions::NOSTORE),
    ] {
        if options & bit != 0 {
            wanted = wanted | option;
        }
    }
    let made = entry.team.create_context(&library.world, wanted)?;
    // What one thread at a time uses needs none, unless there is something to drive: requests that were put off to be
    // posted together, lanes that were full, answers of messages. While any thread of the PE waits in a call that goes on: the
    // one whose context it is may be in no call for long, or wait for the other by means of its own.
    let needs_lock = options & (SERIALIZED | PRIVATE) == 0 || library.uses_lanes;
    let (own, shared) = match library.threads().is_some() && needs_lock {
        true => (None, Some(Box::new(made.share()))),
        false => (Some(Box::new(made)), None),
    };
    let handle = library.contexts.add(CtxEntry { own, shared, team });
    match handle {
        Some(handle) => Ok(Ctx(handle)),
        None => Err(Failure::argument(
            "ctx",
            "there are too many contexts; destroy some",
        )),
    }
}

pub(crate) fn destroy(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        or_end(call, library::get().and_then(|library| end(library, ctx)));
    }
}

fn end(library: &Library, ctx: Ctx) -> Done {
    if ctx == Ctx::DEFAULT {
        return Err(Failure::argument(
            "ctx",
            "the default context ends with the library",
        ));
    }
    let entry = library.contexts.remove(ctx.0);
    match entry.map(|entry| (entry.own, entry.shared)) {
        Some((Some(own), _)) => Ok(own.destroy()?),
        Some((_, Some(shared))) => Ok(shared.destroy()?),
        _ => Err(Failure::argument(
            "ctx",
            "this is no context, or was destroyed",
        )),
    }
}

/// Ends a team's contexts.
pub(crate) fn destroy_of(library: &Library, team: Team) -> Done {
    let of_team = |entry: &CtxEntry| entry.team == team && !entry.is_default();
    for handle in library.contexts.all(of_team) {
        end(library, Ctx(handle))?;
    }
    Ok(())
}

/// Ends all contexts that are left.
pub(crate) fn destroy_all(library: &Library) {
    for handle in library.contexts.all(|entry| !entry.is_default()) {
        if let Err(failure) = end(library, Ctx(handle)) {
            tell("shmem_finalize", &failure);
        }
    }
}

pub(crate) unsafe fn get_team(_: &'static str, ctx: Ctx, team: *mut Team) -> c_int {
    let of = library::get()
        .ok()
        .and_then(|library| library.contexts.get(ctx.0));
    let found = of.map_or(Team::INVALID, |entry| entry.team);
    if !team.is_null() {
        // SAFETY: the caller gives a place for a handle.
        unsafe { team.write(found) };
    }
    match found {
        Team::INVALID => -1,
        _ => 0,
    }
}

pub(crate) unsafe fn session_start(
    call: &'static str,
    ctx: Ctx,
    options: c_long,
    config: *const SessionConfig,
    mask: c_long,
) {
    if ctx == Ctx::INVALID {
        return;
    }
    let mut session = Session::default();
    if options & SESSION_BATCH != 0 {
        session = session.batch();
    }
    if mask & SESSION_TOTAL_OPS != 0 && !config.is_null() {
        // SAFETY: the caller gives a configuration, or null.
        session = session.total_ops(unsafe { (*config).total_ops });
    }
    on!(call, ctx, |_library, context| {
        context.session_start(session);
        Done::Ok(())
    });
}

pub(crate) fn session_stop(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        on!(call, ctx, |_library, context| {
            context.session_stop();
            Done::Ok(())
        });
    }
}
