//! PEs' waits, as the rendezvous learns of them, and the deadlocks among them: which PE waits for which, and that none
//! of these waits can end.

use std::fmt;
use std::time::Duration;

use crate::error::ranks_in_words;

/// A wait of one thread of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The call that waits.
    pub call: String,
    /// The PE that can end it.
    pub whom: Awaited,
    /// The event that it waits for, in words.
    pub what: String,
    /// Its age.
    pub lasted: Duration,
}

/// The PE that can end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The program of this rank.
    Rank(u32),
    /// A lane from this rank, or a service of its process, ends the wait, whatever its program does.
    Lane(u32),
    /// Any rank may end the wait.
    Any,
    /// Another thread, or a lane, of the PE that waits.
    Itself,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Rank(rank) | Awaited::Lane(rank) => write!(f, "PE {rank}"),
            Awaited::Any => f.write_str("any PE"),
            Awaited::Itself => f.write_str("this PE"),
        }
    }
}

/// The state of one PE in a survey of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeState {
    /// It has not joined.
    Absent,
    /// It has left the job, or died.
    Gone,
    /// It has not answered.
    Silent,
    /// Its waits; none if it is in no call that has waited for a while.
    Told(Vec<Waiting>),
}

/// Lines about PEs that wait, at most.
const MOST_LINES: usize = 48;
/// PEs of a deadlock that are named, at most.
const MOST_NAMED: usize = 8;

/// All PEs at one moment: every wait had begun before, and none had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitSnapshot(pub(crate) Vec<PeState>);

impl WaitSnapshot {
    /// Whether a PE waits.
    pub(crate) fn shows_waits(&self) -> bool {
        self.waiting().next().is_some()
    }

    fn waiting(&self) -> impl Iterator<Item = (u32, &Vec<Waiting>)> {
        (0..).zip(&self.0).filter_map(|(rank, state)| match state {
            PeState::Told(waits) if !waits.is_empty() => Some((rank, waits)),
            _ => None,
        })
    }

    /// The lines for the user: which PE waits for which, and which PEs do not wait.
    pub(crate) fn lines(&self) -> Vec<String> {
        let waits: usize = self.waiting().map(|(_, waits)| waits.len()).sum();
        let each = self.waiting().flat_map(|(rank, waits)| {
            waits.iter().map(move |wait| {
                let Waiting {
                    call, whom, what, ..
                } = wait;
                let seconds = wait.lasted.as_secs_f64();
                format!("PE {rank} has waited {seconds:.1} s in {call} for {whom}: {what}")
            })
        });
        let mut lines: Vec<String> = each.take(MOST_LINES).collect();
        if waits > MOST_LINES {
            lines.push(format!("and {} more waits", waits - MOST_LINES));
        }
        let others: [(&PeState, &str); 4] = [
            (&PeState::Told(Vec::new()), "in no call that waits"),
            (
                &PeState::Silent,
                "no answer (stopped, or this host is too busy)",
            ),
            (&PeState::Absent, "not joined yet"),
            (&PeState::Gone, "left or ended"),
        ];
        for (state, words) in others {
            let ranks = (0..).zip(&self.0).filter(|(_, other)| *other == state);
            let ranks: Vec<u32> = ranks.map(|(rank, _)| rank).collect();
            if !ranks.is_empty() {
                let who = ranks_in_words(&ranks).replace("rank", "PE");
                lines.push(format!("{who}: {words}"));
            }
        }
        lines.extend(self.deadlock());
        lines
    }

    /// The PEs whose waits only others of them could end, in words.
    pub(crate) fn deadlock(&self) -> Option<String> {
        let blocked = self.blocked();
        let wait = |rank: u32| match self.0.get(rank as usize) {
            Some(PeState::Told(waits)) => waits.first(),
            _ => None,
        };
        let first = (0..).zip(&blocked).find(|(_, blocked)| **blocked)?.0;
        let (whole, ranks) = match cycle(first, |rank| wait(rank).map(|wait| wait.whom)) {
            Some(cycle) => ("these wait for each other in a circle", cycle),
            None => {
                let all = (0..).zip(&blocked).filter(|(_, blocked)| **blocked);
                let all = all.map(|(rank, _)| rank).collect();
                ("these wait for each other", all)
            }
        };
        let named = ranks.iter().take(MOST_NAMED).filter_map(|rank| {
            let Waiting { call, whom, .. } = wait(*rank)?;
            Some(format!("PE {rank} for {whom} in {call}"))
        });
        let mut named: Vec<String> = named.collect();
        if ranks.len() > MOST_NAMED {
            named.push(format!("and {} more", ranks.len() - MOST_NAMED));
        }
        Some(format!(
            "deadlock: {whole}: {}; no wait of theirs ends unless another thread of one of them acts",
            named.join(", ")
        ))
    }

    /// By rank, whether no wait of the PE can end unless the wait of another such PE does.
    fn blocked(&self) -> Vec<bool> {
        let mut blocked: Vec<bool> = self
            .0
            .iter()
            .map(|state| matches!(state, PeState::Told(waits) if !waits.is_empty()))
            .collect();
        loop {
            let acts = blocked.iter().filter(|blocked| !**blocked).count();
            let may_end = |wait: &Waiting| match wait.whom {
                Awaited::Rank(rank) => blocked.get(rank as usize) != Some(&true),
                Awaited::Any => acts > 0,
                Awaited::Lane(_) | Awaited::Itself => true,
            };
            let freed: Vec<usize> = (0..)
                .zip(&self.0)
                .filter(|(rank, state)| match state {
                    PeState::Told(waits) => {
                        blocked.get(*rank) == Some(&true) && waits.iter().any(may_end)
                    }
                    _ => false,
                })
                .map(|(rank, _)| rank)
                .collect();
            if freed.is_empty() {
                return blocked;
            }
            for rank in freed {
                if let Some(blocked) = blocked.get_mut(rank) {
                    *blocked = false;
                }
            }
        }
    }
}

/// The circle into which the waits lead from a PE on, beginning with its least PE, if each names one PE.
fn cycle(from: u32, whom: impl Fn(u32) -> Option<Awaited>) -> Option<Vec<u32>> {
    let mut path = vec![from];
    loop {
        let Some(Awaited::Rank(next)) = whom(*path.last()?) else {
            return None;
        };
        if let Some(start) = path.iter().position(|rank| *rank == next) {
            let mut cycle = path.split_off(start);
            let least = cycle.iter().enumerate().min_by_key(|(_, rank)| **rank);
            let least = least.map_or(0, |(place, _)| place);
            cycle.rotate_left(least);
            return Some(cycle);
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(whom: Awaited) -> PeState {
        PeState::Told(vec![Waiting {
            call: "barrier_all".into(),
            whom,
            what: "its word".into(),
            lasted: Duration::from_millis(31_250),
        }])
    }

    fn on(rank: u32) -> PeState {
        waits(Awaited::Rank(rank))
    }

    const BUSY: PeState = PeState::Told(Vec::new());

    #[test]
    fn a_circle_is_named_from_its_least_pe_on() {
        let snapshot = WaitSnapshot(vec![on(3), BUSY, on(1), on(4), on(5), on(3)]);
        let words = snapshot.deadlock().unwrap();
        assert!(words.contains("in a circle: PE 3 for PE 4 in barrier_all, PE 4 for PE 5 in barrier_all, PE 5 for PE 3 in barrier_all;"), "{words}");
        let whole = WaitSnapshot(vec![on(2), on(0), on(1)]).deadlock().unwrap();
        assert!(
            whole.contains("circle: PE 0 for PE 2 in barrier_all, PE 2 for PE 1"),
            "{whole}"
        );
    }

    #[test]
    fn a_wait_that_a_working_pe_may_end_is_no_deadlock() {
        for snapshot in [
            vec![on(1), BUSY],
            vec![on(1), on(2), BUSY],
            vec![waits(Awaited::Any), on(0), BUSY],
            vec![on(1), PeState::Silent],
            vec![on(1), PeState::Absent],
            vec![on(1), PeState::Gone],
            vec![on(1), waits(Awaited::Lane(0))],
            vec![on(1), waits(Awaited::Itself)],
            vec![on(9), BUSY],
        ] {
            let snapshot = WaitSnapshot(snapshot);
            assert_eq!(snapshot.deadlock(), None, "{snapshot:?}");
        }
    }

    #[test]
    fn where_all_wait_for_any_none_comes() {
        let words = WaitSnapshot(vec![waits(Awaited::Any), on(0), waits(Awaited::Any)]).deadlock();
        let words = words.unwrap();
        assert!(
            words.contains(
                "PE 0 for any PE in barrier_all, PE 1 for PE 0 in barrier_all, PE 2 for any PE"
            ),
            "{words}"
        );
    }

    #[test]
    fn every_pe_is_accounted_for() {
        let snapshot = WaitSnapshot(vec![
            on(1),
            BUSY,
            BUSY,
            PeState::Silent,
            PeState::Absent,
            PeState::Gone,
        ]);
        assert_eq!(
            snapshot.lines(),
            [
                "PE 0 has waited 31.2 s in barrier_all for PE 1: its word",
                "PEs 1 and 2: in no call that waits",
                "PE 3: no answer (stopped, or this host is too busy)",
                "PE 4: not joined yet",
                "PE 5: left or ended",
            ]
        );
        assert!(snapshot.shows_waits() && !WaitSnapshot(vec![BUSY]).shows_waits());
    }

    #[test]
    fn a_large_job_takes_few_lines() {
        let snapshot = WaitSnapshot((0..1000).map(|rank| on((rank + 1) % 1000)).collect());
        let lines = snapshot.lines();
        assert_eq!(lines.len(), MOST_LINES + 2);
        assert!(lines[MOST_LINES].contains("and 952 more"), "{lines:?}");
        assert!(lines[MOST_LINES + 1].contains("and 992 more;"), "{lines:?}");
    }
}
