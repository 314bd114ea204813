//! What one context has outstanding on one lane, by the PE it went to.

use crate::order::OpSet;

/// What one context has outstanding on its lane.
#[derive(Default)]
pub(super) struct InFlight {
    /// By PE, since the context's last quiet towards it; empty before the first operation.
    dirty: Vec<PeerInFlight>,
    /// The PEs with something outstanding, each once, in order.
    list: Vec<usize>,
    /// The PEs from which something was to come that was given up, while no quiet has told so.
    missing: Vec<usize>,
}

/// What an operation leaves outstanding.
#[derive(Clone, Copy)]
pub(super) struct Issued {
    /// None if it only reads.
    pub updates: OpSet,
    /// Those that a fence orders.
    pub ordered: OpSet,
    /// Whether it brings something here.
    pub brings: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerInFlight {
    /// Whether anything is outstanding.
    listed: bool,
    /// Updates that the next fence orders.
    pub classes: OpSet,
    /// Updates that quiet completes: these, and nonblocking ones. None for reads alone.
    pub all: OpSet,
    /// A fence has ordered these before what other lanes are given later.
    pub fenced: bool,
    /// Operations that bring something here are among them.
    pub brings: bool,
    /// Messages among them were given up: their answers can come no more.
    pub unanswered: bool,
}

impl InFlight {
    /// What is outstanding towards a PE, if anything.
    pub(super) fn in_flight(&self, pe: usize) -> Option<&PeerInFlight> {
        self.dirty.get(pe).filter(|dirty| dirty.listed)
    }

    /// Notes something, of which a fence orders `ordered`. There are `pes` PEs.
    pub(super) fn note(&mut self, pes: usize, pe: usize, noted: Issued) {
        let Issued {
            updates,
            ordered,
            brings,
        } = noted;
        if self.dirty.is_empty() {
            self.dirty.resize(pes, PeerInFlight::default());
        }
        if let Some(dirty) = self.dirty.get_mut(pe) {
            if !dirty.listed {
                dirty.listed = true;
                let place = self.list.partition_point(|listed| *listed < pe);
                self.list.insert(place, pe);
            }
            dirty.brings |= brings;
            dirty.all.add(updates);
            dirty.classes.add(ordered);
        }
    }

    /// What is outstanding towards a PE comes before what other lanes are given later.
    pub(super) fn fence(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe)
            && dirty.listed
        {
            dirty.fenced = true;
        }
    }

    /// Messages to a PE were given up. They are outstanding until the PE's loss is acknowledged.
    pub(super) fn give_messages_up(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe)
            && dirty.listed
        {
            dirty.unanswered = true;
        }
    }

    /// A quiet has told that what was to come from a PE does not.
    pub(super) fn failure_was_reported(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe) {
            dirty.brings = false;
        }
        self.missing.retain(|missing| *missing != pe);
    }

    /// A PE from which something was to come that was given up, if no quiet has told so.
    pub(super) fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// What is outstanding towards a PE is given up.
    pub(super) fn give_up(&mut self, pe: usize) {
        if self.in_flight(pe).is_some_and(|dirty| dirty.brings) && !self.missing.contains(&pe) {
            self.missing.push(pe);
        }
        self.clean(pe);
    }

    /// What was outstanding towards a PE has completed.
    pub(super) fn clean(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe)
            && dirty.listed
        {
            *dirty = PeerInFlight::default();
            if let Ok(place) = self.list.binary_search(&pe) {
                self.list.remove(place);
            }
        }
    }

    /// Whether nothing is outstanding, nor to be told.
    pub(super) fn is_clean(&self) -> bool {
        self.list.is_empty() && self.missing.is_empty()
    }

    /// The first PE from `from` on with anything outstanding; by PE, whatever is cleaned meanwhile.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let place = self.list.partition_point(|listed| *listed < from);
        self.list.get(place).copied()
    }
}
