//! The subject of one row.

use super::fixture::{Fixture, Role};
use super::metric::Metric;
use super::op::{Op, Who};

/// An operation, a metric, and a size.
#[derive(Clone, Copy)]
pub struct Task {
    pub op: &'static Op,
    pub metric: Metric,
    /// Bytes of one operation; 0 if it moves none.
    pub bytes: usize,
    /// Operations in flight at once, where the metric has a window; else 1.
    pub window: u64,
    /// Threads of each acting PE, each with a window and a context of its own.
    pub threads: u32,
}

impl Task {
    /// Operations in one repetition: a round trip is two.
    pub fn per_repetition(&self) -> u64 {
        match (self.op.who, self.metric) {
            (Who::Pair, _) => 2,
            (_, Metric::Bidirectional) => 2 * self.window * u64::from(self.threads),
            (_, metric) if metric.has_window() => self.window * u64::from(self.threads),
            _ => 1,
        }
    }

    /// This PE's role.
    pub fn role(&self, fixture: &Fixture<'_>) -> Role {
        let (leads, answers) = (fixture.leads(), fixture.answers());
        let both = leads || answers;
        match (self.op.who, self.metric) {
            (_, Metric::Bidirectional) | (Who::Pair, _) => Role {
                acts: both,
                receives: both,
            },
            (Who::All, _) => Role::BOTH,
            (Who::Team, _) => Role {
                acts: fixture.team.is_some(),
                receives: fixture.team.is_some(),
            },
            (Who::One | Who::OneCompleting | Who::Alone, _) => Role {
                acts: leads,
                receives: answers,
            },
        }
    }
}
