//! Collective calls of active sets, which OpenSHMEM had before teams.
//!
//! The first call of a set makes a team of its PEs, among themselves, which is kept for later calls. There is room for a
//! quarter as many of these as a PE may have of other teams (`OXSHMEM_TEAMS`), and other teams cannot take it. A set that
//! finds it full gets a team for one call, which costs each of its calls more rounds. So there may be any number of sets, and
//! no PE has to agree with others about which team to give up. There are at most eight teams for one call at a time, and more
//! calls wait. `pSync` and `pWrk` are not needed, and stay as they are.
//!
//! A PE that is no member of a set does nothing in its calls, and warns once; where checks are on it is refused.
//! OpenSHMEM leaves such a call undefined, and programs for other libraries make it.
//!
//! Where threads make calls at once, those of one set come in the same order on all its PEs, and those of several sets in any
//! order.

use std::ffi::{c_int, c_long};
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use oxshmem::{Context, DetachedTeam, Error, Fold, Reducible, Sym, World, bindings};

use crate::call::pe_index;
use crate::collectives::{alltoall_of, alltoalls_of, both, both_cached, collect_of, fcollect_of};
use crate::entries::ActiveSet;
use crate::failure::{self, CResult, Failure, or_abort_job};
use crate::library::{self, Library};

/// Makes a call of the team of an active set.
#[inline(always)]
fn with(
    call: &'static str,
    set: ActiveSet,
    act: impl FnOnce(&'static Library, &oxshmem::Team<'_>) -> CResult,
) {
    let library = or_abort_job(call, library::get());
    match library.active_sets.find(set) {
        Some(team) => {
            library
                .with_own_context_or_abort(call, |context| act(library, &*team.attach(context)?));
        }
        None => or_abort_job(call, first(call, library, set, act)),
    }
}

/// The first call of a set, or any call of a set for which no team is kept.
#[cold]
fn first(
    call: &'static str,
    library: &'static Library,
    set: ActiveSet,
    act: impl FnOnce(&'static Library, &oxshmem::Team<'_>) -> CResult,
) -> CResult {
    let Some((team, is_for_one_call)) = make(library, set)? else {
        warn_once(call, library, set);
        return Ok(());
    };
    if is_for_one_call {
        return library.with_own_context(|context| {
            let team = team.into_team(context)?;
            act(library, &team)?;
            Ok(team.destroy()?)
        })?;
    }
    let team = library.active_sets.add(set, team);
    library.with_own_context(|context| act(library, &*team.attach(context)?))?
}

/// Warns that a call does nothing, since this PE is no member of the set.
fn warn_once(call: &'static str, library: &Library, set: ActiveSet) {
    let ActiveSet {
        start,
        log_stride,
        size,
    } = set;
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        failure::print(&format!(
            "PE {}: {call}: this PE is none of the members of the active set (PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}): the call does nothing here, nor does any other such call, of which nothing more is said; \
             make it on the members alone. With OXSHMEM_CHECK=1 it is an error",
            library.world.my_pe()
        ));
    }
}

/// The team of a set, and whether it is for one call. None where this PE is no member, unless checks are on.
fn make(library: &'static Library, set: ActiveSet) -> CResult<Option<(DetachedTeam, bool)>> {
    let ActiveSet {
        start,
        log_stride,
        size,
    } = set;
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
        // Where threads of a PE are in calls at once, the set of all PEs is a team of its own: the world may be in a call of its
        // own.
        (0, 1, size) if size == world.n_pes() && library.is_each_alone => {
            Ok(Some((world.team().detach(), false)))
        }
        _ => {
            let set = (pe_index(start), stride, size);
            if !bindings::is_checked(world) && leaves_out(world, set) {
                return Ok(None);
            }
            let made = library.with_own_context(|context| among(context, set))?;
            made.map(Some).map_err(|error| match error {
                Error::Argument { what, .. } => {
                    Failure::argument("PE_start, logPE_stride, PE_size", what)
                }
                error => error.into(),
            })
        }
    }
}

/// Whether a set consists of this world's PEs without this PE.
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

/// A team of these PEs, when there is room for one.
fn among(context: &Context<'_>, set: (usize, isize, usize)) -> Result<(DetachedTeam, bool), Error> {
    loop {
        match context.active_set_team(set) {
            // Teams for one call of other threads take all the room, until those calls return.
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| {
            library.quiet_default()?;
            Ok(team.barrier()?)
        },
    );
}

pub(crate) fn sync(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |_, team| Ok(team.sync()?),
    );
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| alltoall_of(library, team, dest, source, nelems),
    );
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| alltoalls_of(library, team, (dest, dst), (source, sst), nelems),
    );
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| {
            if let Some((dest, source)) = both_cached(library, dest, source, nelems) {
                return Ok(team.broadcast_to_others(dest, source, pe_index(root))?);
            }
            let (dest, source) = both(library, (dest, nelems), (source, nelems))?;
            Ok(team.broadcast_to_others(dest, source, pe_index(root))?)
        },
    );
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| collect_of(library, team, dest, source, nelems),
    );
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
    with(
        call,
        ActiveSet {
            start,
            log_stride,
            size,
        },
        |library, team| fcollect_of(library, team, dest, source, nelems),
    );
}

macro_rules! folds {
    ($($name:ident: $fold:ident;)*) => {$(
        pub(crate) unsafe fn $name<T: Reducible>(
            call: &'static str, dest: *mut T, source: *const T, nreduce: c_int,
            start: c_int, log_stride: c_int, size: c_int, _: *mut T, _: *mut c_long,
        ) {
            with(call, ActiveSet { start, log_stride, size }, |library, team| {
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
) -> CResult<(Sym<T>, Sym<T>)> {
    let count = usize::try_from(nreduce);
    let count = count.map_err(|_| Failure::argument("nreduce", format!("{nreduce} elements")))?;
    both(library, (dest, count), (source, count))
}
