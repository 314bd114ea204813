//! The state of one PE's translation: its operations in flight, and the order that fences and quiets
//! have given them.

use std::collections::BTreeMap;

use crate::events::{Set, only};
use crate::limits;
use crate::program::{Context, MemoryModel};

/// An issued operation that its PE did not wait for, as fence and quiet need it.
#[derive(Clone, Copy)]
pub(super) struct Issued {
    pub event: usize,
    pub kind: Kind,
    pub context: Context,
    pub target: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A store of the PE to its own memory, which belongs to no context.
    Store,
    /// A put, put-with-signal or atomic.
    Update,
    /// A nonblocking put, put-with-signal or atomic.
    NbiUpdate,
    /// A nonblocking operation that only reads: no fence orders it.
    NbiRead,
}

/// The state of one PE's translation, statement by statement.
pub(super) struct Thread {
    pub pe: usize,
    /// The events that precede all later ones.
    pub before: Set,
    /// The relaxed model's current run of blocking reads, which are unordered among themselves.
    pub run: Set,
    pub issued: Vec<Issued>,
    /// The events that a fence ordered before later operations, by context and target.
    fenced: [[Set; limits::PES]; limits::CONTEXTS],
    /// The events that a fence ordered before later stores of this PE.
    fenced_stores: Set,
    /// The PE's last write to each cell.
    pub last: BTreeMap<usize, usize>,
    /// The PE's blocking puts to each cell.
    pub puts: BTreeMap<usize, Vec<Issued>>,
}

impl Thread {
    pub fn new(pe: usize) -> Self {
        Thread {
            pe,
            before: 0,
            run: 0,
            issued: Vec::new(),
            fenced: [[0; limits::PES]; limits::CONTEXTS],
            fenced_stores: 0,
            last: BTreeMap::new(),
            puts: BTreeMap::new(),
        }
    }

    /// The events that precede a later operation of this kind.
    pub fn order(&self, kind: Kind, context: Context, target: usize, model: MemoryModel) -> Set {
        let fenced = match kind {
            Kind::Store => self.fenced_stores,
            _ if is_fenced(kind, model) => self.fenced[context.0][target],
            _ => 0,
        };
        self.before | fenced
    }

    pub fn fence(&mut self, context: Context, model: MemoryModel) {
        for issued in &self.issued {
            let event = only(issued.event);
            match issued.kind {
                // Events towards all PEs: any of them may learn of this PE's store.
                Kind::Store => {
                    self.fenced[context.0].iter_mut().for_each(|t| *t |= event);
                    self.fenced_stores |= event;
                }
                kind if issued.context == context && is_fenced(kind, model) => {
                    self.fenced[context.0][issued.target] |= event;
                    if issued.target == self.pe {
                        self.fenced_stores |= event;
                    }
                }
                _ => {}
            }
        }
    }

    /// Waits for issued operations: on a context (or only stores), towards some PEs (or all).
    pub fn quiet(&mut self, context: Option<Context>, pes: Option<&[usize]>) {
        for issued in &self.issued {
            let ours = issued.kind == Kind::Store || Some(issued.context) == context;
            if ours && pes.is_none_or(|pes| pes.contains(&issued.target)) {
                self.before |= only(issued.event);
            }
        }
    }
}

/// Whether a fence orders operations of this kind (M17, M18).
fn is_fenced(kind: Kind, model: MemoryModel) -> bool {
    match kind {
        Kind::Store | Kind::Update => true,
        Kind::NbiUpdate => model == MemoryModel::Ordered,
        Kind::NbiRead => false,
    }
}
