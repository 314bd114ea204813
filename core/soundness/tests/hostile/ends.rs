//! The start and the end of worlds.

use std::sync::Arc;
use std::time::Duration;

use oxshmem::testing::{spmd, spmd_with};
use oxshmem::{Atomics, Builder, Cmp, FenceSite, MemoryModel, Result, World, bindings};
use oxshmem_bootstrap::InProcess;
use oxshmem_topo::{CpuSet, Topology, fixtures};
use oxshmem_weak::simulated_gpu_memory;

use crate::{LIMIT, call, loopback, value};

/// The only PE of a job.
fn alone(builder: Builder) -> Option<World> {
    let bootstrap = InProcess::group(1).remove(0);
    let builder = value!(Builder::bootstrap, builder.bootstrap(bootstrap));
    call!(Builder::join, builder.join())
}

#[test]
fn builders_take_the_worst_settings_or_say_why_not() {
    let plain = || value!(World::builder, World::builder());
    for bytes in [0, 1, 4095, 1 << 20, usize::MAX / 2, usize::MAX] {
        alone(value!(Builder::heap_limit, plain().heap_limit(bytes)));
        let builder = plain().heap_limit(1 << 20);
        alone(value!(Builder::gpu_limit, builder.gpu_limit(bytes)));
    }
    let small = || plain().heap_limit(1 << 20);
    for model in [MemoryModel::Ordered, MemoryModel::Relaxed] {
        alone(value!(Builder::model, small().model(model)));
    }
    for atomics in [Atomics::Auto, Atomics::Cpu, Atomics::Nic] {
        alone(value!(Builder::atomics, small().atomics(atomics)));
    }
    alone(value!(Builder::check, small().check(true)));
    alone(value!(
        bindings::without_places,
        bindings::without_places(small())
    ));
    for (name, given) in [("OXSHMEM_SPIN", "3"), ("OXSHMEM_NIC", "\0"), ("", "x")] {
        alone(value!(
            bindings::default_variable,
            bindings::default_variable(small(), name, given.into())
        ));
    }
    for limit in [Duration::ZERO, Duration::MAX] {
        alone(value!(Builder::timeout, small().timeout(limit)));
    }
    for iterations in [0, 1, u32::MAX] {
        alone(value!(Builder::spin, small().spin(iterations)));
    }
    for host in [String::new(), "\0\n".into(), "x".repeat(1 << 20)] {
        alone(value!(Builder::host_id, small().host_id(host)));
    }
    for file in ["", "/", "/dev/null", "/nonexistent/x"] {
        alone(value!(Builder::trace, small().trace(file)));
    }
    alone(value!(Builder::stats, small().stats("/nonexistent/x")));
    alone(value!(Builder::transports, small().transports(vec![])));
    let twice = [loopback(), loopback()];
    alone(small().transports(twice.into_iter().map(|same| same as Arc<_>).collect()));
    alone(value!(Builder::active_sets, small().active_sets()));
    for inserted in FenceSite::ALL {
        let world = alone(value!(
            Builder::disable_fence,
            small().disable_fence(inserted)
        ));
        if let Some(world) = world {
            call!(World::finalize, world.finalize());
        }
    }
    // GPU memory that no transport carries, and no GPU memory.
    if let Some(memory) = simulated_gpu_memory(1 << 20) {
        let builder = small().transports(vec![loopback()]);
        alone(value!(Builder::gpu_heap, builder.gpu_heap(memory.clone())));
        let builder = small().transports(vec![loopback()]);
        let make = move |_| Ok(Box::new(memory.clone()) as Box<_>);
        alone(value!(Builder::gpu_memory, builder.gpu_memory(make)));
    }
    alone(small().gpu_memory(|pe| Err(format!("PE {pe} has none"))));
    // This process is in no job, and so becomes the only PE of one.
    if let Some(world) = call!(World::init, World::init()) {
        call!(World::finalize, world.finalize());
    }
}

#[test]
fn jobs_without_pes_or_transports_are_refused() {
    let one = || World::builder().heap_limit(1 << 20);
    assert!(call!(testing::spmd, spmd(0, |_| Ok(()))).is_none());
    let none = one().transports(vec![]);
    let ended = spmd_with(none, 2, |_| Ok(()));
    call!(testing::spmd_with, ended);
    assert!(!value!(registry::built_in, oxshmem::registry::built_in()).is_empty());
    assert!(!value!(config::variables, oxshmem::variables()).is_empty());
    assert_eq!(
        call!(topology::described_topology, oxshmem::described_topology()),
        Some(None)
    );
}

#[test]
fn machines_are_looked_at_whatever_cpus_pes_have() {
    let mut host = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
    for nics in [host.nics.len(), 1, 0] {
        host.nics.truncate(nics);
        let usable = call!(topology::usable_nics, oxshmem::usable_nics(&host)).unwrap();
        assert!(usable.len() <= nics);
        for cpus in [CpuSet::default(), [0, usize::MAX].into_iter().collect()] {
            let pes = vec![cpus; 100];
            let planned = oxshmem::planned_devices(&host, &pes);
            let planned = call!(topology::planned_devices, planned).unwrap();
            assert_eq!(planned.len(), pes.len());
        }
        let none = oxshmem::planned_devices(&host, &[]).unwrap();
        assert!(none.is_empty());
    }
}

/// The calls of a world after its end.
fn after_the_end(world: &World) -> Result<()> {
    let (me, n) = (world.my_pe(), world.n_pes());
    let x = world.alloc::<u64>(8);
    let _ = world.barrier_all();
    if let Ok(x) = x {
        for pe in 0..n {
            let _ = world.put(x, &[1; 8], pe);
            let _ = world.get(&mut [0; 8], x, pe);
            let _ = world.fetch_add(x, 1, pe);
        }
        let _ = world.read(&mut [0; 8], x);
        let _ = world.free(x);
    }
    let _ = world.quiet();
    let _ = world.explain(me);
    Ok(())
}

#[test]
fn worlds_end_in_every_way_and_calls_after_that_are_errors() {
    for pes in 1..=3 {
        for (way, checked) in [(0, false), (1, false), (2, false), (2, true), (3, false)] {
            let group = InProcess::group(pes);
            std::thread::scope(|threads| {
                for bootstrap in group {
                    let builder = World::builder().heap_limit(1 << 20).check(checked);
                    let builder = builder.transports(vec![loopback()]).timeout(LIMIT);
                    threads.spawn(move || end(builder.bootstrap(bootstrap), way));
                }
            });
        }
    }
}

fn end(builder: Builder, way: usize) {
    let world = builder.join().unwrap();
    let x = world.alloc_zeroed::<u64>(8).unwrap();
    let team = world.team().split_strided(0, 1, world.n_pes()).unwrap();
    let context = world.create_context(oxshmem::ContextOptions::NONE).unwrap();
    call!(bindings::quiesce, bindings::quiesce(&world));
    // Handles of a freed block and a destroyed team.
    let _ = context.put(x, &[1; 8], 0);
    call!(bindings::unquiesce, bindings::unquiesce(&world));
    value!(bindings::forget_losses, bindings::forget_losses());
    assert!(call!(World::free, world.free(x)).is_none());
    let _ = team.map(|team| team.sync());
    let _ = context.destroy();
    match way {
        0 => drop(call!(World::finalize, world.finalize())),
        1 => {
            call!(bindings::quiesce, bindings::quiesce(&world));
            call!(bindings::detach, bindings::detach(world));
        }
        2 => {
            call!(
                bindings::finalize_at_exit,
                bindings::finalize_at_exit(&world)
            );
            after_the_end(&world).unwrap();
        }
        _ => std::mem::forget(world),
    }
}

#[test]
fn calls_after_a_global_exit_are_errors() {
    let ended = spmd_with(
        World::builder().heap_limit(1 << 20).timeout(LIMIT),
        3,
        |world| {
            let x = world.alloc_zeroed::<u64>(8)?;
            if world.my_pe() == 1 {
                value!(World::global_exit, world.global_exit(3));
            }
            let mut into = [0; 8];
            let _ = world.scope(|scope| scope.get_nbi(&mut into, x, 1));
            after_the_end(world)?;
            // Only the peer's exit ends this wait, and this PE may not have heard of it yet.
            let never = world.alloc_zeroed::<u64>(1)?;
            world.wait_until(never, Cmp::Ne, 0)
        },
    );
    assert!(ended.is_err());
}
