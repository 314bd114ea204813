//! Calls as other benchmarks time them, with effects that loops of one call do not show: windows of
//! puts over memory that both PEs have just written, and a broadcast timed alone after a barrier.

use std::time::Instant;

use anyhow::ensure;
use oxshmem::World;
use oxshmem_benches::batches::report;
use oxshmem_benches::sizes::{
    BATCHES, BROADCAST_SIZES, BROADCASTS, LARGEST_BROADCAST, LARGEST_WINDOW, WINDOW_PUTS,
    WINDOW_SIZES,
};

pub fn run(world: &World) -> anyhow::Result<()> {
    if world.n_pes() == 2 {
        windows(world)?;
    }
    broadcasts(world)
}

/// Windows of puts, each from and to the next place of a block.
fn windows(world: &World) -> anyhow::Result<()> {
    let me = world.my_pe();
    let block = world.alloc_aligned::<u8>(WINDOW_PUTS * LARGEST_WINDOW, 4096)?;
    let own = world.ptr(block, me).map(|view| view.as_ptr().cast_const());
    let own = own.ok_or_else(|| anyhow::anyhow!("the own block has no address"))?;
    let mut filled = vec![0_u8; block.len()];
    for size in WINDOW_SIZES {
        let mut batches = Vec::new();
        for batch in 0..BATCHES {
            let value = (me + batch) as u8;
            filled.fill(value);
            world.write(block, &filled)?;
            world.barrier_all()?;
            if me == 0 {
                let start = Instant::now();
                for i in 0..WINDOW_PUTS {
                    let place = i * size;
                    // SAFETY: the block is mapped here, and `place + size` lies within it; no PE
                    // writes PE 0's block.
                    unsafe {
                        let source = own.add(place);
                        world.put_raw(block.range(place..place + size)?, source, 1)?;
                    }
                }
                world.quiet()?;
                batches.push(start.elapsed().as_nanos() as f64 / WINDOW_PUTS as f64);
            }
            world.barrier_all()?;
            let last = world.g(block.at(WINDOW_PUTS * size - 1)?, me)?;
            ensure!(last == batch as u8, "window_{size}: a wrong result");
            world.barrier_all()?;
        }
        if me == 0 {
            report(&format!("window_{size}"), &batches);
        }
    }
    world.free(block)?;
    Ok(())
}

/// Broadcasts; the row is the mean over the PEs of the time within the call.
fn broadcasts(world: &World) -> anyhow::Result<()> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    let src = world.alloc_aligned::<u8>(LARGEST_BROADCAST, 4096)?;
    let dst = world.alloc_aligned::<u8>(LARGEST_BROADCAST, 4096)?;
    let means = world.alloc_zeroed::<f64>(pes)?;
    world.write(src, &[me as u8 + 1; LARGEST_BROADCAST])?;
    world.barrier_all()?;
    for size in BROADCAST_SIZES {
        let (to, from) = (dst.range(..size)?, src.range(..size)?);
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let mut within = 0;
            for _ in 0..BROADCASTS {
                world.barrier_all()?;
                let start = Instant::now();
                world.team().broadcast_to_others(to, from, 0)?;
                within += start.elapsed().as_nanos();
            }
            world.p(means.at(me)?, within as f64 / BROADCASTS as f64, 0)?;
            world.barrier_all()?;
            let mut all = vec![0.0; pes];
            world.get(&mut all, means, 0)?;
            batches.push(all.iter().sum::<f64>() / pes as f64);
            world.barrier_all()?;
        }
        let last = world.g(dst.at(size - 1)?, me)?;
        let row = format!("broadcast_alone_{size}_{pes}");
        ensure!(me == 0 || last == 1, "{row}: a wrong result");
        if me == 0 {
            report(&row, &batches);
        }
    }
    world.free(means)?;
    world.free(dst)?;
    world.free(src)?;
    Ok(())
}
