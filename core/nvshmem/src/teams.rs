//! Teams. A handle is the team's number in kernels, the same on all members.

use std::ffi::c_long;

use oxshmem::{DetachedTeam, DeviceLibrary, Team};

use crate::failure::{Done, Failure, or_end_job, status};
use crate::pe::Pe;
use crate::state::{with_job, with_pe};
use crate::team_table::{NODE, SAME_MYPE_NODE, SHARED, WORLD, entry};
use crate::triplets;
use crate::types::TeamConfig;

/// The handle of no team.
const INVALID: i32 = -1;
/// The bit of a mask that says that a configuration names a number of contexts.
const NUM_CONTEXTS: c_long = 1;

/// The members of a team by their PEs' numbers. The teams that are always there answer before the GPU's part is open.
fn members(team: i32) -> Done<Vec<usize>> {
    with_job(|job| {
        if let Some(pe) = job.opened() {
            return Ok(pe.team(team)?.world_pes().collect());
        }
        let of = |key: &[usize]| {
            let mine = key[job.me];
            (0..job.n).filter(|pe| key[*pe] == mine).collect()
        };
        match team {
            WORLD => Ok((0..job.n).collect()),
            SHARED | NODE => Ok(of(&job.places.hosts)),
            SAME_MYPE_NODE => Ok(of(&job.places.on_host)),
            other => Err(Failure::argument(format!(
                "argument team: {other} is no team of this PE, or was destroyed"
            ))),
        }
    })
}

/// A number that is below 0 where there is none.
fn number(of: Option<usize>) -> i32 {
    of.and_then(|of| i32::try_from(of).ok()).unwrap_or(-1)
}

pub(crate) unsafe fn my_pe(_: &'static str, team: i32) -> i32 {
    let place = || {
        let (members, me) = (members(team).ok()?, with_job(|job| Ok(job.me)).ok()?);
        members.iter().position(|pe| *pe == me)
    };
    number(place())
}

pub(crate) unsafe fn n_pes(_: &'static str, team: i32) -> i32 {
    number(members(team).ok().map(|members| members.len()))
}

pub(crate) unsafe fn translate_pe(
    _: &'static str,
    src_team: i32,
    src_pe: i32,
    dest_team: i32,
) -> i32 {
    let place = || {
        let (from, to) = (members(src_team).ok()?, members(dest_team).ok()?);
        let pe = from.get(usize::try_from(src_pe).ok()?)?;
        to.iter().position(|other| other == pe)
    };
    number(place())
}

pub(crate) unsafe fn get_config(call: &'static str, team: i32, config: *mut TeamConfig) {
    let find = || {
        if config.is_null() {
            return Err(Failure::argument(
                "argument config: this is null; give a place for the configuration",
            ));
        }
        // The team has to be there.
        members(team)?;
        let num_contexts = with_job(|job| {
            let entry = job
                .opened()
                .and_then(|own| own.teams.get(team as usize)?.as_ref());
            Ok(entry.map_or(0, |entry| entry.num_contexts))
        })?;
        let found = TeamConfig {
            version: TeamConfig::VERSION,
            num_contexts,
            uniqueid: 0,
            padding: [0; 48],
        };
        // SAFETY: the caller gives a place for a configuration.
        unsafe { config.write(found) };
        Ok(())
    };
    or_end_job(call, find());
}

/// The `num_contexts` of a new team's configuration, or 0 where the mask leaves it out.
unsafe fn num_contexts(config: *const TeamConfig, mask: c_long) -> i32 {
    if mask & NUM_CONTEXTS == 0 || config.is_null() {
        return 0;
    }
    // SAFETY: the caller gives a configuration.
    unsafe { (*config).num_contexts }
}

/// A new team and its handle; none where this PE is no member.
type Made = Option<(i32, DetachedTeam)>;

/// Makes a new team known to kernels. Collective over its members.
fn announce(library: &DeviceLibrary<'_>, team: Option<Team<'_>>) -> Done<Made> {
    let Some(team) = team else {
        return Ok(None);
    };
    match library.add_team(&team) {
        Ok(handle) => Ok(Some((handle, team.detach()))),
        Err(error) => {
            // The first error is the one to tell.
            let _ = team.destroy();
            Err(error.into())
        }
    }
}

/// Splits a team, and gives the new teams' handles.
fn split<const K: usize>(
    call: &'static str,
    parent: i32,
    contexts: [i32; K],
    split: impl FnOnce(&Pe, &Team<'_>, &dyn Fn(Option<Team<'_>>) -> Done<Made>) -> Done<[Made; K]>,
) -> Done<[i32; K]> {
    with_pe(call, |own| {
        let made = {
            let library = own.library()?;
            split(own, &*own.team(parent)?, &|team| announce(&library, team))?
        };
        let mut handles = [INVALID; K];
        for ((made, num_contexts), handle) in made.into_iter().zip(contexts).zip(&mut handles) {
            let Some((number, team)) = made else { continue };
            let place = usize::try_from(number).unwrap_or_default();
            if own.teams.len() <= place {
                own.teams.resize_with(place + 1, || None);
            }
            own.teams[place] = entry(team, num_contexts);
            *handle = number;
        }
        Ok(handles)
    })
}

/// Writes the handles of a split.
unsafe fn give<const K: usize>(
    call: &'static str,
    parent: i32,
    made: Done<[i32; K]>,
    to: [*mut i32; K],
) -> i32 {
    // A PE that is no member of the parent takes no part.
    let is_outside = parent == INVALID;
    let (handles, code) = match made {
        Ok(handles) => (handles, 0),
        Err(_) if is_outside => ([INVALID; K], -1),
        Err(failure) => ([INVALID; K], status(call, Err(failure))),
    };
    for (handle, to) in handles.into_iter().zip(to) {
        if !to.is_null() {
            // SAFETY: the caller gives places for handles.
            unsafe { to.write(handle) };
        }
    }
    code
}

fn natural(name: &str, number: i32) -> Done<usize> {
    usize::try_from(number)
        .map_err(|_| Failure::argument(format!("argument {name}: {number} is below 0")))
}

pub(crate) unsafe fn split_strided(
    call: &'static str,
    parent_team: i32,
    start: i32,
    stride: i32,
    size: i32,
    config: *const TeamConfig,
    config_mask: i64,
    new_team: *mut i32,
) -> i32 {
    // SAFETY: the caller's promise.
    let contexts = unsafe { num_contexts(config, config_mask) };
    let triplet = [start, stride, size];
    let made = split(call, parent_team, [contexts], |own, parent, announce| {
        let mut mine = None;
        // Each member of the parent takes part in all splits, and is in one of the teams at most.
        for part in triplets::named_parts(own.exchange, &own.world, parent, triplet)? {
            let team = parent.split_strided(part.start, part.stride, part.size)?;
            mine = announce(team)?.or(mine);
        }
        Ok([mine])
    });
    // SAFETY: the caller's promise.
    unsafe { give(call, parent_team, made, [new_team]) }
}

pub(crate) unsafe fn split_2d(
    call: &'static str,
    parent_team: i32,
    xrange: i32,
    xaxis_config: *const TeamConfig,
    xaxis_mask: i64,
    xaxis_team: *mut i32,
    yaxis_config: *const TeamConfig,
    yaxis_mask: i64,
    yaxis_team: *mut i32,
) -> i32 {
    // SAFETY: the caller's promise.
    let contexts = unsafe {
        [
            num_contexts(xaxis_config, xaxis_mask),
            num_contexts(yaxis_config, yaxis_mask),
        ]
    };
    let made = split(call, parent_team, contexts, |_, parent, announce| {
        let (x, y) = parent.split_2d(natural("xrange", xrange)?)?;
        // A row stays where its column fails: its other members may have theirs, and would not take part in its end.
        Ok([announce(Some(x))?, announce(Some(y))?])
    });
    // SAFETY: the caller's promise.
    unsafe { give(call, parent_team, made, [xaxis_team, yaxis_team]) }
}

pub(crate) unsafe fn destroy(call: &'static str, team: i32) {
    if team == INVALID {
        return;
    }
    let end = |own: &mut Pe| {
        own.team(team)?;
        if team <= SAME_MYPE_NODE {
            return Err(Failure::argument(format!(
                "argument team: {team} is always there, and cannot be destroyed"
            )));
        }
        // Its last calls on the library's stream are over.
        own.finish()?;
        let Pe { teams, world, .. } = own;
        if let Some(entry) = teams.get_mut(team as usize).and_then(Option::take) {
            entry.team.into_team(world)?.destroy()?;
        }
        Ok(())
    };
    or_end_job(call, with_pe(call, end));
}

/// The refusal of teams that members make among themselves.
fn no_unique_ids() -> Failure {
    Failure::NotSupported(
        "teams by a unique id are not there; split a team of all the PEs by nvshmem_team_split_strided or _2d instead".into(),
    )
}

pub(crate) unsafe fn get_uniqueid(call: &'static str, _: *mut u64) -> i32 {
    status(call, Err(no_unique_ids()))
}

pub(crate) unsafe fn init(
    call: &'static str,
    _: *mut i32,
    _: *mut TeamConfig,
    _: i64,
    _: i32,
    _: i32,
) -> i32 {
    status(call, Err(no_unique_ids()))
}
