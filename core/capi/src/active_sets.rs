//! Collective calls of active sets, which OpenSHMEM had before teams.
//!
//! The first call of a set makes a team of its PEs, among themselves, which is kept for the next. `pSync` and `pWrk` are
//! not needed, and stay as they are.

use std::ffi::{c_int, c_long};
use std::sync::PoisonError;

use bytemuck::Pod;
use oxshmem::{Error, Fold, Reducible, Sym};

use crate::collectives::{alltoalls_of, both, collect_of, for_all};
use crate::failure::{Done, Failure, or_end};
use crate::library::{self, Library, number};

/// Does what a call asks of the team of an active set.
fn with(
    call: &'static str,
    set: [c_int; 3],
    act: impl FnOnce(&'static Library, &oxshmem::Team<'static>) -> Done,
) {
    or_end(
        call,
        || -> Done {
            let library = library::get()?;
            act(library, team(library, set)?)
        }(),
    );
}

fn team(library: &'static Library, set: [c_int; 3]) -> Done<&'static oxshmem::Team<'static>> {
    let sets = || {
        library
            .active_sets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    let known = sets()
        .iter()
        .find(|(of, _)| *of == set)
        .map(|(_, team)| *team);
    if let Some(team) = known {
        return Ok(team);
    }
    let [start, log_stride, size] = set;
    let stride = u32::try_from(log_stride)
        .ok()
        .and_then(|by| 1_isize.checked_shl(by));
    let Some(stride) = stride.filter(|stride| *stride > 0) else {
        let what = format!("{log_stride} is no logarithm of a stride");
        return Err(Failure::argument("logPE_stride", what));
    };
    let size = usize::try_from(size).unwrap_or(0);
    let made = match (start, stride, size) {
        (0, 1, size) if size == library.world.n_pes() => library.world.team(),
        _ => {
            let made = library
                .world
                .team_among((number(start), stride, size), library.mailbox);
            made.map_err(|error| match error {
                Error::Argument { what, .. } => {
                    Failure::argument("PE_start, logPE_stride, PE_size", what)
                }
                error => error.into(),
            })?
        }
    };
    // For as long as the library is initialized; a few hundred bytes.
    let made: &'static _ = Box::leak(Box::new(made));
    sets().push((set, made));
    Ok(made)
}

pub(crate) fn barrier(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _: *mut c_long,
) {
    with(call, [start, log_stride, size], |_, team| {
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
        let len = for_all(team, nelems);
        let (dest, source) = both(library, (dest, len), (source, len))?;
        Ok(team.alltoall(dest, source)?)
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
        let (dest, source) = both(library, (dest, for_all(team, nelems)), (source, nelems))?;
        Ok(team.fcollect(dest, source)?)
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
