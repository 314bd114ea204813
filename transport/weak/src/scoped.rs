//! A simulated memory with scopes: threads of GPUs, CPUs and NICs over one memory, as weak as PTX's memory model.
//!
//! Each location has all of its writes, in one order (coherence). Each agent has a *view*: how much of each location's
//! past it knows. A load gives any value that the view leaves open. A store is placed anywhere behind the view,
//! also before stores that others made earlier. So stores and loads of different locations have no order by
//! themselves, and agents need not agree on the order of two stores (no multi-copy atomicity). Order comes by views alone:
//!
//! - A release store, or a strong store behind a release fence, carries the agent's view. An acquire load, or a
//!   strong load before an acquire fence, takes it. Both count only where the scope of each includes the other agent.
//!   A read-modify-write hands on what the write before it carried. Views are cumulative, whatever scopes brought them.
//! - Sequentially consistent fences have one order; each takes the views of those before it.
//! - A [`meeting`](Scoped::meet) joins the views of all who take part (barriers of a warp or block).
//! - A strong access and a strong store whose scopes include each other are coherent: a load never goes back. Weak ones are not.
//! - A read-modify-write has no other write between its halves, where the scopes of both writes include each other.
//!
//! A store is never performed before an earlier load of its agent (load buffering). A [`Hazard`] stands for it: in locations that are
//! *guarded*, a store that is not ordered behind an earlier load of another agent is noted, since that load could have seen it.
//!
//! Callers decide what is left open, by a number that is 0 for the newest: [`Scoped`] makes no choice itself.

mod access;
mod location;
mod view;

use std::rc::Rc;

pub use self::access::{Access, Agent, Hazard, Place, Scope, Word};
use self::location::{Location, Write};
use self::view::View;

#[derive(Clone, Debug)]
struct Knowing {
    place: Place,
    view: View,
    /// The view at the last release fence of each scope or a wider one.
    fenced: [Option<Rc<View>>; 3],
    /// The views that strong loads have met at each distance, for the next acquire fence of such a scope.
    met: [View; 3],
    /// The GPU that does not see what this NIC writes to it.
    late: Option<usize>,
}

/// The memory, and its agents.
#[derive(Clone, Debug, Default)]
pub struct Scoped {
    words: Vec<Location>,
    agents: Vec<Knowing>,
    /// The views of all sequentially consistent fences so far.
    sequential: View,
    hazards: Vec<Hazard>,
}

impl Scoped {
    /// Nothing and nobody.
    #[must_use]
    pub fn new() -> Scoped {
        Scoped::default()
    }

    /// A further agent, which knows nothing.
    pub fn agent(&mut self, place: Place) -> Agent {
        self.agents.push(Knowing {
            place,
            view: View::default(),
            fenced: [const { None }; 3],
            met: Default::default(),
            late: None,
        });
        Agent(self.agents.len() - 1)
    }

    /// A further NIC. Its stores carry nothing until a [`flush`](Self::flush): GPUs see them late, and out of order.
    pub fn late_nic(&mut self, gpu: usize) -> Agent {
        let agent = self.agent(Place::Outside);
        if let Some(nic) = self.agents.get_mut(agent.0) {
            nic.late = Some(gpu);
        }
        agent
    }

    /// A further location. `is_guarded`: hazards there are noted.
    pub fn word(&mut self, value: u64, is_guarded: bool) -> Word {
        self.words.push(Location::new(value, is_guarded));
        Word(self.words.len() - 1)
    }

    /// The hazards so far.
    #[must_use]
    pub fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// The number of accesses that an agent has made.
    #[must_use]
    pub fn accesses(&self, agent: Agent) -> u32 {
        let me = self.agents.get(agent.0);
        me.map_or(0, |me| me.view.accesses(agent.0))
    }

    /// Whether what an agent does from here on is ordered behind another's access of this number.
    #[must_use]
    pub fn knows(&self, agent: Agent, other: Agent, access: u32) -> bool {
        let me = self.agents.get(agent.0);
        me.is_some_and(|me| me.view.accesses(other.0) >= access)
    }

    /// The last value in the order of a location's writes.
    #[must_use]
    pub fn last(&self, word: Word) -> u64 {
        let writes = self.words.get(word.0).map(|location| &location.writes);
        writes
            .and_then(|all| all.last())
            .map_or(0, |write| write.value)
    }

    /// The number of values that a load may give; at least 1.
    #[must_use]
    pub fn loads(&self, agent: Agent, word: Word) -> usize {
        self.open(agent, word).len().max(1)
    }

    /// Loads the value that is `back` older than the newest.
    pub fn load(&mut self, agent: Agent, word: Word, access: Access, back: usize) -> u64 {
        let place = self.open(agent, word).get(back).copied().unwrap_or(0);
        self.read(agent, word, access, place)
    }

    /// The number of places that a store or a read-modify-write may take; at least 1.
    #[must_use]
    pub fn stores(&self, agent: Agent, word: Word, access: Access) -> usize {
        self.free(agent, word, access).len().max(1)
    }

    /// Stores in the place that is `back` before the newest.
    pub fn store(&mut self, agent: Agent, word: Word, value: u64, access: Access, back: usize) {
        let places = self.free(agent, word, access);
        let newest = places.first().copied().unwrap_or(0);
        let place = places.get(back).copied().unwrap_or(newest);
        self.write(agent, (word, place), value, access, false);
    }

    /// Changes the value that is `back` older than the newest that may be changed, if `to` gives another; gives the old one.
    pub fn update(
        &mut self,
        (agent, word): (Agent, Word),
        access: Access,
        back: usize,
        to: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let places = self.free(agent, word, access);
        let newest = places.first().copied().unwrap_or(0);
        let place = places.get(back).copied().unwrap_or(newest);
        let old = self.read(agent, word, access, place);
        if let Some(new) = to(old) {
            self.write(agent, (word, place), new, access, true);
        }
        old
    }

    /// A fence that releases and acquires.
    pub fn fence(&mut self, agent: Agent, scope: Scope) {
        let Some(me) = self.agents.get_mut(agent.0) else {
            return;
        };
        for distance in 0..=scope as usize {
            if let Some(met) = me.met.get_mut(distance) {
                me.view.join(met);
                *met = View::default();
            }
        }
        let now = Rc::new(me.view.clone());
        for fenced in me.fenced.iter_mut().take(scope as usize + 1) {
            *fenced = Some(Rc::clone(&now));
        }
    }

    /// A sequentially consistent fence. Those of narrower scopes than the system's are fences as others.
    pub fn sequential_fence(&mut self, agent: Agent, scope: Scope) {
        self.fence(agent, scope);
        let Some(me) = self.agents.get_mut(agent.0) else {
            return;
        };
        if scope == Scope::System {
            me.view.join(&self.sequential);
            self.sequential.join(&me.view);
        }
        self.fence(agent, scope);
    }

    /// Every one of them knows from here on what all of them knew: a barrier.
    pub fn meet(&mut self, agents: &[Agent]) {
        let mut all = View::default();
        for agent in agents {
            if let Some(agent) = self.agents.get(agent.0) {
                all.join(&agent.view);
            }
        }
        for agent in agents {
            if let Some(agent) = self.agents.get_mut(agent.0) {
                agent.view.join(&all);
            }
        }
    }

    /// `to` knows what `from` knows: a doorbell, a kernel's launch, a kernel's end.
    pub fn inform(&mut self, from: Agent, to: Agent) {
        let known = self.agents.get(from.0).map(|from| from.view.clone());
        if let (Some(known), Some(to)) = (known, self.agents.get_mut(to.0)) {
            to.view.join(&known);
        }
    }

    /// The agent knows nothing any more, and its fences count for nothing.
    pub fn forget(&mut self, agent: Agent) {
        if let Some(agent) = self.agents.get_mut(agent.0) {
            agent.view = View::default();
            agent.fenced = [const { None }; 3];
            agent.met = Default::default();
        }
    }

    /// Numbers that tell apart memories that differ in what agents may still see. Hazards, and the counts that
    /// they need, are left out.
    #[must_use]
    pub fn fingerprint(&self) -> Vec<u64> {
        let mut all = Vec::new();
        let view = |view: &View, all: &mut Vec<u64>| {
            for (word, location) in self.words.iter().enumerate() {
                all.push(location.rank(view.stamp(word)));
            }
        };
        let shared = |shared: &[Option<Rc<View>>; 3], all: &mut Vec<u64>| {
            for one in shared {
                match one {
                    Some(one) => view(one, all),
                    None => all.push(u64::MAX),
                }
            }
        };
        for location in &self.words {
            all.push(location.writes.len() as u64);
            for write in &location.writes {
                let kind = write.scope.map_or(0, |scope| scope as u64 + 1);
                all.extend([write.value, write.by.0 as u64, kind, write.updates.into()]);
                shared(&write.released, &mut all);
            }
        }
        for agent in &self.agents {
            view(&agent.view, &mut all);
            shared(&agent.fenced, &mut all);
            agent.met.iter().for_each(|met| view(met, &mut all));
        }
        view(&self.sequential, &mut all);
        all
    }

    /// `to` knows that the accesses of `from` are over: a NIC's completion. What a late NIC wrote stays unknown.
    pub fn complete(&mut self, from: Agent, to: Agent) {
        let Some(nic) = self.agents.get(from.0) else {
            return;
        };
        let (known, is_late) = (nic.view.clone(), nic.late.is_some());
        match self.agents.get_mut(to.0) {
            Some(to) if is_late => to.view.join_clock(&known),
            Some(to) => to.view.join(&known),
            None => {}
        }
    }

    /// The agent knows all that late NICs have written to this GPU (M27).
    pub fn flush(&mut self, agent: Agent, gpu: usize) {
        let mut all = View::default();
        for nic in self.agents.iter().filter(|nic| nic.late == Some(gpu)) {
            all.join(&nic.view);
        }
        if let Some(agent) = self.agents.get_mut(agent.0) {
            agent.view.join(&all);
        }
    }

    fn stamp(&self, agent: Agent, word: Word) -> u64 {
        self.agents
            .get(agent.0)
            .map_or(0, |me| me.view.stamp(word.0))
    }

    /// The places of the writes that a load may read, newest first.
    fn open(&self, agent: Agent, word: Word) -> Vec<usize> {
        let view = self.stamp(agent, word);
        let location = self.words.get(word.0);
        location.map_or(Vec::new(), |location| location.open(view).collect())
    }

    /// The places behind which a store may go, newest first.
    fn free(&self, agent: Agent, word: Word, access: Access) -> Vec<usize> {
        let places = self.open(agent, word);
        let fits = |&place: &usize| {
            let location = self.words.get(word.0);
            location.is_some_and(|location| location.has_room(place))
                && !self.is_joined(agent, word, access, place)
        };
        places.into_iter().filter(fits).collect()
    }

    /// Whether the write behind this place is a read-modify-write that nothing of such access may come before.
    fn is_joined(&self, agent: Agent, word: Word, access: Access, place: usize) -> bool {
        let next = self.words.get(word.0).and_then(|l| l.writes.get(place + 1));
        next.is_some_and(|next| next.updates && self.is_mutual(agent, access, next))
    }

    fn distance(&self, one: Agent, other: Agent) -> Scope {
        let place = |agent: Agent| self.agents.get(agent.0).map(|agent| agent.place);
        match (place(one), place(other)) {
            _ if one == other => Scope::Block,
            (
                Some(Place::Thread { gpu: a, block: b }),
                Some(Place::Thread { gpu: c, block: d }),
            ) if a == c => match b == d {
                true => Scope::Block,
                false => Scope::Gpu,
            },
            _ => Scope::System,
        }
    }

    /// Whether an access and a write are strong, with scopes that include each other.
    fn is_mutual(&self, agent: Agent, access: Access, write: &Write) -> bool {
        // The value at the start is there for all.
        if write.by.0 == usize::MAX {
            return access.scope.is_some();
        }
        let distance = self.distance(agent, write.by);
        [access.scope, write.scope]
            .iter()
            .all(|scope| scope.is_some_and(|scope| scope >= distance))
    }

    fn read(&mut self, agent: Agent, word: Word, access: Access, place: usize) -> u64 {
        let Some(write) = self
            .words
            .get(word.0)
            .and_then(|l| l.writes.get(place))
            .cloned()
        else {
            return 0;
        };
        let is_mutual = self.is_mutual(agent, access, &write);
        let distance = match write.by.0 {
            usize::MAX => Scope::Block,
            _ => self.distance(agent, write.by),
        };
        let Some(me) = self.agents.get_mut(agent.0) else {
            return write.value;
        };
        let now = me.view.tick(agent.0);
        if is_mutual {
            me.view.see(word.0, write.stamp);
            if let Some(released) = write
                .released
                .get(distance as usize)
                .and_then(Option::as_ref)
            {
                if access.acquires {
                    me.view.join(released);
                }
                if let Some(met) = me.met.get_mut(distance as usize) {
                    met.join(released);
                }
            }
        }
        if let Some(location) = self.words.get_mut(word.0) {
            location.remember(agent, now);
        }
        write.value
    }

    fn write(
        &mut self,
        agent: Agent,
        (word, place): (Word, usize),
        value: u64,
        access: Access,
        updates: bool,
    ) {
        let mut released = [const { None }; 3];
        if updates && let Some(before) = self.words.get(word.0).and_then(|l| l.writes.get(place)) {
            released = before.released.clone();
        }
        let Some(me) = self.agents.get_mut(agent.0) else {
            return;
        };
        me.view.tick(agent.0);
        let Some(location) = self.words.get_mut(word.0) else {
            return;
        };
        for &(reader, read) in &location.reads {
            if reader != agent && me.view.accesses(reader.0) < read {
                self.hazards.push(Hazard {
                    word,
                    reader,
                    writer: agent,
                });
            }
        }
        let stamp = location.insert(
            place,
            Write {
                stamp: 0,
                value,
                by: agent,
                scope: access.scope,
                released: [const { None }; 3],
                updates,
            },
        );
        me.view.see(word.0, stamp);
        if let (Some(scope), None) = (access.scope, me.late) {
            let now = access.releases.then(|| Rc::new(me.view.clone()));
            for distance in 0..=scope as usize {
                let (Some(own), Some(carried)) =
                    (me.fenced.get(distance), released.get_mut(distance))
                else {
                    continue;
                };
                let own = now.as_ref().or(own.as_ref());
                *carried = match (carried.take(), own) {
                    (Some(before), Some(own)) => {
                        let mut both = View::clone(&before);
                        both.join(own);
                        Some(Rc::new(both))
                    }
                    (before, own) => own.cloned().or(before),
                };
            }
        }
        let written = location
            .writes
            .iter_mut()
            .find(|write| write.stamp == stamp);
        if let Some(write) = written {
            write.released = released;
        }
    }
}
