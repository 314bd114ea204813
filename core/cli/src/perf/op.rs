//! The operations that can be measured. Each is one entry in the list of its family, in `ops`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use oxshmem::Result;

use super::ground::{Ground, Room, Seat, Target};
use super::metric::Metric;
use super::ops;
use super::sizes::Sizes;

/// An operation.
pub struct Op {
    /// The name as users write it.
    pub name: &'static str,
    /// The description in the help.
    pub about: &'static str,
    pub span: Span,
    /// The metrics it has; the first is the default.
    pub metrics: &'static [Metric],
    pub who: Who,
    /// Prepares a row: clears this PE's memory and fills the data to be read. Collective; a barrier
    /// follows.
    pub prepare: fn(&Ground<'_>, usize) -> Result<Box<dyn Work>>,
}

/// The amount that one operation moves.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// No data.
    Nothing,
    /// These sizes, in bytes: of a value's types, or of a few words.
    Values(&'static [usize]),
    /// The sizes that are asked for.
    Blocks {
        /// Bytes of an element.
        element: usize,
        /// The fixture's memory that a size needs, among so many PEs.
        room: fn(usize, usize) -> Room,
    },
}

impl Span {
    /// Blocks with this footprint, in whole bytes.
    pub const fn bytes(room: fn(usize, usize) -> Room) -> Self {
        Span::Blocks { element: 1, room }
    }

    /// Blocks with this footprint, in whole words.
    pub const fn words(room: fn(usize, usize) -> Room) -> Self {
        let element = size_of::<u64>();
        Span::Blocks { element, room }
    }
}

/// The PEs that act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// PE 0 acts on its partner; a quiet completes the operations.
    One,
    /// PE 0 acts on its partner; each run completes its operations.
    OneCompleting,
    /// PE 0 and its partner by turns: a round trip is two operations.
    Pair,
    /// All PEs.
    All,
    /// The members of the team that is asked for, or of several teams that together contain all
    /// PEs.
    Team,
    /// PE 0 alone: a limit of the machine.
    Alone,
}

/// An operation prepared on one PE.
pub trait Work {
    /// Does it `count` times, in the PE's role.
    fn run(&mut self, ground: &Ground<'_>, count: u64) -> Result<()>;

    /// Does it once, with `meanwhile` between its start and its completion.
    fn run_beside(&mut self, ground: &Ground<'_>, meanwhile: &mut dyn FnMut()) -> Result<()> {
        self.run(ground, 1)?;
        meanwhile();
        Ok(())
    }

    /// The one-sided part, which several threads can do.
    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Does a few more operations that are not timed. Each has its own data and its own place, or
    /// its effect is checked by itself. Collective; all PEs meet before and after it, and then the
    /// operation is prepared anew. The default does nothing: where every operation counts, `check`
    /// proves as much.
    fn prove(&mut self, _: &Ground<'_>, _: Seat) -> anyhow::Result<()> {
        Ok(())
    }

    /// Checks this PE's result after `total` completed operations. Collective.
    fn check(&self, ground: &Ground<'_>, seat: Seat, total: u64) -> anyhow::Result<()>;
}

/// An operation that any thread can do, by a context of its own.
pub trait OneSided: Send {
    /// Issues it `count` times.
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()>;
}

impl Op {
    /// All operations, in the order of the table.
    pub fn all() -> impl Iterator<Item = &'static Op> {
        ops::FAMILIES.iter().flat_map(|family| family.ops)
    }

    /// The sizes in bytes that it is measured at, given those asked for.
    pub fn sizes(&self, asked: Sizes) -> Vec<usize> {
        match self.span {
            Span::Nothing => vec![0],
            Span::Values(sizes) => sizes.to_vec(),
            Span::Blocks { element, .. } => {
                let whole = |bytes: usize| bytes.next_multiple_of(element);
                let mut sizes: Vec<usize> = asked.all().into_iter().map(whole).collect();
                sizes.dedup();
                sizes
            }
        }
    }

    /// Whether bytes per second are meaningful.
    pub fn moves_blocks(&self) -> bool {
        matches!(self.span, Span::Blocks { .. })
    }

    pub fn room(&self, bytes: usize, pes: usize) -> Room {
        match self.span {
            Span::Blocks { room, .. } => room(bytes, pes),
            Span::Values(_) => Room {
                block: bytes,
                source: 0,
            },
            Span::Nothing => Room::default(),
        }
    }

    /// Whether it needs another PE.
    pub fn needs_two(&self) -> bool {
        matches!(self.who, Who::Pair | Who::All | Who::Team)
    }

    /// Whether it is a limit of the machine itself, not an operation of oxshmem.
    pub fn is_limit(&self) -> bool {
        ops::limit::OPS.iter().any(|limit| limit.name == self.name)
    }

    /// Whether it uses the fold of `--fold`.
    pub fn folds(&self) -> bool {
        ops::fold::OPS.iter().any(|fold| fold.name == self.name)
    }

    /// Whether its blocks lie in GPU memory, whatever `--memory` says.
    pub fn needs_gpu(&self) -> bool {
        #[cfg(feature = "cuda")]
        return ops::stream::OPS.iter().any(|op| op.name == self.name);
        #[cfg(not(feature = "cuda"))]
        false
    }

    /// Whether several threads can do it at once: one-sided operations, and the limit beside them.
    pub fn has_threads(&self) -> bool {
        matches!(self.who, Who::One | Who::OneCompleting | Who::Alone)
    }

    pub fn can(&self, metric: Metric) -> bool {
        self.metrics.contains(&metric)
    }

    /// The metric measured by default.
    pub fn default_metric(&self) -> Metric {
        self.metrics.first().copied().unwrap_or(Metric::Latency)
    }
}

/// Reads an operation's name.
pub fn parser() -> impl TypedValueParser<Value = &'static Op> {
    let names = Op::all().map(|op| PossibleValue::new(op.name).help(op.about));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = Op::all().find(|op| op.name == name);
        found.ok_or_else(|| format!("there is no operation {name:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_a_name_of_its_own_and_something_to_measure() {
        for op in Op::all() {
            let named = Op::all().filter(|other| other.name == op.name).count();
            assert_eq!(named, 1, "{}", op.name);
            assert!(
                !op.metrics.is_empty() && !op.about.is_empty(),
                "{}",
                op.name
            );
        }
    }

    #[test]
    fn sizes_are_whole_elements() {
        let op = Op::all().find(|op| op.name == "iput").unwrap();
        assert_eq!(op.sizes("1..100".parse().unwrap()), [8, 16, 64, 104]);
        let op = Op::all().find(|op| op.name == "put").unwrap();
        assert_eq!(op.sizes("1..100".parse().unwrap()), [1, 4, 16, 64, 100]);
    }
}
