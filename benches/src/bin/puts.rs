//! `puts N`: N puts of 8 bytes to mapped memory, and nothing else. `benches/instructions` counts
//! its instructions.

use anyhow::{Context, Result};
use oxshmem::{Sym, World};

fn main() -> Result<()> {
    let count: u64 = std::env::args()
        .nth(1)
        .context("give the number of puts")?
        .parse()
        .context("the number of puts")?;
    let world = World::init()?;
    let words = world.alloc_zeroed::<u64>(64)?;
    puts(&world, words, count)?;
    world.free(words)?;
    Ok(world.finalize()?)
}

/// Puts as in a program's loop: another word each time, and a check of each call.
#[inline(never)]
fn puts(world: &World, words: Sym<u64>, count: u64) -> oxshmem::Result<()> {
    for i in 0..count {
        world.p(words.at((i % 64) as usize)?, i, 0)?;
    }
    Ok(())
}
