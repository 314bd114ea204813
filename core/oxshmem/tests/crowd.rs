//! Hundreds of PEs on a few CPUs: every kind of collective call, of all of them and of teams.

#![allow(clippy::unwrap_used)]

use oxshmem::testing::spmd_with;
use oxshmem::{Fold, Result, World};

const PES: usize = 200;

fn calls(world: &World) -> Result<()> {
    let (n, me) = (world.n_pes(), world.my_pe());
    let x = world.alloc::<u64>(2 * n)?;
    let y = world.alloc::<u64>(2 * n)?;
    // 14 rows of 15, the last of which is shorter, and as many columns.
    let (row, column) = world.team().split_2d(15)?;
    for round in 0..3 {
        for team in [&world.team(), &row, &column] {
            let members: Vec<usize> = team.world_pes().collect();
            let (count, at) = (members.len(), team.my_pe());
            let value = |pe: usize, i: usize| (pe * 1000 + i + round) as u64;
            let mine: Vec<u64> = (0..2 * n).map(|i| value(me, i)).collect();
            let mut seen = vec![0; 2 * n];
            world.write(y, &mine)?;

            team.reduce(x.range(..3)?, y.range(..3)?, Fold::Sum)?;
            world.read(&mut seen[..3], x)?;
            let sum = |i: usize| members.iter().map(|pe| value(*pe, i)).sum::<u64>();
            assert_eq!(seen[..3], [sum(0), sum(1), sum(2)]);

            team.alltoall(x.range(..count)?, y.range(..count)?)?;
            world.read(&mut seen[..count], x)?;
            let theirs: Vec<u64> = members.iter().map(|pe| value(*pe, at)).collect();
            assert_eq!(seen[..count], theirs);

            team.fcollect(x.range(..count)?, y.at(7)?)?;
            world.read(&mut seen[..count], x)?;
            let theirs: Vec<u64> = members.iter().map(|pe| value(*pe, 7)).collect();
            assert_eq!(seen[..count], theirs);

            let root = (round * 31 + 5) % count;
            team.broadcast(x, y, root)?;
            world.read(&mut seen, x)?;
            assert_eq!(seen[2 * n - 1], value(members[root], 2 * n - 1));

            team.exscan(x.at(0)?, y.at(1)?, Fold::Sum)?;
            world.read(&mut seen[..1], x)?;
            assert_eq!(
                seen[0],
                members[..at].iter().map(|pe| value(*pe, 1)).sum::<u64>()
            );
            team.barrier()?;
        }
    }
    row.destroy()?;
    column.destroy()?;
    world.free(y)?;
    world.free(x)
}

#[test]
fn collective_calls_of_hundreds_of_pes_equal_a_serial_reference() {
    let builder = World::builder().heap_limit(4 << 20);
    spmd_with(builder, PES, calls).unwrap();
}

#[test]
fn m24_512_pes_meet_and_fold_and_so_do_their_halves() {
    const PES: usize = 512;
    let builder = World::builder().heap_limit(2 << 20);
    let halves = |world: &World| {
        let me = world.my_pe();
        let (x, from) = (world.alloc::<u64>(2)?, world.alloc::<u64>(1)?);
        // Both splits are calls of all PEs; each gives one half its team.
        for first in [0, 1] {
            if let Some(half) = world.team().split_strided(first, 2, PES / 2)? {
                world.write(x, &[me as u64, 1])?;
                half.reduce(x, x, Fold::Sum)?;
                let sum = (0..PES as u64).filter(|pe| pe % 2 == me as u64 % 2).sum();
                assert_eq!([world.g(x, me)?, world.g(x.at(1)?, me)?], [sum, 256]);
                half.destroy()?;
            }
        }
        world.p(from, me as u64, (me + 1) % PES)?;
        world.barrier_all()?;
        assert_eq!(world.g(from, me)? as usize, (me + PES - 1) % PES);
        world.free(from)?;
        world.free(x)
    };
    spmd_with(builder, PES, halves).unwrap();
}
