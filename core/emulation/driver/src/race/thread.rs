//! The clock of one thread of a kernel.

use std::sync::Arc;

use super::clock::{Agent, Clock, Stamp, covers, join};
use super::pending::Operand;
use super::scope::{NOBODY, OF_HOST, Reach, Scope};
use super::shadow::Kind;

/// The knowledge of a thread, and its releases.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) agent: Agent,
    epoch: u32,
    /// All that has happened before it.
    before: Arc<Clock>,
    /// Its place. The scope in it is the widest.
    place: Reach,
    /// Releases that relaxed loads have read, for a fence to acquire.
    read: Vec<Released>,
    /// The releases of its fences, by scope, for its relaxed stores to publish.
    fenced: [Option<Arc<Clock>>; 3],
    /// The scope of its next atomic operation or fence, if device code has named one.
    scope: Option<Scope>,
    /// The last accesses that were noted, which need not be noted again.
    noted: [Option<Noted>; 4],
    /// Whether its accesses are those of a nonblocking call, whose operands are noted as a whole.
    moves_operands: bool,
    /// Whether its next release is the signal of such a call.
    signals: bool,
}

/// An access that was noted: what it was, in which epoch, and the number of times that memory was forgotten before.
pub(crate) type Noted = (usize, usize, Kind, Scope, u32, u64);

/// A clock that was released, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Released {
    pub(crate) by: Reach,
    pub(crate) clock: Arc<Clock>,
}

impl Released {
    /// The host's knowledge, as if it had written a word.
    pub(crate) fn of_host(clock: &Arc<Clock>) -> Released {
        let clock = Arc::clone(clock);
        Released { by: OF_HOST, clock }
    }
}

/// Shortens a long list of releases: those of other launches than an agent's are one for each device and scope, and those for
/// their blocks alone are of no use any more.
pub(crate) fn shorten(list: &mut Vec<Released>, agent: Agent) {
    let all = std::mem::take(list);
    for mut one in all {
        let (strand, piece, _) = one.by.block;
        if (strand, piece) != (agent.strand, agent.piece) {
            if one.by.scope == Scope::Block {
                continue;
            }
            one.by.block = NOBODY;
        }
        publish(list, one);
    }
}

/// Adds to a list of releases: of those of one place and scope there is one.
pub(crate) fn publish(list: &mut Vec<Released>, new: Released) {
    match list.iter_mut().find(|old| old.by == new.by) {
        Some(old) => join(&mut old.clock, &new.clock),
        None => list.push(new),
    }
}

/// The order of an atomic operation or a fence, by the number that compilers give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
}

impl Order {
    pub(crate) fn of(number: u32) -> Order {
        Order {
            acquires: matches!(number, 1 | 2 | 4 | 5),
            releases: matches!(number, 3..=5),
        }
    }
}

impl Thread {
    pub(crate) fn new(agent: Agent, device: u32, block: u32, before: &Arc<Clock>) -> Thread {
        Thread {
            agent,
            epoch: 1,
            before: Arc::clone(before),
            place: Reach {
                scope: Scope::System,
                device,
                block: (agent.strand, agent.piece, block),
            },
            read: Vec::new(),
            fenced: [const { None }; 3],
            scope: None,
            noted: [None; 4],
            moves_operands: false,
            signals: false,
        }
    }

    /// Begins or ends the moving of a nonblocking call's operands.
    pub(crate) fn set_moves_operands(&mut self, moves: bool) {
        self.moves_operands = moves;
    }

    pub(crate) fn moves_operands(&self) -> bool {
        self.moves_operands
    }

    /// The stamp of an operand of a nonblocking call that this thread makes, and all that has happened before it.
    pub(crate) fn calls_for(&mut self, operand: Operand) -> (Stamp, Clock) {
        self.signals |= operand == Operand::Signalled;
        let mut before = Clock::clone(&self.before);
        before.add(self.stamp());
        let stamp = Stamp {
            agent: operand.agent(self.agent),
            epoch: self.epoch,
        };
        (stamp, before)
    }

    /// Comes behind what a call of this thread completes, which `complete` adds to its clock.
    pub(crate) fn completes(&mut self, complete: impl FnOnce(&mut Clock)) {
        let own = self.stamp();
        let before = Arc::make_mut(&mut self.before);
        before.add(own);
        complete(before);
        self.epoch += 1;
    }

    /// Whether an access is like one that was noted in this epoch: whatever conflicts with it has been compared with that one, since
    /// nobody can have heard of this epoch yet. If not, it is from now on.
    pub(crate) fn was_noted(
        &mut self,
        place: (usize, usize),
        kind: Kind,
        scope: Scope,
        forgets: u64,
    ) -> bool {
        let (at, len) = place;
        let new = Some((at, len, kind, scope, self.epoch, forgets));
        let known = &mut self.noted[at / 4 % 4];
        std::mem::replace(known, new) == new
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            agent: self.agent,
            epoch: self.epoch,
        }
    }

    pub(crate) fn before(&self) -> &Arc<Clock> {
        &self.before
    }

    pub(crate) fn place(&self) -> Reach {
        self.place
    }

    /// Names the scope of the next atomic operation or fence.
    pub(crate) fn name_scope(&mut self, scope: Scope) {
        self.scope = Some(scope);
    }

    /// The reach of the next atomic operation or fence.
    pub(crate) fn next_reach(&self) -> Reach {
        self.place.within(self.scope.unwrap_or(Scope::System))
    }

    pub(crate) fn end_scope(&mut self) {
        self.scope = None;
    }

    /// All that has happened up to here. What it does later is not in it.
    pub(crate) fn release(&mut self) -> Arc<Clock> {
        let mut clock = Clock::clone(&self.before);
        clock.add(self.stamp());
        self.epoch += 1;
        Arc::new(clock)
    }

    /// Takes over what another has released.
    pub(crate) fn acquire(&mut self, clock: &Arc<Clock>) {
        join(&mut self.before, clock);
    }

    /// A barrier: all that its members have done comes before this.
    pub(crate) fn pass(&mut self, all: &Arc<Clock>) {
        self.before = Arc::clone(all);
        self.epoch += 1;
    }

    /// A fence.
    pub(crate) fn fence(&mut self, order: Order) {
        let reach = self.next_reach();
        if order.acquires {
            let read = std::mem::take(&mut self.read);
            for released in read {
                match released.by.meets(reach) {
                    true => self.acquire(&released.clock),
                    false => self.read.push(released),
                }
            }
        }
        if order.releases {
            let clock = self.release();
            self.fenced[reach.scope as usize] = Some(clock);
        }
        self.end_scope();
    }

    /// The releases that an atomic store of this thread publishes.
    pub(crate) fn published(&mut self, order: Order) -> Vec<Released> {
        let reach = self.next_reach();
        let mut all = Vec::new();
        for scope in [Scope::Block, Scope::Device, Scope::System] {
            if let Some(clock) = &self.fenced[scope as usize] {
                let by = reach.within(scope);
                let clock = Arc::clone(clock);
                publish(&mut all, Released { by, clock });
            }
        }
        if order.releases {
            let agent = Operand::Signalled.agent(self.agent);
            let epoch = self.epoch;
            let mut clock = self.release();
            if std::mem::take(&mut self.signals) {
                Arc::make_mut(&mut clock).add(Stamp { agent, epoch });
            }
            publish(&mut all, Released { by: reach, clock });
        }
        all
    }

    /// Whether a load of this order learns nothing from a release.
    pub(super) fn has_read(&self, released: &Released, order: Order) -> bool {
        let Released { by, clock } = released;
        let mut read = self.read.iter().filter(|old| old.by == *by);
        covers(&self.before, clock) || !order.acquires && read.any(|old| covers(&old.clock, clock))
    }

    /// An atomic load that has read what others have published.
    pub(crate) fn reads(&mut self, published: &[Released], order: Order) {
        let reach = self.next_reach();
        for released in published.iter().filter(|all| all.by.meets(reach)) {
            match order.acquires {
                true => self.acquire(&released.clock),
                false => publish(&mut self.read, released.clone()),
            }
        }
    }
}

/// The clock behind a barrier of these threads.
pub(crate) fn gathered<'t>(members: impl Iterator<Item = &'t Thread>) -> Arc<Clock> {
    let mut all = Clock::default();
    let mut last: Option<&Arc<Clock>> = None;
    let mut stamps = Vec::new();
    for member in members {
        if !last.is_some_and(|last| Arc::ptr_eq(last, &member.before)) {
            all.join(&member.before);
            last = Some(&member.before);
        }
        stamps.push((member.agent, member.epoch));
    }
    all.add_all(stamps);
    Arc::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELAXED: Order = Order {
        acquires: false,
        releases: false,
    };

    fn thread(number: u32) -> Thread {
        let agent = Agent {
            strand: 0,
            piece: 0,
            thread: number,
        };
        Thread::new(agent, 0, number / 10, &Arc::default())
    }

    #[test]
    fn an_acquire_has_what_was_before_the_release_and_nothing_after_it() {
        let (mut one, mut other) = (thread(1), thread(2));
        let before = one.stamp();
        let published = one.published(Order::of(3));
        let after = one.stamp();
        other.reads(&published, Order::of(2));
        assert!(other.before().knows(before) && !other.before().knows(after));
    }

    #[test]
    fn relaxed_operations_order_nothing_without_fences_on_both_sides() {
        for (releases, acquires) in [(true, true), (true, false), (false, true)] {
            let (mut one, mut other) = (thread(1), thread(2));
            let before = one.stamp();
            if releases {
                one.fence(Order::of(3));
            }
            let published = one.published(RELAXED);
            other.reads(&published, RELAXED);
            assert!(!other.before().knows(before));
            if acquires {
                other.fence(Order::of(2));
            }
            assert_eq!(other.before().knows(before), releases && acquires);
        }
    }

    #[test]
    fn a_fence_of_a_block_orders_nothing_in_another() {
        for (scope, ordered) in [(Scope::Block, false), (Scope::Device, true)] {
            for narrow in ["release", "word", "acquire"] {
                let named = |part| if part == narrow { scope } else { Scope::Device };
                let (mut one, mut other) = (thread(1), thread(20));
                let before = one.stamp();
                one.name_scope(named("release"));
                one.fence(Order::of(3));
                one.name_scope(named("word"));
                let published = one.published(RELAXED);
                one.end_scope();
                other.name_scope(Scope::Device);
                other.reads(&published, RELAXED);
                other.end_scope();
                other.name_scope(named("acquire"));
                other.fence(Order::of(2));
                assert_eq!(other.before().knows(before), ordered, "{narrow}");
            }
        }
    }

    #[test]
    fn a_barrier_orders_its_members_alone() {
        let mut all: Vec<Thread> = (0..3).map(thread).collect();
        let stamps: Vec<Stamp> = all.iter().map(Thread::stamp).collect();
        let clock = gathered(all[..2].iter());
        all[0].pass(&clock);
        assert!(all[0].before().knows(stamps[1]));
        assert!(!all[0].before().knows(stamps[2]));
        assert_ne!(all[0].stamp(), stamps[0]);
    }
}
