//! A call in which all PEs meet, and which completes no puts.

use oxshmem::World;

use crate::check::{LEN, check};

/// Each PE gives data to its right neighbour. Then all meet.
pub fn run(world: &World, mended: bool) -> anyhow::Result<()> {
    let data = world.alloc_zeroed::<u64>(LEN)?;
    let right = (world.my_pe() + 1) % world.n_pes();
    world.put(data, &[7; LEN], right)?;
    if mended {
        world.barrier_all()?;
    } else {
        world.sync_all()?;
    }
    let mut words = [0; LEN];
    world.read(&mut words, data)?;
    check(&words, 7, "barrier_all completes puts, sync_all does not")
}
