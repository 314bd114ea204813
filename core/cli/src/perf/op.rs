//! The operations that can be measured. Each is one entry in the list of its family, in `ops`.

use oxshmem::Result;

use super::fixture::{Fixture, Footprint, Role, Target};
use super::metric::Metric;
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
    pub prepare: fn(&Fixture<'_>, usize) -> Result<Box<dyn Work>>,
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
        footprint: fn(usize, usize) -> Footprint,
    },
}

impl Span {
    /// Blocks with this footprint, in whole bytes.
    pub const fn bytes(footprint: fn(usize, usize) -> Footprint) -> Self {
        Span::Blocks {
            element: 1,
            footprint,
        }
    }

    /// Blocks with this footprint, in whole words.
    pub const fn words(footprint: fn(usize, usize) -> Footprint) -> Self {
        let element = size_of::<u64>();
        Span::Blocks { element, footprint }
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
    fn run(&mut self, fixture: &Fixture<'_>, count: u64) -> Result<()>;

    /// Does it once, with `meanwhile` between its start and its completion.
    fn run_beside(&mut self, fixture: &Fixture<'_>, meanwhile: &mut dyn FnMut()) -> Result<()> {
        self.run(fixture, 1)?;
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
    fn validate(&mut self, _: &Fixture<'_>, _: Role) -> anyhow::Result<()> {
        Ok(())
    }

    /// Checks this PE's result after `total` completed operations. Collective.
    fn check(&self, fixture: &Fixture<'_>, role: Role, total: u64) -> anyhow::Result<()>;
}

/// An operation that any thread can do, by a context of its own.
pub trait OneSided: Send {
    /// Issues it `count` times.
    fn post(&mut self, target: &Target<'_, '_>, count: u64) -> Result<()>;
}

impl Op {
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

    pub fn footprint(&self, bytes: usize, pes: usize) -> Footprint {
        match self.span {
            Span::Blocks { footprint, .. } => footprint(bytes, pes),
            Span::Values(_) => Footprint {
                block: bytes,
                source: 0,
            },
            Span::Nothing => Footprint::default(),
        }
    }

    /// Whether it needs another PE.
    pub fn needs_two(&self) -> bool {
        matches!(self.who, Who::Pair | Who::All | Who::Team)
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
