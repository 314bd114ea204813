//! Contexts.

use std::ffi::{c_int, c_long};

use oxshmem::{ContextOptions, Session};

use crate::call::with_context;
use crate::entries::CtxEntry;
use crate::failure::{CResult, Failure, or_abort_job, report};
use crate::handles::{Ctx, SessionConfig, Team};
use crate::library::{self, Library};

const SERIALIZED: c_long = 1;
const PRIVATE: c_long = 2;
const NOSTORE: c_long = 4;
const SESSION_BATCH: c_long = 1;
const SESSION_TOTAL_OPS: c_long = 1;

pub(crate) fn add_default(library: &Library) {
    library.contexts.add(CtxEntry::default_context());
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
                report(call, &failure);
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

fn make(team: Team, options: c_long) -> CResult<Ctx> {
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
    // A context that one thread at a time uses needs no lock, unless its operations need progress: requests that were held
    // back to be posted together, full lanes, replies to messages. Any thread of the PE that waits in a call makes that
    // progress: the context's own thread may be in no call for long, or wait for the other by means of its own.
    let needs_lock = options & (SERIALIZED | PRIVATE) == 0 || library.uses_lanes;
    let needs_lock = needs_lock && library.threads().is_some();
    let handle = library.contexts.add(CtxEntry::new(made, needs_lock, team));
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
        or_abort_job(call, library::get().and_then(|library| end(library, ctx)));
    }
}

fn end(library: &Library, ctx: Ctx) -> CResult {
    if ctx == Ctx::DEFAULT {
        return Err(Failure::argument(
            "ctx",
            "the default context ends with the library",
        ));
    }
    let entry = library.contexts.remove(ctx.0);
    match entry.and_then(CtxEntry::destroy) {
        Some(destroyed) => Ok(destroyed?),
        None => Err(Failure::argument(
            "ctx",
            "this is no context, or was destroyed",
        )),
    }
}

/// Ends a team's contexts.
pub(crate) fn destroy_of(library: &Library, team: Team) -> CResult {
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
            report("shmem_finalize", &failure);
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
    with_context!(call, ctx, |_library, context| {
        context.session_start(session);
        CResult::Ok(())
    });
}

pub(crate) fn session_stop(call: &'static str, ctx: Ctx) {
    if ctx != Ctx::INVALID {
        with_context!(call, ctx, |_library, context| {
            context.session_stop();
            CResult::Ok(())
        });
    }
}
