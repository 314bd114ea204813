//! A heap that is registered piece by piece: what crosses pieces, and growth that fails on one PE.

use std::sync::Arc;

use oxshmem::{Cmp, Error, Result, SignalOp, Sym, World};
use oxshmem_example_tiny_transport::{Step, Tiny};
use oxshmem_transport::{Pe, RegionId};

use crate::setting::{DEADLINE, on_each, patterns};

const MIB: usize = 1 << 20;
/// Where the first pieces of a heap of 64 MiB end.
const ENDS: [usize; 3] = [4 * MIB, 8 * MIB, 16 * MIB];

/// PEs of as many hosts, which share a table.
fn run(pes: usize, case: impl Fn(&World, &Tiny) -> Result<()> + Sync) {
    let tiny = Tiny::nic();
    let builder = World::builder()
        .transports(vec![Arc::new(tiny.clone())])
        .timeout(DEADLINE)
        .heap_limit(64 * MIB);
    let builders = (0..pes).map(|pe| builder.clone().host_id(format!("host-{pe}")));
    on_each(builders.collect(), |world| case(world, &tiny));
}

/// `len` elements, of which half lie on either side of a byte of the heap.
fn around(x: Sym<u64>, byte: usize, len: usize) -> Result<Sym<u64>> {
    let middle = (byte - x.offset() as usize) / 8;
    x.range(middle - len / 2..middle + len / 2)
}

#[test]
fn m4_what_crosses_pieces_of_the_heap_arrives_whole() {
    run(2, |world, _| {
        let me = world.my_pe();
        let there = 1 - me;
        let first = world.alloc_zeroed::<u64>(8)?;
        let x = world.alloc_zeroed::<u64>(20 * MIB / 8)?;
        let y = world.alloc_zeroed::<u64>(20 * MIB / 8)?;
        assert!((x.offset() as usize) < ENDS[0]);
        let mut round = 0;
        for end in ENDS {
            // By bounce buffer or as it is, in one piece or in many.
            for len in [2, 16, 128, 1000, 100_000] {
                round += 1;
                let (mine, theirs) = (
                    patterns(me + 2 * round, len),
                    patterns(there + 2 * round, len),
                );
                let part = around(x, end, len)?;
                let arrived = |what: &str| -> Result<()> {
                    world.barrier_all()?;
                    let mut seen = vec![0; len];
                    world.read(&mut seen, part)?;
                    assert!(seen == theirs, "{what} of {len} words about {end}");
                    world.barrier_all()?;
                    world.write(part, &vec![0; len])?;
                    world.barrier_all()
                };
                world.put(part, &mine, there)?;
                arrived("put")?;
                world.scope(|s| s.put_nbi(part, &mine, there))?;
                arrived("put_nbi")?;

                let signal = first.at(0)?;
                let number = 2 * round as u64;
                world.put_signal(part, &mine, signal, number - 1, SignalOp::Set, there)?;
                world.signal_wait_until(signal, Cmp::Eq, number - 1)?;
                arrived("put_signal")?;
                world.scope(|s| {
                    s.put_signal_nbi(part, &mine, signal, number, SignalOp::Set, there)
                })?;
                world.signal_wait_until(signal, Cmp::Eq, number)?;
                arrived("put_signal_nbi")?;

                // Both sides in the heap, each across pieces at another place.
                let other = y.range(..len)?;
                world.write(other, &mine)?;
                world.put_from(part, other, there)?;
                arrived("put_from")?;
                world.write(part, &mine)?;
                world.barrier_all()?;
                world.get_into(other, part, there)?;
                let mut seen = vec![0; len];
                world.read(&mut seen, other)?;
                assert!(seen == theirs, "get_into of {len} words about {end}");
                world.get(&mut seen, part, there)?;
                assert!(seen == theirs, "get of {len} words about {end}");
                seen.fill(0);
                world.scope(|s| s.get_nbi(&mut seen, part, there))?;
                assert!(seen == theirs, "get_nbi of {len} words about {end}");
                world.barrier_all()?;
                world.put_from(part, part, there)?;
                world.barrier_all()?;
                world.write(part, &vec![0; len])?;
                world.barrier_all()?;
            }
            // The words on both sides of the edge, by every PE.
            for (index, word) in [around(x, end, 2)?.at(0)?, around(x, end, 2)?.at(1)?]
                .into_iter()
                .enumerate()
            {
                for _ in 0..10 {
                    world.fetch_add(word, 1, 0)?;
                    world.add(word, index as u64, 0)?;
                }
            }
            world.barrier_all()?;
            assert_eq!(world.g(around(x, end, 2)?.at(0)?, 0)?, 20);
            assert_eq!(world.g(around(x, end, 2)?.at(1)?, 0)?, 40);
            world.barrier_all()?;
        }
        world.free(y)?;
        world.free(x)?;
        world.free(first)
    });
}

#[test]
fn m10_a_block_that_grows_across_pieces_keeps_its_contents_and_is_usable() {
    run(3, |world, _| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let mut x = world.alloc::<u64>(1000)?;
        world.write(x, &patterns(me, 1000))?;
        for mib in [3, 6, 12, 30] {
            let len = mib * MIB / 8;
            x = world.realloc(x, len)?;
            assert_eq!(x.len(), len);
            let mut seen = vec![0; 1000];
            world.get(&mut seen, x.range(..1000)?, right)?;
            assert!(seen == patterns(right, 1000), "at {mib} MiB");
            let last = x.range(len - 1000..)?;
            world.barrier_all()?;
            world.put(last, &patterns(me + mib, 1000), right)?;
            world.barrier_all()?;
            world.read(&mut seen, last)?;
            assert!(seen == patterns((me + 2) % 3 + mib, 1000), "at {mib} MiB");
            world.barrier_all()?;
        }
        world.free(x)
    });
}

/// The transport's refusal is told as that on every PE, not as a want of room.
fn is_refused(me: usize, on: u32, failed: Result<Sym<u64>>) {
    match failed {
        Err(Error::Transport(_)) => assert_eq!(me, on as usize),
        Err(Error::FailedElsewhere { pe, why, .. }) => {
            assert!(me != pe && pe == on as usize, "PE {me}: {why}");
            assert!(why.contains("tiny"), "{why}");
        }
        other => panic!("PE {me}: {other:?}"),
    }
}

/// Growth into the piece number 2 fails on one PE: for all, and leaves everything as it was.
fn growth_fails(step: Step, on: u32) {
    run(3, |world, tiny| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let kept = world.alloc::<u64>(1000)?;
        world.write(kept, &patterns(me, 1000))?;
        if me == on as usize {
            tiny.refuse(step, Pe(on), RegionId(2), true);
        }
        world.barrier_all()?;
        let place = world.alloc::<u64>(8)?;
        let offset = place.offset();
        world.free(place)?;
        for _ in 0..3 {
            is_refused(me, on, world.alloc::<u64>(10 * MIB / 8));
            is_refused(me, on, world.realloc(kept, 10 * MIB / 8));
            // It is as it was, at every PE.
            let mut seen = vec![0; 1000];
            world.get(&mut seen, kept, right)?;
            assert!(seen == patterns(right, 1000));
            // An allocation that fits in the present heap works, at the same offset.
            let small = world.alloc::<u64>(8)?;
            assert_eq!(small.offset(), offset);
            world.put(small, &patterns(me, 8), right)?;
            world.barrier_all()?;
            let mut seen = [0; 8];
            world.read(&mut seen, small)?;
            assert_eq!(seen[..], patterns((me + 2) % 3, 8));
            world.free(small)?;
            // So does growth by the piece before.
            let medium = world.alloc::<u64>(5 * MIB / 8)?;
            world.p(medium.at(medium.len() - 1)?, me as u64, right)?;
            world.barrier_all()?;
            let last = world.g(medium.at(medium.len() - 1)?, me)?;
            assert_eq!(last as usize, (me + 2) % 3);
            world.free(medium)?;
        }
        world.barrier_all()?;
        if me == on as usize {
            tiny.refuse(step, Pe(on), RegionId(2), false);
        }
        world.barrier_all()?;
        let large = world.alloc::<u64>(20 * MIB / 8)?;
        for end in [1, 5, 10, 19] {
            let part = large.range(end * MIB / 8..end * MIB / 8 + 500)?;
            world.put(part, &patterns(me, 500), right)?;
            world.barrier_all()?;
            let mut seen = vec![0; 500];
            world.read(&mut seen, part)?;
            assert!(seen == patterns((me + 2) % 3, 500), "at {end} MiB");
        }
        world.free(large)?;
        world.free(kept)
    });
}

#[test]
fn m13_growth_that_one_pe_cannot_register_fails_on_all_and_is_undone() {
    growth_fails(Step::Register, 0);
    growth_fails(Step::Register, 2);
}

#[test]
fn m13_growth_that_one_pe_cannot_import_fails_on_all_and_is_undone() {
    growth_fails(Step::Import, 0);
    growth_fails(Step::Import, 1);
}
