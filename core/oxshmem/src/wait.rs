//! The wait loop: spin, then yield, then sleep, with progress, and an error for the wait on a lost PE.
//!
//! The library's own words end a wait by an [unpark](crate::park); users' words, which plain stores,
//! NICs and GPUs change without one, are polled between sleeps of 50 µs to 1 ms. The spin budget is
//! zero when PEs outnumber the CPUs they may use.

mod long_wait;
pub(crate) mod reason;

use std::time::Duration;

pub(crate) use self::long_wait::LongWait;
pub(crate) use self::reason::{WaitReason, WaitsOn};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::futex::Kernel;
use crate::park::{self, Parker};
use crate::place::placed;
use crate::shared::Shared;
use crate::trace::Waiting;
use crate::wait_until::Waiter;

/// Yields before the first sleep, at least.
const YIELDS: u32 = 24;
/// The least time of yields where each PE has a CPU: some MiB take less, and a sleep takes 50 µs more than it should.
const PATIENCE: Duration = Duration::from_millis(2);
/// The longest sleep on a parker before liveness is checked again.
const PARKED_SLEEP: Duration = Duration::from_millis(20);
/// The shortest and longest sleep on a user's word.
const SHORT_SLEEP: Duration = Duration::from_micros(50);
const LONG_SLEEP: Duration = Duration::from_millis(1);
/// The longest on a lane's completions, after a while.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Completions of a lane are polled for so many times as long as the stores of other PEs; not more
/// often than the second of these in all, so that the clock is read in time.
const LANE_FACTOR: u32 = 32;
const MAX_POLLS: u32 = 1 << 24;
/// Polls of lanes between two of everything else.
const LANE_POLLS: u32 = 64;

impl Context<'_> {
    /// Waits until `ready` gives something.
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        reason: &WaitReason<'_>,
        parker: Option<Parker<'_>>,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        wait(self, reason, parker, ready)
    }

    /// [`wait`](Self::wait), unless `ends` ends it, which is not polled while it spins.
    #[inline]
    pub(crate) fn wait_unless<R>(
        &self,
        reason: &WaitReason<'_>,
        parker: Option<Parker<'_>>,
        mut ready: impl FnMut() -> Option<R>,
        mut ends: impl FnMut() -> Option<Result<R>>,
    ) -> Result<R> {
        if let Some(value) = spin(&self.shared, &mut ready) {
            return Ok(value);
        }
        wait_longer(self, reason, parker, &mut || {
            ready().map(Ok).or_else(&mut ends)
        })?
    }
}

/// Waits until `ready` gives something.
#[inline]
pub(crate) fn wait<R>(
    of: &impl Waiter,
    reason: &WaitReason<'_>,
    parker: Option<Parker<'_>>,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    match spin(of.shared(), &mut ready) {
        Some(value) => Ok(value),
        None => wait_longer(of, reason, parker, &mut ready),
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

/// Polls at once, and again as often as the spin budget says.
#[inline]
fn spin<R>(shared: &Shared, ready: &mut impl FnMut() -> Option<R>) -> Option<R> {
    // No pause instruction: it takes 140 cycles on some CPUs, a cache-line transfer takes less.
    let found = (0..=shared.spin).find_map(|_| ready());
    if found.is_some() || !shared.oversubscribed {
        return found;
    }
    // Most often one turn of the others is enough; and their work has pushed all else that a wait checks out of this
    // CPU's caches.
    std::thread::yield_now();
    ready()
}

#[cold]
fn wait_longer<R>(
    of: &dyn Waiter,
    reason: &WaitReason<'_>,
    parker: Option<Parker<'_>>,
    ready: &mut dyn FnMut() -> Option<R>,
) -> Result<R> {
    let shared = of.shared();
    let trace = shared.trace.as_ref();
    let waiting = trace.map(|trace| trace.wait(of.track(), reason));
    let mut wait = LongWait::new(shared, reason.call);
    let mut nap = SHORT_SLEEP;
    let mut round = 0_u32;
    let mut lost = None;
    let patience = match shared.spin.max(shared.lane_spin) {
        0 => Duration::ZERO,
        _ => PATIENCE,
    };
    let polls = lane_polls(shared, reason.needs);
    loop {
        of.progress();
        shared.run_progress_hook(reason.call)?;
        if let Some(value) = ready() {
            return Ok(value);
        }
        // Lanes complete by progress alone: while no other PE wants this CPU, they are polled at once, and all else that
        // could end the wait now and then.
        if lost.is_none() && round < polls && shared.schedule.is_none() {
            round += 1;
            if !round.is_multiple_of(LANE_POLLS) {
                continue;
            }
        }
        // The operations of a PE before its death count: poll once more after its loss is known.
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
                return Err(deadlock(shared, reason));
            }
            continue;
        }
        if round < polls {
            continue;
        }
        round = round.saturating_add(1);
        if round - polls <= YIELDS {
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
        match parker {
            Some(parker) => {
                let mut found = None;
                park::sleep(parker, &Kernel, PARKED_SLEEP, &mut || {
                    found = ready();
                    found.is_some()
                });
                if let Some(value) = found {
                    return Ok(value);
                }
            }
            None => {
                std::thread::sleep(nap);
                nap = (nap * 2).min(longest_nap(reason.needs, waited));
            }
        }
    }
}

/// The polls of lanes before a wait yields.
fn lane_polls(shared: &Shared, needs: WaitsOn<'_>) -> u32 {
    match needs {
        WaitsOn::Lane(_) => {
            let polls = shared.lane_spin.saturating_mul(LANE_FACTOR);
            polls.min(MAX_POLLS)
        }
        _ => shared.lane_spin,
    }
}

/// The longest sleep of a wait that has lasted so long.
fn longest_nap(needs: WaitsOn<'_>, waited: Duration) -> Duration {
    match needs {
        // A wait on one PE that has lasted long is a large transfer, which does not end in a moment.
        WaitsOn::Pe(_) | WaitsOn::Lane(_) => (waited / 16).clamp(LONG_SLEEP, LONGEST_SLEEP),
        _ => LONG_SLEEP,
    }
}

/// The error of a wait that no scheduled PE can end.
fn deadlock(shared: &Shared, reason: &WaitReason<'_>) -> Error {
    let (whom, what) = (reason.describe)();
    Error::Deadlock {
        call: reason.call,
        me: shared.me,
        whom: whom.to_string(),
        what,
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
