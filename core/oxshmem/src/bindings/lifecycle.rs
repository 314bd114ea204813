//! The life of a world as a binding drives it: how it is joined, what it can do, and how it ends and goes on.

use std::os::fd::OwnedFd;
use std::time::Duration;

use oxshmem_engine::peer::loss_reasons;

use crate::builder::Builder;
use crate::config::{self, Config};
use crate::error::Result;
use crate::setup::membership::host_id_or;
use crate::world::World;

/// Makes memory of the program's symmetric: its `len` bytes from `base` on, whole pages, where it has mapped all of
/// `file`, a memfd that may be sealed. It becomes the beginning of the heap, and its objects are named by
/// [`Addresses`](super::Addresses). All PEs give as many bytes. With huge pages from a pool it stays private, and a warning
/// says so.
///
/// # Safety
///
/// The mapping is shared and stays as it is while the world lives, and no reference to it lives that other PEs'
/// stores would disturb.
pub unsafe fn program_memory(
    builder: Builder,
    file: OwnedFd,
    base: *mut u8,
    len: usize,
) -> Builder {
    // SAFETY: the caller makes the same promise.
    unsafe { builder.program_memory(file, base, len) }
}

/// Gives a variable of oxshmem's a value where the environment has none.
pub fn default_variable(builder: Builder, name: &'static str, value: String) -> Builder {
    builder.default_variable(name, value)
}

/// The name of this process's host, which PEs of one host have in common: as `OXSHMEM_HOST_ID` says, or the kernel's.
#[must_use]
pub fn host_id() -> String {
    host_id_or(config::environment("OXSHMEM_HOST_ID"))
}

/// The limit of joining and of the bootstrap's collective calls, as `OXSHMEM_BOOTSTRAP_TIMEOUT` says.
///
/// # Errors
///
/// [`Error::Config`](crate::Error) where a variable makes no sense.
pub fn bootstrap_deadline() -> Result<Duration> {
    Ok(Config::from_environment(&[])?.0.bootstrap_timeout)
}

/// The variables that describe this process's job and its bootstrap, as [`Builder::join`] reads them.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    config::environment(name)
}

/// Leaves the places of calls out of errors and reports, in the whole process from [`join`](Builder::join) on: a
/// binding's own code is the caller of every call.
pub fn without_places(builder: Builder) -> Builder {
    builder.without_places()
}

/// Whether [checked mode](Builder::check) is on.
#[must_use]
#[inline]
pub fn is_checked(world: &World) -> bool {
    world.is_checked()
}

/// Whether operations may be in flight that [progress](crate::Context::progress) advances: not where this PE's CPU
/// loads and stores every PE's memory itself.
#[must_use]
pub fn uses_lanes(world: &World) -> bool {
    world.uses_lanes()
}

/// The number of teams that this PE can be in at a time, besides the two that are always there: as many as `OXSHMEM_TEAMS`
/// says, or as have room.
#[must_use]
pub fn team_room(world: &World) -> usize {
    world.team_room()
}

/// Whether all PEs say yes. Collective over all PEs, as [`barrier_all`](World::barrier_all), and completes nothing.
pub fn all_say(world: &World, yes: bool) -> Result<bool> {
    world.all_say(yes)
}

/// Has every wait and test of this PE call `drive` when it makes progress on its own context.
///
/// `drive` makes [progress](crate::Context::progress) on the operations that the program has issued on other contexts, which
/// must complete though none of these is called. It waits for nothing, and stays for as long as the world: the first that
/// is given stays. A call that it panics in fails.
pub fn drive_in_waits(world: &World, drive: fn()) {
    world.drive_in_waits(drive);
}

/// [`World::finalize`] but for leaving the job: other PEs may [detach](detach) from here on, and this one too, or just end,
/// as by a signal.
///
/// Waits for this PE's streams, then frees every block and ends every team: the program makes no call of a team that it
/// still has. Collective. A PE that goes on calls [`unquiesce`] first.
///
/// # Errors
///
/// Those of `finalize`. Where work on this PE's streams does not end, which may use its memory, nothing is freed and no
/// team ends: then only [`detach`] is left.
pub fn quiesce(world: &World) -> Result<()> {
    world.quiesce()
}

/// Drops what PEs of an earlier job said of their ends: this process, which has one PE, joins another job by a bootstrap of its
/// own.
pub fn forget_losses() {
    loss_reasons::clear();
}

/// Goes on after a [`quiesce`]: a PE that ends without [`detach`] is lost again. Collective, as
/// [`barrier_all`](World::barrier_all).
pub fn unquiesce(world: &World) -> Result<()> {
    world.unquiesce()
}

/// Leaves the job after a [`quiesce`], and waits for nobody.
pub fn detach(world: World) -> Result<()> {
    world.detach()
}

/// [`World::finalize`] in a process that ends now while other threads may still be in calls: nothing is freed, and no team
/// ends.
///
/// Those calls give [`Error::PeerLost`](crate::Error::PeerLost) from then on, where they need another PE, and collective
/// calls of all PEs [`Error::CollectivesEnded`](crate::Error::CollectivesEnded). Waits for the other PEs to leave, too, if
/// this process has their rendezvous.
pub fn finalize_at_exit(world: &World) -> Result<()> {
    world.finalize_at_exit()
}
