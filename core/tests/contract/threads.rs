//! Threads of one PE: with contexts of their own or one for all, beside each other and beside the
//! collective calls of the thread that has the world.

use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem::{Cmp, Context, ContextOptions, Error, Fold, Result, SharedContext, Sym};

use crate::order::poll;
use crate::setting::{Path, Pe, pattern};

const NONE: ContextOptions = ContextOptions::NONE;

/// Threads of each PE.
const THREADS: usize = 3;

fn made<'w>(pe: &Pe<'w>, count: usize) -> Result<Vec<Context<'w>>> {
    (0..count).map(|_| pe.world.create_context(NONE)).collect()
}

/// Words that one thread of one PE alone puts to, and counters that all add to.
#[derive(Clone, Copy)]
struct Board {
    words: Sym<u64>,
    counters: Sym<u64>,
    rounds: usize,
}

const WORDS: usize = 16;

/// The put and the add of a thread in a round: their PE, word and value.
fn step(pe: usize, thread: usize, round: usize, pes: usize) -> (usize, usize, u64) {
    let chosen = pattern(pe * THREADS + thread + 1000, round);
    (
        chosen as usize % pes,
        (chosen >> 20) as usize % WORDS,
        chosen >> 32,
    )
}

impl Board {
    fn new(pe: &Pe<'_>) -> Result<Self> {
        Ok(Board {
            words: pe.alloc_zeroed(pe.n_pes() * THREADS * WORDS)?,
            counters: pe.alloc_zeroed(WORDS)?,
            rounds: pe.rounds(1200),
        })
    }

    /// One thread's part: puts that fences order, adds that nothing does. `on` lends it the context.
    fn play(
        self,
        thread: usize,
        on: impl Fn(&dyn Fn(&Context<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        for round in 0..self.rounds {
            on(&|context| {
                let (me, pes) = (context.my_pe(), context.n_pes());
                let (to, word, value) = step(me, thread, round, pes);
                context.p(
                    self.words.at((me * THREADS + thread) * WORDS + word)?,
                    value,
                    to,
                )?;
                context.add(self.counters.at(word)?, value, to)?;
                context.fence()?;
                if round % 7 == 0 {
                    context.quiet()?;
                    let mine = self.words.at((me * THREADS + thread) * WORDS + word)?;
                    assert_eq!(
                        context.g(mine, to)?,
                        value,
                        "thread {thread}, round {round}"
                    );
                }
                Ok(())
            })?;
        }
        on(&|context| context.quiet())
    }

    /// Compares this PE's memory with that of the same calls made one after the other.
    fn check(self, pe: &Pe<'_>) -> Result<()> {
        let (n, me) = (pe.n_pes(), pe.me());
        let mut words = vec![0; n * THREADS * WORDS];
        let mut counters = [0_u64; WORDS];
        for from in 0..n {
            for thread in 0..THREADS {
                for round in 0..self.rounds {
                    let (to, word, value) = step(from, thread, round, n);
                    if to == me {
                        words[(from * THREADS + thread) * WORDS + word] = value;
                        counters[word] = counters[word].wrapping_add(value);
                    }
                }
            }
        }
        assert_eq!(pe.own(self.words)?, words);
        assert_eq!(pe.own(self.counters)?, counters);
        pe.barrier_all()?;
        pe.free(self.counters)?;
        pe.free(self.words)
    }
}

/// Whether PEs may have several threads: a simulated machine schedules one each.
pub fn has_threads(pe: &Pe<'_>) -> bool {
    pe.setting.path != Path::Simulator
}

/// Runs `f` on as many threads, each with one of these; gives the first error.
pub fn on_threads<T: Send>(each: Vec<T>, f: impl Fn(usize, T) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|threads| {
        let spawn = |(index, one)| {
            let f = &f;
            threads.spawn(move || f(index, one))
        };
        let spawned: Vec<_> = each.into_iter().enumerate().map(spawn).collect();
        let mut ends = spawned.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

pub fn m17_m19_threads_with_contexts_of_their_own_equal_a_serial_reference(
    pe: &Pe<'_>,
) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let board = Board::new(pe)?;
    on_threads(made(pe, THREADS)?, |thread, context| {
        board.play(thread, |f| f(&context))?;
        context.destroy()
    })?;
    pe.barrier_all()?;
    board.check(pe)
}

pub fn m17_m19_threads_on_one_context_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let board = Board::new(pe)?;
    let context = pe.world.create_context(NONE)?.share();
    on_threads(
        vec![&context; THREADS],
        |thread, context: &SharedContext<'_>| board.play(thread, |f| f(&context.lock())),
    )?;
    context.destroy()?;
    pe.barrier_all()?;
    board.check(pe)
}

/// A thread's fetched values come in order (M20), and every one is given once (M28), whatever the others
/// on the context do.
pub fn m28_every_ticket_is_given_once_to_threads_too(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let count = pe.alloc_zeroed::<u64>(1)?;
    let own = made(pe, THREADS)?;
    let shared = pe.world.create_context(NONE)?.share();
    let each = pe.rounds(600);
    let taken = std::sync::Mutex::new(Vec::new());
    on_threads(own, |_, context| {
        let mut mine = Vec::new();
        for round in 0..each {
            mine.push(match round % 2 {
                0 => context.fetch_inc(count, 0)?,
                _ => shared.lock().fetch_inc(count, 0)?,
            });
        }
        assert!(mine.is_sorted(), "{mine:?}");
        taken.lock().unwrap().extend(mine);
        Ok(())
    })?;
    shared.destroy()?;
    pe.barrier_all()?;
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    taken.dedup();
    let all = THREADS * each;
    assert_eq!(taken.len(), all);
    assert_eq!(pe.g(count, 0)?, (all * pe.n_pes()) as u64);
    pe.barrier_all()?;
    pe.free(count)
}

/// Threads that wait on a shared context keep no other from issuing what they wait for.
pub fn m23_a_wait_on_a_shared_context_does_not_hold_it(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let words = pe.alloc_zeroed::<u64>(2 * THREADS)?;
    let (data, flags) = (words.range(..THREADS)?, words.range(THREADS..)?);
    let context = pe.world.create_context(NONE)?.share();
    let (right, rounds) = (pe.right(), pe.rounds(300) as u64);
    // In a ring of this PE's threads and the next PE's: each waits for the one before.
    on_threads(
        vec![&context; THREADS],
        |thread, context: &SharedContext<'_>| {
            let (data, flag) = (data.at(thread)?, flags.at(thread)?);
            for round in 1..=rounds {
                let locked = context.lock();
                locked.p(data, round, right)?;
                locked.fence()?;
                locked.set(flag, round, right)?;
                drop(locked);
                match (round + thread as u64) % 4 {
                    0 => context.wait_until(flag, Cmp::Ge, round)?,
                    1 => context.signal_wait_until(flag, Cmp::Ge, round).map(drop)?,
                    2 => context.wait_until_all(flag, None, Cmp::Ge, round)?,
                    _ => poll(|| context.test(flag, Cmp::Ge, round))?,
                }
                let locked = context.lock();
                let seen = locked.g(data, locked.my_pe())?;
                assert!(seen >= round, "{seen} in round {round}");
            }
            Ok(())
        },
    )?;
    context.destroy()?;
    pe.barrier_all()?;
    pe.free(words)
}

/// Collective calls of teams are made by the thread that has the world, while others use contexts.
pub fn m17_m19_threads_and_collective_calls_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    if !has_threads(pe) {
        return Ok(());
    }
    let (n, me) = (pe.n_pes(), pe.me());
    let board = Board::new(pe)?;
    let (all, one) = (pe.alloc::<u64>(n)?, pe.alloc::<u64>(1)?);
    let team = pe.team().split_strided(n - 1, -1, n)?.unwrap();
    let contexts = made(pe, THREADS)?;
    let played = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let played = &played;
        let threads = threads.spawn(move || {
            let done = on_threads(contexts, |thread, context| {
                board.play(thread, |f| f(&context))?;
                context.destroy()
            });
            played.store(true, Ordering::Release);
            done
        });
        // As long as the threads of any PE play.
        for round in 0.. {
            let mine = [(me + round) as u64];
            pe.write(one, &mine)?;
            team.fcollect(all, one)?;
            let expected: Vec<u64> = (0..n).rev().map(|pe| (pe + round) as u64).collect();
            assert_eq!(pe.own(all)?, expected, "round {round}");
            let goes_on = u64::from(!played.load(Ordering::Acquire));
            pe.write(one, &[goes_on])?;
            team.reduce(one, one, Fold::Max)?;
            if pe.own(one)? == [0] {
                break;
            }
        }
        let ended = threads.join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    pe.barrier_all()?;
    team.destroy()?;
    board.check(pe)?;
    pe.free(one)?;
    pe.free(all)
}

/// Not even its own thread's lock keeps a wait or a test from looking.
pub fn m23_a_wait_on_a_shared_context_does_not_need_it(pe: &Pe<'_>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (flag, never) = (words.at(0)?, words.at(1)?);
    let context = pe.world.create_context(NONE)?.share();
    let locked = context.lock();
    locked.set(flag, 1, pe.me())?;
    locked.quiet()?;
    context.wait_until(flag, Cmp::Eq, 1)?;
    assert_eq!(context.signal_wait_until(flag, Cmp::Eq, 1)?, 1);
    assert_eq!(context.signal_fetch(flag)?, 1);
    assert!(context.test(flag, Cmp::Eq, 1)? && !context.test(never, Cmp::Eq, 1)?);
    assert_eq!(context.wait_until_any(words, None, Cmp::Eq, 1)?, Some(0));
    assert_eq!(context.test_some(words, None, Cmp::Eq, 1)?, [0]);
    assert!(!context.test_counted(never, 1)?);
    assert!(matches!(
        context.test(words.range(..0)?, Cmp::Eq, 1),
        Err(Error::OutOfRange { .. })
    ));
    drop(locked);
    context.destroy()?;
    pe.free(words)
}
