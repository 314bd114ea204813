//! The grids of kernel launches.

use oxshmem_cuda::Launch;

/// Threads of a block, for kernels that use several.
pub(crate) const BLOCK: u32 = 256;
/// Blocks that keep a GPU's memory busy; more gain nothing.
const MAX_BLOCKS: u64 = 1024;

/// The launch for a number of work items, one per thread.
pub(crate) fn grid_for(work: u64) -> Launch {
    let threads = work.clamp(1, u64::from(BLOCK)) as u32;
    let blocks = work.div_ceil(u64::from(BLOCK)).clamp(1, MAX_BLOCKS);
    Launch::linear(blocks as u32, threads)
}
