//! Collective calls by the host.

use oxshmem::GpuNumber;

use crate::failure::{Done, or_end_job, status};
use crate::host_call::{Until, on_own_stream};
use crate::pe::Pe;
use crate::state::with_pe;
use crate::streams;
use crate::types::{Element, Fold};

/// Makes a call of a team on the library's stream, and waits for it.
fn of_team(call: &'static str, queue: impl FnOnce(&Pe, &oxshmem::cuda::Stream) -> Done) -> i32 {
    status(call, on_own_stream(call, Until::Done, queue))
}

pub(crate) unsafe fn barrier(call: &'static str, team: i32) -> i32 {
    let meet = |own: &mut Pe| {
        own.quiet()?;
        Ok(own.team(team)?.barrier()?)
    };
    status(call, with_pe(call, meet))
}

pub(crate) unsafe fn barrier_all(call: &'static str) {
    or_end_job(call, with_pe(call, |own| own.barrier_all()));
}

pub(crate) unsafe fn sync(call: &'static str, team: i32) -> i32 {
    status(call, with_pe(call, |own| Ok(own.team(team)?.sync()?)))
}

pub(crate) unsafe fn sync_all(call: &'static str) {
    or_end_job(call, with_pe(call, |own| Ok(own.world.sync_all()?)));
}

pub(crate) unsafe fn broadcast<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    root: i32,
) -> i32 {
    of_team(call, |own, stream| {
        streams::queue_broadcast(own, team, (dest, source, n), root, stream)
    })
}

pub(crate) unsafe fn fcollect<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> i32 {
    of_team(call, |own, stream| {
        streams::queue_fcollect(own, team, (dest, source, n), stream)
    })
}

pub(crate) unsafe fn alltoall<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> i32 {
    of_team(call, |own, stream| {
        streams::queue_alltoall(own, team, (dest, source, n), stream)
    })
}

pub(crate) unsafe fn reduce<T: Element + GpuNumber>(
    call: &'static str,
    fold: Fold,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> i32 {
    of_team(call, |own, stream| {
        streams::queue_reduce(own, fold, team, (dest, source, n), stream)
    })
}

pub(crate) unsafe fn reduce_scatter<T: Element + GpuNumber>(
    call: &'static str,
    fold: Fold,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> i32 {
    of_team(call, |own, stream| {
        streams::queue_reduce_scatter(own, fold, team, (dest, source, n), stream)
    })
}
