//! The wait loop: spin, then yield, then sleep, with progress, and an error for the wait on a lost PE.
//!
//! The library's own words end a wait by an [unpark](super::park); users' words, which plain stores,
//! NICs and GPUs change without one, are polled between sleeps of 50 µs to 1 ms. The spin budget is
//! zero when PEs outnumber the CPUs they may use.

use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::progress::futex::Kernel;
use crate::progress::long_wait::LongWait;
use crate::progress::park;
use crate::progress::park::Parker;
use crate::progress::reason::{WaitReason, WaitsOn};
use crate::trace::timeline::{Track, Waiting};

/// The user of a wait: a worker of this thread's, or one that threads share, whose lock is not held meanwhile.
pub trait Waiter {
    /// The PE's engine.
    fn engine(&self) -> &Engine;
    /// Makes progress on the worker's lanes.
    fn progress(&self);
    /// Sleeps, at most so long: less if data arrive for which its lanes can sleep. Gives whether such may have arrived.
    fn sleep(&self, longest: Duration) -> bool {
        std::thread::sleep(longest);
        false
    }
    /// The reason why a wait that needs these PEs cannot end, if there is one: a lane that has failed.
    fn stranded(&self, call: &'static str, needs: WaitsOn<'_>) -> Option<Error>;
    /// The track where a trace shows its waits; none is the thread's own.
    fn track(&self) -> Option<Track>;
}

/// Yields before the first sleep, at least.
const YIELDS: u32 = 24;
/// The least time of yields where each PE has a CPU: a transfer of some MiB takes less, and a sleep lasts 50 µs longer
/// than it should.
const PATIENCE: Duration = Duration::from_millis(2);
/// The longest sleep on a parker before liveness is checked again.
const PARKED_SLEEP: Duration = Duration::from_millis(20);
/// The shortest and longest sleep on a user's word.
const SHORT_SLEEP: Duration = Duration::from_micros(50);
const LONG_SLEEP: Duration = Duration::from_millis(1);
/// The longest sleep of a long wait for a lane's completions.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Polls for a lane's completions, for each poll for other PEs' stores; and the most polls in all, so that the clock
/// is read in time.
const LANE_FACTOR: u32 = 32;
const MAX_POLLS: u32 = 1 << 24;
/// The time of a poll where data move inside calls, which asks the operating system, by that of another.
const CALL_FACTOR: u32 = 16;
/// Polls of lanes between two checks of everything else.
const LANE_POLLS: u32 = 64;

/// Waits until `ready` gives something.
#[inline]
pub fn wait<R>(
    of: &impl Waiter,
    reason: &WaitReason<'_>,
    parker: Option<Parker<'_>>,
    mut ready: impl FnMut() -> Option<R>,
) -> Result<R> {
    match spin(of.engine(), &mut ready) {
        Some(value) => Ok(value),
        None => wait_longer(of, reason, parker, &mut ready),
    }
}

/// Polls at once, and again as often as the spin budget says.
#[inline]
pub fn spin<R>(engine: &Engine, ready: &mut impl FnMut() -> Option<R>) -> Option<R> {
    // No pause instruction: it takes 140 cycles on some CPUs, a cache-line transfer takes less.
    let found = (0..=engine.spin).find_map(|_| ready());
    if found.is_some() || !engine.oversubscribed {
        return found;
    }
    // Most often one time slice of the others is enough. The rest of a wait's checks would be slow now, as the others'
    // work has filled this CPU's caches.
    std::thread::yield_now();
    ready()
}

/// [`wait`] of something that was not ready at once.
#[cold]
pub fn wait_longer<R>(
    of: &dyn Waiter,
    reason: &WaitReason<'_>,
    parker: Option<Parker<'_>>,
    ready: &mut dyn FnMut() -> Option<R>,
) -> Result<R> {
    let engine = of.engine();
    let trace = engine.trace.as_ref();
    let waiting = trace.map(|trace| trace.wait(of.track(), reason));
    let mut wait = LongWait::new(engine, reason.call);
    let mut nap = SHORT_SLEEP;
    let mut round = 0_u32;
    // The time of the wait when data last ended a sleep.
    let mut slept_at = Duration::ZERO;
    let mut lost = None;
    let patience = match engine.spin.max(engine.lane_spin) {
        0 => Duration::ZERO,
        _ => PATIENCE,
    };
    let polls = lane_polls(engine, reason.needs);
    loop {
        of.progress();
        engine.run_progress_hook(reason.call)?;
        if let Some(value) = ready() {
            return Ok(value);
        }
        // Lanes complete by progress alone. While no other PE wants this CPU they are polled without a pause, and the
        // rest that could end the wait is checked now and then.
        if lost.is_none() && round < polls && engine.schedule.is_none() {
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
        lost = engine.lost_among(reason.needs);
        if lost.is_some() {
            continue;
        }
        if let Some(error) = of.stranded(reason.call, reason.needs) {
            return Err(error);
        }
        if let Some(schedule) = &engine.schedule {
            if !schedule.idle() {
                return Err(deadlock(engine, reason));
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
        if waited < slept_at + patience {
            std::thread::yield_now();
            continue;
        }
        wait.goes_on(reason.describe)?;
        waiting.iter().for_each(Waiting::goes_on);
        match parker {
            Some(parker) => {
                if let Some(value) = sleep_parked(parker, ready) {
                    return Ok(value);
                }
            }
            None => {
                if of.sleep(nap) {
                    // More may follow soon.
                    round = 0;
                    nap = SHORT_SLEEP;
                    slept_at = waited;
                    continue;
                }
                nap = (nap * 2).min(longest_nap(reason.needs, waited));
            }
        }
    }
}

/// Sleeps until unparked, unless something is ready.
fn sleep_parked<R>(parker: Parker<'_>, ready: &mut dyn FnMut() -> Option<R>) -> Option<R> {
    let mut found = None;
    park::sleep(parker, &Kernel, PARKED_SLEEP, &mut || {
        found = ready();
        found.is_some()
    });
    found
}

/// The polls of lanes before a wait yields.
fn lane_polls(engine: &Engine, needs: WaitsOn<'_>) -> u32 {
    let calls = engine.rails.iter().any(|rail| rail.caps.moves_in_calls);
    let spin = match calls {
        true => engine.lane_spin / CALL_FACTOR,
        false => engine.lane_spin,
    };
    match needs {
        WaitsOn::Lane(_) => spin.saturating_mul(LANE_FACTOR).min(MAX_POLLS),
        _ => spin,
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
fn deadlock(engine: &Engine, reason: &WaitReason<'_>) -> Error {
    let (whom, what) = (reason.describe)();
    Error::Deadlock {
        call: reason.call,
        me: engine.me,
        whom: whom.to_string(),
        what,
    }
}

impl Engine {
    /// A PE whose loss ends a wait that needs `needs`.
    pub fn lost_among(&self, needs: WaitsOn<'_>) -> Option<usize> {
        match needs {
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
