//! Collective calls of all PEs, at several sizes, each result checked.

use anyhow::ensure;
use oxshmem::{Sym, World};
use oxshmem_benches::batches::row;
use oxshmem_benches::sizes::{COLLECTIVE_BLOCKS, Collective, LARGEST_COLLECTIVE_BLOCK};

use crate::together::Together;

/// The word that PE `pe` contributes at an index of its source.
fn given(pe: usize, at: usize) -> i64 {
    1000 * pe as i64 + at as i64
}

pub fn run(world: &World) -> anyhow::Result<()> {
    let words = world.n_pes() * LARGEST_COLLECTIVE_BLOCK / size_of::<i64>();
    let src = world.alloc_aligned::<i64>(words, 4096)?;
    let dst = world.alloc_aligned::<i64>(words, 4096)?;
    let values: Vec<i64> = (0..words).map(|at| given(world.my_pe(), at)).collect();
    world.write(src, &values)?;
    world.write(dst, &vec![-1; words])?;
    world.barrier_all()?;
    let together = Together::new(world)?;
    for size in COLLECTIVE_BLOCKS {
        for call in Collective::ALL {
            let (dst, src) = objects(call, dst, src, size / size_of::<i64>(), world.n_pes())?;
            // The loops begin with a barrier, so that no PE works before PE 0, which may share its
            // processor, has read the clock. They end with one, so that the slowest PE's work
            // counts.
            let repeated = |n| {
                world.barrier_all()?;
                for _ in 0..n {
                    once(world, call, dst, src)?;
                }
                world.barrier_all()
            };
            let name = call.row(size, world.n_pes());
            together.measure(vec![row(name.as_str(), repeated)])?;
            ensure!(is_right(world, call, dst)?, "{name}: a wrong result");
            world.barrier_all()?;
        }
    }
    together.free()?;
    world.free(dst)?;
    world.free(src)?;
    Ok(())
}

/// The objects of a call with blocks of `count` words.
fn objects(
    call: Collective,
    dst: Sym<i64>,
    src: Sym<i64>,
    count: usize,
    pes: usize,
) -> oxshmem::Result<(Sym<i64>, Sym<i64>)> {
    let (into, of) = match call {
        Collective::Allreduce | Collective::Broadcast => (count, count),
        Collective::Fcollect => (pes * count, count),
        Collective::Alltoall => (pes * count, pes * count),
    };
    Ok((dst.range(..into)?, src.range(..of)?))
}

#[inline]
fn once(world: &World, call: Collective, dst: Sym<i64>, src: Sym<i64>) -> oxshmem::Result<()> {
    match call {
        Collective::Allreduce => world.sum_reduce(dst, src),
        Collective::Broadcast => world.team().broadcast_to_others(dst, src, 0),
        Collective::Fcollect => world.team().fcollect(dst, src),
        Collective::Alltoall => world.team().alltoall(dst, src),
    }
}

fn is_right(world: &World, call: Collective, dst: Sym<i64>) -> oxshmem::Result<bool> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    if matches!(call, Collective::Broadcast) && me == 0 {
        // OpenSHMEM 1.4 leaves the root's own destination unchanged.
        return Ok(true);
    }
    let mut held = vec![0; dst.len()];
    world.read(&mut held, dst)?;
    let block = dst.len() / pes;
    let wanted = |at: usize| match call {
        Collective::Allreduce => (0..pes).map(|pe| given(pe, at)).sum(),
        Collective::Broadcast => given(0, at),
        Collective::Fcollect => given(at / block, at % block),
        Collective::Alltoall => given(at / block, me * block + at % block),
    };
    Ok(held.iter().enumerate().all(|(at, is)| *is == wanted(at)))
}
