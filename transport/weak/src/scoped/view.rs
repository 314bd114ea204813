//! Views: the part of the past that an agent knows.

/// Moments in the order of one location's writes. Later writes may be put between two of them.
pub(super) type Stamp = u64;

/// For each location the oldest write that may still be read, and for each agent how much of what it did is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct View {
    stamps: Vec<Stamp>,
    clock: Vec<u32>,
}

fn raise<T: Copy + Default + Ord>(all: &mut Vec<T>, at: usize, to: T) {
    if at >= all.len() {
        all.resize(at + 1, T::default());
    }
    if let Some(one) = all.get_mut(at) {
        *one = to.max(*one);
    }
}

fn join<T: Copy + Default + Ord>(all: &mut Vec<T>, other: &[T]) {
    if all.len() < other.len() {
        all.resize(other.len(), T::default());
    }
    for (mine, theirs) in all.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}

impl View {
    pub(super) fn stamp(&self, location: usize) -> Stamp {
        self.stamps.get(location).copied().unwrap_or(0)
    }

    /// The writes of a location up to this moment are known.
    pub(super) fn see(&mut self, location: usize, stamp: Stamp) {
        raise(&mut self.stamps, location, stamp);
    }

    /// How many accesses of an agent are known.
    pub(super) fn accesses(&self, agent: usize) -> u32 {
        self.clock.get(agent).copied().unwrap_or(0)
    }

    /// One more access of the agent whose view this is.
    pub(super) fn tick(&mut self, agent: usize) -> u32 {
        let now = self.accesses(agent) + 1;
        raise(&mut self.clock, agent, now);
        now
    }

    pub(super) fn join(&mut self, other: &View) {
        join(&mut self.stamps, &other.stamps);
        self.join_clock(other);
    }

    /// The accesses are known, and not what writes among them left behind.
    pub(super) fn join_clock(&mut self, other: &View) {
        join(&mut self.clock, &other.clock);
    }
}
