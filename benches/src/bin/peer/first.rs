//! The first use of memory.

use std::time::Instant;

use anyhow::ensure;
use oxshmem::World;
use oxshmem_benches::batches::report;
use oxshmem_benches::sizes::FIRST_BLOCK;

pub fn run(world: &World) -> anyhow::Result<()> {
    let me = world.my_pe();
    let given = vec![1_u64; FIRST_BLOCK / 8];
    world.barrier_all()?;
    let start = Instant::now();
    let block = world.alloc_aligned::<u64>(given.len(), 4096)?;
    if me == 0 {
        world.put(block, &given, 1)?;
    }
    world.barrier_all()?;
    let took = start.elapsed().as_nanos() as f64;
    let last = world.g(block.at(given.len() - 1)?, me)?;
    ensure!(me != 1 || last == 1, "first_use: a wrong result");
    if me == 0 {
        report("first_use", &[took]);
    }
    world.free(block)?;
    Ok(())
}
