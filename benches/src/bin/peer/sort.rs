//! A sort of integers that are spread over all PEs, and its check.

use std::time::Instant;

use anyhow::anyhow;
use oxshmem::World;
use oxshmem_benches::batches::report;
use oxshmem_benches::sizes::{SORT_SHIFTS, SORTS};
use oxshmem_examples::isort::{Sorter, draw};

pub fn run(world: &World) -> anyhow::Result<()> {
    SORT_SHIFTS
        .iter()
        .try_for_each(|shift| sorts(world, *shift))
}

/// Sorts 2^shift keys of all PEs.
fn sorts(world: &World, shift: u32) -> anyhow::Result<()> {
    let count = (1 << shift) / world.n_pes();
    let all = (count * world.n_pes()) as f64;
    let mut sorter = Sorter::new(world, count)?;
    let mut keys = vec![0; count];
    let (mut whole, mut exchange) = (Vec::new(), Vec::new());
    // The first sort is not counted: its memory is new.
    for round in 0..=SORTS {
        draw(&mut keys, world.my_pe(), round);
        world.barrier_all()?;
        let start = Instant::now();
        let phases = sorter.sort(&keys)?;
        world.barrier_all()?;
        let took = start.elapsed().as_nanos() as f64;
        world.barrier_all()?; // No PE checks before PE 0, which may share its processor, has read the clock.
        if round > 0 {
            whole.push(took / all);
            exchange.push(1e9 * phases.exchange / all);
        }
        sorter
            .check(&keys)?
            .verdict()
            .map_err(|what| anyhow!("sort: {what}"))?;
    }
    if world.my_pe() == 0 {
        let pes = world.n_pes();
        report(&format!("sort_{shift}_{pes}"), &whole);
        report(&format!("sort_exchange_{shift}_{pes}"), &exchange);
    }
    sorter.free()?;
    Ok(())
}
