//! The numbers that both sides of the comparison use (`benches/oshmem` has the same).

/// Words that the 8-byte loops cycle through.
pub const WORDS: usize = 512;
/// Puts between two quiets, where a message rate is measured.
pub const WINDOW: usize = 64;
/// Batches of a row at most; the median counts.
pub const BATCHES: usize = 15;
/// Batches of a row at least.
pub const FEWEST_BATCHES: usize = 3;
/// The least duration of a batch, in nanoseconds; if all PEs take part, of two batches.
pub const MIN_BATCH_NS: f64 = 1e6;
/// The longest duration of a row that all PEs take part in, in nanoseconds: it has fewer batches
/// then.
pub const ROW_NS: f64 = 3e8;
/// Block sizes, in bytes, whose time is the operation's rather than the memory's.
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

/// The blocks between two hosts over TCP, in bytes.
pub const TCP_BLOCKS: [usize; 4] = [1 << 10, 16 << 10, 128 << 10, LARGEST_TCP_BLOCK];
/// The largest of these blocks, whose bandwidth is compared with a bare socket's.
pub const LARGEST_TCP_BLOCK: usize = 1 << 20;

/// The blocks of collective calls, in bytes.
pub const COLLECTIVE_BLOCKS: [usize; 5] = [8, 1 << 10, 64 << 10, 1 << 20, LARGEST_COLLECTIVE_BLOCK];
/// The largest of these blocks.
pub const LARGEST_COLLECTIVE_BLOCK: usize = 4 << 20;
/// The numbers of PEs for collective calls.
pub const COLLECTIVE_PES: [usize; 3] = [2, 4, 8];

/// A measured collective call. A *block* is each PE's data of an all-reduce or a broadcast, each
/// PE's contribution to an fcollect, and the data from each PE to each other in an alltoall.
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
    /// All of them, in the order of measurement.
    pub const ALL: [Collective; 4] = [
        Collective::Allreduce,
        Collective::Broadcast,
        Collective::Fcollect,
        Collective::Alltoall,
    ];

    /// The name in its rows.
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
/// Sizes of these puts, in bytes.
pub const WINDOW_SIZES: [usize; 6] = [
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    LARGEST_WINDOW,
];
/// The largest of these sizes.
pub const LARGEST_WINDOW: usize = 512 << 10;

/// Broadcasts in a batch, each timed alone after a barrier.
pub const BROADCASTS: usize = 2000;
/// Sizes of these broadcasts, in bytes.
pub const BROADCAST_SIZES: [usize; 2] = [8, LARGEST_BROADCAST];
/// The larger of these sizes.
pub const LARGEST_BROADCAST: usize = 256;

/// A block that is allocated and put into once, in bytes.
pub const FIRST_BLOCK: usize = 64 << 20;

/// Words of the table of random updates on each PE, as a power of two: 64 MiB.
pub const GUPS_SHIFT: u32 = 23;
/// Updates of each PE in a pass.
pub const GUPS_UPDATES: u64 = 1 << 19;
/// Passes, of which the median counts; an odd number, as their check requires.
pub const GUPS_PASSES: usize = 3;
/// The numbers of PEs for random updates and sorts.
pub const PROGRAM_PES: [usize; 2] = [2, 4];

/// Sorted keys of all PEs, as powers of two.
pub const SORT_SHIFTS: [u32; 2] = [22, 24];
/// Sorts, of which the median counts.
pub const SORTS: u64 = 5;

/// Threads that put at once.
pub const THREADS: usize = 2;
/// Puts of each thread in a batch: a multiple of the window.
pub const THREAD_PUTS: u64 = 64 << 16;
