//! What one context has outstanding on one lane, by the PE it went to.

use crate::order::Classes;

/// What one context has outstanding on its lane.
#[derive(Default)]
pub(super) struct Outstanding {
    /// By PE, since the context's last quiet towards it; empty before the first operation.
    dirty: Vec<Dirty>,
    /// The PEs with something outstanding, each once, in order.
    list: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dirty {
    /// Whether anything is outstanding.
    listed: bool,
    /// Updates that the next fence orders.
    pub classes: Classes,
    /// Updates that quiet completes: these, and nonblocking ones. None for reads alone.
    pub all: Classes,
    /// A fence has ordered these before what other lanes are given later.
    pub fenced: bool,
    /// Operations that read are among them.
    pub reads: bool,
}

impl Outstanding {
    /// What is outstanding towards a PE, if anything.
    pub(super) fn dirt(&self, pe: usize) -> Option<&Dirty> {
        self.dirty.get(pe).filter(|dirty| dirty.listed)
    }

    /// Notes something: `updates`, none of them if it only reads, of which a fence orders `ordered`. There
    /// are `pes` PEs.
    pub(super) fn note(&mut self, pes: usize, pe: usize, updates: Classes, ordered: Classes) {
        if self.dirty.is_empty() {
            self.dirty.resize(pes, Dirty::default());
        }
        if let Some(dirty) = self.dirty.get_mut(pe) {
            if !dirty.listed {
                dirty.listed = true;
                let place = self.list.partition_point(|listed| *listed < pe);
                self.list.insert(place, pe);
            }
            dirty.reads |= updates.is_empty();
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

    pub(super) fn clean(&mut self, pe: usize) {
        if let Some(dirty) = self.dirty.get_mut(pe)
            && dirty.listed
        {
            *dirty = Dirty::default();
            if let Ok(place) = self.list.binary_search(&pe) {
                self.list.remove(place);
            }
        }
    }

    pub(super) fn clean_all(&mut self) {
        for pe in self.list.drain(..) {
            if let Some(dirty) = self.dirty.get_mut(pe) {
                *dirty = Dirty::default();
            }
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.list.is_empty()
    }

    /// The first PE from `from` on with anything outstanding; by PE, whatever is cleaned meanwhile.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let place = self.list.partition_point(|listed| *listed < from);
        self.list.get(place).copied()
    }
}
