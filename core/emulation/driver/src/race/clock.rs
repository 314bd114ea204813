//! Clocks: what has happened before a point of execution.
//!
//! Work that one stream or the host does piece by piece is a *strand*; its pieces are numbered. A kernel is one piece, and each of its
//! threads has a clock of its own, which counts its releases. So a clock has a number for each strand, of the last piece
//! that is over, and numbers for those threads of unfinished kernels that it has heard of.

use std::sync::Arc;

/// A thread of a kernel: its strand, the number of the piece, and its number in the grid. A piece that is not a kernel
/// has one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Agent {
    pub(crate) strand: u32,
    pub(crate) piece: u32,
    pub(crate) thread: u32,
}

/// A point in an agent's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) agent: Agent,
    pub(crate) epoch: u32,
}

/// All that has happened before a point. Both lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// By strand: the last piece that is over.
    pieces: Vec<(u32, u32)>,
    /// By agent of a piece that is not over: its last epoch that is.
    agents: Vec<(Agent, u32)>,
}

impl Clock {
    /// Whether a point comes before this one.
    pub(crate) fn knows(&self, stamp: Stamp) -> bool {
        let Stamp { agent, epoch } = stamp;
        self.is_over(agent) || self.last_epoch(agent).is_some_and(|last| last >= epoch)
    }

    /// The last epoch of an agent that has happened, as far as its piece is not known to be over.
    pub(super) fn last_epoch(&self, agent: Agent) -> Option<u32> {
        number_of(&self.agents, agent)
    }

    /// The last piece of a strand that is over.
    pub(super) fn last_piece(&self, strand: u32) -> Option<u32> {
        number_of(&self.pieces, strand)
    }

    /// Whether the piece of an agent is over.
    fn is_over(&self, agent: Agent) -> bool {
        let last = self.last_piece(agent.strand);
        last.is_some_and(|last| last >= agent.piece)
    }

    /// Adds what has happened before another point. Gives whether anything was new.
    pub(crate) fn join(&mut self, other: &Clock) -> bool {
        let pieces = merge(&mut self.pieces, &other.pieces);
        let agents = merge(&mut self.agents, &other.agents);
        if pieces {
            self.forget_agents();
        }
        pieces || agents
    }

    /// The same without the threads of one piece.
    pub(crate) fn join_others(&mut self, other: &Clock, (strand, piece): (u32, u32)) {
        let pieces = merge(&mut self.pieces, &other.pieces);
        let of_piece = |agent: &Agent| (agent.strand, agent.piece) == (strand, piece);
        let others = other.agents.iter().filter(|(agent, _)| !of_piece(agent));
        let others: Vec<_> = others.copied().collect();
        merge(&mut self.agents, &others);
        if pieces {
            self.forget_agents();
        }
    }

    /// Adds points, as far as their threads are not over.
    pub(crate) fn add_all(&mut self, mut stamps: Vec<(Agent, u32)>) {
        stamps.retain(|(agent, _)| !self.is_over(*agent));
        // Of each agent the last point alone: a sorted list has one number of a key.
        stamps.sort_unstable_by(|one, other| other.cmp(one));
        stamps.dedup_by_key(|(agent, _)| *agent);
        stamps.reverse();
        merge(&mut self.agents, &stamps);
    }

    /// Adds a point.
    pub(crate) fn add(&mut self, stamp: Stamp) {
        if !self.is_over(stamp.agent) {
            merge(&mut self.agents, &[(stamp.agent, stamp.epoch)]);
        }
    }

    /// Adds a piece of a strand, and all before it.
    pub(crate) fn end(&mut self, strand: u32, piece: u32) {
        merge(&mut self.pieces, &[(strand, piece)]);
        self.forget_agents();
    }

    fn forget_agents(&mut self) {
        let mut agents = std::mem::take(&mut self.agents);
        agents.retain(|(agent, _)| !self.is_over(*agent));
        self.agents = agents;
    }
}

/// Joins a shared clock with another; it is copied only if something is new.
pub(crate) fn join(clock: &mut Arc<Clock>, other: &Arc<Clock>) {
    if Arc::ptr_eq(clock, other) || covers(clock, other) {
        return;
    }
    Arc::make_mut(clock).join(other);
}

/// Whether a clock has all that another has.
pub(super) fn covers(clock: &Clock, other: &Clock) -> bool {
    let over = |(strand, piece): &(u32, u32)| {
        let agent = Agent {
            strand: *strand,
            piece: *piece,
            thread: 0,
        };
        clock.is_over(agent)
    };
    let known = |(agent, epoch): &(Agent, u32)| {
        clock.knows(Stamp {
            agent: *agent,
            epoch: *epoch,
        })
    };
    other.pieces.iter().all(over) && other.agents.iter().all(known)
}

/// The number of a key in a sorted list.
fn number_of<K: Ord + Copy>(list: &[(K, u32)], key: K) -> Option<u32> {
    let found = list.binary_search_by_key(&key, |(known, _)| *known);
    found.ok().map(|at| list[at].1)
}

/// Merges a sorted list into another: of two numbers of one key the greater counts. Gives whether anything changed.
fn merge<K: Ord + Copy>(into: &mut Vec<(K, u32)>, from: &[(K, u32)]) -> bool {
    let mut changed = false;
    let mut at = 0;
    let mut missing = false;
    for (key, number) in from {
        at += into[at..].partition_point(|(known, _)| known < key);
        match into.get_mut(at) {
            Some((known, own)) if known == key => {
                changed |= *own < *number;
                *own = (*own).max(*number);
            }
            _ => missing = true,
        }
    }
    if !missing {
        return changed;
    }
    let mut merged = Vec::with_capacity(into.len() + from.len());
    let (mut left, mut right) = (into.iter().peekable(), from.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => left.next(),
            (None, Some(_)) => right.next(),
            (Some((one, _)), Some((other, _))) => match one.cmp(other) {
                std::cmp::Ordering::Less => left.next(),
                std::cmp::Ordering::Greater => right.next(),
                std::cmp::Ordering::Equal => {
                    // Its number was raised above.
                    right.next();
                    left.next()
                }
            },
        };
        merged.extend(next);
    }
    *into = merged;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(strand: u32, piece: u32, thread: u32) -> Agent {
        Agent {
            strand,
            piece,
            thread,
        }
    }

    fn stamp(thread: u32, epoch: u32) -> Stamp {
        let agent = agent(1, 5, thread);
        Stamp { agent, epoch }
    }

    #[test]
    fn a_clock_knows_what_it_was_told_and_nothing_later() {
        let mut clock = Clock::default();
        assert!(!clock.knows(stamp(3, 1)));
        clock.add(stamp(3, 2));
        assert!(clock.knows(stamp(3, 2)) && clock.knows(stamp(3, 1)));
        assert!(!clock.knows(stamp(3, 3)) && !clock.knows(stamp(2, 1)));
    }

    #[test]
    fn of_several_points_of_an_agent_the_last_counts() {
        let mut clock = Clock::default();
        let points = [(3, 1), (2, 4), (3, 5), (3, 2), (2, 4)];
        let points = points.map(|(thread, epoch)| (agent(1, 5, thread), epoch));
        clock.add_all(points.to_vec());
        assert_eq!(clock.last_epoch(agent(1, 5, 3)), Some(5));
        assert_eq!(clock.last_epoch(agent(1, 5, 2)), Some(4));
        assert_eq!(clock.agents.len(), 2);
    }

    #[test]
    fn a_join_has_both_and_says_whether_anything_was_new() {
        let (mut one, mut other) = (Clock::default(), Clock::default());
        for thread in [1, 4, 7] {
            one.add(stamp(thread, thread));
        }
        for thread in [0, 4, 9] {
            other.add(stamp(thread, 6));
        }
        assert!(one.join(&other));
        for (thread, epoch) in [(0, 6), (1, 1), (4, 6), (7, 7), (9, 6)] {
            assert!(one.knows(stamp(thread, epoch)), "{thread}");
            assert!(!one.knows(stamp(thread, epoch + 1)), "{thread}");
        }
        assert!(!one.join(&other));
    }

    #[test]
    fn a_kernel_that_is_over_is_one_number() {
        let mut clock = Clock::default();
        (0..100).for_each(|thread| clock.add(stamp(thread, 1)));
        clock.end(1, 5);
        assert!(clock.agents.is_empty());
        assert!(clock.knows(stamp(55, 77)));
        let later = agent(1, 6, 0);
        assert!(!clock.knows(Stamp {
            agent: later,
            epoch: 1
        }));
        clock.add(stamp(1, 1));
        assert!(clock.agents.is_empty());
    }

    #[test]
    fn a_shared_clock_is_not_copied_for_nothing_new() {
        let mut one = Arc::new(Clock::default());
        Arc::make_mut(&mut one).add(stamp(1, 3));
        let kept = Arc::clone(&one);
        let mut other = Clock::default();
        other.add(stamp(1, 2));
        join(&mut one, &Arc::new(other));
        assert!(Arc::ptr_eq(&one, &kept));
    }
}
