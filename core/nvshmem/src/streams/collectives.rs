//! Collective calls on streams.

use oxshmem::cuda::Stream;
use oxshmem::{GpuNumber, Sym};

use super::on_stream;
use crate::failure::{Done, Failure, status};
use crate::pe::Pe;
use crate::types::{Element, Fold, StreamHandle};

/// Queues a broadcast of a team.
pub(crate) fn queue_broadcast<T: Element>(
    own: &Pe,
    team: i32,
    (dest, source, n): (*mut T, *const T, usize),
    root: i32,
    stream: &Stream,
) -> Done {
    let team = own.team(team)?;
    if n == 0 {
        return Ok(());
    }
    let (dest, source) = (
        own.bytes("dest", dest.cast_const(), n)?,
        own.bytes("source", source, n)?,
    );
    let member = usize::try_from(root)
        .ok()
        .filter(|root| *root < team.n_pes());
    let member = member.ok_or_else(|| {
        Failure::argument(format!(
            "argument PE_root: there is no member {root}; the team's are 0 to {}",
            team.n_pes() - 1
        ))
    })?;
    Ok(team.broadcast_on_stream(dest, source, member, stream)?)
}

/// Queues a collection of all members' elements.
pub(crate) fn queue_fcollect<T: Element>(
    own: &Pe,
    team: i32,
    (dest, source, n): (*mut T, *const T, usize),
    stream: &Stream,
) -> Done {
    let team = own.team(team)?;
    if n == 0 {
        return Ok(());
    }
    let all = n.saturating_mul(team.n_pes());
    let dest = own.bytes("dest", dest.cast_const(), all)?;
    Ok(team.fcollect_on_stream(dest, own.bytes("source", source, n)?, stream)?)
}

/// Queues an exchange among all members.
pub(crate) fn queue_alltoall<T: Element>(
    own: &Pe,
    team: i32,
    (dest, source, n): (*mut T, *const T, usize),
    stream: &Stream,
) -> Done {
    let team = own.team(team)?;
    if n == 0 {
        return Ok(());
    }
    let all = n.saturating_mul(team.n_pes());
    let dest = own.bytes("dest", dest.cast_const(), all)?;
    Ok(team.alltoall_on_stream(dest, own.bytes("source", source, all)?, stream)?)
}

/// Queues a reduction.
pub(crate) fn queue_reduce<T: Element + GpuNumber>(
    own: &Pe,
    fold: Fold,
    team: i32,
    (dest, source, n): (*mut T, *const T, usize),
    stream: &Stream,
) -> Done {
    let team = own.team(team)?;
    if n == 0 {
        return Ok(());
    }
    let dest: Sym<T> = own.object("dest", dest.cast_const(), n)?;
    let source = own.object("source", source, n)?;
    Ok(team.reduce_on_stream(dest, source, fold, stream)?)
}

/// Queues a reduction of which each member gets a part.
pub(crate) fn queue_reduce_scatter<T: Element + GpuNumber>(
    own: &Pe,
    fold: Fold,
    team: i32,
    (dest, source, n): (*mut T, *const T, usize),
    stream: &Stream,
) -> Done {
    let team = own.team(team)?;
    if n == 0 {
        return Ok(());
    }
    let all = n.saturating_mul(team.n_pes());
    let dest: Sym<T> = own.object("dest", dest.cast_const(), n)?;
    let source = own.object("source", source, all)?;
    Ok(team.reduce_scatter_on_stream(dest, source, fold, stream)?)
}

/// Makes a call of a team on a user's stream.
///
/// # Safety
///
/// As for [`on_stream`].
unsafe fn of_team(
    call: &'static str,
    stream: StreamHandle,
    queue: impl FnOnce(&Pe, &Stream) -> Done,
) -> i32 {
    // SAFETY: the caller makes the same promise.
    status(call, unsafe { on_stream(call, stream, queue) })
}

pub(crate) unsafe fn broadcast<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    root: i32,
    stream: StreamHandle,
) -> i32 {
    let queue =
        |own: &Pe, stream: &Stream| queue_broadcast(own, team, (dest, source, n), root, stream);
    // SAFETY: the caller's promise.
    unsafe { of_team(call, stream, queue) }
}

pub(crate) unsafe fn fcollect<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    stream: StreamHandle,
) -> i32 {
    let queue = |own: &Pe, stream: &Stream| queue_fcollect(own, team, (dest, source, n), stream);
    // SAFETY: the caller's promise.
    unsafe { of_team(call, stream, queue) }
}

pub(crate) unsafe fn alltoall<T: Element>(
    call: &'static str,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    stream: StreamHandle,
) -> i32 {
    let queue = |own: &Pe, stream: &Stream| queue_alltoall(own, team, (dest, source, n), stream);
    // SAFETY: the caller's promise.
    unsafe { of_team(call, stream, queue) }
}

pub(crate) unsafe fn reduce<T: Element + GpuNumber>(
    call: &'static str,
    fold: Fold,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    stream: StreamHandle,
) -> i32 {
    let queue =
        |own: &Pe, stream: &Stream| queue_reduce(own, fold, team, (dest, source, n), stream);
    // SAFETY: the caller's promise.
    unsafe { of_team(call, stream, queue) }
}

pub(crate) unsafe fn reduce_scatter<T: Element + GpuNumber>(
    call: &'static str,
    fold: Fold,
    team: i32,
    dest: *mut T,
    source: *const T,
    n: usize,
    stream: StreamHandle,
) -> i32 {
    let queue = |own: &Pe, stream: &Stream| {
        queue_reduce_scatter(own, fold, team, (dest, source, n), stream)
    };
    // SAFETY: the caller's promise.
    unsafe { of_team(call, stream, queue) }
}
