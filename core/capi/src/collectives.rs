//! Collective calls of teams.

use std::ffi::c_int;

use bytemuck::Pod;
use oxshmem::{Fold, Reducible, Sym, bindings};

use crate::call::pe_index;
use crate::failure::{CResult, Failure, or_abort_job, status};
use crate::handles::Team;
use crate::library::{self, Library};
use crate::rma::stride;

/// The barrier of all PEs.
pub(crate) fn everyone(library: &'static Library) -> CResult {
    library.quiet_default()?;
    Ok(library.with_world(|world| world.barrier_all())?)
}

pub(crate) fn barrier_all(call: &'static str) {
    or_abort_job(call, library::get().and_then(everyone));
}

pub(crate) fn sync_all(call: &'static str) {
    let sync = |library: &'static Library| Ok(library.with_world(|world| world.sync_all())?);
    or_abort_job(call, library::get().and_then(sync));
}

/// Makes a call of a team. Where an argument on this PE makes no sense, the calls of the others fail, too.
pub(crate) fn with<R>(
    call: &'static str,
    team: Team,
    act: impl FnOnce(&Library, &oxshmem::Team<'_>) -> CResult<R>,
) -> CResult<R> {
    let library = library::get()?;
    let entry = library.team(team)?;
    library.with_own_context(|context| {
        let team = entry.team.attach(context)?;
        let done = act(library, &team);
        if let Err(Failure::Argument { name, what }) = &done {
            // This PE's own error is that of the argument.
            let _ = team.refuse(call, format!("argument {name}: {what}"));
        }
        done
    })?
}

/// The same for a call that returns a status.
fn of_team(
    call: &'static str,
    team: Team,
    act: impl FnOnce(&Library, &oxshmem::Team<'_>) -> CResult,
) -> c_int {
    status(call, with(call, team, act))
}

pub(crate) fn sync(call: &'static str, team: Team) -> c_int {
    of_team(call, team, |_, team| Ok(team.sync()?))
}

/// `each` elements for every member; more than any memory has where that overflows.
fn for_all(team: &oxshmem::Team<'_>, each: usize) -> usize {
    each.saturating_mul(team.n_pes())
}

/// A destination and a source of `len` elements, in blocks that calls have lately found: for calls that take less time
/// than a search for the block, or than a move of its result.
#[inline(always)]
pub(crate) fn both_cached<T: Pod>(
    library: &Library,
    dest: *mut T,
    source: *const T,
    len: usize,
) -> Option<(Sym<T>, Sym<T>)> {
    let dest = bindings::cached_object(&library.world, dest.cast_const(), len)?;
    Some((dest, bindings::cached_object(&library.world, source, len)?))
}

/// A destination and a source, each with its number of elements.
#[inline]
pub(crate) fn both<T: Pod>(
    library: &Library,
    (dest, dest_len): (*mut T, usize),
    (source, source_len): (*const T, usize),
) -> CResult<(Sym<T>, Sym<T>)> {
    let dest = library.object_in_block("dest", dest.cast_const(), dest_len)?;
    let source = library.object_in_block("source", source, source_len)?;
    Ok((dest, source))
}

pub(crate) unsafe fn alltoall<T: Pod>(
    call: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    of_team(call, team, |library, team| {
        alltoall_of(library, team, dest, source, nelems)
    })
}

/// For teams and active sets.
pub(crate) fn alltoall_of<T: Pod>(
    library: &Library,
    team: &oxshmem::Team<'_>,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> CResult {
    let len = for_all(team, nelems);
    let (dest, source) = both(library, (dest, len), (source, len))?;
    Ok(team.alltoall(dest, source)?)
}

/// The strided form, for teams and active sets.
pub(crate) fn alltoalls_of<T: Pod>(
    library: &Library,
    team: &oxshmem::Team<'_>,
    (dest, dst): (*mut T, isize),
    (source, sst): (*const T, isize),
    nelems: usize,
) -> CResult {
    let (dst, sst) = (stride("dst", dst)?, stride("sst", sst)?);
    let spanned = |stride: usize| match for_all(team, nelems) {
        0 => 0,
        len => (len - 1).saturating_mul(stride).saturating_add(1),
    };
    let (dest, source) = both(library, (dest, spanned(dst)), (source, spanned(sst)))?;
    Ok(team.alltoalls(dest, source, dst, sst, nelems)?)
}

pub(crate) unsafe fn alltoalls<T: Pod>(
    call: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
) -> c_int {
    of_team(call, team, |library, team| {
        alltoalls_of(library, team, (dest, dst), (source, sst), nelems)
    })
}

pub(crate) unsafe fn broadcast<T: Pod>(
    call: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    root: c_int,
) -> c_int {
    of_team(call, team, |library, team| {
        if let Some((dest, source)) = both_cached(library, dest, source, nelems) {
            return Ok(team.broadcast(dest, source, pe_index(root))?);
        }
        // A root does not wait for the others, so that not all would learn in this call that it has failed.
        let (dest, source) = or_abort_job(call, both(library, (dest, nelems), (source, nelems)));
        Ok(team.broadcast(dest, source, pe_index(root))?)
    })
}

/// For teams and active sets.
pub(crate) fn collect_of<T: Pod>(
    library: &Library,
    team: &oxshmem::Team<'_>,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> CResult {
    // The number of elements in all is not known yet: if it is zero, `dest` may be null.
    let null = dest.is_null();
    let dest = bindings::rest_at(&library.world, "dest", dest.cast_const());
    let dest = dest.map_err(|error| Failure::argument("dest", error.to_string()))?;
    let source = library.object_in_block("source", source, nelems)?;
    let collected = team.collect_into_rest(dest, source).map(drop);
    collected.map_err(|error| match error {
        oxshmem::Error::OutOfRange { .. } if null => Failure::null("dest"),
        oxshmem::Error::OutOfRange { .. } => Failure::of("dest", error),
        error => error.into(),
    })
}

pub(crate) unsafe fn collect<T: Pod>(
    call: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    of_team(call, team, |library, team| {
        collect_of(library, team, dest, source, nelems)
    })
}

pub(crate) unsafe fn fcollect<T: Pod>(
    call: &'static str,
    team: Team,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    of_team(call, team, |library, team| {
        fcollect_of(library, team, dest, source, nelems)
    })
}

/// For teams and active sets.
pub(crate) fn fcollect_of<T: Pod>(
    library: &Library,
    team: &oxshmem::Team<'_>,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> CResult {
    let (dest, source) = both(library, (dest, for_all(team, nelems)), (source, nelems))?;
    Ok(team.fcollect(dest, source)?)
}

macro_rules! folds {
    ($($name:ident: $call:ident $fold:ident;)*) => {$(
        pub(crate) unsafe fn $name<T: Reducible>(
            call: &'static str, team: Team, dest: *mut T, source: *const T, nreduce: usize,
        ) -> c_int {
            of_team(call, team, |library, team| {
                let (dest, source) = both(library, (dest, nreduce), (source, nreduce))?;
                Ok(team.$call(dest, source, Fold::$fold)?)
            })
        }
    )*};
}
folds! {
    and_reduce: reduce And;
    or_reduce: reduce Or;
    xor_reduce: reduce Xor;
    max_reduce: reduce Max;
    min_reduce: reduce Min;
    sum_reduce: reduce Sum;
    prod_reduce: reduce Prod;
    sum_inscan: inscan Sum;
    sum_exscan: exscan Sum;
}
