//! Collective calls of active sets, which OpenSHMEM had before teams.
//!
//! The first call of a set makes a team of its PEs, among themselves, which is kept for the next. There is room for a
//! quarter as many of these as a PE may have of other teams (`OXSHMEM_TEAMS`), which those cannot take. A set that finds
//! it full has a team for one call, which costs each of its calls more rounds. So there may be any number of sets, and
//! no PE has to agree with others about which to give up. Of teams for one call there are eight at a time, and more
//! wait. `pSync` and `pWrk` are not needed, and stay as they are.
//!
//! A PE that is none of a set's members does nothing in its calls, and says so once; where checks are on it is refused.
//! OpenSHMEM leaves undefined what such a call does, and programs for other libraries make it.
//!
//! Where threads make calls at once, those of one set come in the same order on all its PEs, and of several in any.

use std::ffi::{c_int, c_long};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use oxshmem::{Context, DetachedTeam, Error, Fold, Reducible, Sym, World};

use crate::collectives::{alltoall_of, alltoalls_of, both, both_known, collect_of, fcollect_of};
use crate::failure::{self, Done, Failure, or_end};
use crate::library::{self, Library, number};

/// Does what a call asks of the team of an active set.
#[inline(always)]
fn with(
    call: &'static str,
    set: [c_int; 3],
    act: impl FnOnce(&'static Library, &oxshmem::Team<'_>) -> Done,
) {
    let library = or_end(call, library::get());
    match known(library, set) {
        Some(team) => {
            library.apart_or_end(call, |context| act(library, &*team.attach(context)?));
        }
        None => or_end(call, first(call, library, set, act)),
    }
}

/// The first call of a set, or any of one for which no team is kept.
#[cold]
fn first(
    call: &'static str,
    library: &'static Library,
    set: [c_int; 3],
    act: impl FnOnce(&'static Library, &oxshmem::Team<'_>) -> Done,
) -> Done {
    let Some((team, is_for_one_call)) = make(library, set)? else {
        tell_once(call, library, set);
        return Ok(());
    };
    if is_for_one_call {
        return library.apart(|context| {
            let team = team.into_team(context)?;
            act(library, &team)?;
            Ok(team.destroy()?)
        })?;
    }
    let team = keep(library, set, team);
    library.apart(|context| act(library, &*team.attach(context)?))?
}

/// Sets with their teams: the first of a list, which only grows.
pub(crate) type Sets = OnceLock<Box<Kept>>;

pub(crate) struct Kept {
    set: [c_int; 3],
    team: DetachedTeam,
    next: Sets,
}

/// Takes no lock: calls of a set find its team here each time.
#[inline(always)]
fn known(library: &'static Library, set: [c_int; 3]) -> Option<&'static DetachedTeam> {
    let mut at = &library.active_sets;
    while let Some(kept) = at.get() {
        if kept.set == set {
            return Some(&kept.team);
        }
        at = &kept.next;
    }
    None
}

/// Keeps a team for as long as the library is initialized; a few hundred bytes.
fn keep(library: &'static Library, set: [c_int; 3], team: DetachedTeam) -> &'static DetachedTeam {
    let mut kept = Some(Box::new(Kept {
        set,
        team,
        next: Sets::new(),
    }));
    let mut at = &library.active_sets;
    loop {
        // Another thread may be first at each place.
        kept = kept.and_then(|kept| at.set(kept).err());
        // By one of the two it is filled now.
        let Some(there) = at.get() else { continue };
        if kept.is_none() {
            return &there.team;
        }
        at = &there.next;
    }
}

/// Says that a call does nothing, since this PE is none of the set.
fn tell_once(call: &'static str, library: &Library, [start, log_stride, size]: [c_int; 3]) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        failure::say(&format!(
            "PE {}: {call}: this PE is none of the members of the active set (PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}): the call does nothing here, nor does any other such call, of which nothing more is said; \
             make it on the members alone. With OXSHMEM_CHECK=1 it is an error",
            library.world.my_pe()
        ));
    }
}

/// A team, and whether it is for one call. None where this PE is no member, unless checks are on.
fn make(library: &'static Library, set: [c_int; 3]) -> Done<Option<(DetachedTeam, bool)>> {
    let [start, log_stride, size] = set;
    let stride = u32::try_from(log_stride)
        .ok()
        .and_then(|by| 1_isize.checked_shl(by));
    let Some(stride) = stride.filter(|stride| *stride > 0) else {
        let what = format!("{log_stride} is no logarithm of a stride");
        return Err(Failure::argument("logPE_stride", what));
    };
    let size = usize::try_from(size).unwrap_or(0);
    let world = &library.world;
    match (start, stride, size) {
        // Where threads of some PE are in calls at once it is another team: the world may be in a call of its own.
        (0, 1, size) if size == world.n_pes() && library.is_each_alone => {
            Ok(Some((world.team().detach(), false)))
        }
        _ => {
            let set = (number(start), stride, size);
            if !world.is_checked() && leaves_out(world, set) {
                return Ok(None);
            }
            let made = library.apart(|context| among(context, set))?;
            made.map(Some).map_err(|error| match error {
                Error::Argument { what, .. } => {
                    Failure::argument("PE_start, logPE_stride, PE_size", what)
                }
                error => error.into(),
            })
        }
    }
}

/// Whether a set that is one of this world's PEs has this PE not among them.
fn leaves_out(world: &World, (start, stride, size): (usize, isize, usize)) -> bool {
    let (me, stride) = (world.my_pe(), stride.unsigned_abs());
    let Some(last) = size.checked_sub(1) else {
        return false;
    };
    let Some(end) = last
        .checked_mul(stride)
        .and_then(|by| by.checked_add(start))
    else {
        return false;
    };
    let is_member = (start..=end).contains(&me) && (me - start).is_multiple_of(stride);
    end < world.n_pes() && !is_member
}

/// A team of these PEs, as soon as there is room for one.
fn among(context: &Context<'_>, set: (usize, isize, usize)) -> Result<(DetachedTeam, bool), Error> {
    loop {
        match context.active_set_team(set) {
            // Other threads' teams for one call have all the room, until these return.
            Err(Error::TooManyTeams { .. }) => std::thread::yield_now(),
            made => {
                let team = made?;
                let is_for_one_call = team.is_for_one_call();
                return Ok((team.detach(), is_for_one_call));
            }
        }
    }
}

pub(crate) fn barrier(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        library.complete()?;
        Ok(team.barrier()?)
    });
}

pub(crate) fn sync(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |_, team| Ok(team.sync()?));
}

pub(crate) unsafe fn alltoall<T: Pod>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        alltoall_of(library, team, dest, source, nelems)
    });
}

pub(crate) unsafe fn alltoalls<T: Pod>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        alltoalls_of(library, team, (dest, dst), (source, sst), nelems)
    });
}

pub(crate) unsafe fn broadcast<T: Pod>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    root: c_int,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        if let Some((dest, source)) = both_known(library, dest, source, nelems) {
            return Ok(team.broadcast_to_others(dest, source, number(root))?);
        }
        let (dest, source) = both(library, (dest, nelems), (source, nelems))?;
        Ok(team.broadcast_to_others(dest, source, number(root))?)
    });
}

pub(crate) unsafe fn collect<T: Pod>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        collect_of(library, team, dest, source, nelems)
    });
}

pub(crate) unsafe fn fcollect<T: Pod>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |library, team| {
        fcollect_of(library, team, dest, source, nelems)
    });
}

macro_rules! folds {
    ($($name:ident: $fold:ident;)*) => {$(
        pub(crate) unsafe fn $name<T: Reducible>(
            call: &'static str, dest: *mut T, source: *const T, nreduce: c_int,
            start: c_int, log_stride: c_int, size: c_int, _: *mut T, _: *mut c_long,
        ) {
            with(call, [start, log_stride, size], |library, team| {
                let (dest, source) = counted(library, dest, source, nreduce)?;
                Ok(team.reduce(dest, source, Fold::$fold)?)
            });
        }
    )*};
}
folds! {
    and_to_all: And;
    or_to_all: Or;
    xor_to_all: Xor;
    max_to_all: Max;
    min_to_all: Min;
    sum_to_all: Sum;
    prod_to_all: Prod;
}

fn counted<T: Pod>(
    library: &Library,
    dest: *mut T,
    source: *const T,
    nreduce: c_int,
) -> Done<(Sym<T>, Sym<T>)> {
    let count = usize::try_from(nreduce);
    let count = count.map_err(|_| Failure::argument("nreduce", format!("{nreduce} elements")))?;
    both(library, (dest, count), (source, count))
}
