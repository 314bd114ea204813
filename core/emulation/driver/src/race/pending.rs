//! Nonblocking calls: what they move may be touched by nobody else until a quiet (M37).
//!
//! Such a call's accesses happen some time between the call and the quiet that covers it. So they are those of agents of their own, which
//! the calling thread does not come after before that quiet: one agent for each operand whose use another call ends. The epochs of
//! these agents are those of the caller. So a quiet covers, of each caller, what was called in the epochs that the quiet's thread knows of.

use std::collections::BTreeSet;

use super::clock::{Agent, Clock};

/// An operand of a nonblocking call, by what ends its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// The source of a put: a flush, or a quiet.
    Source = 1,
    /// The destination of a put: a quiet; and a fence, for what goes to that PE later, and for those who hear of it.
    Dest,
    /// That of a put with a signal: besides, who sees the signal sees it written.
    Signalled,
    /// Both operands of a get: a quiet.
    Fetched,
}

/// A call that ends the use of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completes {
    Flush,
    Fence,
    Quiet,
}

impl Completes {
    /// The call by the number that device code gives.
    pub(crate) fn of(number: u32) -> Completes {
        match number {
            0 => Completes::Flush,
            1 => Completes::Fence,
            _ => Completes::Quiet,
        }
    }

    fn operands(self) -> &'static [Operand] {
        use Operand::{Dest, Fetched, Signalled, Source};
        match self {
            Completes::Flush => &[Source],
            Completes::Fence => &[Dest, Signalled],
            Completes::Quiet => &[Source, Dest, Signalled, Fetched],
        }
    }
}

/// Strands of a process have smaller numbers.
const FIRST_BIT: u32 = 28;

impl Operand {
    /// The operand by the number that device code gives.
    pub(crate) fn of(number: u32) -> Operand {
        match number {
            1 => Operand::Source,
            2 => Operand::Dest,
            3 => Operand::Signalled,
            _ => Operand::Fetched,
        }
    }

    /// The operand whose agent this is.
    pub(super) fn of_agent(agent: Agent) -> Option<Operand> {
        match agent.strand >> FIRST_BIT {
            0 => None,
            number => Some(Operand::of(number)),
        }
    }

    fn strand(self, callers: u32) -> u32 {
        callers | (self as u32) << FIRST_BIT
    }

    /// The agent of a caller's operands.
    pub(super) fn agent(self, caller: Agent) -> Agent {
        Agent {
            strand: self.strand(caller.strand),
            ..caller
        }
    }
}

/// The thread for which an agent of operands acts; else itself.
pub(super) fn caller(agent: Agent) -> Agent {
    Agent {
        strand: agent.strand & ((1 << FIRST_BIT) - 1),
        ..agent
    }
}

/// Callers of nonblocking calls.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Threads of kernels that run, and of those that were the last of their strands.
    callers: BTreeSet<Agent>,
    /// Strands with such threads in pieces that are over.
    strands: BTreeSet<u32>,
}

impl Pending {
    pub(super) fn add(&mut self, caller: Agent) {
        self.callers.insert(caller);
    }

    /// A piece of a strand is over.
    pub(super) fn end(&mut self, strand: u32, piece: u32) {
        let mut callers = self.callers.iter();
        if callers.any(|agent| (agent.strand, agent.piece) == (strand, piece)) {
            self.strands.insert(strand);
        }
        // Others may have heard of a thread of this piece and not of the piece's end.
        self.callers
            .retain(|agent| agent.strand != strand || agent.piece >= piece);
    }

    /// Adds to a clock what a call completes behind what the clock has: of the strands of the process that makes it.
    pub(super) fn complete(&self, clock: &mut Clock, by: Completes, is_own: impl Fn(u32) -> bool) {
        for strand in self.strands.iter().filter(|strand| is_own(**strand)) {
            if let Some(piece) = clock.last_piece(*strand) {
                for operand in by.operands() {
                    clock.end(operand.strand(*strand), piece);
                }
            }
        }
        let known = self.callers.iter().filter(|caller| is_own(caller.strand));
        let known = known.filter_map(|caller| Some((*caller, clock.last_epoch(*caller)?)));
        let all = known.flat_map(|(caller, epoch)| {
            let agents = by.operands().iter();
            agents.map(move |operand| (operand.agent(caller), epoch))
        });
        clock.add_all(all.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Stamp;
    use super::*;

    fn caller(thread: u32) -> Agent {
        Agent {
            strand: 3,
            piece: 2,
            thread,
        }
    }

    fn stamp(operand: Operand, thread: u32, epoch: u32) -> Stamp {
        let agent = operand.agent(caller(thread));
        Stamp { agent, epoch }
    }

    #[test]
    fn a_quiet_covers_the_calls_that_its_thread_knows_of() {
        let mut pending = Pending::default();
        (1..3).for_each(|thread| pending.add(caller(thread)));
        let mut clock = Clock::default();
        let (agent, epoch) = (caller(1), 4);
        clock.add(Stamp { agent, epoch });
        pending.complete(&mut clock, Completes::Quiet, |_| true);
        for operand in [Operand::Source, Operand::Dest, Operand::Fetched] {
            assert!(clock.knows(stamp(operand, 1, 4)));
            assert!(!clock.knows(stamp(operand, 1, 5)));
            assert!(!clock.knows(stamp(operand, 2, 1)));
        }
        let mut of_another = Clock::default();
        of_another.add(Stamp { agent, epoch });
        pending.complete(&mut of_another, Completes::Quiet, |_| false);
        assert!(!of_another.knows(stamp(Operand::Dest, 1, 4)));
    }

    #[test]
    fn a_flush_ends_the_use_of_sources_and_a_fence_that_of_destinations() {
        use Operand::{Dest, Fetched, Signalled, Source};
        let mut pending = Pending::default();
        pending.add(caller(1));
        for (call, ended) in [
            (Completes::Flush, &[Source][..]),
            (Completes::Fence, &[Dest, Signalled]),
        ] {
            let mut clock = Clock::default();
            let (agent, epoch) = (caller(1), 1);
            clock.add(Stamp { agent, epoch });
            pending.complete(&mut clock, call, |_| true);
            for operand in [Source, Dest, Signalled, Fetched] {
                let known = clock.knows(stamp(operand, 1, 1));
                assert_eq!(known, ended.contains(&operand), "{call:?} {operand:?}");
            }
        }
    }

    #[test]
    fn the_end_of_a_kernel_is_no_quiet_and_one_behind_it_covers_all_its_threads() {
        let mut pending = Pending::default();
        pending.add(caller(1));
        let mut clock = Clock::default();
        pending.end(3, 2);
        clock.end(3, 2);
        assert!(!clock.knows(stamp(Operand::Dest, 1, 1)));
        pending.complete(&mut clock, Completes::Quiet, |_| true);
        assert!(clock.knows(stamp(Operand::Dest, 1, 77)));
    }

    #[test]
    fn an_operands_agent_names_its_caller() {
        let agent = Operand::Fetched.agent(caller(5));
        assert_eq!(Operand::of_agent(agent), Some(Operand::Fetched));
        assert_eq!(super::caller(agent), caller(5));
        assert_eq!(Operand::of_agent(caller(5)), None);
    }
}
