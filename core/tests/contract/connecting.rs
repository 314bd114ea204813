//! Lanes that are connected when they are first used.

use std::sync::{Arc, Barrier};

use oxshmem::{Atomics, ContextOptions, Result, World};
use oxshmem_example_tiny_transport::Tiny;

use crate::setting::{DEADLINE, HEAP, on_each, patterns};

oxshmem::symmetric! {
    static WIDE: u64 = 5;
    static NARROW: u32 = 6;
    static LONG: [u64; 200] = [7; 200];
}

/// PEs of as many hosts, which share a table; all of them have joined before one goes on.
fn run(pes: usize, atomics: Atomics, case: impl Fn(&World, &Tiny, &Barrier) -> Result<()> + Sync) {
    let tiny = Tiny::nic();
    let joined = Barrier::new(pes);
    let builder = World::builder()
        .transports(vec![Arc::new(tiny.clone())])
        .atomics(atomics)
        .timeout(DEADLINE)
        .heap_limit(HEAP);
    let builders = (0..pes).map(|pe| builder.clone().host_id(format!("host-{pe}")));
    on_each(builders.collect(), |world| {
        joined.wait();
        case(world, &tiny, &joined)
    });
}

#[test]
fn a_pe_that_makes_no_call_is_connected_with_and_updated() {
    for atomics in [Atomics::Auto, Atomics::Cpu] {
        run(3, atomics, |world, _, all| {
            let me = world.my_pe();
            if me != 2 {
                let wide = WIDE.get(world)?;
                let narrow = NARROW.get(world)?;
                let long = LONG.get(world)?;
                for _ in 0..20 {
                    world.add(wide, 1, 2)?;
                    world.fetch_add(wide, 1, 2)?;
                    world.fetch_add(narrow, 1, 2)?;
                    world.add(narrow, 1, 2)?;
                }
                if me == 0 {
                    let values = <[u64; 200]>::try_from(patterns(1, 200)).expect("200 of them");
                    world.p(long, values, 2)?;
                    world.quiet()?;
                    assert_eq!(world.g(long, 2)?, values);
                }
                world.quiet()?;
            }
            // Until here PE 2 computes.
            all.wait();
            if me == 2 {
                assert_eq!(world.g(WIDE.get(world)?, 2)?, 5 + 80);
                assert_eq!(world.g(NARROW.get(world)?, 2)?, 6 + 80);
                assert_eq!(world.g(LONG.get(world)?, 2)?[..], patterns(1, 200));
            }
            Ok(())
        });
    }
}

#[test]
fn pes_that_connect_with_each_other_at_once_all_succeed() {
    for _ in 0..10 {
        run(4, Atomics::Auto, |world, _, all| {
            let wide = WIDE.get(world)?;
            all.wait();
            for to in 0..4 {
                world.add(wide, 1 << (8 * world.my_pe()), to)?;
            }
            world.quiet()?;
            all.wait();
            assert_eq!(world.fetch(wide, world.my_pe())?, 5 + 0x0101_0101);
            Ok(())
        });
    }
}

#[test]
fn nothing_is_connected_before_it_is_used_and_contexts_leave_their_lanes_to_the_next() {
    run(4, Atomics::Auto, |world, tiny, all| {
        let me = world.my_pe();
        assert_eq!(tiny.endpoints(), 0);
        all.wait();
        let long = LONG.get(world)?;
        if me == 0 {
            world.p(long, [1; 200], 1)?;
            world.quiet()?;
            // One lane with one PE: an endpoint on either side.
            assert_eq!(tiny.endpoints(), 2);
            for round in 1..=10_u64 {
                let context = world.create_context(ContextOptions::NONE)?;
                context.p(long, [round; 200], 2)?;
                context.quiet()?;
                assert_eq!(tiny.endpoints(), 4);
                if round == 10 {
                    let second = world.create_context(ContextOptions::NONE)?;
                    second.p(long, [round; 200], 2)?;
                    second.destroy()?;
                    assert_eq!(tiny.endpoints(), 6);
                }
                context.destroy()?;
                assert_eq!(world.g(long, 1)?, [1; 200]);
            }
            assert_eq!(tiny.endpoints(), 6);
        }
        all.wait();
        let expected = [7, 1, 10, 7].get(me).map(|value| [*value; 200]);
        assert_eq!(Some(world.g(long, me)?), expected);
        all.wait();
        Ok(())
    });
}

#[test]
fn each_context_orders_and_completes_on_a_lane_of_its_own() {
    run(2, Atomics::Auto, |world, _, all| {
        let there = 1 - world.my_pe();
        let x = world.alloc_zeroed::<u64>(16)?;
        for round in 1..=5 {
            let contexts = (0..8).map(|_| world.create_context(ContextOptions::NONE));
            let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
            all.wait();
            for (index, context) in contexts.iter().enumerate() {
                context.p(x.at(index)?, round, there)?;
                context.fence()?;
                context.inc(x.at(8 + index)?, there)?;
                context.quiet()?;
            }
            contexts
                .into_iter()
                .try_for_each(|context| context.destroy())?;
            all.wait();
            let mut seen = [0; 16];
            world.read(&mut seen, x)?;
            assert_eq!(seen, [round; 16]);
        }
        world.free(x)
    });
}
