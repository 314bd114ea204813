//! Collective calls from the host on objects in GPU memory, one of two or both, over the routes there are.

use std::ops::Range;

use oxshmem::{Fold, MemoryKind, Result, Sym, Team, World};

use crate::on_gpu::{CUDA, pattern, read, run_on_all_gpus};

const HOST: MemoryKind = MemoryKind::Host;
const KINDS: [[MemoryKind; 2]; 3] = [[CUDA, CUDA], [HOST, CUDA], [CUDA, HOST]];
/// Elements of a member's block: what goes by scratch memory, and a little more.
const LENGTHS: [usize; 3] = [1, 100, 9_001];
/// More than a private buffer holds.
const LONG: usize = 140_000;

/// A member's data: `len` elements from `at` on.
fn given(member: usize, at: usize, len: usize) -> Vec<u64> {
    pattern(member + 1, at + len).split_off(at)
}

fn sum(members: Range<usize>, at: usize, len: usize) -> Vec<u64> {
    let mut all = vec![0; len];
    for member in members {
        let each = all.iter_mut().zip(given(member, at, len));
        each.for_each(|(sum, value)| *sum += value);
    }
    all
}

/// Every call, with blocks of `len` elements.
fn calls(world: &World, team: &Team<'_>, x: [Sym<u64>; 2], len: usize) -> Result<()> {
    let (n, me) = (team.n_pes(), team.my_pe());
    let [dst, src] = x;
    let mine = given(me, 0, n * len);
    let blocks = |of: &dyn Fn(usize) -> Vec<u64>| (0..n).flat_map(of).collect::<Vec<_>>();
    let check = |what: &str, len: usize, expected: Vec<u64>| -> Result<()> {
        assert!(read(world, dst.range(..len)?)? == expected, "{what}, {len}");
        let source = read(world, src.range(..mine.len())?)?;
        assert!(source == mine, "{what}, {len}: the source");
        world.write(dst, &vec![0; dst.len()])
    };
    world.write(src, &mine)?;
    world.write(dst, &vec![0; dst.len()])?;
    let (one, given_one) = (dst.range(..len)?, src.range(..len)?);
    let (all, given_all) = (dst.range(..n * len)?, src.range(..n * len)?);
    for root in 0..n {
        team.broadcast(one, given_one, root)?;
        check("broadcast", len, given(root, 0, len))?;
    }
    team.fcollect(all, given_one)?;
    check("fcollect", n * len, blocks(&|from| given(from, 0, len)))?;
    // Of the first member nothing, of the others more and more.
    let part = |member: usize| len * member / n;
    let count = team.collect(all, src.range(..part(me))?)?;
    let collected = blocks(&|from| given(from, 0, part(from)));
    assert_eq!(count, collected.len());
    check("collect", count, collected)?;
    team.alltoall(all, given_all)?;
    check(
        "alltoall",
        n * len,
        blocks(&|from| given(from, me * len, len)),
    )?;
    let few = len.min(300) / 3;
    team.alltoalls(dst, src, 3, 2, few)?;
    let mut apart = vec![0; 3 * n * few];
    for i in 0..n * few {
        apart[3 * i] = given(i / few, 2 * (me * few + i % few), 1)[0];
    }
    check("alltoalls", apart.len(), apart)?;
    team.reduce_scatter(one, given_all, Fold::Sum)?;
    check("reduce_scatter", len, sum(0..n, me * len, len))?;
    team.reduce(one, given_one, Fold::Sum)?;
    check("reduce", len, sum(0..n, 0, len))?;
    team.inscan(one, given_one, Fold::Sum)?;
    check("inscan", len, sum(0..me + 1, 0, len))?;
    team.exscan(one, given_one, Fold::Sum)?;
    check("exscan", len, sum(0..me, 0, len))?;
    // In place.
    team.exscan(given_one, given_one, Fold::Sum)?;
    assert!(read(world, given_one)? == sum(0..me, 0, len));
    world.write(src, &mine)?;
    for place in [0, me * len] {
        let place = src.range(place..place + len)?;
        team.reduce_scatter(place, given_all, Fold::Sum)?;
        assert!(read(world, place)? == sum(0..n, me * len, len));
        world.write(src, &mine)?;
    }
    team.reduce(given_one, given_one, Fold::Sum)?;
    assert!(read(world, given_one)? == sum(0..n, 0, len));
    team.broadcast(given_all, given_all, n - 1)?;
    let all = [sum(0..n, 0, len), given(n - 1, len, (n - 1) * len)].concat();
    assert!(read(world, given_all)? == all);
    Ok(())
}

#[test]
fn collective_calls_of_any_two_kinds_of_memory_equal_a_serial_reference() {
    run_on_all_gpus(3, |world| {
        for kinds in KINDS {
            for len in LENGTHS {
                in_turn(world, kinds, len)?;
            }
        }
        in_turn(world, [CUDA, CUDA], LONG)
    });
}

/// By the team of all PEs, and by one that has little scratch memory.
fn in_turn(world: &World, [dst, src]: [MemoryKind; 2], len: usize) -> Result<()> {
    let (all, last) = (world.team(), world.n_pes() - 1);
    let room = (world.n_pes() * len).max(900);
    let x = [world.alloc_on(dst, room)?, world.alloc_on(src, room)?];
    calls(world, &all, x, len)?;
    if let Some(team) = all.split_strided(last, -1, 2)? {
        calls(world, &team, x, len)?;
        team.destroy()?;
    }
    world.free(x[1])?;
    world.free(x[0])
}
