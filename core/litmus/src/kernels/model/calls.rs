//! The calls as steps on the memory.

use oxshmem_weak::Place::Outside;
use oxshmem_weak::{Access, Agent, Scope, Word};

use super::state::{Agents, Choices, State};
use crate::kernels::program::{Call, Data, Kernels, Several};
use crate::program::{Fetching, Place, Register, Update, Words};

fn strong() -> Access {
    Access::relaxed(Scope::System)
}

/// One thread's step.
struct Step<'s> {
    state: &'s mut State,
    choices: &'s mut Choices,
    pe: usize,
    agents: Agents,
}

impl State {
    /// The next step of a thread that has one.
    pub(super) fn step(&mut self, kernels: &Kernels, thread: usize, choices: &mut Choices) {
        let (Some(statement), Some(block)) =
            (self.statement(kernels, thread), self.block(kernels, thread))
        else {
            return;
        };
        let Some(one) = self.threads.get_mut(thread) else {
            return;
        };
        let (lane, agents) = (one.lane, one.agents);
        let group = self.group(kernels, thread, statement.group);
        if !statement.call.is_read() {
            self.memory.inform(agents.seen, agents.own);
        }
        if statement.call.is_collective() {
            return self.collective(kernels, thread, &statement.call, &group);
        }
        // The last to come makes the call for all of the group.
        if group.len() > 1 {
            let mut others = group.iter().filter(|&&other| other != thread);
            let is_last =
                others.all(|&other| self.threads.get(other).is_some_and(|other| other.is_here));
            if !is_last {
                if let Some(one) = self.threads.get_mut(thread) {
                    one.is_here = true;
                }
                return;
            }
            self.meet(&group);
        }
        let fills = group.len() > 1 || statement.fills(lane);
        let mut step = Step {
            state: self,
            choices,
            pe: block.pe,
            agents,
        };
        step.call(thread, &statement.call, fills);
        if group.len() > 1 {
            self.meet(&group);
        }
        for other in group {
            self.advance(kernels, other);
        }
    }
}

impl Step<'_> {
    fn word(&self, words: Words) -> Word {
        self.state.word(Place { words, pe: self.pe })
    }

    /// A load of the thread itself.
    fn load(&mut self, agent: Agent, word: Word, access: Access) -> u64 {
        let back = self.choices.choose(self.state.memory.loads(agent, word));
        self.state.memory.load(agent, word, access, back)
    }

    /// A read by the library: nothing orders it with the reads beside it.
    fn get(&mut self, word: Word) -> u64 {
        let Agents {
            own, reader, seen, ..
        } = self.agents;
        self.state.memory.forget(reader);
        self.state.memory.inform(own, reader);
        let value = self.load(reader, word, strong());
        self.state.memory.inform(reader, seen);
        value
    }

    /// An operation of the library: performed by the carrier, which knows what the thread knows and what a fence has covered. Others see
    /// with it what the fence has covered, and what `with` knows.
    fn carry(
        &mut self,
        word: Word,
        with: Option<Agent>,
        to: impl Fn(u64) -> Option<u64>,
        updates: bool,
    ) -> u64 {
        let Agents {
            own,
            issued,
            fenced,
            carrier,
            ..
        } = self.agents;
        let memory = &mut self.state.memory;
        memory.forget(carrier);
        memory.inform(fenced, carrier);
        if let Some(with) = with {
            memory.inform(with, carrier);
        }
        memory.fence(carrier, Scope::System);
        memory.inform(own, carrier);
        let back = self.choices.choose(memory.stores(carrier, word, strong()));
        let old = if updates {
            memory.update((carrier, word), strong(), back, to)
        } else {
            if let Some(value) = to(0) {
                memory.store(carrier, word, value, strong(), back);
            }
            0
        };
        memory.inform(carrier, issued);
        old
    }

    fn put(&mut self, to: Place, data: &Data, signal: Option<(Word, u64, bool)>) {
        let values = match data {
            Data::Values(values) => values.clone(),
            Data::Own(words) => {
                let places: Vec<Word> = words.each().map(|words| self.word(words)).collect();
                places
                    .into_iter()
                    .map(|word| self.load(self.agents.own, word, Access::WEAK))
                    .collect()
            }
        };
        let together = self.agents.together;
        self.state.memory.forget(together);
        for (words, value) in to.words.each().zip(values) {
            let word = self.state.word(Place { words, pe: to.pe });
            self.carry(word, None, |_| Some(value), false);
            self.state.memory.inform(self.agents.carrier, together);
        }
        if let Some((word, value, adds)) = signal {
            self.carry(
                word,
                Some(together),
                |old| Some(if adds { old.wrapping_add(value) } else { value }),
                adds,
            );
        }
    }

    fn acquire(&mut self) {
        self.state.memory.fence(self.agents.own, Scope::System);
    }

    fn fill(&mut self, register: Option<Register>, value: u64, fills: bool) {
        if let Some(register) = register.filter(|_| fills) {
            self.state.registers.insert(register, value);
        }
    }

    fn call(&mut self, thread: usize, call: &Call, fills: bool) {
        let Agents {
            own,
            issued,
            fenced,
            carrier,
            ..
        } = self.agents;
        match call {
            Call::Put { to, data, .. } => self.put(*to, data, None),
            Call::Iput { to, from } => self.put(*to, &Data::Own(*from), None),
            Call::PutSignal {
                to,
                data,
                signal,
                op,
                value,
                ..
            } => {
                let word = self.state.word(Place {
                    words: *signal,
                    pe: to.pe,
                });
                let adds = op.update() == Update::Add;
                self.put(*to, data, Some((word, *value, adds)));
            }
            Call::P { to, value } => {
                let word = self.state.word(*to);
                self.carry(word, None, |_| Some(*value), false);
            }
            Call::Signal { op, at, value } => self.update(op.update(), *at, *value),
            Call::Update { update, at, value } => self.update(*update, *at, *value),
            Call::Fetch { into, fetching, at } => {
                let word = self.state.word(*at);
                let old = match *fetching {
                    Fetching::Fetch => self.get(word),
                    fetching => {
                        let to = |old: u64| {
                            Some(fetching.apply(old))
                                .filter(|new| *new != old || !is_conditional(fetching))
                        };
                        let old = self.carry(word, None, to, true);
                        self.state.memory.inform(carrier, own);
                        old
                    }
                };
                self.fill(Some(*into), old, fills);
            }
            Call::G { into, from } => {
                let value = self.get(self.state.word(*from));
                self.fill(Some(*into), value, fills);
            }
            Call::Get { into, from, nbi } => {
                for (register, words) in into.iter().zip(from.words.each()) {
                    let word = self.state.word(Place { words, pe: from.pe });
                    if *nbi {
                        let reader = self.state.memory.agent(Outside);
                        self.state.memory.inform(own, reader);
                        if let Some(one) = self.state.threads.get_mut(thread) {
                            one.reads.push((*register, reader, word));
                        }
                    } else {
                        let value = self.get(word);
                        self.fill(Some(*register), value, fills);
                    }
                }
            }
            Call::Iget { into, from } => {
                for (register, words) in into.iter().zip(from.words.each()) {
                    let value = self.get(self.state.word(Place { words, pe: from.pe }));
                    self.fill(Some(*register), value, fills);
                }
            }
            Call::Write { to, value } => {
                let word = self.word(*to);
                let back = self
                    .choices
                    .choose(self.state.memory.stores(own, word, Access::WEAK));
                self.state
                    .memory
                    .store(own, word, *value, Access::WEAK, back);
            }
            Call::Read { into, from } => {
                let value = self.load(own, self.word(*from), Access::WEAK);
                self.fill(Some(*into), value, fills);
            }
            Call::Wait {
                into,
                word,
                cmp,
                value,
            } => {
                let seen = self.load(own, self.word(*word), strong());
                if !cmp.holds(seen, *value) {
                    return self.choices.give_up();
                }
                self.acquire();
                self.fill(*into, seen, fills);
            }
            Call::Spin {
                scope,
                word,
                cmp,
                value,
            } => {
                let seen = self.load(own, self.word(*word), Access::relaxed(*scope));
                if !cmp.holds(seen, *value) {
                    self.choices.give_up();
                }
            }
            Call::Test {
                into,
                word,
                cmp,
                value,
            } => {
                let holds = cmp.holds(self.load(own, self.word(*word), strong()), *value);
                if holds {
                    self.acquire();
                }
                self.fill(Some(*into), holds.into(), fills);
            }
            Call::SignalFetch { into, word } => {
                let seen = self.load(own, self.word(*word), strong());
                self.acquire();
                self.fill(Some(*into), seen, fills);
            }
            Call::WaitSeveral {
                which,
                into,
                words,
                cmp,
                value,
            } => match self.several(*which, *words, |seen| cmp.holds(seen, *value)) {
                Some(found) => self.fill(*into, found, fills),
                None => self.choices.give_up(),
            },
            Call::TestSeveral {
                which,
                into,
                words,
                cmp,
                value,
            } => {
                let found = self.several(*which, *words, |seen| cmp.holds(seen, *value));
                let none = if *which == Several::Any { u64::MAX } else { 0 };
                self.fill(Some(*into), found.unwrap_or(none), fills);
            }
            Call::Fence => {
                self.state.memory.fence(own, Scope::System);
                self.state.memory.inform(own, issued);
                self.state.memory.inform(issued, fenced);
            }
            Call::Quiet => {
                let reads = self
                    .state
                    .threads
                    .get_mut(thread)
                    .map(|one| std::mem::take(&mut one.reads));
                for (register, reader, word) in reads.unwrap_or_default() {
                    let value = self.load(reader, word, Access::WEAK);
                    self.fill(Some(register), value, fills);
                }
                self.state.quiet(self.agents);
            }
            Call::ThreadFence(scope) => {
                self.state.memory.inform(issued, own);
                self.state.memory.fence(own, *scope);
                self.state.memory.inform(own, issued);
            }
            Call::AtomicAdd {
                into,
                scope,
                word,
                value,
            } => {
                let (word, access) = (self.word(*word), Access::relaxed(*scope));
                let back = self
                    .choices
                    .choose(self.state.memory.stores(own, word, access));
                let add = |old: u64| Some(old.wrapping_add(*value));
                let old = self.state.memory.update((own, word), access, back, add);
                self.fill(Some(*into), old, fills);
            }
            // The meeting is all there is; flushes tell of sources alone.
            Call::SyncGroup
            | Call::NextKernel
            | Call::Flush
            | Call::Barrier
            | Call::Sync
            | Call::Collective { .. } => {}
        }
    }

    fn update(&mut self, update: Update, at: Place, value: u64) {
        let word = self.state.word(at);
        let is_set = update == Update::Set;
        self.carry(word, None, |old| Some(update.apply(old, value)), !is_set);
    }

    /// The result of a call for several words that succeeds.
    fn several(
        &mut self,
        which: Several,
        words: Words,
        holds: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let each: Vec<Word> = words.each().map(|words| self.word(words)).collect();
        let own = self.agents.own;
        let found = match which {
            Several::All => each
                .into_iter()
                .all(|word| holds(self.load(own, word, strong())))
                .then_some(1),
            Several::Some => {
                let count = each
                    .into_iter()
                    .filter(|&word| holds(self.load(own, word, strong())))
                    .count();
                (count > 0).then_some(count as u64)
            }
            Several::Any => {
                let start = self.choices.choose(each.len());
                let order = (0..each.len()).map(|k| (start + k) % each.len());
                let mut holding = order.filter(|&i| {
                    each.get(i)
                        .is_some_and(|&word| holds(self.load(own, word, strong())))
                });
                holding.next().map(|index| index as u64)
            }
        };
        if found.is_some() {
            self.acquire();
        }
        found
    }
}

/// Whether an atomic may leave its word as it is.
fn is_conditional(fetching: Fetching) -> bool {
    matches!(fetching, Fetching::CompareSwap { .. })
}
