//! The executable model of kernels: the outcomes that the contract allows.
//!
//! The memory is [`Scoped`](oxshmem_weak::Scoped), as weak as PTX's. Calls are steps on it, by the rules M1 to M38 and G1 to G6:
//!
//! - Puts, signals and atomics that fetch nothing are performed at any time after the call, each word by itself (M15): their thread
//!   does not know them until a quiet. What other threads see with them is what the last fence covered; with a signal of a
//!   put-with-signal also its data (M22). A fence covers nonblocking calls, too (G3).
//! - Gets and fetching atomics are performed before the call returns (M16). Consecutive reads have no order (M21).
//! - A `fence` covers what its thread knows and has issued, and what threads had issued with which it has met since: in a barrier of the
//!   group, or by CUDA's fences and atomics (G2). A `quiet` completes all of that; quiets of all threads have one order (M19).
//! - Waits, tests that succeed and `signal_fetch` acquire (M23, G6).
//! - Threads meet at the beginning and the end of a group's call (G1), and where a kernel ends and the next one begins (G4).
//! - `barrier_all` is a quiet and a meeting of all; `sync_all`, `fcollect`, `alltoall` and `sum` meet. In `broadcast` the others wait for
//!   the root alone (M24).
//!
//! All executions are explored, each step with all of its choices.

mod calls;
mod meetings;
mod state;

use std::collections::{BTreeSet, HashSet};

use crate::error::Error;
use crate::kernels::program::Kernels;
use crate::outcome::Outcome;
use crate::program::{Expectation, Verdict};

use self::state::{Choices, State};

/// States that [`outcomes`] visits at most.
pub const STATES: usize = 400_000;

/// All outcomes that the contract allows.
///
/// # Errors
///
/// [`Error::TooManyStates`] beyond [`STATES`].
pub fn outcomes(kernels: &Kernels) -> Result<BTreeSet<Outcome>, Error> {
    let start = State::new(kernels);
    let mut seen = HashSet::from([start.fingerprint()]);
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        let able: Vec<usize> = (0..state.threads())
            .filter(|&thread| state.is_able(kernels, thread))
            .collect();
        if able.is_empty() {
            found.insert(state.outcome(kernels));
            continue;
        }
        // A step that no other thread's step affects, nor the other way round, may come first.
        let alone = able.iter().find(|&&thread| state.is_local(kernels, thread));
        let next = alone.map_or(&*able, std::slice::from_ref);
        for &thread in next {
            let mut script = Some(Vec::new());
            while let Some(choices) = script.take() {
                let mut choices = Choices::following(choices);
                let mut after = state.clone();
                after.step(kernels, thread, &mut choices);
                script = choices.next();
                if choices.are_vain() || !seen.insert(after.fingerprint()) {
                    continue;
                }
                if seen.len() > STATES {
                    return Err(Error::TooManyStates {
                        name: kernels.head().name().into(),
                        states: STATES,
                    });
                }
                open.push(after);
            }
        }
    }
    Ok(found)
}

/// The program's expectations that these outcomes do not meet.
#[must_use]
pub fn unmet<'k>(kernels: &'k Kernels, outcomes: &BTreeSet<Outcome>) -> Vec<&'k Expectation> {
    let all = kernels.head().expectations().iter();
    let is_met = |e: &&Expectation| {
        outcomes.iter().any(|outcome| outcome.matches(&e.pattern))
            == (e.verdict == Verdict::Allowed)
    };
    all.filter(|e| !is_met(e)).collect()
}
