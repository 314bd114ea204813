//! How a PE waits: spin, then yield, then sleep, driving progress, and never for the dead.
//!
//! The library's own words end a wait by a [ring](crate::park); users' words, which plain stores,
//! NICs and GPUs change without one, are looked at in sleeps of 50 µs to 1 ms. The spin budget is
//! zero when PEs outnumber the CPUs they may use.

use std::time::Duration;

use crate::futex::Kernel;
use crate::group::Group;
use crate::hang::{self, WaitedFor};
use crate::park::{self, Parker};
use crate::place::placed;
use crate::shared::Shared;
use crate::trace::Waiting;
use crate::wait_until::Waiter;
use crate::{Context, Error, Result};

/// Yields before the first sleep, at least.
const YIELDS: u32 = 24;
/// Where each PE has a CPU, they go on for so long: some MiB take less, and a sleep takes 50 µs more than it should.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long a sleep on a bell lasts before the world is looked at again.
const BELL_SLEEP: Duration = Duration::from_millis(20);
/// The shortest and longest sleep on a user's word.
const SHORT_SLEEP: Duration = Duration::from_micros(50);
const LONG_SLEEP: Duration = Duration::from_millis(1);
/// The longest on a lane's completions, after a while.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// What a lane is to bring itself is looked for so many times as long as what others must do; not more
/// often than the second of these in all, so that the clock is looked at in time.
const LANE_FACTOR: u32 = 32;
const MOST_LOOKS: u32 = 1 << 24;
/// Looks at lanes between two at everything else.
const GLANCE: u32 = 64;

/// Whose death ends a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitsOn<'a> {
    /// Any PE's, acknowledged or not.
    #[cfg(feature = "cuda")]
    Everyone,
    /// Any of a team's, acknowledged or not: a collective needs them all.
    Members(&'a Group),
    /// Any PE's that died: who has left has seen all arrive in finalize.
    Finalizing,
    /// This PE's.
    Pe(usize),
    /// This PE's, whose turn comes before: its store ends the wait, soon or after long.
    Predecessor(usize),
    /// This PE's, while its lane alone brings what is waited for.
    Lane(usize),
    /// That of any PE whose loss is not acknowledged: it might have been the one.
    AnyPeer,
}

/// What a wait is for.
pub(crate) struct WaitReason<'a> {
    pub call: &'static str,
    pub needs: WaitsOn<'a>,
    /// Tells for whom and for what, when someone asks.
    pub describe: &'a dyn Fn() -> (WaitedFor, String),
}

impl Context<'_> {
    /// Waits until `ready` gives something.
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        reason: &WaitReason<'_>,
        bell: Option<Parker<'_>>,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        wait(self, reason, bell, ready)
    }

    /// [`wait`](Self::wait), unless something else ends it, for which nobody looks while it spins.
    #[inline]
    pub(crate) fn wait_unless<R>(
        &self,
        reason: &WaitReason<'_>,
        bell: Option<Parker<'_>>,
        mut ready: impl FnMut() -> Option<R>,
        mut ends: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        if let Some(value) = spin(&self.shared, &mut ready) {
            return Ok(value);
        }
        wait_longer(self, reason, bell, &mut || {
            ready().map(Ok).or_else(&mut ends)
        })?
    }
}

/// Waits until `ready` gives something.
#[inline]
pub(crate) fn wait<R>(
    of: &impl Waiter,
    reason: &WaitReason<'_>,
    bell: Option<Parker<'_>>,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    match spin(of.shared(), &mut ready) {
        Some(value) => Ok(value),
        None => wait_longer(of, reason, bell, &mut ready),
    }
}

/// [`wait`] as a public call for itself: its report and its error name the place of the call.
#[inline]
#[track_caller]
pub(crate) fn wait_in_call<R>(
    of: &impl Waiter,
    reason: &WaitReason<'_>,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    match spin(of.shared(), &mut ready) {
        Some(value) => Ok(value),
        None => wait_placed(of, reason, &mut ready),
    }
}

#[cold]
#[track_caller]
fn wait_placed<R>(
    of: &dyn Waiter,
    reason: &WaitReason<'_>,
    ready: &mut dyn FnMut() -> Option<R>,
) -> Result<R> {
    placed(|| wait_longer(of, reason, None, ready))
}

/// Looks at once, and again as often as that may be less than a turn.
#[inline]
fn spin<R>(shared: &Shared, ready: &mut impl FnMut() -> Option<R>) -> Option<R> {
    // No pause instruction: it takes 140 cycles on some CPUs, a cache-line transfer takes less.
    let found = (0..=shared.spin).find_map(|_| ready());
    if found.is_some() || !shared.oversubscribed {
        return found;
    }
    // Most often a turn of the others is all that is wanted; and all else that a wait looks at, others' work has pushed out
    // of this CPU's caches.
    std::thread::yield_now();
    ready()
}

#[cold]
fn wait_longer<R>(
    of: &dyn Waiter,
    reason: &WaitReason<'_>,
    bell: Option<Parker<'_>>,
    ready: &mut dyn FnMut() -> Option<R>,
) -> Result<R> {
    let shared = of.shared();
    let trace = shared.trace.as_ref();
    let waiting = trace.map(|trace| trace.wait(of.track(), reason));
    let mut wait = hang::Wait::new(shared, reason.call);
    let mut nap = SHORT_SLEEP;
    let mut round = 0_u32;
    let mut lost = None;
    let patience = match shared.spin.max(shared.lane_spin) {
        0 => Duration::ZERO,
        _ => PATIENCE,
    };
    let looks = match reason.needs {
        WaitsOn::Lane(_) => {
            let looks = shared.lane_spin.saturating_mul(LANE_FACTOR);
            looks.min(MOST_LOOKS)
        }
        _ => shared.lane_spin,
    };
    loop {
        of.progress();
        shared.run_progress_hook(reason.call)?;
        if let Some(value) = ready() {
            return Ok(value);
        }
        // What lanes bring comes by progress alone: while no other PE wants this CPU, it is looked for
        // at once, and what else could end the wait now and then.
        if lost.is_none() && round < looks && shared.schedule.is_none() {
            round += 1;
            if !round.is_multiple_of(GLANCE) {
                continue;
            }
        }
        // What a PE did before it died counts: look once more after hearing of its death.
        if let Some(pe) = lost {
            return Err(Error::PeerLost {
                call: reason.call,
                pe,
            });
        }
        lost = shared.lost_among(reason.needs);
        if lost.is_some() {
            continue;
        }
        if let Some(error) = of.stranded(reason.call, reason.needs) {
            return Err(error);
        }
        if let Some(schedule) = &shared.schedule {
            if !schedule.idle() {
                let (whom, what) = (reason.describe)();
                return Err(Error::Deadlock {
                    call: reason.call,
                    me: shared.me,
                    whom: whom.to_string(),
                    what,
                });
            }
            continue;
        }
        if round < looks {
            continue;
        }
        round = round.saturating_add(1);
        if round - looks <= YIELDS {
            std::thread::yield_now();
            continue;
        }
        let waited = wait.lasted();
        if waited < patience {
            std::thread::yield_now();
            continue;
        }
        wait.goes_on(reason.describe)?;
        waiting.iter().for_each(Waiting::goes_on);
        match bell {
            Some(bell) => {
                let mut found = None;
                park::sleep(bell, &Kernel, BELL_SLEEP, &mut || {
                    found = ready();
                    found.is_some()
                });
                if let Some(value) = found {
                    return Ok(value);
                }
            }
            None => {
                std::thread::sleep(nap);
                // What one PE's lane brings after long will not come in a moment: a large transfer.
                let longest = match reason.needs {
                    WaitsOn::Pe(_) | WaitsOn::Lane(_) => {
                        (waited / 16).clamp(LONG_SLEEP, LONGEST_SLEEP)
                    }
                    _ => LONG_SLEEP,
                };
                nap = (nap * 2).min(longest);
            }
        }
    }
}

impl Shared {
    /// A PE whose loss ends a wait that needs `needs`.
    pub(crate) fn lost_among(&self, needs: WaitsOn<'_>) -> Option<usize> {
        match needs {
            #[cfg(feature = "cuda")]
            WaitsOn::Everyone => (0..self.n_pes()).find(|&pe| self.liveness.is_lost(pe)),
            WaitsOn::Members(members) => members.pes().find(|&pe| self.liveness.is_lost(pe)),
            WaitsOn::Finalizing => (0..self.n_pes()).find(|&pe| self.liveness.has_died(pe)),
            WaitsOn::Pe(pe) | WaitsOn::Predecessor(pe) | WaitsOn::Lane(pe) => {
                self.liveness.is_lost(pe).then_some(pe)
            }
            WaitsOn::AnyPeer => self.liveness.first_lost(),
        }
    }
}
