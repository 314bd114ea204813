//! A put on one context, and a quiet of another.

use oxshmem::{Cmp, ContextOptions, World};

use crate::check::{LEN, check};

/// PE 0 gives data to PE 1 on a context of its own, and raises a flag.
pub fn run(world: &World, mended: bool) -> anyhow::Result<()> {
    let data = world.alloc_zeroed::<u64>(LEN)?;
    let flag = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        let context = world.create_context(ContextOptions::NONE)?;
        context.put(data, &[7; LEN], 1)?;
        if mended {
            context.quiet()?;
        } else {
            world.quiet()?;
        }
        world.p(flag, 1, 1)?;
        context.destroy()?;
    }
    if world.my_pe() == 1 {
        world.wait_until(flag, Cmp::Eq, 1)?;
        let mut words = [0; LEN];
        world.read(&mut words, data)?;
        check(
            &words,
            7,
            "a quiet of the context that put them belongs before the flag",
        )?;
    }
    Ok(())
}
