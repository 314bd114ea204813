//! Meetings: of groups, and of all PEs in collective calls.

use oxshmem_weak::{Access, Agent, Scope, Word};

use super::state::{Agents, State};
use crate::kernels::program::{Call, Collective, Kernels};
use crate::program::{Place, Words};

impl State {
    /// These threads know from here on what each of them knew and had issued.
    pub(super) fn meet(&mut self, group: &[usize]) {
        let agents = |pick: fn(&Agents) -> Agent| -> Vec<Agent> {
            let all = group.iter().filter_map(|&thread| self.threads.get(thread));
            all.map(|thread| pick(&thread.agents)).collect()
        };
        let (own, issued) = (agents(|agents| agents.own), agents(|agents| agents.issued));
        self.memory.meet(&own);
        self.memory.meet(&issued);
    }

    /// A quiet of a thread.
    pub(super) fn quiet(&mut self, agents: Agents) {
        self.memory.inform(agents.issued, agents.own);
        self.memory.sequential_fence(agents.own, Scope::System);
        self.memory.inform(agents.own, agents.issued);
        self.memory.inform(agents.own, agents.fenced);
    }

    /// A thread comes to a collective call of all PEs.
    pub(super) fn collective(
        &mut self,
        kernels: &Kernels,
        thread: usize,
        call: &Call,
        group: &[usize],
    ) {
        let pe = self.block(kernels, thread).map_or(0, |block| block.pe);
        let number = self.threads.get(thread).map_or(0, |one| one.met);
        if let Some(one) = self.threads.get_mut(thread) {
            one.is_here = true;
        }
        let is_here = |&other: &usize| {
            self.threads
                .get(other)
                .is_some_and(|one| one.is_here && one.met == number)
        };
        let whole = group.iter().all(is_here);
        if let Call::Collective {
            what: Collective::Broadcast(root),
            to,
            from,
        } = call
        {
            if !whole {
                return;
            }
            if pe == *root {
                self.meet(group);
                let values = self.own_values(thread, *from, pe);
                self.given.insert(number, values);
            } else if !self.given.contains_key(&number) {
                return;
            }
            let values = self.given.get(&number).cloned().unwrap_or_default();
            self.meet(group);
            self.write_own(thread, *to, pe, &values);
            self.meet(group);
            return self.leave(kernels, group);
        }
        // All threads that take part, those of all PEs.
        let takes_part = |&other: &usize| {
            self.statement(kernels, other)
                .is_some_and(|statement| statement.call.is_collective())
                && self
                    .threads
                    .get(other)
                    .is_some_and(|one| one.is_here && one.met == number)
        };
        let here: Vec<usize> = (0..self.threads.len()).filter(takes_part).collect();
        let mut pes: Vec<usize> = here
            .iter()
            .filter_map(|&one| Some(self.block(kernels, one)?.pe))
            .collect();
        pes.sort_unstable();
        pes.dedup();
        let group_is_here = |&one: &usize| {
            let group = self
                .statement(kernels, one)
                .map(|statement| self.group(kernels, one, statement.group));
            group.is_some_and(|group| group.iter().all(|other| here.contains(other)))
        };
        if pes.len() < kernels.pes() || !here.iter().all(group_is_here) {
            return;
        }
        for &one in &here {
            let group = self
                .statement(kernels, one)
                .map(|statement| self.group(kernels, one, statement.group));
            self.meet(&group.unwrap_or_default());
        }
        if *call == Call::Barrier {
            for &one in &here {
                if let Some(one) = self.threads.get(one) {
                    self.quiet(one.agents);
                }
            }
        }
        let own: Vec<Agent> = here
            .iter()
            .filter_map(|&one| Some(self.threads.get(one)?.agents.own))
            .collect();
        self.memory.meet(&own);
        if *call == Call::Barrier {
            for &one in &here {
                if let Some(one) = self.threads.get(one) {
                    self.quiet(one.agents);
                }
            }
        }
        if let Call::Collective { what, to, from } = call {
            self.exchange(kernels, &here, *what, (*to, *from));
        }
        self.leave(kernels, &here);
    }

    /// The data of a call in which all have met.
    fn exchange(
        &mut self,
        kernels: &Kernels,
        here: &[usize],
        what: Collective,
        (to, from): (Words, Words),
    ) {
        let n = kernels.pes();
        let leaders: Vec<(usize, usize)> = (0..n)
            .filter_map(|pe| {
                let is_of =
                    |&&one: &&usize| self.block(kernels, one).is_some_and(|block| block.pe == pe);
                Some((pe, *here.iter().find(is_of)?))
            })
            .collect();
        let sources: Vec<Vec<u64>> = leaders
            .iter()
            .map(|&(pe, one)| self.own_values(one, from, pe))
            .collect();
        for &(pe, one) in &leaders {
            let values: Vec<u64> = match what {
                Collective::Fcollect => sources.concat(),
                Collective::Alltoall => {
                    let each = to.count / n;
                    let block = |source: &Vec<u64>| {
                        source
                            .iter()
                            .skip(pe * each)
                            .take(each)
                            .copied()
                            .collect::<Vec<_>>()
                    };
                    sources.iter().flat_map(block).collect()
                }
                _ => (0..to.count)
                    .map(|word| sources.iter().filter_map(|source| source.get(word)).sum())
                    .collect(),
            };
            self.write_own(one, to, pe, &values);
        }
        for &one in here {
            let group = self
                .statement(kernels, one)
                .map(|statement| self.group(kernels, one, statement.group));
            self.meet(&group.unwrap_or_default());
        }
    }

    fn leave(&mut self, kernels: &Kernels, group: &[usize]) {
        for &one in group {
            if let Some(one) = self.threads.get_mut(one) {
                one.met += 1;
            }
            self.advance(kernels, one);
        }
    }

    /// The newest values that a thread may see in its PE's own words: programs order these.
    fn own_values(&mut self, thread: usize, words: Words, pe: usize) -> Vec<u64> {
        let Some(own) = self.threads.get(thread).map(|one| one.agents.own) else {
            return Vec::new();
        };
        let places: Vec<Word> = words
            .each()
            .map(|words| self.word(Place { words, pe }))
            .collect();
        places
            .into_iter()
            .map(|word| self.memory.load(own, word, Access::WEAK, 0))
            .collect()
    }

    fn write_own(&mut self, thread: usize, words: Words, pe: usize, values: &[u64]) {
        let Some(own) = self.threads.get(thread).map(|one| one.agents.own) else {
            return;
        };
        for (words, value) in words.each().zip(values) {
            let word = self.word(Place { words, pe });
            self.memory.store(own, word, *value, Access::WEAK, 0);
        }
    }
}
