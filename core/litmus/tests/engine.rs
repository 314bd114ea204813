//! Guarantees of the engine that no litmus program can state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use oxshmem::testing::spmd_with;
use oxshmem::{Builder, Cmp, ContextOptions, Result, World};
use oxshmem_bootstrap::{Bootstrap, InProcess};
use oxshmem_loopback::Loopback;
use oxshmem_weak::{Settings, Weak};

/// PEs over weak lanes, as threads that run freely.
fn weak(seed: u64) -> Builder {
    let weak = Weak::over(Arc::new(Loopback::new()), Settings::worst(seed));
    World::builder()
        .transports(vec![Arc::new(weak)])
        .heap_limit(1 << 20)
}

#[test]
fn m10_a_barrier_completes_the_default_context_beside_another() {
    for seed in 0..100 {
        let seen = spmd_with(weak(seed), 2, |world| {
            let x = world.alloc_zeroed::<u64>(1)?;
            let y = world.alloc_zeroed::<u64>(1)?;
            let context = world.create_context(ContextOptions::NONE)?;
            if world.my_pe() == 0 {
                world.put(x, &[7], 1)?;
                context.put(y, &[8], 1)?;
            }
            world.barrier_all()?;
            let seen = world.g(x, world.my_pe())?;
            world.barrier_all()?;
            context.destroy()?;
            Ok(seen)
        });
        assert_eq!(seen.unwrap()[1], 7, "seed {seed}");
    }
}

#[test]
fn contexts_are_made_and_dropped_without_end() {
    spmd_with(weak(1), 2, |world| {
        let x = world.alloc_zeroed::<u64>(1)?;
        for i in 0..300 {
            let context = world.create_context(ContextOptions::NONE)?;
            context.p(x, i, 1 - world.my_pe())?;
            if i % 2 == 0 {
                context.destroy()?;
            }
        }
        world.barrier_all()?;
        assert_eq!(world.g(x, world.my_pe())?, 299);
        Ok(())
    })
    .unwrap();
}

/// Six gets are in flight when their PE is told by the bootstrap that it gives up: the scope fails,
/// and from then on the buffers are not touched.
#[test]
fn m37_a_scope_that_lost_its_peer_leaves_the_buffers_alone() {
    const GAVE_UP: [u8; 9] = [0; 9];
    for seed in 0..20 {
        let group = InProcess::group(2);
        let other: Arc<dyn Bootstrap> = Arc::clone(&group[1]) as _;
        let builder = weak(seed);
        let done = std::sync::Barrier::new(2);
        std::thread::scope(|threads| {
            for bootstrap in group {
                let (other, done, builder) = (&other, &done, builder.clone());
                threads.spawn(move || {
                    let world = builder.bootstrap(bootstrap as Arc<_>).join().unwrap();
                    let x = world.alloc_zeroed::<u64>(1).unwrap();
                    world.write(x, &[7]).unwrap();
                    world.barrier_all().unwrap();
                    // Otherwise the abort would also cancel the failed PE's barrier.
                    done.wait();
                    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        if world.my_pe() == 0 {
                            scope_that_fails(&world, x, || other.send(0, &GAVE_UP).unwrap());
                        }
                    }));
                    done.wait();
                    tried.unwrap();
                });
            }
        });
    }
}

fn scope_that_fails(world: &World, x: oxshmem::Sym<u64>, give_up: impl FnOnce()) {
    let mut buffers = [0_u64; 6];
    let scoped: Result<()> = world.scope(|scope| {
        for buffer in buffers.chunks_mut(1) {
            scope.get_nbi(buffer, x, 1)?;
        }
        give_up();
        let until = Instant::now() + Duration::from_secs(10);
        while world.pe_accessible(1) {
            assert!(Instant::now() < until, "the message did not come");
            std::thread::yield_now();
        }
        Ok(())
    });
    assert!(scoped.is_err() || buffers == [7; 6]);
    let at_its_end = buffers;
    for _ in 0..1000 {
        let _ = world.test(x, Cmp::Eq, 99);
    }
    // Read as if another thread had written it.
    let later = std::hint::black_box(&buffers);
    assert_eq!(*later, at_its_end);
}

#[test]
fn the_any_family_picks_the_same_words_in_each_run() {
    let run = || {
        spmd_with(World::builder(), 1, |world| {
            let x = world.alloc_zeroed::<u64>(8)?;
            (0..6)
                .map(|_| world.test_any(x, None, Cmp::Eq, 0))
                .collect::<Result<Vec<_>>>()
        })
        .unwrap()
    };
    assert_eq!(run(), run());
}

/// A transport loses a PE that is alive: neither waits for the other for ever.
#[test]
fn a_way_that_is_cut_towards_a_living_pe_ends_the_job_for_both() {
    let settings = Settings {
        lose: Some((oxshmem_transport::Pe(1), 60)),
        ..Settings::worst(1)
    };
    let weak = Weak::over(Arc::new(Loopback::new()), settings);
    let builder = World::builder()
        .transports(vec![Arc::new(weak)])
        .heap_limit(1 << 20)
        .timeout(Duration::from_secs(20));
    let ended = spmd_with(builder, 2, |world| {
        let x = world.alloc_zeroed::<u64>(1)?;
        for i in 0..1000 {
            world.p(x, i, 1 - world.my_pe())?;
            world.barrier_all()?;
        }
        Ok(())
    });
    let error = ended.unwrap_err().to_string();
    assert!(!error.contains("OXSHMEM_TIMEOUT"), "{error}");
}
