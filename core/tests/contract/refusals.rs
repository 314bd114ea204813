//! Arguments that a team's call refuses, passed by all members or by one: every kind for every call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxshmem::testing::spmd_with;
use oxshmem::{Complex, ContextOptions, Error, Fold, Pod, Result, Sym, Team, bindings};

use crate::order::poll;
use crate::setting::{Path, Pe, Setting, patterns};

/// A call of a team that takes objects.
struct Taking {
    name: &'static str,
    /// Blocks of the destination and of the source: one, or one for each member.
    blocks: [Blocks; 2],
    /// Whether the members' sources may differ.
    differing: bool,
    call: fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>,
}

#[derive(Clone, Copy)]
enum Blocks {
    One,
    Each,
}
use Blocks::{Each, One};

const TAKING: [Taking; 9] = [
    taking("broadcast", [One, One], |t, d, s| broadcast(t, d, s, 0)),
    taking("fcollect", [Each, One], |t, d, s| t.fcollect(d, s)),
    Taking {
        differing: true,
        ..taking("collect", [Each, One], |t, d, s| t.collect(d, s).map(drop))
    },
    taking("alltoall", [Each, Each], |t, d, s| t.alltoall(d, s)),
    taking("alltoalls", [Each, Each], |t, d, s| {
        t.alltoalls(d, s, 1, 1, s.len() / t.n_pes())
    }),
    taking("reduce", [One, One], |t, d, s| t.reduce(d, s, Fold::Sum)),
    taking("inscan", [One, One], |t, d, s| t.inscan(d, s, Fold::Sum)),
    taking("exscan", [One, One], |t, d, s| t.exscan(d, s, Fold::Sum)),
    taking("reduce_scatter", [One, Each], |t, d, s| {
        t.reduce_scatter(d, s, Fold::Sum)
    }),
];

const fn taking(
    name: &'static str,
    blocks: [Blocks; 2],
    call: fn(&Team<'_>, Sym<u64>, Sym<u64>) -> Result<()>,
) -> Taking {
    Taking {
        name,
        blocks,
        differing: false,
        call,
    }
}

/// A broadcast, and a call by which every member hears what was wrong with it.
pub fn broadcast<T: Pod>(team: &Team<'_>, dst: Sym<T>, src: Sym<T>, root: usize) -> Result<()> {
    team.broadcast(dst, src, root)?;
    team.sync()
}

/// Elements of a block: what goes by a team's scratch memory, and what does not.
const BLOCKS: [usize; 2] = [5, 40];

impl Taking {
    /// Objects of the lengths that the call needs, of a team of so many, in room for twice as much.
    fn objects(&self, (n, block): (usize, usize), blocks: [Sym<u64>; 2]) -> Result<[Sym<u64>; 2]> {
        let len = |blocks: Blocks| match blocks {
            One => block,
            Each => block * n,
        };
        Ok([
            blocks[0].range(..len(self.blocks[0]))?,
            blocks[1].range(..len(self.blocks[1]))?,
        ])
    }
}

/// A call that goes well, so that nothing is left of one that was refused.
fn goes_on(pe: &Pe<'_>, team: &Team<'_>, x: Sym<u64>) -> Result<()> {
    let (n, me) = (team.n_pes(), team.my_pe());
    pe.write(x.at(0)?, &[me as u64 + 1])?;
    team.fcollect(x.range(1..=n)?, x.at(0)?)?;
    let all: Vec<u64> = (1..=n as u64).collect();
    assert_eq!(pe.own(x.range(1..=n)?)?, all);
    Ok(())
}

/// A team of all PEs, backwards, with two live blocks, and one that was freed.
fn teams_and_blocks<'w>(pe: &Pe<'w>, block: usize) -> Result<(Team<'w>, [Sym<u64>; 2], Sym<u64>)> {
    let n = pe.n_pes();
    let each = (2 * block * n).max(n + 1);
    let blocks = [pe.alloc_zeroed(each)?, pe.alloc_zeroed(each)?];
    let freed = pe.alloc_zeroed(each)?;
    pe.free(freed)?;
    let team = pe.world.team().split_strided(n - 1, -1, n)?.unwrap();
    Ok((team, blocks, freed))
}

fn ended(pe: &Pe<'_>, team: Team<'_>, blocks: [Sym<u64>; 2]) -> Result<()> {
    team.destroy()?;
    blocks.into_iter().try_for_each(|block| pe.free(block))
}

/// A freed block and one of another world: of all members, and of one alone.
pub fn m35_m36_a_teams_calls_refuse_handles_that_are_not_live(pe: &Pe<'_>) -> Result<()> {
    let refuse = |block| calls_refuse_handles_that_are_not_live(pe, block);
    BLOCKS.into_iter().try_for_each(refuse)
}

fn calls_refuse_handles_that_are_not_live(pe: &Pe<'_>, block: usize) -> Result<()> {
    let (team, blocks, freed) = teams_and_blocks(pe, block)?;
    let other = super::objects::another_world()?;
    let foreign = other.alloc_zeroed::<u64>(blocks[0].len())?;
    let n = team.n_pes();
    let is_last = team.my_pe() == n - 1;
    for taking in &TAKING {
        for (bad, is_stale) in [(freed, true), (foreign, false)] {
            for which in 0..2 {
                let mut objects = blocks;
                objects[which] = bad;
                let [dst, src] = taking.objects((n, block), objects)?;
                let told = format!("{}, object {which}, stale {is_stale}", taking.name);
                // All of them.
                match (taking.call)(&team, dst, src) {
                    Err(Error::Stale { .. }) if is_stale => {}
                    Err(Error::Foreign { .. }) if !is_stale => {}
                    other => panic!("{told}: {other:?}"),
                }
                // The last one alone.
                let [dst, src] = match is_last {
                    true => [dst, src],
                    false => taking.objects((n, block), blocks)?,
                };
                match (taking.call)(&team, dst, src) {
                    Err(Error::CollectiveMismatch { .. }) if n > 1 => {}
                    Err(Error::Stale { .. } | Error::Foreign { .. }) if is_last => {}
                    Err(Error::FailedElsewhere { pe: at, .. }) if !is_last => assert_eq!(at, 0),
                    other => panic!("{told}, one alone: {other:?}"),
                }
                goes_on(pe, &team, blocks[0])?;
            }
        }
    }
    other.free(foreign)?;
    other.finalize()?;
    ended(pe, team, blocks)
}

fn differs(result: Result<()>, told: &str) {
    match result {
        Err(Error::CollectiveMismatch { detail, .. }) => {
            assert!(detail.contains("called"), "{told}: {detail}");
        }
        other => panic!("{told}: {other:?}"),
    }
}

/// Each argument in turn is another on the last member.
pub fn m36_a_teams_calls_find_every_argument_that_differs(pe: &Pe<'_>) -> Result<()> {
    let find = |block| calls_find_every_argument_that_differs(pe, block);
    BLOCKS.into_iter().try_for_each(find)
}

fn calls_find_every_argument_that_differs(pe: &Pe<'_>, block: usize) -> Result<()> {
    let (team, blocks, _) = teams_and_blocks(pe, block)?;
    let n = team.n_pes();
    let is_last = team.my_pe() == n - 1;
    if n == 1 {
        return ended(pe, team, blocks);
    }
    for (at, taking) in TAKING.iter().enumerate() {
        let name = taking.name;
        let [dst, src] = taking.objects((n, block), blocks)?;
        let moved = |sym: Sym<u64>, all: Sym<u64>| match is_last {
            true => all.range(block * n..block * n + sym.len()),
            false => Ok(sym),
        };
        let told = format!("{name}: the destination");
        differs((taking.call)(&team, moved(dst, blocks[0])?, src), &told);
        match taking.differing {
            true => (taking.call)(&team, dst, moved(src, blocks[1])?)?,
            false => {
                let told = format!("{name}: the source");
                differs((taking.call)(&team, dst, moved(src, blocks[1])?), &told);
            }
        }
        let shorter = |sym: Sym<u64>, blocks: Blocks| match blocks {
            _ if !is_last => Ok(sym),
            One => sym.range(..block - 1),
            Each => sym.range(..(block - 1) * n),
        };
        let [d, s] = taking.blocks;
        let told = format!("{name}: the length");
        differs(
            (taking.call)(&team, shorter(dst, d)?, shorter(src, s)?),
            &told,
        );
        let next = &TAKING[(at + 1) % TAKING.len()];
        let [next_dst, next_src] = next.objects((n, block), blocks)?;
        let told = format!("{name} and {}", next.name);
        let called = match is_last {
            true => (next.call)(&team, next_dst, next_src),
            false => (taking.call)(&team, dst, src),
        };
        differs(called, &told);
        goes_on(pe, &team, blocks[0])?;
    }
    let [dst, src] = blocks.map(|all| all.range(..block));
    let (dst, src) = (dst?, src?);
    let or = |usual: usize, odd: usize| if is_last { odd } else { usual };
    let fold = if is_last { Fold::Min } else { Fold::Max };
    differs(broadcast(&team, dst, src, or(0, 1)), "root");
    differs(team.reduce(dst, src, fold), "fold of reduce");
    differs(team.inscan(dst, src, fold), "fold of inscan");
    differs(team.exscan(dst, src, fold), "fold of exscan");
    let all = blocks[1].range(..block * n)?;
    differs(
        team.reduce_scatter(dst, all, fold),
        "fold of reduce_scatter",
    );
    for (odd, told) in [
        (0, "in place, at the front"),
        ((n - 1) * block, "in place, at its own block"),
        (1, "overlapping"),
    ] {
        let dst = if is_last {
            all.range(odd..odd + block)?
        } else {
            dst
        };
        differs(team.reduce_scatter(dst, all, Fold::Sum), told);
    }
    let [a, b] = blocks;
    differs(
        team.alltoalls(a, b, or(1, 2), 1, 2),
        "stride of destinations",
    );
    differs(team.alltoalls(a, b, 1, or(1, 2), 2), "stride of sources");
    differs(team.alltoalls(a, b, 1, 1, or(2, 1)), "count");
    let split = |result: Result<Option<Team<'_>>>, told: &str| differs(result.map(drop), told);
    split(team.split_strided(or(0, 1), 1, 1), "start");
    split(team.split_strided(0, or(1, 2) as isize, 1), "stride");
    split(team.split_strided(0, 1, or(1, 2)), "size");
    split(team.split_list(&[or(0, 1)]), "list");
    split(team.split_list(&[0, 1][..or(1, 2)]), "length of the list");
    differs(team.split_2d(or(1, 2)).map(drop), "row");
    match is_last {
        true => differs(team.sync(), "sync and barrier"),
        false => differs(team.barrier(), "sync and barrier"),
    }
    goes_on(pe, &team, blocks[0])?;
    ended(pe, team, blocks)
}

/// Sizes that do not fit, overlaps and folds that a type does not have, on every member; and the next call
/// goes well.
pub fn m36_a_teams_calls_refuse_what_makes_no_sense(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(60 * n)?;
    let team = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    let refused = |result: Result<()>| match result {
        Err(Error::Argument { .. } | Error::OutOfRange { .. } | Error::NoSuchPe { .. }) => {}
        other => panic!("{other:?}"),
    };
    let part = |from: usize, len: usize| x.range(from..from + len);
    refused(team.broadcast(part(0, 10)?, part(20, 11)?, 0));
    refused(team.broadcast(part(0, 10)?, part(5, 10)?, 0));
    refused(team.broadcast(part(0, 10)?, part(20, 10)?, n));
    refused(team.fcollect(part(0, 10 * n)?, part(0, 10)?));
    refused(team.fcollect(part(0, 10 * n)?, part(10 * n, 11)?));
    refused(team.collect(part(0, 10)?, part(9, 2)?).map(drop));
    refused(
        team.collect(part(0, 10 * n - 1)?, part(20 * n, 10)?)
            .map(drop),
    );
    refused(team.alltoall(part(0, 10 * n)?, part(0, 10 * n)?));
    refused(team.alltoall(part(0, 10 * n + 1)?, part(20 * n, 10 * n)?));
    if n > 1 {
        refused(team.alltoall(part(0, 10 * n + 1)?, part(20 * n, 10 * n + 1)?));
    }
    let (a, b) = (part(0, 10 * n)?, part(20 * n, 10 * n)?);
    refused(team.alltoalls(a, b, 0, 1, 10));
    refused(team.alltoalls(a, b, 1, 0, 10));
    refused(team.alltoalls(a, b, 2, 1, 10));
    refused(team.alltoalls(a, b, 1, usize::MAX, 10));
    refused(team.alltoalls(a, b, 1, 1, usize::MAX));
    refused(team.alltoalls(a, a, 1, 1, 10));
    refused(team.reduce_scatter(part(0, 10)?, part(20, 10 * n + 1)?, Fold::Sum));
    refused(team.reduce_scatter(part(5, 10)?, part(0, 10 * n)?, Fold::Sum));
    refused(team.reduce_scatter(part(0, 11)?, part(0, 10 * n)?, Fold::Sum));
    refused(team.inscan(part(0, 10)?, part(5, 10)?, Fold::Sum));
    refused(team.exscan(part(0, 10)?, part(20, 11)?, Fold::Sum));
    let floats = x.cast::<f64>()?;
    refused(team.reduce(floats, floats, Fold::Xor));
    let complex = x.cast::<Complex<f64>>()?;
    refused(team.inscan(complex, complex, Fold::Max));
    // By scratch memory and directly; what one member gives is in the way of what comes.
    let apart = pe.alloc_zeroed::<u64>(40)?;
    for len in [3, 40] {
        let in_the_way = team.my_pe() == n - 1;
        let src = if in_the_way {
            part(1, len)?
        } else {
            apart.range(..len)?
        };
        match team.collect_into_rest(x, src) {
            Err(Error::Argument { .. }) if in_the_way => {}
            Err(Error::FailedElsewhere { pe, .. }) if pe == 0 && !in_the_way => {}
            other => panic!("{len}: {other:?}"),
        }
    }
    pe.free(apart)?;
    // Different folds, counts and calls are told to all.
    if n > 1 {
        let odd = pe.me() == 0;
        let differ = |result: Result<()>| match result {
            Err(Error::CollectiveMismatch { .. }) => {}
            other => panic!("{other:?}"),
        };
        differ(team.reduce(a, b, if odd { Fold::Sum } else { Fold::Max }));
        differ(team.alltoalls(a, b, 1, 1, if odd { 9 } else { 10 }));
        differ(if odd {
            team.alltoall(a, b)
        } else {
            team.inscan(a, b, Fold::Sum)
        });
        differ(team.fcollect(part(0, 10 * n)?, part(if odd { 20 } else { 30 } * n, 10)?));
    }
    pe.write(x, &patterns(team.my_pe(), x.len()))?;
    team.fcollect(part(0, 10 * n)?, part(20 * n, 10)?)?;
    let all: Vec<u64> = (0..n)
        .flat_map(|m| patterns(m, x.len())[20 * n..20 * n + 10].to_vec())
        .collect();
    assert_eq!(pe.own(part(0, 10 * n)?)?, all);
    team.destroy()?;
    pe.barrier_all()?;
    pe.free(x)
}

/// Elements without a size, and objects without elements.
pub fn a_teams_calls_take_objects_that_are_empty(pe: &Pe<'_>) -> Result<()> {
    /// Of as many elements for each member, and all members' together.
    fn all<T: Pod + Default>(team: &Team<'_>, each: Sym<T>, of_all: Sym<T>) -> Result<()> {
        let count = each.len();
        team.broadcast(each, each, team.n_pes() - 1)?;
        team.fcollect(of_all, each)?;
        assert_eq!(team.collect(of_all, each)?, of_all.len());
        team.alltoall(of_all, of_all)?;
        team.alltoalls(of_all, of_all, 1, 1, count)?;
        team.alltoalls(of_all, of_all, 3, 2, 0)
    }
    let (team, blocks, _) = teams_and_blocks(pe, BLOCKS[0])?;
    let none = blocks[0].range(..0)?;
    all(&team, none, none)?;
    let none_of_bytes = pe.alloc::<u8>(0)?;
    all(&team, none_of_bytes, none_of_bytes)?;
    all(&team, pe.alloc::<()>(5)?, pe.alloc(5 * team.n_pes())?)?;
    // More than there are numbers.
    let many = pe.alloc::<()>(usize::MAX)?;
    match team.collect(many, many) {
        Err(Error::OutOfRange { .. }) if team.n_pes() > 1 => {}
        collected => assert_eq!((collected?, team.n_pes()), (usize::MAX, 1)),
    }
    for fold in Fold::ALL {
        team.reduce(none, none, fold)?;
        team.reduce_scatter(none, none, fold)?;
        team.inscan(none, none, fold)?;
        team.exscan(none, none, fold)?;
    }
    goes_on(pe, &team, blocks[0])?;
    ended(pe, team, blocks)
}

/// A PE has no number in a team of another world, nor that one's PEs in this.
pub fn teams_of_other_worlds_have_none_of_this_ones_pes(pe: &Pe<'_>) -> Result<()> {
    let other = super::objects::another_world()?;
    let (mine, theirs) = (pe.team(), other.team());
    assert_eq!(mine.translate(0, &theirs), None);
    assert_eq!(theirs.translate(0, &mine), None);
    assert!(mine != theirs);
    other.finalize()
}

/// A team's context refuses the PEs that the team does not have, those of the world included.
pub fn a_teams_context_refuses_other_pes(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(8)?;
    // Pairs, and one alone where their number is odd.
    let (pair, column) = pe.team().split_2d(2)?;
    let context = pair.create_context(ContextOptions::NONE)?;
    let n = pair.n_pes();
    for at in [n, pe.n_pes().max(n), usize::MAX] {
        super::errors::refuse_a_pe(&context, x, at)?;
    }
    context.destroy()?;
    pair.destroy()?;
    column.destroy()?;
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?, [0; 8]);
    pe.free(x)
}

/// In a team whose arrival has several rounds, whoever is alone with it and whoever its root is.
#[test]
fn m36_a_broadcast_that_one_member_alone_calls_is_told_to_all() {
    const PES: usize = 16;
    let done = spmd_with(Setting::new(Path::Mapped).builder(), PES, |world| {
        let team = world.team().split_strided(PES - 1, -1, PES)?.unwrap();
        let x = world.alloc_zeroed::<u64>(4)?;
        for (alone, far) in (0..PES)
            .step_by(5)
            .flat_map(|at| [(at, 1), (at, 7), (at, 9)])
        {
            let called = match team.my_pe() == alone {
                true => team.broadcast(x, x, (alone + far) % PES),
                false => team.sync(),
            };
            differs(called, &format!("{alone} alone, its root {far} further"));
            team.sync()?;
        }
        team.destroy()?;
        world.free(x)
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// Each member waits for another to give; the last word of those that may come before a meeting is that of who waits.
#[test]
fn m36_a_broadcast_in_which_all_take_is_told_to_all() {
    const PES: usize = 3;
    let done = spmd_with(Setting::new(Path::Mapped).builder(), PES, |world| {
        let made = world.team().split_strided(PES - 1, -1, PES)?.unwrap();
        let x = world.alloc_zeroed::<u64>(1)?;
        for (before, team) in [(0, &world.team()), (30, &made), (31, &made)] {
            for _ in 0..before {
                team.broadcast(x, x, 0)?;
            }
            let next = (team.my_pe() + 1) % PES;
            differs(team.broadcast(x, x, next), "all take");
            team.sync()?;
        }
        made.destroy()?;
        world.free(x)
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// However many calls came before it without a meeting, and whatever the next meeting's number.
#[test]
fn m36_a_broadcast_that_one_member_refuses_after_many_leaves_the_team_usable() {
    const PES: usize = 3;
    let done = spmd_with(Setting::new(Path::Mapped).builder(), PES, |world| {
        let team = world.team().split_strided(0, 1, PES)?.unwrap();
        let (x, freed) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
        world.free(freed)?;
        for (before, meetings) in [0, 23, 24, 30, 31]
            .into_iter()
            .flat_map(|n| [(n, 1), (n, 2)])
        {
            for _ in 0..meetings {
                team.sync()?;
            }
            for _ in 0..before {
                team.broadcast(x, x, 0)?;
            }
            let from = if team.my_pe() == PES - 1 { freed } else { x };
            let called = team.broadcast(from, from, 0).and_then(|()| team.sync());
            let what = format!("{before} before: {called:?}");
            match called {
                Err(Error::CollectivesEnded { .. } | Error::OutOfRange { .. }) => panic!("{what}"),
                called => assert!(called.is_err(), "{what}"),
            }
            team.sync()?;
        }
        team.destroy()?;
        world.free(x)
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

/// The others do not wait in it, and go on in another team, where they do wait for the one that is alone.
#[test]
fn m36_a_broadcast_that_differs_on_one_member_holds_up_no_other_team() {
    std::thread::scope(|threads| {
        for case in 0..5 {
            threads.spawn(move || goes_on_elsewhere(case));
        }
    });
}

fn goes_on_elsewhere(case: usize) {
    // Elements of a broadcast in which all members wait for each other.
    const LONG: usize = 1 << 16;
    let done = spmd_with(Setting::new(Path::Mapped).builder(), 3, |world| {
        let team = world.team().split_strided(0, 1, 3)?.unwrap();
        let [x, y] = [world.alloc_zeroed::<u64>(LONG)?, world.alloc_zeroed(LONG)?];
        let (len, root, one) = match (case, team.my_pe()) {
            (0, 2) => (3, 0, true),
            (1, 2) => (4, 3, true),
            (2, 2) => (4, 1, true),
            (3, 2) => (LONG, 0, true),
            (_, me) => (4, 0, me == 2),
        };
        let called = match case == 4 && one {
            true => team.sync(),
            false => team.broadcast(x.range(..len)?, y.range(..len)?, root),
        };
        // Others may have met it, and be told.
        let in_time = !matches!(called, Err(Error::Timeout { .. }));
        assert!(in_time && called.is_err() >= one, "case {case}: {called:?}");
        world.barrier_all()?;
        let later = team.sync();
        assert!(
            matches!(later, Err(Error::CollectivesEnded { .. })),
            "case {case}: {later:?}"
        );
        world.barrier_all()
    });
    done.unwrap_or_else(|error| panic!("case {case}: {error}"));
}

/// A member that gives a team's call up ends that team for all its members, whenever they come, and
/// nothing else.
#[test]
fn a_member_that_gives_up_ends_its_team_alone() {
    std::thread::scope(|threads| {
        for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
            threads.spawn(move || gives_up(path));
        }
    });
}

fn gives_up(path: Path) {
    let gave_up = AtomicUsize::new(0);
    // Long enough for what goes well.
    let builder = Setting::new(path).builder().timeout(Duration::from_secs(5));
    let done = spmd_with(builder, 3, |world| {
        let back = world.team().split_strided(2, -1, 3)?.unwrap();
        let others = world.team().split_strided(0, 1, 3)?.unwrap();
        let is_over = |result: Result<()>| match result {
            Err(Error::CollectivesEnded { .. }) => {}
            other => panic!("{path:?}: {other:?}"),
        };
        if world.my_pe() == 1 {
            poll(|| Ok(gave_up.load(Ordering::Relaxed) == 2))?;
        } else {
            match back.sync() {
                Err(Error::Timeout { .. }) => {}
                // The other one gave up a moment before.
                ended => is_over(ended),
            }
            gave_up.fetch_add(1, Ordering::Relaxed);
        }
        match back.sync() {
            // Over lanes without order the words that the others came may be there before those that they
            // gave up.
            Ok(()) if world.my_pe() == 1 && path == Path::Weak => {}
            ended => is_over(ended),
        }
        is_over(back.split_strided(0, 1, 3).map(drop));
        is_over(back.destroy());
        others.barrier()?;
        others.destroy()?;
        world.barrier_all()
    });
    done.unwrap_or_else(|error| panic!("{path:?}: {error}"));
}

/// A member that leaves a team holds up nobody there, whenever the others come, and ends nothing else; after a rest the
/// team of those that share memory is as it was.
#[test]
fn a_member_that_leaves_ends_its_team_alone() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        for meetings in 0..3 {
            let done = spmd_with(Setting::new(path).builder(), 3, |world| {
                let back = world.team().split_strided(2, -1, 3)?.unwrap().detach();
                let shared = world.shared_team().detach();
                let x = world.alloc_zeroed::<u64>(1)?;
                for team in [&back, &shared] {
                    let called = team.attach(world)?;
                    (0..meetings).try_for_each(|_| called.sync())?;
                    called.broadcast(x, x, called.n_pes() - 1)?;
                    if world.my_pe() == 1 {
                        team.leave(world)?;
                    } else if called.n_pes() > 1 {
                        for _ in 0..2 {
                            let over = called.sync();
                            let is_over = matches!(over, Err(Error::CollectivesEnded { .. }));
                            assert!(is_over, "{path:?}: {over:?}");
                        }
                    }
                }
                let others = world.team().split_strided(0, 1, 3)?.unwrap();
                others.barrier()?;
                others.destroy()?;
                bindings::quiesce(world)?;
                bindings::unquiesce(world)?;
                shared.attach(world)?.sync()?;
                let again = world.team().split_strided(2, -1, 3)?.unwrap();
                again.sync()?;
                again.destroy()
            });
            done.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        }
    }
}

/// A member that destroys a team while the others make another call: all get the error, and other teams go on.
#[test]
fn m36_a_destroy_that_the_others_do_not_call_is_told_to_all() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let done = spmd_with(Setting::new(path).builder(), 3, |world| {
            for round in 0..4 {
                let team = world.team().split_strided(2, -1, 3)?.unwrap();
                let called = match team.my_pe() == round % 3 {
                    true => team.destroy(),
                    false => team.barrier(),
                };
                differs(called, "destroy and barrier");
                let next = world.team().split_strided(0, 1, 3)?.unwrap();
                next.sync()?;
                next.destroy()?;
            }
            Ok(())
        });
        done.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

/// Whatever a team's members call, a lost one ends it for all of them.
#[test]
fn the_end_of_a_member_ends_every_call_of_its_team() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        for (taking, block) in TAKING
            .iter()
            .flat_map(|taking| BLOCKS.map(|block| (taking, block)))
        {
            let (ready, heard) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let victim = 2;
            let done = spmd_with(Setting::new(path).builder(), 3, |world| {
                let x = world.alloc_zeroed::<u64>(2 * block * 3)?;
                let y = world.alloc_zeroed::<u64>(2 * block * 3)?;
                let team = world.team().split_strided(victim, -1, 3)?.unwrap();
                let [dst, src] = taking.objects((3, block), [x, y])?;
                // It takes part in some of the calls.
                for _ in 0..3 {
                    (taking.call)(&team, dst, src)?;
                }
                ready.fetch_add(1, Ordering::Relaxed);
                if world.my_pe() == victim {
                    poll(|| Ok(ready.load(Ordering::Relaxed) == 3))?;
                    return Err(Error::Argument {
                        call: "test",
                        what: "the victim's error".into(),
                    });
                }
                for _ in 0..2 {
                    match (taking.call)(&team, dst, src) {
                        Err(Error::PeerLost { pe, .. }) => assert_eq!(pe, victim),
                        other => panic!("{path:?}, {}: {other:?}", taking.name),
                    }
                }
                heard.fetch_add(1, Ordering::Relaxed);
                // A PE that ends first is lost to the others, so they end together.
                poll(|| Ok(heard.load(Ordering::Relaxed) == victim))
            });
            assert_eq!(heard.load(Ordering::Relaxed), victim, "{path:?} {done:?}");
            assert!(done.is_err_and(|e| e.to_string().contains("the victim's error")));
        }
    }
}
