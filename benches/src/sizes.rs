//! What both sides of the comparison agree on (`benches/oshmem` has the same numbers).

/// Words that the 8-byte loops go round in.
pub const WORDS: usize = 512;
/// Puts between two quiets, where a message rate is measured.
pub const WINDOW: usize = 64;
/// Batches measured per row at most; the median counts.
pub const BATCHES: usize = 15;
/// And at least.
pub const FEWEST_BATCHES: usize = 3;
/// A batch takes at least so long, in nanoseconds; where all PEs take part, for two of them.
pub const MIN_BATCH_NS: f64 = 1e6;
/// The batches that all PEs take part in are fewer where they would take longer, in nanoseconds.
pub const ROW_NS: f64 = 3e8;
/// Block sizes that take an operation's own time rather than memory's, in bytes.
pub const SMALL_BLOCKS: [usize; 4] = [8, 32, 128, 512];
/// Block sizes, in bytes.
pub const BLOCKS: [usize; 8] = [
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    LARGEST,
];
/// The largest block, in bytes.
pub const LARGEST: usize = 16 << 20;
/// The blocks whose latency is measured, in bytes.
pub fn latency_blocks() -> impl Iterator<Item = usize> {
    BLOCKS.into_iter().filter(|size| *size < LARGEST)
}

/// The blocks of collective calls, in bytes.
pub const COLLECTIVE_BLOCKS: [usize; 5] = [8, 1 << 10, 64 << 10, 1 << 20, LARGEST_COLLECTIVE_BLOCK];
/// The largest of them.
pub const LARGEST_COLLECTIVE_BLOCK: usize = 4 << 20;
/// The PEs that collective calls are measured with.
pub const COLLECTIVE_PES: [usize; 3] = [2, 4, 8];

/// A collective call that is measured. A *block* is what each PE has of an all-reduce or a broadcast, what
/// each gives to an fcollect, and what each gives to each in an alltoall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// The sum of 64-bit integers.
    Allreduce,
    /// From PE 0.
    Broadcast,
    /// Every PE's block to every PE.
    Fcollect,
    /// A block of every PE to every PE.
    Alltoall,
}

impl Collective {
    /// All of them, in the order that they are measured in.
    pub const ALL: [Collective; 4] = [
        Collective::Allreduce,
        Collective::Broadcast,
        Collective::Fcollect,
        Collective::Alltoall,
    ];

    /// As in its rows.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Collective::Allreduce => "allreduce",
            Collective::Broadcast => "broadcast",
            Collective::Fcollect => "fcollect",
            Collective::Alltoall => "alltoall",
        }
    }

    /// The row of a block size and a number of PEs.
    #[must_use]
    pub fn row(self, block: usize, pes: usize) -> String {
        format!("{}_{block}_{pes}", self.name())
    }
}

/// Puts of a window, each to the next place of a block.
pub const WINDOW_PUTS: usize = 50;
/// Their sizes, in bytes.
pub const WINDOW_SIZES: [usize; 6] = [
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    LARGEST_WINDOW,
];
/// The largest of them.
pub const LARGEST_WINDOW: usize = 512 << 10;

/// Broadcasts in a batch, each timed alone after a barrier.
pub const BROADCASTS: usize = 2000;
/// Their sizes, in bytes.
pub const BROADCAST_SIZES: [usize; 2] = [8, LARGEST_BROADCAST];
/// The larger of them.
pub const LARGEST_BROADCAST: usize = 256;

/// A block that is allocated and put into once, in bytes.
pub const FIRST_BLOCK: usize = 64 << 20;

/// The table of random updates has two to the power of this words on each PE: 64 MiB.
pub const GUPS_SHIFT: u32 = 23;
/// Updates of each PE in a pass.
pub const GUPS_UPDATES: u64 = 1 << 19;
/// Passes, of which the median counts; odd, as their check wants.
pub const GUPS_PASSES: usize = 3;
/// The PEs that random updates and sorts are measured with.
pub const PROGRAM_PES: [usize; 2] = [2, 4];

/// Two to the power of these are the keys, of all PEs, that are sorted.
pub const SORT_SHIFTS: [u32; 2] = [22, 24];
/// Sorts, of which the median counts.
pub const SORTS: u64 = 5;

/// Threads that put at once, and how often each does in a batch.
pub const THREADS: usize = 2;
/// A multiple of the window.
pub const THREAD_PUTS: u64 = 64 << 16;
