//! The mode of one run of a side's program.

use clap::ValueEnum;

/// The argument of `peer` and of its counterpart in `oshmem/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// 2 PEs: puts, gets, atomics, order, message rate, latency, barrier, and their limits.
    Micro,
    /// Barrier alone.
    Barrier,
    /// All-reduce, broadcast, fcollect, alltoall.
    Collectives,
    /// Updates of random words.
    Gups,
    /// A parallel integer sort.
    Sort,
    /// Windows of puts (2 PEs), and a broadcast timed alone after a barrier.
    Patterns,
    /// 2 PEs on two hosts: puts, gets, atomics, message rate, latency, barrier.
    Tcp,
    /// 2 PEs: message rates of two threads of PE 0; `peer` alone has it.
    Threads,
    /// The resident memory of each PE with an unused heap, in KiB: PSS and RSS.
    Memory,
    /// 2 PEs: a block is allocated, and PE 0 puts into all of it: memory that has never been used.
    First,
    /// Joins and leaves.
    Empty,
}

impl Mode {
    /// The mode as written on the command line.
    #[must_use]
    pub fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().into())
    }
}
