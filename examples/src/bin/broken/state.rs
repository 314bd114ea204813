//! Two puts of one word, in an order that nothing keeps.

use anyhow::ensure;
use oxshmem::World;

/// The states that PE 1 sees of PE 0.
const WORKING: u64 = 1;
const DONE: u64 = 2;

/// PE 0 tells PE 1 that it works, then that it is done.
pub fn run(world: &World, mended: bool) -> anyhow::Result<()> {
    let state = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        world.p(state, WORKING, 1)?;
        if mended {
            world.fence()?;
        }
        world.p(state, DONE, 1)?;
    }
    world.barrier_all()?;
    if world.my_pe() == 1 {
        let last = world.g(state, 1)?;
        ensure!(
            last == DONE,
            "the state is {last}, not {DONE}: a fence belongs between two puts of one word"
        );
    }
    Ok(())
}
