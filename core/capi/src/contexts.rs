//! Contexts.

use std::ffi::{c_int, c_long};

use oxshmem::{Context, ContextOptions, Session};

use crate::failure::{Done, Failure, or_end, tell};
use crate::handles::{Ctx, SessionConfig, Team};
use crate::library::{self, Library};

const SERIALIZED: c_long = 1;
const PRIVATE: c_long = 2;
const NOSTORE: c_long = 4;
const SESSION_BATCH: c_long = 1;
const SESSION_TOTAL_OPS: c_long = 1;

/// A context, and of which team it is.
pub(crate) struct CtxEntry {
    /// None is the default one, which the world is.
    made: Option<Box<Context<'static>>>,
    pub team: Team,
}

impl CtxEntry {
    pub(crate) fn context(&'static self, library: &'static Library) -> &'static Context<'static> {
        match &self.made {
            Some(made) => made,
            None => &library.world,
        }
    }
}

pub(crate) fn add_default(library: &Library) {
    library.contexts.add(CtxEntry {
        made: None,
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
    let made = Box::new(entry.team.create_context(wanted)?);
    let handle = library.contexts.add(CtxEntry {
        made: Some(made),
        team,
    });
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
    let made = entry.and_then(|entry| entry.made);
    let Some(made) = made else {
        return Err(Failure::argument(
            "ctx",
            "this is no context, or was destroyed",
        ));
    };
    Ok(made.destroy()?)
}

/// Ends a team's contexts.
pub(crate) fn destroy_of(library: &Library, team: Team) -> Done {
    for handle in library.contexts.all() {
        let entry = library.contexts.get(handle);
        if entry.is_some_and(|entry| entry.team == team && entry.made.is_some()) {
            end(library, Ctx(handle))?;
        }
    }
    Ok(())
}

/// Ends all contexts that are left.
pub(crate) fn destroy_all(library: &Library) {
    for handle in library.contexts.all() {
        if handle != Ctx::DEFAULT.0
            && let Err(failure) = end(library, Ctx(handle))
        {
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
    let (_, context) = or_end(call, library::context(ctx));
    let mut session = Session::default();
    if options & SESSION_BATCH != 0 {
        session = session.batch();
    }
    if mask & SESSION_TOTAL_OPS != 0 && !config.is_null() {
        // SAFETY: the caller gives a configuration, or null.
        session = session.total_ops(unsafe { (*config).total_ops });
    }
    context.session_start(session);
}

pub(crate) fn session_stop(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        or_end(call, library::context(ctx)).1.session_stop();
    }
}
