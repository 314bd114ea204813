//! PEs that are lost in the middle of transfers to GPU memory by way of host memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use oxshmem::{Error, Result, Sym, World, registry};

use crate::gpu::Growing;
use crate::gpu_staged::{CUDA, MIB, Over, run};
use crate::job::{Job, Process, is_lost, say, stay};
use crate::kills::kill_one;
use crate::order::poll;
use crate::setting::{DEADLINE, patterns};

#[test]
fn the_end_of_a_target_ends_transfers_to_it() {
    for over in [Over::Mapped, Over::Network, Over::Weak] {
        let (ready, survivors) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let run = || {
            run(over, 3, |world| {
                let x = world.alloc_on::<u64>(CUDA, 200_000)?;
                // A PE that ends right after a barrier may end that barrier with an error on the others.
                world.barrier_all()?;
                ready.fetch_add(1, Ordering::Relaxed);
                if world.my_pe() == 2 {
                    poll(|| Ok(ready.load(Ordering::Relaxed) == 3))?;
                    return Err(Error::Argument {
                        call: "test",
                        what: "the victim's error".into(),
                    });
                }
                let data = patterns(1, 200_000);
                let ended = loop {
                    if let Err(error) = world.put(x, &data, 2) {
                        break error;
                    }
                };
                is_lost(Err(ended), 2);
                is_lost(world.g(x, 2).map(drop), 2);
                is_lost(world.fetch_inc(x, 2).map(drop), 2);
                // The others go on.
                world.acknowledge_lost();
                let mut seen = vec![0; data.len()];
                world.put(x, &data, world.my_pe())?;
                let there = 1 - world.my_pe();
                world.get(&mut seen, x, there)?;
                survivors.fetch_add(1, Ordering::Relaxed);
                poll(|| Ok(survivors.load(Ordering::Relaxed) == 2))
            });
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert_eq!(survivors.load(Ordering::Relaxed), 2, "{over:?}");
    }
}

/// In a process that is a PE: joins, with GPU memory that no transport carries.
pub fn join_staged() -> Result<World> {
    World::builder()
        .transports(registry::built_in())
        .timeout(DEADLINE)
        .heap_limit(16 * MIB)
        .gpu_memory(|_| Ok(Box::new(Growing::new(32 * MIB, 32 * MIB))))
        .join()
}

/// Processes as PEs: what each puts without end, for a test that kills some.
pub fn put_without_end() -> Result<()> {
    const LEN: usize = 300_000;
    let world = join_staged()?;
    let (me, last) = (world.my_pe(), world.n_pes() - 1);
    let x = world.alloc_on::<u64>(CUDA, LEN * world.n_pes())?;
    let part = |pe: usize| -> Result<Sym<u64>> { x.range(pe * LEN..(pe + 1) * LEN) };
    let data = patterns(me, LEN);
    match me {
        // Their target only stays.
        0 => {
            say("ready");
            stay();
            Ok(())
        }
        _ if me < last => {
            say("ready");
            loop {
                world.put(part(me)?, &data, 0)?;
            }
        }
        _ => {
            say("ready");
            // All others that put are gone.
            for pe in 1..last {
                poll(|| Ok(!world.pe_accessible(pe)))?;
            }
            let mut seen = vec![0; LEN];
            for _ in 0..5 {
                world.put(part(me)?, &data, 0)?;
                world.get(&mut seen, part(me)?, 0)?;
                assert!(seen == data);
            }
            say("survived");
            stay();
            Ok(())
        }
    }
}

#[test]
fn slots_of_pes_that_were_killed_in_transfers_are_lent_again() {
    // Four have all eight slots, most of the time.
    let mut pes = Job::new(6, "staged-puts").start();
    pes.iter_mut().for_each(|pe| pe.expect("ready"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    pes[1..5].iter_mut().for_each(Process::kill);
    pes[5].expect("survived");
    let [target, .., survivor] = &mut pes[..] else {
        panic!("6 of them");
    };
    survivor.release();
    target.release();
}

#[test]
fn the_kill_of_a_target_ends_transfers_to_it() {
    kill_one("staged-lost", 3);
}

/// As above, with the last PE as the target that is killed.
pub fn put_until_lost() -> Result<()> {
    let world = join_staged()?;
    let victim = world.n_pes() - 1;
    let x = world.alloc_on::<u64>(CUDA, 500_000)?;
    say("ready");
    if world.my_pe() == victim {
        stay();
        return Ok(());
    }
    let mut data = patterns(1, 500_000);
    loop {
        let ended = world
            .put(x, &data, victim)
            .and_then(|()| world.get(&mut data, x, victim));
        match ended {
            Ok(()) => {}
            Err(Error::PeerLost { pe, .. }) if pe == victim => break,
            Err(error) => return Err(error),
        }
    }
    say("survived");
    stay();
    Ok(())
}
