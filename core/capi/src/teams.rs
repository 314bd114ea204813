//! Teams.

use std::ffi::{c_int, c_long};

use oxshmem::{AttachedTeam, DetachedTeam};

use crate::collectives::with;
use crate::contexts;
use crate::entries::{TeamEntry, predefined_teams};
use crate::failure::{CResult, Failure, or_abort_job, report};
use crate::handles::{Team, TeamConfig};
use crate::library::{self, Library};

const NUM_CONTEXTS: c_long = 1;

pub(crate) fn add_predefined(library: &'static Library) {
    for team in predefined_teams(&library.world) {
        library.teams.add(TeamEntry::new(team.detach(), 0));
    }
}

/// Ends the waits of PEs for this one in calls of teams that it has not destroyed: it makes none of these calls any more.
pub(crate) fn leave_all(library: &Library) {
    library.teams.each_if_free(|entry| {
        // Always of this world.
        let _ = entry.team.leave(&library.world);
    });
}

fn find(team: Team) -> Option<(&'static Library, &'static TeamEntry)> {
    let library = library::get().ok()?;
    Some((library, library.teams.get(team.0)?))
}

fn members(team: Team) -> Option<AttachedTeam<'static>> {
    let (library, entry) = find(team)?;
    entry.members(&library.world)
}

pub(crate) fn my_pe(_: &'static str, team: Team) -> c_int {
    members(team).map_or(-1, |team| team.my_pe() as c_int)
}

pub(crate) fn n_pes(_: &'static str, team: Team) -> c_int {
    members(team).map_or(-1, |team| team.n_pes() as c_int)
}

pub(crate) fn translate_pe(_: &'static str, source: Team, pe: c_int, to: Team) -> c_int {
    let place = || {
        let (source, to) = (members(source)?, members(to)?);
        source.translate(usize::try_from(pe).ok()?, &to)
    };
    place().map_or(-1, |pe| pe as c_int)
}

pub(crate) unsafe fn get_config(
    _: &'static str,
    team: Team,
    mask: c_long,
    config: *mut TeamConfig,
) -> c_int {
    let Some((_, entry)) = find(team) else {
        return -1;
    };
    match mask {
        0 => 0,
        NUM_CONTEXTS if !config.is_null() => {
            let num_contexts = entry.num_contexts;
            // SAFETY: the caller gives a place for a configuration.
            unsafe { config.write(TeamConfig { num_contexts }) };
            0
        }
        _ => -1,
    }
}

/// The `num_contexts` of a new team's configuration, or 0 where the mask leaves it out.
unsafe fn num_contexts(config: *const TeamConfig, mask: c_long) -> c_int {
    if mask & NUM_CONTEXTS != 0 && !config.is_null() {
        // SAFETY: the caller gives a configuration.
        unsafe { (*config).num_contexts }
    } else {
        0
    }
}

/// Enters a new team; a PE that is none of its members has no handle of it.
fn enter(team: Option<DetachedTeam>, contexts: c_int) -> CResult<Team> {
    let Some(team) = team else {
        return Ok(Team::INVALID);
    };
    let handle = library::get()?.teams.add(TeamEntry::new(team, contexts));
    match handle {
        Some(handle) => Ok(Team(handle)),
        None => Err(Failure::argument(
            "new_team",
            "there are too many teams; destroy some",
        )),
    }
}

/// Writes the handles of a split.
unsafe fn give<const K: usize>(
    call: &'static str,
    parent: Team,
    made: CResult<[Team; K]>,
    to: [*mut Team; K],
) -> c_int {
    let (handles, status) = match made {
        Ok(handles) => (handles, 0),
        Err(failure) => {
            if parent != Team::INVALID {
                report(call, &failure);
            }
            ([Team::INVALID; K], -1)
        }
    };
    for (handle, to) in handles.into_iter().zip(to) {
        if !to.is_null() {
            // SAFETY: the caller gives places for handles.
            unsafe { to.write(handle) };
        }
    }
    status
}

pub(crate) unsafe fn split_strided(
    call: &'static str,
    parent: Team,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    mask: c_long,
    new_team: *mut Team,
) -> c_int {
    // SAFETY: the caller's promise.
    let contexts = unsafe { num_contexts(config, mask) };
    let split = |_: &Library, team: &oxshmem::Team<'_>| {
        let natural = |name, number: c_int| {
            let refused = |_| Failure::argument(name, format!("{number} is below 0"));
            usize::try_from(number).map_err(refused)
        };
        let (start, size) = (natural("start", start)?, natural("size", size)?);
        let made = team.split_strided(start, stride as isize, size)?;
        Ok(made.map(oxshmem::Team::detach))
    };
    let made = with(call, parent, split).and_then(|made| Ok([enter(made, contexts)?]));
    // SAFETY: the caller's promise.
    unsafe { give(call, parent, made, [new_team]) }
}

pub(crate) unsafe fn split_2d(
    call: &'static str,
    parent: Team,
    xrange: c_int,
    xaxis_config: *const TeamConfig,
    xaxis_mask: c_long,
    xaxis_team: *mut Team,
    yaxis_config: *const TeamConfig,
    yaxis_mask: c_long,
    yaxis_team: *mut Team,
) -> c_int {
    // SAFETY: the caller's promise.
    let contexts = unsafe {
        (
            num_contexts(xaxis_config, xaxis_mask),
            num_contexts(yaxis_config, yaxis_mask),
        )
    };
    let split = |_: &Library, team: &oxshmem::Team<'_>| {
        let (x, y) = team.split_2d(usize::try_from(xrange).unwrap_or(0))?;
        Ok((x.detach(), y.detach()))
    };
    let made = with(call, parent, split)
        .and_then(|(x, y)| Ok([enter(Some(x), contexts.0)?, enter(Some(y), contexts.1)?]));
    // SAFETY: the caller's promise.
    unsafe { give(call, parent, made, [xaxis_team, yaxis_team]) }
}

pub(crate) fn destroy(call: &'static str, team: Team) {
    if team != Team::INVALID {
        or_abort_job(call, end(team));
    }
}

fn end(team: Team) -> CResult {
    let library = library::get()?;
    library.team(team)?;
    if [Team::WORLD, Team::SHARED].contains(&team) {
        return Err(Failure::argument(
            "team",
            "this team is always there, and cannot be destroyed",
        ));
    }
    contexts::destroy_of(library, team)?;
    match library.teams.remove(team.0) {
        Some(entry) => {
            library.with_own_context(|context| entry.team.into_team(context)?.destroy())??;
            Ok(())
        }
        None => Ok(()),
    }
}
