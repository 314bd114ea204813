//! A flag behind data, without a fence between them.

use oxshmem::{Cmp, World};

use crate::check::{LEN, check};

/// PE 0 gives data to PE 1, and raises a flag.
pub fn run(world: &World, mended: bool) -> anyhow::Result<()> {
    let data = world.alloc_zeroed::<u64>(LEN)?;
    let flag = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        world.put(data, &[7; LEN], 1)?;
        if mended {
            world.fence()?;
        }
        world.p(flag, 1, 1)?;
    }
    if world.my_pe() == 1 {
        world.wait_until(flag, Cmp::Eq, 1)?;
        let mut words = [0; LEN];
        world.read(&mut words, data)?;
        check(&words, 7, "a fence belongs between data and flag")?;
    }
    Ok(())
}
