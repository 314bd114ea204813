//! Many PEs on a few CPUs: every kind of collective call of all of them and of teams, of what goes by scratch memory
//! and of what goes directly, and counters and locks.

use oxshmem::testing::spmd_with;
use oxshmem::{Error, Fold, Result, Sym, Team, World};

use crate::by_host;
use crate::job::say;
use crate::sequences::plan::Kind;
use crate::setting::{Path, Pe, Setting, patterns};
use crate::trials::{Trial, attempt};

const SETTING: Setting = Setting::new(Path::Mapped);
/// Each PE's heap in bytes.
const SMALL: usize = 2 << 20;

/// As threads.
fn run(n: usize, case: fn(&Pe<'_>) -> Result<()>) {
    let setting = SETTING;
    let case = |world: &World| case(&Pe { world, setting });
    spmd_with(setting.builder().heap_limit(SMALL), n, case).unwrap();
}

/// As one of some processes.
pub fn in_a_process() -> Result<()> {
    let (world, setting) = (SETTING.builder().heap_limit(SMALL).join()?, SETTING);
    let pe = Pe {
        world: &world,
        setting,
    };
    let n = pe.n_pes();
    let half = world.team().split_strided(n - 1, -2, n / 2)?;
    let objects = objects(&pe)?;
    each_kind(&pe, &world.team(), objects, 0)?;
    if let Some(half) = half {
        each_kind(&pe, &half, objects, 1)?;
        half.destroy()?;
    }
    free(&pe, objects)?;
    counted(&pe)?;
    locked(&pe)?;
    let me = pe.me();
    world.finalize()?;
    say(format_args!("{me} every kind"));
    Ok(())
}

/// Elements that no kind of call, of any team, takes by way of scratch memory, as blocks of all PEs.
fn large(pe: &Pe<'_>) -> usize {
    let choices = pe.collective_choices();
    let most = choices.iter().map(|choice| choice.scratch).max().unwrap();
    (most / size_of::<u32>()).max(4096) + pe.n_pes()
}

/// With room for strided blocks.
fn objects(pe: &Pe<'_>) -> Result<[Sym<u32>; 2]> {
    let len = 3 * large(pe) + 4 * pe.n_pes();
    Ok([pe.alloc(len)?, pe.alloc(len)?])
}

fn free(pe: &Pe<'_>, objects: [Sym<u32>; 2]) -> Result<()> {
    pe.barrier_all()?;
    objects.into_iter().try_for_each(|object| pe.free(object))
}

/// Every kind of call of a team, small and large, one after the other.
fn each_kind(pe: &Pe<'_>, team: &Team<'_>, x: [Sym<u32>; 2], round: usize) -> Result<()> {
    let n = team.n_pes();
    for (size, most) in [2 * n, large(pe)].into_iter().enumerate() {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            let len = match kind {
                // More than any team's scratch memory takes; what takes the reference long is not longer.
                Kind::Reduce | Kind::Inscan | Kind::Exscan => [3, 300][size],
                _ => most,
            };
            let strides = match kind {
                Kind::Alltoalls => (2, 3),
                _ => (1, 1),
            };
            let seed = (2 * round + size) * Kind::ALL.len() + i;
            let trial = Trial {
                kind,
                len,
                strides,
                fold: Fold::ALL[(i + size) % Fold::ALL.len()],
                root: 31 * round + 5,
                seed,
            };
            let all = strides.0.max(strides.1) * len + 4 * n;
            attempt(pe, team, &trial, [x[0].range(..all)?, x[1].range(..all)?])?;
        }
    }
    Ok(())
}

/// Every PE counts at every other.
fn counted(pe: &Pe<'_>) -> Result<()> {
    const LEN: usize = 5;
    let (n, me) = (pe.n_pes(), pe.me());
    let x = pe.alloc_zeroed::<u64>(LEN * n)?;
    let counter = pe.alloc_zeroed::<u64>(1)?;
    for round in 0..3 {
        let data = |from: usize| patterns(round * n + from, LEN);
        for to in (0..n).map(|step| (me + step) % n) {
            let mine = x.range(LEN * me..LEN * (me + 1))?;
            pe.put_counted(mine, &data(me), counter, to)?;
        }
        pe.wait_counted(counter, n as u64)?;
        let all: Vec<u64> = (0..n).flat_map(data).collect();
        assert!(pe.own(x)? == all, "round {round}");
        assert!(!pe.test_counted(counter, 1)?, "round {round}");
        pe.sync_all()?;
    }
    pe.free(counter)?;
    pe.free(x)
}

/// All wait for one lock, behind each other.
fn locked(pe: &Pe<'_>) -> Result<()> {
    const EACH: usize = 2;
    let (lock, count) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    for _ in 0..EACH {
        pe.set_lock(lock)?;
        let before = pe.g(count, 0)?;
        pe.p(count, before + 1, 0)?;
        pe.clear_lock(lock)?;
    }
    pe.barrier_all()?;
    assert_eq!(pe.g(count, 0)?, (EACH * pe.n_pes()) as u64);
    pe.free(count)?;
    pe.free(lock)
}

#[test]
fn calls_of_hundreds_of_pes_equal_a_serial_reference() {
    run(200, |pe| {
        // 14 rows of 15, the last of which is shorter, and as many columns.
        let (row, column) = pe.world.team().split_2d(15)?;
        let objects = objects(pe)?;
        for (round, team) in [&pe.world.team(), &row, &column].into_iter().enumerate() {
            each_kind(pe, team, objects, round)?;
        }
        row.destroy()?;
        column.destroy()?;
        free(pe, objects)?;
        counted(pe)?;
        locked(pe)
    });
}

/// As many as hear of all others in one round of an arrival, where they outnumber the CPUs.
#[test]
fn calls_of_48_pes_that_meet_at_once_equal_a_serial_reference() {
    run(48, |pe| {
        let (team, objects) = (pe.team(), objects(pe)?);
        each_kind(pe, &team, objects, 0)?;
        differ(pe, &team, objects)?;
        each_kind(pe, &team, objects, 1)?;
        free(pe, objects)
    });
}

#[test]
fn the_same_equals_it_where_all_goes_directly() {
    let test = "crowd::calls_of_48_pes_that_meet_at_once_equal_a_serial_reference";
    by_host::holds_by("direct", test);
}

/// M36: one PE gives blocks of another size, to calls in which each reads what others give as they come.
fn differ(pe: &Pe<'_>, team: &Team<'_>, [dst, src]: [Sym<u32>; 2]) -> Result<()> {
    type Call = fn(&Team<'_>, Sym<u32>, Sym<u32>, usize) -> Result<()>;
    let calls: [Call; 3] = [
        |team, dst, src, all| team.alltoall(dst.range(..all)?, src.range(..all)?),
        |team, dst, src, all| team.alltoalls(dst, src, 2, 3, all / team.n_pes()),
        |team, dst, src, all| team.fcollect(dst.range(..all)?, src.range(..all / team.n_pes())?),
    ];
    let n = pe.n_pes();
    let all = large(pe) / n * n;
    let mine = vec![pe.me() as u32; src.len()];
    pe.write(src, &mine)?;
    for (which, call) in calls.iter().enumerate() {
        for odd in [0, n / 3, n - 1] {
            let fewer = if pe.me() == odd { n } else { 0 };
            let refused = call(team, dst, src, all - fewer);
            assert!(
                matches!(refused, Err(Error::CollectiveMismatch { .. })),
                "call {which}, PE {odd}: {refused:?}"
            );
        }
    }
    assert!(
        pe.own(src)? == mine,
        "a refused call has changed its source"
    );
    Ok(())
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
