//! One target: a figure, the figure that it is divided by, and the bound.

use clap::ValueEnum;
use oxshmem_figures::Bound;
use serde::{Deserialize, Serialize};

use crate::samples::{Samples, Side};

/// A group of rows that is measured together, and can be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Single operations between 2 PEs, UCX's among them.
    Micro,
    /// Barrier with 4 and 8 PEs.
    Barrier,
    /// Collective calls.
    Collectives,
    /// Updates of random words.
    Gups,
    /// A parallel integer sort.
    Sort,
    /// Calls as other benchmarks time them: windows of puts, a broadcast alone after a barrier.
    Patterns,
    /// Single operations between two hosts over TCP, with libfabric's, UCX's and bare sockets' among them. `benches/tcp` makes
    /// the hosts.
    Tcp,
    /// Message rates of two threads.
    Threads,
    /// The duration of an empty program, the first use of memory, and a PE's resident memory.
    Start,
}

/// The language of both sides' programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Ours in Rust, by its own API, and the other's in C.
    #[default]
    Rust,
    /// Both the same C, each built and started by its own side's `oshcc` and `oshrun`.
    C,
}

impl Source {
    /// Whether our program has rows of this group.
    #[must_use]
    pub fn has(self, group: Group) -> bool {
        self == Source::Rust || !matches!(group, Group::Threads | Group::Tcp)
    }
}

impl Group {
    /// The groups that need nothing but this machine.
    #[must_use]
    pub fn usual() -> Vec<Group> {
        let all = Group::value_variants().iter().copied();
        all.filter(|group| *group != Group::Tcp).collect()
    }
}

/// One figure out of [`Samples`]: the least of some rows of one side (several if the limit is the
/// best of several methods).
#[derive(Clone, Debug)]
pub struct Figure {
    pub side: Side,
    pub rows: Vec<String>,
}

impl Figure {
    pub fn in_round(&self, samples: &Samples, round: usize) -> Option<f64> {
        let rows = self.rows.iter();
        let values = rows.filter_map(|row| samples.in_round(self.side, row, round));
        values.min_by(f64::total_cmp)
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Target {
    pub group: Group,
    pub name: String,
    pub unit: &'static str,
    pub value: Figure,
    /// The figure of the same round that the value is divided by; `None` for a plain value.
    pub by: Option<Figure>,
    pub bound: Option<Bound>,
}
