//! Updates of random words of a table on all PEs, and their check.

use std::time::Instant;

use anyhow::anyhow;
use oxshmem::World;
use oxshmem_benches::batches::report;
use oxshmem_benches::sizes::{GUPS_PASSES, GUPS_SHIFT, GUPS_UPDATES};
use oxshmem_examples::gups::{Table, Update};

pub fn run(world: &World) -> anyhow::Result<()> {
    let memory = world.alloc_aligned::<u64>(1 << GUPS_SHIFT, 4096)?;
    for (name, update) in [
        ("gups_xor", Update::Atomic),
        ("gups_get_put", Update::GetPut),
    ] {
        let table = Table::new(world, memory, GUPS_SHIFT)?.with_updates(GUPS_UPDATES);
        let name = format!("{name}_{}", world.n_pes());
        let mut passes = Vec::new();
        for _ in 0..GUPS_PASSES {
            let start = Instant::now();
            table.update(update)?;
            passes.push(start.elapsed().as_nanos() as f64 / table.updates() as f64);
        }
        if let Some(check) = table.check()? {
            check
                .verdict(update)
                .map_err(|what| anyhow!("{name}: {what}"))?;
            report(&name, &passes);
        }
        world.barrier_all()?;
    }
    world.free(memory)?;
    Ok(())
}
