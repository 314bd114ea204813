//! The NICs: they do what hosts have posted in any order that fences leave open, word by word.

use oxshmem_device_library::inbox::Errand;
use oxshmem_weak::Choices;

use super::{Host, Hosts};
use crate::memory::relaxed;
use crate::simulation::with;

/// An operation that was posted to a NIC, or to another host.
pub struct Posted {
    pub number: u64,
    /// Operations of a later one wait for all of earlier ones to the same PE.
    pub generation: u64,
    pub to: usize,
    /// Whether others go first mostly.
    pub is_slow: bool,
    pub action: Action,
}

pub enum Action {
    /// Words from `from` here, or values, to `to` there. Those that are left, with their values when they were read.
    Put {
        from: Option<usize>,
        to: usize,
        values: Vec<u64>,
        left: Vec<usize>,
    },
    /// Words from `from` there to `to` here.
    Get {
        from: usize,
        to: usize,
        left: Vec<usize>,
    },
    /// Words of the other PE, for the host.
    Values {
        from: usize,
        values: Vec<u64>,
        left: Vec<usize>,
    },
    /// An atomic, which the other PE's GPU performs.
    Atomic { errand: Errand, is_asked: bool },
}

impl Hosts {
    /// The operations that the NIC of a PE may go on with.
    pub fn ready(&self, pe: usize) -> Vec<usize> {
        let posted = &self.all[pe].posted;
        let is_first = |one: &Posted| {
            posted
                .iter()
                .all(|other| other.to != one.to || other.generation >= one.generation)
        };
        let is_asked = |one: &Posted| matches!(one.action, Action::Atomic { is_asked: true, .. });
        let all = posted.iter().enumerate();
        all.filter(|(_, one)| is_first(one) && !is_asked(one))
            .map(|(place, _)| place)
            .collect()
    }

    /// Whether others go before an operation mostly.
    pub fn is_slow(&self, pe: usize, place: usize) -> bool {
        self.all[pe].posted[place].is_slow
    }

    /// One step of an operation of a NIC.
    pub fn advance(&mut self, pe: usize, place: usize) {
        let to = self.all[pe].posted[place].to;
        let (host, peer, nic, far) = (
            self.all[pe].agent,
            self.all[to].agent,
            self.all[pe].nic,
            self.all[to].nic,
        );
        let posted = &mut self.all[pe].posted[place];
        let number = posted.number;
        let mut read = None;
        let is_done = with(|run| {
            let memory = &mut run.memory;
            memory.machine.inform(nic, far);
            match &mut posted.action {
                Action::Put {
                    from: Some(from),
                    values,
                    left,
                    ..
                } if values.is_empty() => {
                    for word in left.iter() {
                        values.push(memory.load(nic, *from + 8 * word, 8, relaxed()));
                    }
                    memory.machine.complete(nic, host);
                    false
                }
                Action::Put {
                    to, values, left, ..
                } => {
                    let next = left.swap_remove(memory.random.choose(left.len()));
                    memory.store(far, *to + 8 * next, 8, values[next], relaxed().release());
                    left.is_empty()
                }
                Action::Get { from, to, left } => {
                    let next = left.swap_remove(memory.random.choose(left.len()));
                    let word = memory.load(far, *from + 8 * next, 8, relaxed());
                    memory.store(nic, *to + 8 * next, 8, word, relaxed().release());
                    left.is_empty()
                }
                Action::Values { from, values, left } => {
                    let next = left.swap_remove(memory.random.choose(left.len()));
                    values[next] = memory.load(far, *from + 8 * next, 8, relaxed());
                    if left.is_empty() {
                        read = Some(std::mem::take(values));
                    }
                    left.is_empty()
                }
                Action::Atomic { is_asked, .. } => {
                    *is_asked = true;
                    // The other host hears of it when what was before it is there.
                    memory.machine.complete(far, peer);
                    false
                }
            }
        });
        if let Action::Atomic { errand, .. } = &posted.action {
            let errand = *errand;
            self.all[to].asked.push_back((pe, number, errand));
            self.all[to].idle_at = None;
        }
        if is_done {
            self.all[pe].posted.remove(place);
            with(|run| {
                run.memory.machine.complete(far, host);
                run.memory.machine.complete(nic, host);
            });
        }
        if let Some(values) = read {
            self.all[pe].results.insert(number, values);
        }
        self.all[pe].idle_at = None;
    }
}

impl Host {
    pub(super) fn post(&mut self, to: usize, action: Action) -> u64 {
        self.posts += 1;
        let number = self.posts;
        self.posted.push(Posted {
            number,
            generation: self.generation,
            to,
            is_slow: with(|run| run.memory.chance(3)),
            action,
        });
        number
    }
}
