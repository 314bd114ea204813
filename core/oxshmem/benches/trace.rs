//! The cost of `OXSHMEM_TRACE` to a program: random updates of a table on all PEs (GUPS), with and without a trace
//! by turns. `cargo bench -p oxshmem --bench trace`
//!
//! The PEs are two threads; their memory is mapped, or reached by a lane for every update (the example transport's).

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem::testing::spmd_with;
use oxshmem::{Builder, Result, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::Transport;

const ROUNDS: usize = 41;
const PES: usize = 2;
/// Words of the table on each PE.
const WORDS: usize = 1 << 16;
/// Updates between two quiets, as HPC Challenge's RandomAccess looks ahead.
const WINDOW: usize = 1024;

/// Updates, after which each PE says how long its own took.
fn updates(world: &World, count: usize) -> Result<Duration> {
    let table = world.alloc_zeroed::<u64>(WORDS)?;
    let mut random = world.my_pe() as u64 + 1;
    world.barrier_all()?;
    let start = Instant::now();
    for update in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (pe, word) = ((random >> 32) as usize % PES, random as usize % WORDS);
        world.xor(table.at(word)?, random, pe)?;
        if update % WINDOW == WINDOW - 1 {
            world.quiet()?;
        }
    }
    world.barrier_all()?;
    let took = start.elapsed();
    world.free(table)?;
    Ok(took)
}

/// The slowest PE's time.
fn run(builder: Builder, count: usize) -> Result<Duration> {
    let times = spmd_with(builder, PES, |world| updates(world, count))?;
    Ok(times.into_iter().max().unwrap_or_default())
}

fn main() -> Result<()> {
    let file = std::env::temp_dir().join(format!("oxshmem-bench-{}.json", std::process::id()));
    println!(
        "GUPS of {PES} thread PEs, with a trace / without, each the best of {ROUNDS} by turns:"
    );
    for (name, tiny, count) in [("mapped memory", false, 4 << 20), ("a lane", true, 1 << 18)] {
        let builder = || {
            let transport: Arc<dyn Transport> = match tiny {
                true => Arc::new(Tiny::nic()),
                false => Arc::new(Loopback::new()),
            };
            World::builder().transports(vec![transport])
        };
        let mut best = [Duration::MAX; 2];
        for round in 0..ROUNDS {
            for turn in [round % 2, (round + 1) % 2] {
                let builder = match turn {
                    0 => builder(),
                    _ => builder().trace(&file),
                };
                best[turn] = best[turn].min(run(builder, count)?);
            }
        }
        let [without, with] = best.map(|best| best.as_secs_f64());
        println!(
            "  {name:<14} {:6.3}; {:.1} ns an update without",
            with / without,
            without / count as f64 * 1e9
        );
    }
    // It is of no use any more, and may not be there.
    let _ = std::fs::remove_file(file);
    Ok(())
}
