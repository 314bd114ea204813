//! Collective calls of the world and of teams, against a serial reference.

use std::fmt::Debug;

use oxshmem::{Cmp, Complex, Fold, MemoryKind, Pod, Result, Sym, Team, bf16, f16};
use proptest::prelude::*;

use crate::by_host;
use crate::numbers::Number;
use crate::setting::{Pe, pattern, patterns, runner};
use crate::trials::{attempt, trials};

pub fn no_pe_leaves_a_barrier_before_all_have_entered(pe: &Pe<'_>) -> Result<()> {
    let entered = pe.alloc_zeroed::<u64>(1)?;
    let n = pe.n_pes() as u64;
    for round in 1..=pe.rounds(3000) as u64 {
        pe.inc(entered, round as usize % pe.n_pes())?;
        match round % 2 {
            0 => pe.barrier_all()?,
            _ => {
                pe.quiet()?;
                pe.sync_all()?;
            }
        }
        let all: u64 = (0..pe.n_pes())
            .map(|at| pe.g(entered, at))
            .sum::<Result<u64>>()?;
        assert!(all >= round * n, "{all} in round {round}");
        pe.barrier_all()?;
    }
    pe.free(entered)
}

pub fn sync_makes_own_stores_visible(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    for round in 1..=pe.rounds(1000) as u64 {
        if pe.is_mapped() {
            // Own memory, stored by this PE: no quiet is needed for a peer to see it.
            pe.write(x, &[round; 4])?;
        } else {
            pe.write(x, &[round; 4])?;
            pe.quiet()?;
        }
        pe.sync_all()?;
        assert_eq!(pe.copy_at(x, pe.right())?, [round; 4]);
        pe.sync_all()?;
    }
    pe.free(x)
}

fn lengths(pe: &Pe<'_>) -> [usize; 6] {
    let longest = if pe.has_addresses() { 70_001 } else { 20_001 };
    [0, 1, 3, 17, pe.longest(1000), pe.longest(longest)]
}

fn broadcasts<T: Pod + PartialEq + Debug>(pe: &Pe<'_>, make: fn(u64) -> T) -> Result<()> {
    let kinds = pe.kinds().iter();
    kinds
        .copied()
        .try_for_each(|kinds| broadcasts_of(pe, kinds, make))
}

fn broadcasts_of<T: Pod + PartialEq + Debug>(
    pe: &Pe<'_>,
    kinds: [MemoryKind; 2],
    make: fn(u64) -> T,
) -> Result<()> {
    let [dst, src] = pe.alloc_each::<T>(kinds, 70_001)?;
    for len in lengths(pe) {
        let (dst, src) = (dst.range(..len)?, src.range(..len)?);
        for root in 0..pe.n_pes() {
            let data = |at: usize| -> Vec<T> {
                (0..len).map(|i| make(pattern(at * 8 + root, i))).collect()
            };
            pe.write(src, &data(pe.me()))?;
            pe.broadcast(dst, src, root)?;
            assert!(pe.own(dst)? == data(root), "{len} elements from PE {root}");
            assert!(pe.own(src)? == data(pe.me()), "the source is as it was");
            // In place.
            pe.broadcast(src, src, root)?;
            assert!(
                pe.own(src)? == data(root),
                "{len} elements in place from PE {root}"
            );
        }
    }
    pe.free(dst)?;
    pe.free(src)
}

pub fn broadcast_gives_every_pe_the_roots_data(pe: &Pe<'_>) -> Result<()> {
    broadcasts::<u8>(pe, |v| v as u8)?;
    broadcasts::<u64>(pe, |v| v)?;
    broadcasts::<[u8; 3]>(pe, |v| [v as u8, (v >> 8) as u8, (v >> 16) as u8])
}

/// No user synchronisation between collectives, and sources change right after each.
/// Where all load each other's memory: the others call when the root has long returned.
pub fn a_root_of_small_broadcasts_waits_for_nobody(pe: &Pe<'_>) -> Result<()> {
    if pe.shared_team().n_pes() < pe.n_pes() {
        return Ok(());
    }
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let (dst, src) = (pe.alloc_zeroed::<u64>(9)?, pe.alloc::<u64>(9)?);
    for root in 0..pe.n_pes() {
        let given = |call: usize| patterns(64 * root + call, call % 9);
        pe.barrier_all()?;
        if pe.me() != root {
            pe.wait_until(flag, Cmp::Eq, root as u64 + 1)?;
        }
        for call in 0..20 {
            let (dst, src) = (dst.range(..call % 9)?, src.range(..call % 9)?);
            if pe.me() == root {
                pe.write(src, &given(call))?;
            }
            pe.broadcast(dst, src, root)?;
            assert_eq!(pe.own(dst)?, given(call), "root {root}, call {call}");
        }
        if pe.me() == root {
            let mut others = (0..pe.n_pes()).filter(|at| *at != root);
            others.try_for_each(|at| pe.p(flag, root as u64 + 1, at))?;
            pe.quiet()?;
        }
    }
    pe.barrier_all()?;
    pe.free(src)?;
    pe.free(dst)?;
    pe.free(flag)
}

/// Of lengths that soon fill what a team has for it, and some that do not fit.
pub fn broadcasts_by_root_after_root_give_each_its_data(pe: &Pe<'_>) -> Result<()> {
    let (n, me) = (pe.n_pes(), pe.me());
    let (dst, src) = (pe.alloc::<u64>(600)?, pe.alloc::<u64>(600)?);
    let backwards = pe.world.team().split_strided(n - 1, -1, n)?.unwrap();
    for (at, team) in [pe.team(), backwards].into_iter().enumerate() {
        for round in 0..pe.rounds(600) {
            let root = round / 7 % n;
            let len = match round % 50 {
                0 => 600,
                _ => pattern(at, round) as usize % 30,
            };
            let (dst, src) = (dst.range(..len)?, src.range(..len)?);
            pe.write(src, &patterns(me + 16 * round, len))?;
            team.broadcast(dst, src, root)?;
            // Its source may be reused.
            pe.write(src, &vec![u64::MAX; len])?;
            let giver = team.world_pes().nth(root).unwrap();
            assert_eq!(
                pe.own(dst)?,
                patterns(giver + 16 * round, len),
                "round {round}"
            );
        }
        if at == 1 {
            team.destroy()?;
        }
    }
    pe.free(src)?;
    pe.free(dst)
}

pub fn collectives_may_follow_each_other_at_once(pe: &Pe<'_>) -> Result<()> {
    let (n, me) = (pe.n_pes(), pe.me());
    let (dst, src) = (pe.alloc::<u64>(40)?, pe.alloc::<u64>(40)?);
    let all = pe.alloc::<u64>(40 * n)?;
    let team = pe.team();
    for round in 0..pe.rounds(1000) {
        let root = round % n;
        let len = pattern(3, round) as usize % 41;
        let (dst, src, all) = (dst.range(..len)?, src.range(..len)?, all.range(..len * n)?);
        pe.write(src, &patterns(me + 16 * round, len))?;
        pe.broadcast(dst, src, root)?;
        pe.write(src, &vec![me as u64 + 1; len])?;
        assert_eq!(pe.own(dst)?, patterns(root + 16 * round, len));
        pe.sum_reduce(dst, src)?;
        pe.write(src, &vec![me as u64; len])?;
        let sum = (n * (n + 1) / 2) as u64;
        assert_eq!(pe.own(dst)?, vec![sum; len], "round {round}");
        team.fcollect(all, src)?;
        pe.write(src, &vec![u64::MAX; len])?;
        let each = |at: usize| vec![at as u64; len];
        assert_eq!(pe.own(all)?, (0..n).flat_map(each).collect::<Vec<_>>());
        if round % 3 == 0 {
            pe.barrier_all()?;
        }
    }
    pe.free(all)?;
    pe.free(src)?;
    pe.free(dst)
}

fn bytes<T: Pod>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// The data of one member before a call.
fn data<T: Number>(at: usize, len: usize) -> Vec<T> {
    (0..len).map(|i| T::make(pattern(at, i))).collect()
}

/// Element by element, the fold of some members' data.
fn folded<T: Number>(
    fold: Fold,
    members: impl Iterator<Item = usize> + Clone,
    len: usize,
) -> Vec<T> {
    (0..len)
        .map(|i| {
            let mut values = members.clone().map(|at| T::make(pattern(at, i)));
            T::fold(fold, &mut values).unwrap_or(T::nothing(fold))
        })
        .collect()
}

/// A reduction and both scans of a team, bit for bit (the order of the members is that of the scans' folds, and
/// the reduction's is told), apart and in place.
fn folds<T: Number>(
    pe: &Pe<'_>,
    (team, groups): (&Team<'_>, &[Vec<usize>]),
    x: [Sym<T>; 2],
    fold: Fold,
) -> Result<()> {
    type Call<T> = fn(&Team<'_>, Sym<T>, Sym<T>, Fold) -> Result<()>;
    let (len, me, n) = (x[0].len(), team.my_pe(), team.n_pes());
    let calls: [(Call<T>, std::ops::Range<usize>); 3] = [
        (|team, dst, src, fold| team.reduce(dst, src, fold), 0..n),
        (
            |team, dst, src, fold| team.inscan(dst, src, fold),
            0..me + 1,
        ),
        (|team, dst, src, fold| team.exscan(dst, src, fold), 0..me),
    ];
    let [dst, src] = x;
    for (i, (call, members)) in calls.into_iter().enumerate() {
        let expected = match i {
            0 => {
                let value = |i| by_host::folded(fold, groups, |at| T::make(pattern(at, i)));
                (0..len).map(value).collect()
            }
            _ => folded::<T>(fold, members, len),
        };
        let mine = data::<T>(me, len);
        pe.write(src, &mine)?;
        call(team, dst, src, fold)?;
        let told = || format!("call {i} {fold:?} of {len} {}", std::any::type_name::<T>());
        assert!(bytes(&pe.own(dst)?) == bytes(&expected), "{}", told());
        assert!(
            bytes(&pe.own(src)?) == bytes(&mine),
            "{}: the source",
            told()
        );
        call(team, src, src, fold)?;
        assert!(
            bytes(&pe.own(src)?) == bytes(&expected),
            "{} in place",
            told()
        );
    }
    Ok(())
}

/// The second PE gets what the first gave, bit for bit, whichever way a call of that length goes.
pub fn exclusive_scans_begin_with_the_first_value_itself(pe: &Pe<'_>) -> Result<()> {
    let most = pe.longest(6001);
    let [dst, src] = [pe.alloc_zeroed::<f64>(most)?, pe.alloc::<f64>(most)?];
    let odd = [-0.0, f64::NAN, f64::INFINITY];
    let firsts: Vec<f64> = odd.iter().copied().cycle().take(most).collect();
    let mine = if pe.me() == 0 {
        &firsts
    } else {
        &vec![1.0; most]
    };
    pe.write(src, mine)?;
    for (len, fold) in [
        (3, Fold::Sum),
        (3, Fold::Min),
        (most, Fold::Sum),
        (most, Fold::Min),
    ] {
        let some = ..len.min(most);
        pe.team().exscan(dst.range(some)?, src.range(some)?, fold)?;
        if pe.me() == 1 {
            assert!(
                bytes(&pe.own(dst.range(some)?)?) == bytes(&firsts[some]),
                "{len} {fold:?}"
            );
        }
    }
    pe.free(src)?;
    pe.free(dst)
}

fn all_folds<T: Number>(pe: &Pe<'_>) -> Result<()> {
    let kinds = pe.kinds().iter();
    kinds
        .copied()
        .try_for_each(|kinds| all_folds_of::<T>(pe, kinds))
}

fn all_folds_of<T: Number>(pe: &Pe<'_>, kinds: [MemoryKind; 2]) -> Result<()> {
    let most = pe.longest(6001);
    let [dst, src] = pe.alloc_each::<T>(kinds, most)?;
    let team = pe.team();
    let hosts = match kinds {
        [MemoryKind::Host, MemoryKind::Host] => by_host::hosts(pe.world)?,
        _ => vec![0; pe.n_pes()],
    };
    let groups = by_host::groups(team.world_pes(), &hosts);
    for (i, fold) in T::FOLDS.iter().enumerate() {
        // Every length with one fold, every fold with one length.
        let lengths: &[usize] = match i {
            0 => &[0, 1, 2, 3, 8, 499, most],
            _ => &[9],
        };
        for len in lengths {
            let x = [dst.range(..*len)?, src.range(..*len)?];
            folds(pe, (&team, &groups), x, *fold)?;
        }
    }
    pe.free(dst)?;
    pe.free(src)
}

pub fn folds_of_integers_equal_a_serial_reference_and_wrap(pe: &Pe<'_>) -> Result<()> {
    all_folds::<i8>(pe)?;
    all_folds::<u16>(pe)?;
    all_folds::<i32>(pe)?;
    all_folds::<u64>(pe)?;
    all_folds::<i128>(pe)
}

pub fn folds_of_the_other_integers_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    all_folds::<u8>(pe)?;
    all_folds::<i16>(pe)?;
    all_folds::<u32>(pe)?;
    all_folds::<i64>(pe)?;
    all_folds::<isize>(pe)?;
    all_folds::<usize>(pe)?;
    all_folds::<u128>(pe)
}

pub fn folds_of_floats_have_the_same_bits_on_every_pe(pe: &Pe<'_>) -> Result<()> {
    all_folds::<f32>(pe)?;
    all_folds::<f64>(pe)?;
    all_folds::<f16>(pe)?;
    all_folds::<bf16>(pe)?;
    all_folds::<Complex<f32>>(pe)?;
    all_folds::<Complex<f64>>(pe)
}

/// A team of any shape, of which this PE may be no member.
fn team_of<'w>(pe: &Pe<'w>, shape: usize, seed: usize) -> Result<Option<Team<'w>>> {
    let (n, world) = (pe.n_pes(), pe.world.team());
    let start = seed % n;
    match shape {
        0 => world.split_strided(0, 1, n),
        1 => world.split_strided(start, -1, start + 1),
        2 => world.split_strided(start, 2, (n - start).div_ceil(2)),
        _ => {
            let mut list: Vec<usize> = (0..n).collect();
            list.sort_unstable_by_key(|at| pattern(seed, *at));
            world.split_list(&list[..1 + seed % n])
        }
    }
}

/// Teams, sizes and calls at random.
pub fn calls_of_any_team_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    let kinds = pe.kinds().iter();
    kinds
        .copied()
        .try_for_each(|kinds| calls_of_any_team(pe, kinds))
}

fn calls_of_any_team(pe: &Pe<'_>, kinds: [MemoryKind; 2]) -> Result<()> {
    let x = pe.alloc_each::<u32>(kinds, 4000)?;
    let cases = pe.rounds(400).min(120) as u32;
    let calls = proptest::collection::vec(trials(), 1..4);
    runner(cases)
        .run(
            &(0_usize..4, 0_usize..1000, calls),
            |(shape, seed, calls)| {
                let held = || -> Result<()> {
                    let team = team_of(pe, shape, seed)?;
                    if let Some(team) = team {
                        for mut trial in calls {
                            trial.len = pe.longest(trial.len);
                            attempt(pe, &team, &trial, x)?;
                        }
                        team.destroy()?;
                    }
                    Ok(())
                };
                held().map_err(|error| TestCaseError::fail(error.to_string()))
            },
        )
        .unwrap();
    pe.barrier_all()?;
    pe.free(x[1])?;
    pe.free(x[0])
}

/// A collective may read a source that its owner wrote just before, and PEs come at any time.
pub fn late_pes_do_not_disturb_a_collective(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(100)?;
    let turn = pe.alloc_zeroed::<u64>(1)?;
    for round in 0..pe.rounds(100) {
        // One after the other, in an order that changes.
        let place = (pe.me() + round) % pe.n_pes();
        if place > 0 {
            pe.wait_until(turn, Cmp::Ge, round as u64 + 1)?;
        }
        if place + 1 < pe.n_pes() {
            pe.p(turn, round as u64 + 1, pe.right())?;
            pe.quiet()?;
        }
        pe.write(x, &vec![(round + pe.me()) as u64; 100])?;
        pe.sum_reduce(x, x)?;
        let n = pe.n_pes();
        let sum = (0..n).map(|at| round + at).sum::<usize>() as u64;
        assert_eq!(pe.own(x)?, vec![sum; 100], "round {round}");
        pe.barrier_all()?;
    }
    pe.free(turn)?;
    pe.free(x)
}
