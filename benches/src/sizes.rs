//! What both sides of the comparison agree on (`peers.c` has the same numbers).

/// Words that the 8-byte loops go round in.
pub const WORDS: usize = 512;
/// Batches measured per row; the median counts.
pub const BATCHES: usize = 15;
/// A batch takes at least so long, in nanoseconds.
pub const MIN_BATCH_NS: f64 = 1e6;
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
