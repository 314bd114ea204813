//! A signal that covers the second of two puts, and is believed to cover both.

use oxshmem::{Cmp, SignalOp, World};

use crate::check::{LEN, check};

/// PE 0 gives a head and a body to PE 1, with one signal.
pub fn run(world: &World, mended: bool) -> anyhow::Result<()> {
    let head = world.alloc_zeroed::<u64>(LEN)?;
    let body = world.alloc_zeroed::<u64>(LEN)?;
    let signal = world.alloc_zeroed::<u64>(1)?;
    if world.my_pe() == 0 {
        world.put(head, &[1; LEN], 1)?;
        if mended {
            world.fence()?;
        }
        world.put_signal(body, &[2; LEN], signal, 1, SignalOp::Set, 1)?;
    }
    if world.my_pe() == 1 {
        world.signal_wait_until(signal, Cmp::Eq, 1)?;
        let mut words = [0; LEN];
        world.read(&mut words, body)?;
        check(
            &words,
            2,
            "this cannot be: the signal comes behind its data",
        )?;
        world.read(&mut words, head)?;
        check(&words, 1, "a fence belongs before put_signal")?;
    }
    Ok(())
}
