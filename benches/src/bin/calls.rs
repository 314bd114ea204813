//! `calls CALL N`: N calls for the memory of PE 0 in a loop, and nothing else. The last PE makes them, or all PEs if they
//! are collective. `benches/instructions` and `benches/verbs-instructions` count its instructions.

use std::hint::black_box;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use oxshmem::{SignalOp, Sym, World};

/// Words of the object, and bytes of a block.
const WORDS: usize = 64;

/// Makes one call N times.
#[derive(Parser)]
struct Args {
    call: Call,
    count: u64,
}

/// The calls, of 8 bytes where nothing else is said.
#[derive(Clone, Copy, ValueEnum)]
enum Call {
    P,
    G,
    Put,
    Get,
    PutNbi,
    PutSignal,
    FetchAdd,
    Quiet,
    Fence,
    PutQuiet,
    Barrier,
    Broadcast,
}

fn main() -> Result<()> {
    let Args { call, count } = Args::parse();
    let world = World::init()?;
    let words = world.alloc_zeroed::<u64>(WORDS)?;
    let collective = matches!(call, Call::Barrier | Call::Broadcast);
    let count = match collective || world.my_pe() == world.n_pes() - 1 {
        true => count,
        false => 0,
    };
    match call {
        Call::P => p(&world, words, count)?,
        Call::G => g(&world, words, count)?,
        Call::Put => put(&world, words, count)?,
        Call::Get => get(&world, words, count)?,
        Call::PutNbi => put_nbi(&world, words, count)?,
        Call::PutSignal => put_signal(&world, words, count)?,
        Call::FetchAdd => fetch_add(&world, words, count)?,
        Call::Quiet => quiet(&world, count)?,
        Call::Fence => fence(&world, count)?,
        Call::PutQuiet => put_quiet(&world, words, count)?,
        Call::Barrier => barrier(&world, count)?,
        Call::Broadcast => broadcast(&world, words, count)?,
    }
    world.free(words)?;
    Ok(world.finalize()?)
}

// The loops are functions of a world and an object, as in a program: another word each time, and a check of each call.
// They are not inlined, so that the compiler knows nothing of the object.

#[inline(never)]
fn p(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    for i in 0..count {
        world.p(words.at((i % 64) as usize)?, i, 0)?;
    }
    Ok(())
}

#[inline(never)]
fn g(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..count {
        sum = sum.wrapping_add(world.g(words.at((i % 64) as usize)?, 0)?);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
fn put(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    for i in 0..count {
        world.put(words.at((i % 64) as usize)?, &[i], 0)?;
    }
    Ok(())
}

#[inline(never)]
fn get(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..count {
        let mut value = [0];
        world.get(&mut value, words.at((i % 64) as usize)?, 0)?;
        sum = sum.wrapping_add(value[0]);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
fn put_nbi(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let value = [7_u64];
    world.scope(|scope| {
        (0..count).try_for_each(|i| scope.put_nbi(words.at((i % 64) as usize)?, &value, 0))
    })
}

#[inline(never)]
fn put_signal(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let signal = words.at(63)?;
    (0..count).try_for_each(|i| {
        let dst = words.at((i % 63) as usize)?;
        world.put_signal(dst, &[i], signal, i, SignalOp::Set, 0)
    })
}

#[inline(never)]
fn fetch_add(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let mut sum = 0_u64;
    for i in 0..count {
        sum = sum.wrapping_add(world.fetch_add(words.at((i % 64) as usize)?, 1, 0)?);
    }
    black_box(sum);
    Ok(())
}

#[inline(never)]
fn quiet(world: &World, count: u64) -> oxshmem::Result<()> {
    (0..count).try_for_each(|_| world.quiet())
}

#[inline(never)]
fn fence(world: &World, count: u64) -> oxshmem::Result<()> {
    (0..count).try_for_each(|_| world.fence())
}

#[inline(never)]
fn put_quiet(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    for i in 0..count {
        world.p(words.at((i % 64) as usize)?, i, 0)?;
        world.quiet()?;
    }
    Ok(())
}

#[inline(never)]
fn barrier(world: &World, count: u64) -> oxshmem::Result<()> {
    (0..count).try_for_each(|_| world.barrier_all())
}

#[inline(never)]
fn broadcast(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    let (dst, src) = (words.range(..1)?, words.range(32..33)?);
    (0..count).try_for_each(|_| world.team().broadcast_to_others(dst, src, 0))
}
