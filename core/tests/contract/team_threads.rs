//! Collective calls of several teams by several threads of each PE at once, and what the world's thread and
//! others may do meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Context, ContextOptions, DetachedTeam, Error, Fold, Result, Sym, Team};

use crate::job::is_lost;
use crate::objects::another_world;
use crate::order::poll;
use crate::setting::{Path, Pe, Setting, pattern};
use crate::threads::{has_threads, on_threads};

const NONE: ContextOptions = ContextOptions::NONE;

/// One thread's own: a team, a context and objects.
struct Part<'w> {
    team: DetachedTeam,
    context: Context<'w>,
    dst: Sym<u64>,
    src: Sym<u64>,
}

/// Elements of a member's block at most: beyond what goes by scratch memory.
const LONGEST: usize = 500;

impl<'w> Part<'w> {
    /// As many as there are teams, in two blocks of memory.
    fn all(
        pe: &Pe<'w>,
        teams: Vec<DetachedTeam>,
        each: usize,
    ) -> Result<([Sym<u64>; 2], Vec<Self>)> {
        let blocks = [(); 2].map(|()| pe.alloc_zeroed(teams.len() * each));
        let [dst, src] = blocks;
        let (dst, src) = (dst?, src?);
        let part = |(i, team)| {
            Ok(Part {
                team,
                context: pe.world.create_context(NONE)?,
                dst: dst.range(i * each..(i + 1) * each)?,
                src: src.range(i * each..(i + 1) * each)?,
            })
        };
        let parts: Result<Vec<_>> = teams.into_iter().enumerate().map(part).collect();
        Ok(([dst, src], parts?))
    }

    /// All parts are played, each by a thread.
    fn end(pe: &Pe<'_>, blocks: [Sym<u64>; 2]) -> Result<()> {
        pe.barrier_all()?;
        blocks.into_iter().try_for_each(|block| pe.free(block))
    }
}

/// Teams of all PEs: in the world's order and backwards, and the world's own.
fn teams(pe: &Pe<'_>) -> Result<Vec<DetachedTeam>> {
    let (n, world) = (pe.n_pes(), pe.team());
    let forward = world.split_strided(0, 1, n)?.unwrap();
    let back = world.split_strided(n - 1, -1, n)?.unwrap();
    Ok([forward, back, world].map(Team::detach).into())
}

/// Ends the team, if it is none of those that are always there.
fn end(team: DetachedTeam, context: &Context<'_>) -> Result<()> {
    match team.into_team(context)?.destroy() {
        Ok(()) | Err(Error::Argument { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// One call of a team, with a round's values.
struct Call<'t> {
    team: &'t Team<'t>,
    context: &'t Context<'t>,
    dst: Sym<u64>,
    src: Sym<u64>,
    round: usize,
    len: usize,
}

impl Call<'_> {
    /// Element `i` of what a member gives.
    fn value(&self, member: usize, i: usize) -> u64 {
        pattern(self.round * 64 + member, i)
    }

    /// Makes a call with `given` elements of this PE's; `dst` is then as `expected` says.
    fn gives(
        &self,
        given: usize,
        call: impl FnOnce(&Team<'_>, Sym<u64>) -> Result<()>,
        (len, expected): (usize, impl Fn(usize) -> u64),
    ) -> Result<()> {
        let me = self.team.my_pe();
        let mine: Vec<u64> = (0..given).map(|i| self.value(me, i)).collect();
        let src = self.src.range(..given)?;
        self.context.write(src, &mine)?;
        call(self.team, src)?;
        let mut found = vec![0; len];
        self.context.read(&mut found, self.dst.range(..len)?)?;
        let expected: Vec<u64> = (0..len).map(expected).collect();
        assert_eq!(found, expected, "round {}, member {me}", self.round);
        Ok(())
    }

    /// Calls of all families, one after the other.
    fn of_all_families(&self) -> Result<()> {
        let (n, me) = (self.team.n_pes(), self.team.my_pe());
        let (len, root) = (self.len, self.round % n);
        let dst = |len: usize| self.dst.range(..len);
        let folded = |members: std::ops::Range<usize>, i| {
            members.fold(0_u64, |sum, member| sum.wrapping_add(self.value(member, i)))
        };
        self.gives(
            len,
            |team, src| team.broadcast(dst(len)?, src, root),
            (len, |i| self.value(root, i)),
        )?;
        self.gives(
            len,
            |team, src| team.fcollect(dst(n * len)?, src),
            (n * len, |i| self.value(i / len, i % len)),
        )?;
        let part = |member: usize| (member + self.round) % 3 * len / 2;
        let parts: Vec<(usize, usize)> = (0..n)
            .flat_map(|member| (0..part(member)).map(move |i| (member, i)))
            .collect();
        self.gives(
            part(me),
            |team, src| {
                let all = team.collect(dst(n * len)?, src)?;
                assert_eq!(all, parts.len());
                Ok(())
            },
            (parts.len(), |i| self.value(parts[i].0, parts[i].1)),
        )?;
        self.gives(
            n * len,
            |team, src| team.alltoall(dst(n * len)?, src),
            (n * len, |i| self.value(i / len, me * len + i % len)),
        )?;
        self.gives(
            2 * n * len,
            |team, src| team.alltoalls(dst(n * len)?, src, 1, 2, len),
            (n * len, |i| self.value(i / len, (me * len + i % len) * 2)),
        )?;
        self.team.sync()?;
        self.gives(
            len,
            |team, src| team.reduce(dst(len)?, src, Fold::Sum),
            (len, |i| folded(0..n, i)),
        )?;
        self.gives(
            len,
            |team, src| team.inscan(dst(len)?, src, Fold::Sum),
            (len, |i| folded(0..me + 1, i)),
        )?;
        self.gives(
            len,
            |team, src| team.exscan(dst(len)?, src, Fold::Sum),
            (len, |i| folded(0..me, i)),
        )?;
        self.gives(
            n * len,
            |team, src| team.reduce_scatter(dst(len)?, src, Fold::Sum),
            (len, |i| folded(0..n, me * len + i)),
        )?;
        self.team.barrier()
    }
}

/// Three teams by three threads, all families, by scratch memory and from object to object.
pub fn m36_calls_of_teams_by_threads_at_once_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let n = pe.n_pes();
    let (blocks, parts) = Part::all(pe, teams(pe)?, 2 * n * LONGEST)?;
    let rounds = pe.rounds(400);
    on_threads(parts, |thread, part| {
        let team = part.team.attach(&part.context)?;
        for round in 0..rounds {
            Call {
                team: &team,
                context: &part.context,
                dst: part.dst,
                src: part.src,
                round: round * 3 + thread,
                len: [2, LONGEST, 20][(round + thread) % 3],
            }
            .of_all_families()?;
        }
        end(part.team, &part.context)
    })?;
    Part::end(pe, blocks)
}

/// Threads make and end teams all the time, each of a parent of its own, while the world's thread does so
/// too, allocates, frees, and makes contexts.
pub fn m9_m36_splits_by_threads_at_once_give_teams_of_their_own(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let n = pe.n_pes();
    let mut parents = teams(pe)?;
    // The world's own stays with its thread. Each PE is in one half.
    parents.pop();
    let upper = pe.team().split_strided(n / 2, 1, n - n / 2)?;
    let lower = match n {
        1 => None,
        _ => pe.team().split_strided(0, 1, n / 2)?,
    };
    parents.extend(upper.or(lower).map(Team::detach));
    let (blocks, parts) = Part::all(pe, parents, 1)?;
    // And one for the world's thread itself.
    let own = pe.alloc_zeroed::<u64>(2)?;
    let rounds = pe.rounds(200);
    std::thread::scope(|threads| {
        let threads = threads.spawn(move || {
            on_threads(parts, |thread, part| {
                let parent = part.team.attach(&part.context)?;
                let objects = (part.dst, part.src);
                comes_and_goes(&parent, &part.context, objects, (thread, rounds))?;
                end(part.team, &part.context)
            })
        });
        let mine = || {
            let world = pe.team();
            for round in 0..rounds {
                comes_and_goes(&world, pe.world, (own.at(0)?, own.at(1)?), (7 + round, 4))?;
                let x = pe.alloc::<u64>(100)?;
                let made = pe.world.create_context(NONE)?;
                made.p(x.at(pe.me())?, 1, pe.right())?;
                made.destroy()?;
                pe.free(x)?;
            }
            Ok(())
        };
        let mine = mine();
        let ended = threads.join();
        mine.and(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    pe.free(own)?;
    Part::end(pe, blocks)
}

/// Teams of a parent, a few alive at a time. What a reduction gives says that no two share their room.
fn comes_and_goes(
    parent: &Team<'_>,
    context: &Context<'_>,
    (dst, src): (Sym<u64>, Sym<u64>),
    (seed, rounds): (usize, usize),
) -> Result<()> {
    let n = parent.n_pes();
    let mut alive = VecDeque::new();
    let check = |team: &Team<'_>, round: usize| -> Result<()> {
        let value = |pe: usize| pattern(seed * 1000 + round, pe);
        context.write(src, &[value(context.my_pe())])?;
        team.reduce(dst, src, Fold::Xor)?;
        let mut found = [0];
        context.read(&mut found, dst)?;
        let expected = team.world_pes().fold(0, |all, pe| all ^ value(pe));
        assert_eq!(found, [expected], "round {round} of {team:?}");
        Ok(())
    };
    for round in 0..rounds {
        let first = pattern(seed, round) as usize % n;
        alive.push_back(match round % 3 {
            0 => parent.split_strided(first, 1, n - first)?,
            1 => {
                let list: Vec<usize> = (0..n).map(|i| (first + i) % n).collect();
                parent.split_list(&list)?
            }
            _ => {
                let (row, column) = parent.split_2d(first + 1)?;
                check(&row, round)?;
                row.destroy()?;
                Some(column)
            }
        });
        for team in alive.iter().flatten() {
            check(team, round)?;
        }
        if alive.len() > 3 {
            alive.pop_front().flatten().map_or(Ok(()), Team::destroy)?;
        }
    }
    let mut teams = alive.into_iter().flatten();
    teams.try_for_each(Team::destroy)
}

/// A split waits for the calls of its own parent alone: here one that has begun on another thread ends only
/// after it.
pub fn a_split_does_not_wait_for_that_of_another_parent(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let n = pe.n_pes();
    let split = |parent: &Team<'_>| match parent.split_strided(0, 1, n)? {
        Some(team) => team.destroy(),
        None => panic!("a team of all has not this PE"),
    };
    for round in 0..pe.rounds(60) {
        let mut teams = teams(pe)?;
        teams.pop();
        // Either may be the one whose room comes first.
        if round % 2 == 1 {
            teams.reverse();
        }
        let (blocks, mut parts) = Part::all(pe, teams, 1)?;
        let begins = AtomicBool::new(false);
        let (late, early) = (parts.pop().unwrap(), parts.pop().unwrap());
        std::thread::scope(|threads| {
            let begins = &begins;
            let first = move || {
                let parent = early.team.attach(&early.context)?;
                begins.store(true, Ordering::Release);
                split(&parent)?;
                end(early.team, &early.context)
            };
            let second = move || {
                let parent = late.team.attach(&late.context)?;
                split(&parent)?;
                end(late.team, &late.context)
            };
            if pe.me() > 0 {
                return second().and_then(|()| first());
            }
            let first = threads.spawn(first);
            poll(|| Ok(begins.load(Ordering::Acquire)))?;
            // It is likely to be in its split by now.
            (0..200).for_each(|_| std::thread::yield_now());
            let second = second();
            let first = first.join();
            second.and(first.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        Part::end(pe, blocks)?;
    }
    Ok(())
}

/// Puts on the context that a team is attached to are complete after the team's barrier.
pub fn m19_a_teams_barrier_completes_the_context_that_it_is_attached_to(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let (blocks, parts) = Part::all(pe, teams(pe)?, LONGEST)?;
    let (me, left, right, rounds) = (pe.me(), pe.left(), pe.right(), pe.rounds(300));
    on_threads(parts, |thread, part| {
        let team = part.team.attach(&part.context)?;
        let values = |pe: usize, round: usize| -> Vec<u64> {
            let seed = (round * 64 + pe) * 4 + thread;
            (0..LONGEST).map(|i| pattern(seed, i)).collect()
        };
        let mut found = vec![0; LONGEST];
        for round in 0..rounds {
            part.context.put(part.dst, &values(me, round), right)?;
            team.barrier()?;
            part.context.read(&mut found, part.dst)?;
            assert_eq!(found, values(left, round), "round {round}");
            team.sync()?;
        }
        end(part.team, &part.context)
    })?;
    Part::end(pe, blocks)
}

/// Two threads have teams made among members, on contexts of their own and in any order, while another splits.
pub fn members_make_teams_among_themselves_at_once_and_beside_splits(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let (n, rounds) = (pe.n_pes(), pe.rounds(40));
    let (blocks, parts) = Part::all(pe, teams(pe)?, 1)?;
    on_threads(parts, |thread, part| {
        let parent = part.team.attach(&part.context)?;
        let mut made: VecDeque<Team<'_>> = VecDeque::new();
        for round in 0..rounds {
            let team = match thread {
                0 => part.context.active_set_team((n - 1, -1, n))?,
                1 => part.context.active_set_team((0, 1, n))?,
                _ => parent.split_strided(0, 1, n)?.unwrap(),
            };
            made.push_back(team);
            if made.len() > 2 {
                made.pop_front().unwrap().destroy()?;
            }
            for team in &made {
                part.context.write(part.src, &[round as u64])?;
                team.reduce(part.dst, part.src, Fold::Sum)?;
                let mut sum = [0];
                part.context.read(&mut sum, part.dst)?;
                assert_eq!(sum, [(n * round) as u64], "round {round}");
            }
        }
        made.into_iter().try_for_each(Team::destroy)?;
        end(part.team, &part.context)
    })?;
    Part::end(pe, blocks)
}

/// A call that one member refuses fails on all, with its reason; then the team goes on.
pub fn m36_a_call_that_one_member_refuses_fails_on_all(pe: &Pe<'_>) -> Result<()> {
    let (n, x) = (pe.n_pes(), pe.alloc_zeroed::<u64>(1)?);
    let team = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    for refusing in 0..n {
        let failed = match team.my_pe() == refusing {
            true => team.refuse("reduce", "no such address".into()),
            false => team.reduce(x, x, Fold::Sum),
        };
        let told = failed.unwrap_err().to_string();
        assert!(told.contains("no such address"), "{told}");
        team.sync()?;
    }
    team.destroy()?;
    pe.free(x)
}

/// Two threads that call one team alike come one after the other.
pub fn calls_of_one_team_by_two_threads_come_one_after_the_other(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let n = pe.n_pes();
    let team = pe.team().split_strided(n - 1, -1, n)?.unwrap().detach();
    let contexts = [
        pe.world.create_context(NONE)?,
        pe.world.create_context(NONE)?,
    ];
    let rounds = pe.rounds(300);
    on_threads(contexts.into(), |_, context| {
        let team = team.attach(&context)?;
        (0..rounds).try_for_each(|_| team.sync())
    })?;
    team.into_team(pe.world)?.destroy()
}

/// A context is made on any thread while the world's is in a collective call, which here ends only after.
pub fn a_context_is_made_while_another_thread_is_in_a_collective(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let (right, last) = (pe.right(), pe.n_pes() - 1);
    for round in 1..=pe.rounds(60) as u64 {
        let shared = &pe.world.create_context(NONE)?.share();
        std::thread::scope(|threads| {
            let thread = threads.spawn(move || {
                (0..50).for_each(|_| std::thread::yield_now());
                let first = shared.create_context(NONE)?;
                let second = first.create_context(NONE)?;
                second.set(flag, round, right)?;
                second.destroy()?;
                first.destroy()
            });
            let there = match pe.me() == last {
                true => pe.wait_until(flag, Cmp::Eq, round),
                false => Ok(()),
            };
            let together = there.and_then(|()| pe.barrier_all());
            let ended = thread.join();
            together.and(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        pe.barrier_all()?;
        assert_eq!(pe.own(flag)?, [round]);
        pe.barrier_all()?;
    }
    pe.free(flag)
}

/// A team's PEs and numbers are the same on any context, and contexts made from it number PEs as it does.
pub fn a_detached_team_is_the_same_team(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    let x = pe.alloc_zeroed::<u64>(n)?;
    let back = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    let context = pe.world.create_context(NONE)?;
    for team in [back, pe.team(), pe.shared_team()] {
        let pes: Vec<usize> = team.world_pes().collect();
        let detached = team.detach();
        let (here, there) = (detached.attach(pe.world)?, detached.attach(&context)?);
        assert!(*here == *there && *here == *detached.attach(&context)?);
        assert_eq!(pes, there.world_pes().collect::<Vec<_>>());
        assert_eq!(there.translate(0, &pe.team()), Some(pes[0]));
        let own = there.create_context(NONE)?;
        assert_eq!((own.my_pe(), own.n_pes()), (there.my_pe(), pes.len()));
        for to in 0..pes.len() {
            own.p(x.at(own.my_pe())?, to as u64, to)?;
        }
        own.quiet()?;
        there.sync()?;
        assert_eq!(
            pe.own(x.range(..pes.len())?)?,
            vec![own.my_pe() as u64; pes.len()]
        );
        there.sync()?;
        drop(own);
        let whole = detached.into_team(pe.world)?;
        let always = whole == pe.team() || whole == pe.shared_team();
        assert_eq!(whole.destroy().is_err(), always);
    }
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m35_a_team_is_attached_to_contexts_of_its_own_world_with_its_numbers(
    pe: &Pe<'_>,
) -> Result<()> {
    let n = pe.n_pes();
    let back = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    let other = another_world()?;
    let theirs = other.create_context(NONE)?;
    let numbered = back.create_context(NONE)?;
    for team in [pe.team().detach(), pe.shared_team().detach()] {
        let foreign = team.attach(&theirs).map(drop);
        assert!(matches!(foreign, Err(Error::Foreign { .. })), "{foreign:?}");
        let renumbered = team.attach(&numbered).map(drop);
        assert!(
            matches!(renumbered, Err(Error::Argument { .. })),
            "{renumbered:?}"
        );
        let foreign = team.into_team(&other).map(drop);
        assert!(matches!(foreign, Err(Error::Foreign { .. })), "{foreign:?}");
    }
    drop((theirs, numbered));
    back.destroy()?;
    other.finalize()
}

/// Each thread that is in a collective call when a PE ends hears of it, and teams without that PE go on.
#[test]
fn the_end_of_a_pe_ends_the_collectives_of_all_threads() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak] {
        let survivors = AtomicUsize::new(0);
        let victim = 2;
        let result = spmd_with(Setting::new(path).builder(), 3, |world| {
            let pe = &Pe {
                world,
                setting: Setting::new(path),
            };
            let (_, parts) = Part::all(pe, teams(pe)?, 1)?;
            let others = world.team().split_strided(0, 1, victim)?;
            on_threads(parts, |_, part| {
                let team = part.team.attach(&part.context)?;
                let synced = (0..20).try_for_each(|_| team.sync());
                if part.context.my_pe() == victim {
                    return synced;
                }
                // It may be gone before the last sync has ended here.
                let mut lost = synced;
                while lost.is_ok() {
                    lost = team.reduce(part.dst, part.src, Fold::Sum);
                }
                is_lost(lost, victim);
                is_lost(team.sync(), victim);
                Ok(())
            })?;
            let Some(others) = others else {
                return Err(Error::Argument {
                    call: "test",
                    what: "the end".into(),
                });
            };
            assert_eq!(world.acknowledge_lost(), [victim]);
            let others = others.detach();
            let context = world.create_context(NONE)?;
            std::thread::scope(|threads| {
                let thread = threads.spawn(move || {
                    let team = others.into_team(&context)?;
                    for _ in 0..20 {
                        let again = team.split_list(&[1, 0])?;
                        again.map_or(Ok(()), Team::destroy)?;
                    }
                    team.destroy()
                });
                thread.join().unwrap()
            })?;
            // A PE that ends first is lost to the others, so they end together.
            survivors.fetch_add(1, Ordering::Relaxed);
            poll(|| Ok(survivors.load(Ordering::Relaxed) == victim))
        });
        assert_eq!(
            survivors.load(Ordering::Relaxed),
            victim,
            "{path:?} {result:?}"
        );
        assert!(
            result.is_err_and(|e| e.to_string().contains("the end")),
            "{path:?}"
        );
    }
}
