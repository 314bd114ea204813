//! Single operations between two PEs on two hosts, whichever transport carries them.

use std::cell::Cell;
use std::hint::black_box;

use anyhow::ensure;
use oxshmem::{Cmp, Sym, World};
use oxshmem_benches::batches::{measure, row, row_of};
use oxshmem_benches::sizes::{LARGEST_TCP_BLOCK, TCP_BLOCKS, WINDOW};

use crate::calls;
use crate::micro::{
    Buffer, Objects, barrier, fetch_add8, get8, p_ping_pong, put_nbi8_window, put_ping_pong,
    put_quiet, put8,
};
use crate::together::Together;

/// Measures each row of `peers --only tcp`.
pub fn run(world: &World) -> anyhow::Result<()> {
    ensure!(
        world.n_pes() == 2,
        "`peer tcp` needs 2 PEs, not {}",
        world.n_pes()
    );
    let objects = Objects::new(world, LARGEST_TCP_BLOCK)?;
    let Objects { words, block, .. } = objects;
    let (ping, pong, done) = objects.lines()?;
    let mut local = Buffer::new(LARGEST_TCP_BLOCK);
    if world.my_pe() == 0 {
        small(world, words)?;
        for size in TCP_BLOCKS {
            blocks(world, block.range(..size)?, &mut local.bytes()[..size])?;
        }
        calls::report("put8", |n| put8(world, words, n))?;
        calls::report("get8", |n| get8(world, words, n))?;
        calls::report("put_quiet", |n| put_quiet(world, words, n))?;
        let largest = &local.bytes()[..];
        calls::report("put_1048576", |n| {
            (0..n).try_for_each(|_| world.put(block, black_box(largest), 1))?;
            world.quiet()
        })?;
        world.p(done, 1, 1)?;
    } else {
        // In a call of the library, which makes progress, as OSHMEM needs it.
        world.wait_until(done, Cmp::Eq, 1)?;
    }
    let together = Together::new(world)?;
    let trips = Cell::new(0);
    let small = p_ping_pong(world, [ping, pong], &trips);
    together.measure(vec![row_of("ping_pong", 2, small)])?;
    for size in TCP_BLOCKS {
        let (block, local) = (block.range(..size)?, &local.bytes()[..size]);
        let exchanged = put_ping_pong(world, [ping, pong], block, local, &trips);
        together.measure(vec![row_of(format!("put_latency_{size}"), 2, exchanged)])?;
    }
    barrier(world, &together)?;
    together.free()?;
    Ok(objects.free(world)?)
}

/// Operations of 8 bytes.
fn small(world: &World, words: Sym<u64>) -> oxshmem::Result<()> {
    measure(vec![row("put8", |n| put8(world, words, n))])?;
    measure(vec![row_of("put_nbi8_window", WINDOW as u64, |n| {
        put_nbi8_window(world, words, n)
    })])?;
    measure(vec![row("get8", |n| get8(world, words, n))])?;
    measure(vec![row("fetch_add8", |n| fetch_add8(world, words, n))])?;
    measure(vec![row("put_quiet", |n| put_quiet(world, words, n))])
}

/// Puts and gets of a whole block.
fn blocks(world: &World, block: Sym<u8>, local: &mut [u8]) -> oxshmem::Result<()> {
    let size = local.len();
    measure(vec![row(format!("put_{size}"), |n| {
        for _ in 0..n {
            world.put(block, black_box(&*local), 1)?;
        }
        world.quiet()
    })])?;
    measure(vec![row(format!("get_{size}"), |n| {
        (0..n).try_for_each(|_| world.get(black_box(&mut *local), block, 1))
    })])
}
