//! The state of a job's collective calls: which ranks have entered the one in flight, and its outcome.
//!
//! Used by the rendezvous for processes and by the in-process group for threads, so that both
//! behave alike. It holds no locks and waits for nothing.

use std::time::{Duration, Instant};

use crate::error::ranks_in_words;
use crate::fault::Fault;
use crate::protocol::frame::Kind;

/// The outcome of an event for the ranks that wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// None yet.
    Wait,
    /// Call number `sequence` is complete: give all ranks these bytes.
    Complete { sequence: u64, parts: Vec<Vec<u8>> },
    /// Call number `sequence` failed: tell these ranks.
    Failed {
        sequence: u64,
        fault: Fault,
        ranks: Vec<u32>,
    },
}

/// The collective call in flight.
#[derive(Debug)]
struct Round {
    kind: Kind,
    since: Instant,
    deadline: Instant,
    parts: Vec<Option<Vec<u8>>>,
    entered: usize,
}

impl Round {
    fn ranks_where(&self, entered: bool) -> Vec<u32> {
        (0u32..)
            .zip(&self.parts)
            .filter(|(_, part)| part.is_some() == entered)
            .map(|(rank, _)| rank)
            .collect()
    }
}

/// A job's collective calls.
#[derive(Debug)]
pub(crate) struct Rounds {
    size: u32,
    next: u64,
    current: Option<Round>,
    fault: Option<Fault>,
}

impl Rounds {
    pub(crate) fn new(size: u32) -> Rounds {
        Rounds {
            size,
            next: 0,
            current: None,
            fault: None,
        }
    }

    /// The fault for which no collective call can complete any more, if there is one.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The time at which the call in flight fails for missing ranks.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().map(|round| round.deadline)
    }

    /// `rank` (which must be below the size) enters its call number `sequence`.
    pub(crate) fn enter(
        &mut self,
        rank: u32,
        sequence: u64,
        kind: Kind,
        limit: Duration,
        bytes: Vec<u8>,
    ) -> Step {
        if let Some(fault) = &self.fault {
            return Step::Failed {
                sequence,
                fault: fault.clone(),
                ranks: vec![rank],
            };
        }
        if sequence != self.next {
            let what = format!(
                "rank {rank} makes collective call number {sequence} while the job is at number {}",
                self.next
            );
            return self.mismatch(rank, what);
        }
        let size = self.size as usize;
        let now = Instant::now();
        let round = self.current.get_or_insert_with(|| Round {
            kind,
            since: now,
            // A limit beyond what the clock can express is as good as a year.
            deadline: now
                .checked_add(limit)
                .unwrap_or(now + Duration::from_secs(365 * 86400)),
            parts: vec![None; size],
            entered: 0,
        });
        if round.kind != kind {
            let others = ranks_in_words(&round.ranks_where(true));
            let what = format!(
                "in call number {sequence}, {others} called {} and rank {rank} {}",
                round.kind.name(),
                kind.name()
            );
            return self.mismatch(rank, what);
        }
        let Some(part) = round
            .parts
            .get_mut(rank as usize)
            .filter(|part| part.is_none())
        else {
            return self.mismatch(rank, format!("rank {rank} entered call {sequence} twice"));
        };
        *part = Some(bytes);
        round.entered += 1;
        if round.entered < size {
            return Step::Wait;
        }
        self.next += 1;
        let parts = match self.current.take() {
            Some(round) if kind == Kind::Allgather => round.parts.into_iter().flatten().collect(),
            _ => Vec::new(),
        };
        Step::Complete { sequence, parts }
    }

    fn mismatch(&mut self, rank: u32, what: String) -> Step {
        self.fail(Fault::Mismatch { what }, Some(rank))
    }

    /// `rank` has left or died.
    pub(crate) fn gone(&mut self, rank: u32, orderly: bool) -> Step {
        if self.fault.is_some() {
            return Step::Wait;
        }
        self.fail(Fault::Gone { rank, orderly }, None)
    }

    /// Ends all collective calls with `fault`, unless another came first. An abort comes before
    /// all others.
    pub(crate) fn fail(&mut self, fault: Fault, also: Option<u32>) -> Step {
        if matches!(fault, Fault::Aborted { .. }) {
            self.fault = Some(fault.clone());
        }
        let fault = self.fault.get_or_insert(fault).clone();
        let mut ranks = self
            .current
            .take()
            .map_or_else(Vec::new, |round| round.ranks_where(true));
        if let Some(also) = also.filter(|also| !ranks.contains(also)) {
            ranks.push(also);
        }
        Step::Failed {
            sequence: self.next,
            fault,
            ranks,
        }
    }

    /// Fails the call in flight if its deadline has passed.
    pub(crate) fn expire(&mut self, now: Instant) -> Step {
        let missing = match &self.current {
            Some(round) if round.deadline <= now => Fault::Missing {
                ranks: round.ranks_where(false),
                waited: now - round.since,
            },
            _ => return Step::Wait,
        };
        self.fail(missing, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(1000);

    #[test]
    fn bytes_come_back_in_rank_order_and_calls_count_up() {
        let mut rounds = Rounds::new(3);
        assert_eq!(
            rounds.enter(2, 0, Kind::Allgather, LONG, vec![2]),
            Step::Wait
        );
        assert_eq!(
            rounds.enter(0, 0, Kind::Allgather, LONG, vec![]),
            Step::Wait
        );
        let step = rounds.enter(1, 0, Kind::Allgather, LONG, vec![1]);
        assert_eq!(
            step,
            Step::Complete {
                sequence: 0,
                parts: vec![vec![], vec![1], vec![2]]
            }
        );
        assert_eq!(rounds.enter(0, 1, Kind::Barrier, LONG, vec![]), Step::Wait);
    }

    #[test]
    fn different_kinds_fail_for_all_and_for_ever() {
        let mut rounds = Rounds::new(3);
        rounds.enter(0, 0, Kind::Barrier, LONG, vec![]);
        let Step::Failed { fault, ranks, .. } = rounds.enter(2, 0, Kind::Allgather, LONG, vec![])
        else {
            panic!("a mismatch must fail");
        };
        assert_eq!(ranks, [0, 2]);
        let Step::Failed {
            fault: later,
            ranks,
            ..
        } = rounds.enter(1, 0, Kind::Barrier, LONG, vec![])
        else {
            panic!("the late rank must hear of it");
        };
        assert_eq!((later, ranks), (fault, vec![1]));
    }

    #[test]
    fn wrong_sequence_is_a_mismatch() {
        let mut rounds = Rounds::new(2);
        let step = rounds.enter(0, 5, Kind::Barrier, LONG, vec![]);
        assert!(matches!(
            step,
            Step::Failed {
                fault: Fault::Mismatch { .. },
                ..
            }
        ));
    }

    #[test]
    fn missing_ranks_are_named_at_the_deadline() {
        let mut rounds = Rounds::new(4);
        rounds.enter(1, 0, Kind::Barrier, Duration::ZERO, vec![]);
        let Step::Failed {
            fault: Fault::Missing { ranks: missing, .. },
            ranks,
            ..
        } = rounds.expire(Instant::now())
        else {
            panic!("the deadline has passed");
        };
        assert_eq!((missing, ranks), (vec![0, 2, 3], vec![1]));
    }

    #[test]
    fn a_death_fails_the_call_under_way_and_later_ones() {
        let mut rounds = Rounds::new(3);
        rounds.enter(0, 0, Kind::Barrier, LONG, vec![]);
        let fault = Fault::Gone {
            rank: 1,
            orderly: false,
        };
        let step = rounds.gone(1, false);
        assert_eq!(
            step,
            Step::Failed {
                sequence: 0,
                fault: fault.clone(),
                ranks: vec![0]
            }
        );
        let step = rounds.enter(2, 0, Kind::Barrier, LONG, vec![]);
        assert_eq!(
            step,
            Step::Failed {
                sequence: 0,
                fault,
                ranks: vec![2]
            }
        );
    }
}
