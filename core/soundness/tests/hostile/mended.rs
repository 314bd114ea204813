//! Safe programs that once corrupted memory.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::Zeroable;
use oxshmem::testing::{spmd, spmd_with};
use oxshmem::{Context, Result, Sym, World, bindings};

use crate::{LIMIT, Long, call, value, weak};

/// The last pages of a heap whose length is not a multiple of the word size.
#[test]
fn m5_no_object_that_an_address_names_leaves_the_heap() {
    let heap = World::builder().heap_limit(1 << 20);
    let done = spmd_with(heap, 1, |world| {
        let addresses = bindings::addresses(world);
        let (base, len) = addresses.heap();
        assert_ne!(
            len % size_of::<Long>(),
            0,
            "the last one would end with the heap"
        );
        for at in (0..len).step_by(4096) {
            let found = addresses.object::<Long>(std::ptr::without_provenance(base + at), 1);
            let fits = at.is_multiple_of(size_of::<Long>()) && at + size_of::<Long>() <= len;
            assert_eq!(found.is_some(), fits, "at byte {at} of {len}");
            if let Some(object) = found {
                world.p(object, Zeroable::zeroed(), 0)?;
            }
        }
        Ok(())
    });
    // The library's own words occupied the memory.
    drop(done);
}

#[test]
fn m16_blocks_of_elements_without_bytes_are_done_at_once() {
    let done = spmd(2, |world| {
        let all = usize::MAX;
        let x = world.alloc::<()>(all)?;
        let (nothing, mut into) = (vec![(); all], vec![(); all]);
        // A loop over the blocks would not end.
        world.iput(x, &nothing, 1, 1, all, 0)?;
        world.iget(&mut into, x, 1, 1, all, 0)?;
        world.ibput(x, &nothing, 2, 2, 2, all / 2, 0)?;
        world.ibget(&mut into, x, 2, 2, 2, all / 2, 0)?;
        // These strides reach beyond any object.
        for (remote, local) in [(3, 1), (1, 3), (all, all)] {
            let put = world.iput(x, &nothing, remote, local, all, 0);
            let got = world.iget(&mut into, x, local, remote, all, 0);
            assert!(put.is_err() && got.is_err(), "strides {remote} and {local}");
        }
        let y = world.alloc::<()>(all)?;
        world.team().alltoalls(y, x, 1, 1, all / 2)?;
        Ok(())
    });
    done.unwrap();
}

thread_local! {
    /// Whether the hook in this thread's next wait panics.
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// Several seeds of lanes that delay operations: no completion comes before progress is made.
fn out_of_a_wait(get: fn(&World, Sym<u64>, usize, &mut [u64]) -> Result<()>) {
    let panicked = AtomicU32::new(0);
    for seed in 1..=5 {
        let builder = weak(seed).spin(0).timeout(LIMIT).heap_limit(1 << 20);
        let done = spmd_with(builder, 2, |world| {
            let x = world.alloc_zeroed::<u64>(512)?;
            world.write(x, &[0x4141_4141_4141_4141; 512])?;
            world.barrier_all()?;
            if world.my_pe() == 0 {
                value!(
                    bindings::drive_in_waits,
                    bindings::drive_in_waits(world, || {
                        if ARMED.take() {
                            std::panic::resume_unwind(Box::new("out of what waits drive"));
                        }
                    })
                );
                let ended = catch_unwind(AssertUnwindSafe(|| {
                    let mut buffer = vec![0; 512];
                    get(world, x, 1, &mut buffer)
                }));
                // The buffer's memory now belongs to another allocation.
                let others: Vec<Vec<u64>> = (0..8).map(|_| vec![0; 512]).collect();
                let _ = world.quiet();
                let is_whole = |other: &Vec<u64>| other.iter().all(|word| *word == 0);
                assert!(others.iter().all(is_whole), "seed {seed}: overwritten");
                // If a wait was needed, the error names the panic.
                let told = ended.expect("an error, no panic");
                if !ARMED.take() {
                    let told = told.unwrap_err().to_string();
                    assert!(told.contains("drive_in_waits panicked"), "{told}");
                    panicked.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        });
        // Not all PEs reached the end together.
        drop(done);
    }
    assert!(panicked.into_inner() > 0, "no seed needed a wait");
}

#[test]
fn m19_a_callback_that_panics_out_of_a_scopes_end_leaves_nothing_under_way() {
    out_of_a_wait(|world, x, pe, buffer| {
        world.scope(|scope| {
            scope.get_nbi(buffer, x, pe)?;
            ARMED.set(true);
            Ok(())
        })
    });
}

#[test]
fn m16_a_callback_that_panics_out_of_a_get_leaves_nothing_under_way() {
    out_of_a_wait(|world, x, pe, buffer| {
        ARMED.set(true);
        world.get(buffer, x, pe)
    });
}

#[test]
fn callbacks_of_a_wait_may_make_calls_themselves() {
    let done = spmd_with(weak(1).timeout(LIMIT), 2, |world| {
        let x = world.alloc_zeroed::<u64>(64)?;
        let within = |context: &Context<'_>| {
            let mut into = [0; 64];
            call!(
                Context::scope,
                context.scope(|scope| scope.get_nbi(&mut into, x, 1))
            );
        };
        let mut looks = 0;
        bindings::wait_for(&**world, "a test", &|| "looks".into(), || {
            looks += 1;
            within(world);
            (looks > 3).then_some(())
        })?;
        let mut into = [0; 64];
        world.scope(|scope| {
            scope.get_nbi(&mut into, x, 1)?;
            within(world);
            Ok(())
        })
    });
    done.unwrap();
}
