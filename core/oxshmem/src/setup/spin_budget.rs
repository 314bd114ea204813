//! The spin budget of a PE's waits, by the number of CPUs that its host's PEs share.

use crate::config::Config;

/// Iterations that a wait spins if every PE has a CPU: some tens of microseconds.
const SPIN: u32 = 20_000 / UNOPTIMISED;
/// Rounds of progress that a wait makes before it yields, if every PE has a CPU and some PEs are reached by lanes: some
/// hundred microseconds. A wait that one lane alone can end makes more.
const LANE_SPIN: u32 = 2_000 / UNOPTIMISED;
/// Upper bound of `LANE_SPIN` as a program sets it, so that a wait reads the clock in time.
const MAX_LANE_SPIN: u32 = 1 << 20;
/// An iteration's time in a build without optimisation, relative to an optimised one.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 20 } else { 1 };

/// Limits of spinning in waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinBudget {
    /// Iterations that a wait spins before it yields.
    pub spin: u32,
    /// Rounds of progress that a wait makes before it yields.
    pub lane_spin: u32,
    /// Whether a wait yields its CPU before it polls anything else.
    pub oversubscribed: bool,
}

impl SpinBudget {
    /// The budget of a PE whose host has more PEs than CPUs (`oversubscribed`), which drives lanes or not, and records a
    /// trace of its waits or not.
    pub(super) fn new(
        config: &Config,
        oversubscribed: bool,
        uses_lanes: bool,
        is_traced: bool,
    ) -> Self {
        let spin = match config.spin {
            Some(spin) => spin,
            // A lane moves only when it is driven, which the spinning phase does not do.
            None if oversubscribed || uses_lanes => 0,
            None => SPIN,
        };
        let lane_spin = match config.spin {
            _ if !uses_lanes => 0,
            None if oversubscribed => 0,
            None => LANE_SPIN,
            Some(spin) => spin.min(MAX_LANE_SPIN),
        };
        SpinBudget {
            spin,
            lane_spin,
            oversubscribed: oversubscribed && spin == 0 && !uses_lanes && !is_traced,
        }
    }
}
