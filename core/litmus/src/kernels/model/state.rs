//! A state of the model: the memory, and how far each thread is.

use std::collections::{BTreeMap, HashMap};

use oxshmem_weak::{Access, Agent, Place as Where, Scope, Scoped, Word};

use crate::kernels::program::{Block, Call, Collective, Group, Kernels, Several, Statement};
use crate::outcome::Outcome;
use crate::program::{Place, Register, Words};

/// The choices of one step: those of a script, then the first ones.
pub(super) struct Choices {
    script: Vec<(usize, usize)>,
    next: usize,
    vain: bool,
}

impl Choices {
    pub(super) fn following(script: Vec<(usize, usize)>) -> Choices {
        Choices {
            script,
            next: 0,
            vain: false,
        }
    }

    /// One of `n`.
    pub(super) fn choose(&mut self, n: usize) -> usize {
        let place = self.next;
        self.next += 1;
        if place == self.script.len() {
            self.script.push((0, n.max(1)));
        }
        self.script.get(place).map_or(0, |choice| choice.0)
    }

    /// The step cannot be made by these choices.
    pub(super) fn give_up(&mut self) {
        self.vain = true;
    }

    pub(super) fn are_vain(&self) -> bool {
        self.vain
    }

    /// The script that comes after this one.
    pub(super) fn next(&mut self) -> Option<Vec<(usize, usize)>> {
        let mut script = std::mem::take(&mut self.script);
        while let Some((chosen, n)) = script.pop() {
            if chosen + 1 < n {
                script.push((chosen + 1, n));
                return Some(script);
            }
        }
        None
    }
}

/// The agents of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agents {
    /// Itself: its view is what it knows.
    pub(super) own: Agent,
    /// The view with all that it has issued, and that those have whom it has met.
    pub(super) issued: Agent,
    /// The view that its last fence has covered.
    pub(super) fenced: Agent,
    /// The performer of its operations.
    pub(super) carrier: Agent,
    /// The views of all words of one put.
    pub(super) together: Agent,
    /// The performer of its reads.
    pub(super) reader: Agent,
    /// The view of its reads since the last other call (M21).
    pub(super) seen: Agent,
}

#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    block: usize,
    pub(super) lane: usize,
    /// Its next statement.
    at: usize,
    /// Whether it waits for the others of its group, or of all PEs.
    pub(super) is_here: bool,
    /// Collective calls that it has made.
    pub(super) met: usize,
    pub(super) agents: Agents,
    /// Reads in flight.
    pub(super) reads: Vec<(Register, Agent, Word)>,
}

/// A state.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) memory: Scoped,
    words: HashMap<(usize, usize, usize), Word>,
    pub(super) threads: Vec<ThreadState>,
    pub(super) registers: BTreeMap<Register, u64>,
    /// The words of roots of broadcasts, by the number of the collective call.
    pub(super) given: BTreeMap<usize, Vec<u64>>,
}

impl State {
    pub(super) fn new(kernels: &Kernels) -> State {
        let mut memory = Scoped::new();
        let mut words = HashMap::new();
        for (number, variable) in kernels.head().variables().iter().enumerate() {
            for pe in 0..kernels.pes() {
                for word in 0..variable.words {
                    words.insert((pe, number, word), memory.word(0, false));
                }
            }
        }
        let mut threads = Vec::new();
        for (number, block) in kernels.blocks().iter().enumerate() {
            for lane in 0..block.lanes {
                let place = Where::Thread {
                    gpu: block.pe,
                    block: block.number,
                };
                let mut agent = || memory.agent(place);
                threads.push(ThreadState {
                    block: number,
                    lane,
                    at: 0,
                    is_here: false,
                    met: 0,
                    agents: Agents {
                        own: agent(),
                        issued: agent(),
                        fenced: agent(),
                        carrier: agent(),
                        together: agent(),
                        reader: agent(),
                        seen: agent(),
                    },
                    reads: Vec::new(),
                });
            }
        }
        let mut state = State {
            memory,
            words,
            threads,
            registers: BTreeMap::new(),
            given: BTreeMap::new(),
        };
        (0..state.threads.len()).for_each(|thread| state.skip(kernels, thread));
        state
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The state in numbers.
    pub(super) fn fingerprint(&self) -> Vec<u64> {
        let mut all = self.memory.fingerprint();
        for thread in &self.threads {
            all.extend([thread.at as u64, thread.is_here.into()]);
        }
        all.extend(
            self.registers
                .iter()
                .flat_map(|(register, value)| [register.0 as u64, *value]),
        );
        all.extend(self.given.values().flatten());
        all
    }

    pub(super) fn block<'k>(&self, kernels: &'k Kernels, thread: usize) -> Option<&'k Block> {
        kernels.blocks().get(self.threads.get(thread)?.block)
    }

    /// The next call of a thread.
    pub(super) fn statement<'k>(
        &self,
        kernels: &'k Kernels,
        thread: usize,
    ) -> Option<&'k Statement> {
        self.block(kernels, thread)?
            .statements
            .get(self.threads.get(thread)?.at)
    }

    /// Passes over the calls of other threads.
    fn skip(&mut self, kernels: &Kernels, thread: usize) {
        while let Some(statement) = self.statement(kernels, thread)
            && let Some(one) = self.threads.get_mut(thread)
            && !statement.is_of(one.lane)
        {
            one.at += 1;
        }
    }

    /// The thread's call is done.
    pub(super) fn advance(&mut self, kernels: &Kernels, thread: usize) {
        if let Some(one) = self.threads.get_mut(thread) {
            one.at += 1;
            one.is_here = false;
        }
        self.skip(kernels, thread);
    }

    /// The threads that make a thread's call with it, itself included. A warp is a block here.
    pub(super) fn group(&self, kernels: &Kernels, thread: usize, group: Group) -> Vec<usize> {
        let Some(one) = self.threads.get(thread) else {
            return Vec::new();
        };
        match group {
            Group::Thread => vec![thread],
            Group::Grid => {
                let place = |number| self.block(kernels, number).map(|block| block.pe);
                let all = 0..self.threads.len();
                all.filter(|&number| place(number) == place(thread))
                    .collect()
            }
            Group::Warp | Group::Block => {
                let all = self.threads.iter().enumerate();
                all.filter(|(_, other)| other.block == one.block)
                    .map(|(number, _)| number)
                    .collect()
            }
        }
    }

    /// Whether a thread has a step.
    pub(super) fn is_able(&self, kernels: &Kernels, thread: usize) -> bool {
        let Some(statement) = self.statement(kernels, thread) else {
            return false;
        };
        let Some(one) = self.threads.get(thread) else {
            return false;
        };
        // Whoever comes last to a meeting goes on for all. A thread that waits for a broadcast does so itself.
        if let Call::Collective {
            what: Collective::Broadcast(root),
            ..
        } = statement.call
            && one.is_here
        {
            let is_root = self
                .block(kernels, thread)
                .is_some_and(|block| block.pe == root);
            return !is_root
                && self.given.contains_key(&one.met)
                && self.leads(kernels, thread, statement.group);
        }
        if one.is_here {
            return false;
        }
        let pe = self.block(kernels, thread).map_or(0, |block| block.pe);
        match &statement.call {
            Call::Wait {
                word, cmp, value, ..
            } => self.may_hold(thread, *word, pe, |seen| cmp.holds(seen, *value)),
            Call::Spin {
                word, cmp, value, ..
            } => self.may_hold(thread, *word, pe, |seen| cmp.holds(seen, *value)),
            Call::WaitSeveral {
                which,
                words,
                cmp,
                value,
                ..
            } => {
                let mut words = words.each();
                let holds = |word| self.may_hold(thread, word, pe, |seen| cmp.holds(seen, *value));
                match which {
                    Several::All => words.all(holds),
                    _ => words.any(holds),
                }
            }
            _ => true,
        }
    }

    /// Whether it is the first of its group.
    pub(super) fn leads(&self, kernels: &Kernels, thread: usize, group: Group) -> bool {
        self.group(kernels, thread, group).first() == Some(&thread)
    }

    /// Whether a load may give a value that holds.
    fn may_hold(&self, thread: usize, word: Words, pe: usize, holds: impl Fn(u64) -> bool) -> bool {
        let Some(one) = self.threads.get(thread) else {
            return false;
        };
        let word = self.word(Place { words: word, pe });
        let access = Access::relaxed(Scope::System);
        (0..self.memory.loads(one.agents.own, word))
            .any(|back| holds(self.memory.clone().load(one.agents.own, word, access, back)))
    }

    /// Whether a thread's step affects no other thread, and none affects it.
    pub(super) fn is_local(&self, kernels: &Kernels, thread: usize) -> bool {
        let statement = self.statement(kernels, thread);
        matches!(
            statement.map(|statement| &statement.call),
            Some(Call::Fence | Call::Flush | Call::ThreadFence(_))
        )
    }

    pub(super) fn word(&self, place: Place) -> Word {
        let key = (place.pe, place.words.variable, place.words.first);
        self.words.get(&key).copied().unwrap_or(Word(usize::MAX))
    }

    /// The outcome where no thread has a step.
    pub(super) fn outcome(&self, kernels: &Kernels) -> Outcome {
        let ended = (0..self.threads.len()).all(|thread| self.statement(kernels, thread).is_none());
        if !ended {
            return Outcome::Deadlock;
        }
        let observed = kernels.head().observed().iter();
        let values: Vec<u64> = observed
            .map(|&place| self.memory.last(self.word(place)))
            .collect();
        kernels.outcome(&self.registers, &values)
    }
}
