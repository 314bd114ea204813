//! Contexts: each orders and completes what was issued on it, for a thread of its own or for many.

use std::sync::atomic::{AtomicUsize, Ordering};

use oxshmem::testing::spmd_with;
use oxshmem::{
    Cmp, Context, ContextOptions, Error, Result, Session, SharedContext, SignalOp, Sym, World,
};

use crate::order::poll;
use crate::setting::{Path, Pe, Setting, pattern, patterns};

/// What contexts are made with.
const OPTIONS: [ContextOptions; 4] = [
    ContextOptions::NONE,
    ContextOptions::PRIVATE,
    ContextOptions::SERIALIZED,
    ContextOptions::NOSTORE,
];

const NONE: ContextOptions = ContextOptions::NONE;

/// Threads of each PE.
const THREADS: usize = 3;

fn made<'w>(pe: &Pe<'w>, count: usize) -> Result<Vec<Context<'w>>> {
    (0..count).map(|_| pe.world.create_context(NONE)).collect()
}

/// Data, fence, flag on each of several contexts, by turns: who sees a flag sees that context's data.
pub fn m17_a_context_orders_what_it_issued(pe: &Pe<'_>) -> Result<()> {
    let n = OPTIONS.len();
    let x = pe.alloc_zeroed::<u64>(n * 8)?;
    let flags = pe.alloc_zeroed::<u64>(2 * n)?;
    let contexts = OPTIONS.map(|options| pe.world.create_context(options));
    let contexts = contexts.into_iter().collect::<Result<Vec<_>>>()?;
    for round in 1..=pe.rounds(800) as u64 {
        for (i, context) in contexts.iter().enumerate() {
            context.put(x.range(8 * i..8 * i + 8)?, &[round; 8], pe.right())?;
            context.fence()?;
            context.set(flags.at(i)?, round, pe.right())?;
        }
        // A wait drives the lanes of its own context.
        contexts.iter().try_for_each(|context| context.quiet())?;
        for i in (0..n).rev() {
            pe.wait_until(flags.at(i)?, Cmp::Ge, round)?;
            assert_eq!(pe.own(x.range(8 * i..8 * i + 8)?)?, [round; 8]);
        }
        // Every context has been read: the left one may go on.
        contexts[0].set(flags.at(n)?, round, pe.left())?;
        contexts[0].quiet()?;
        pe.wait_until(flags.at(n)?, Cmp::Ge, round)?;
    }
    contexts.into_iter().try_for_each(Context::destroy)?;
    pe.free(flags)?;
    pe.free(x)
}

/// What is put on a context is there after its quiet, and so it is after its end: nothing else is called
/// that would complete it.
pub fn m19_quiet_and_the_end_of_a_context_complete_what_it_issued(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(pe.n_pes() * 64)?;
    let mine = x.range(pe.me() * 64..(pe.me() + 1) * 64)?;
    for round in 0..pe.rounds(60) {
        let context = pe.world.create_context(OPTIONS[round % OPTIONS.len()])?;
        for to in 0..pe.n_pes() {
            let data = patterns(round + pe.me(), 63);
            context.put(mine.range(..63)?, &data, to)?;
            context.add(mine.at(63)?, 1, to)?;
        }
        match round % 3 {
            0 => context.quiet()?,
            1 => context.destroy()?,
            _ => drop(context),
        }
        for at in 0..pe.n_pes() {
            let mut copy = [0; 64];
            pe.get(&mut copy, mine, at)?;
            assert_eq!(copy[..63], patterns(round + pe.me(), 63), "at PE {at}");
            assert_eq!(copy[63], round as u64 + 1);
        }
    }
    pe.barrier_all()?;
    pe.free(x)
}

/// The calls of a context are those of the world.
pub fn a_context_has_every_one_sided_call(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(64)?;
    let context = pe.world.create_context(NONE)?;
    assert_eq!((context.my_pe(), context.n_pes()), (pe.me(), pe.n_pes()));
    let to = pe.right();
    context.p(x.at(0)?, 1, to)?;
    context.iput(x.range(1..6)?, &[2, 3], 3, 1, 2, to)?;
    context.add(x.at(8)?, 10, to)?;
    context.set(x.at(9)?, 5, to)?;
    context.put_signal(x.range(16..20)?, &[7; 4], x.at(20)?, 3, SignalOp::Set, to)?;
    context.signal_add(x.at(21)?, 4, to)?;
    context.quiet()?;
    assert_eq!(context.g(x.at(0)?, to)?, 1);
    assert_eq!(context.fetch(x.at(8)?, to)?, 10);
    assert_eq!(context.compare_swap(x.at(8)?, 10, 11, to)?, 10);
    let (source, mut first, mut old) = ([9; 8], [0; 2], 0);
    context.scope(|scope| {
        scope.put_nbi(x.range(32..40)?, &source, to)?;
        scope.fetch_inc_nbi(&mut old, x.at(8)?, to)?;
        scope.get_nbi(&mut first, x.range(..2)?, to)
    })?;
    assert_eq!((first, old), ([1, 2], 11));
    pe.barrier_all()?;
    let mut expected = [0; 64];
    expected[..2].copy_from_slice(&[1, 2]);
    expected[4] = 3;
    expected[8..10].copy_from_slice(&[12, 5]);
    expected[16..20].fill(7);
    expected[20..22].copy_from_slice(&[3, 4]);
    expected[32..40].fill(9);
    assert_eq!(pe.own(x)?, expected);
    pe.barrier_all()?;
    context.destroy()?;
    pe.free(x)
}

/// A session changes neither order nor completion, whatever it says.
pub fn m17_m19_sessions_are_hints(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    let context = pe.world.create_context(NONE)?;
    let (to, rounds) = (pe.right(), pe.rounds(600) as u64);
    context.session_stop();
    for (index, session) in [
        Session::default(),
        Session::default().batch(),
        Session::default().batch().total_ops(rounds as usize),
        Session::default().total_ops(0),
    ]
    .into_iter()
    .enumerate()
    {
        context.session_start(session);
        let (sum, last) = (x.at(0)?, x.at(1)?);
        for round in 1..=rounds {
            context.add(sum, round, to)?;
            if round % 5 == 0 {
                let all = index as u64 * rounds * (rounds + 1) / 2 + round * (round + 1) / 2;
                context.quiet()?;
                assert_eq!(context.fetch(sum, to)?, all);
                context.set(last, round, to)?;
            }
        }
        context.session_stop();
        context.quiet()?;
        assert_eq!(context.fetch(last, to)?, rounds - rounds % 5);
    }
    context.destroy()?;
    pe.barrier_all()?;
    assert_eq!(
        pe.own(x)?,
        [2 * rounds * (rounds + 1), rounds - rounds % 5, 0, 0]
    );
    pe.barrier_all()?;
    pe.free(x)
}

pub fn m35_a_context_refuses_what_the_world_refuses(pe: &Pe<'_>) -> Result<()> {
    let x = pe.alloc_zeroed::<u64>(4)?;
    let context = pe.world.create_context(NONE)?;
    let n = pe.n_pes();
    let nobody =
        |result| matches!(result, Err(Error::NoSuchPe { pe, size, .. }) if (pe, size) == (n, n));
    assert!(nobody(context.p(x, 1, n)));
    assert!(nobody(context.g(x, n).map(drop)));
    assert!(nobody(context.inc(x, n)));
    assert!(nobody(context.pe_quiet(&[n])));
    let outside = context.put(x, &[0; 5], 0);
    assert!(matches!(outside, Err(Error::OutOfRange { .. })));
    // Whatever was refused, the context goes on.
    context.p(x, 7, pe.right())?;
    context.destroy()?;
    pe.barrier_all()?;
    assert_eq!(pe.own(x)?[0], 7);
    pe.free(x)
}

/// Words that one thread of one PE alone puts to, and counters that all add to.
#[derive(Clone, Copy)]
struct Board {
    words: Sym<u64>,
    counters: Sym<u64>,
    rounds: usize,
}

const WORDS: usize = 16;

/// What a thread does in a round: the PE, the word and the value.
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

    /// What this PE has after all, done by one after the other.
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

const LOST: [Path; 4] = [Path::Mapped, Path::Checked, Path::Tiny, Path::Weak];

/// Every thread of every survivor hears of the loss, whatever it is in, and goes on.
#[test]
fn a_lost_pe_ends_the_waits_of_every_thread() {
    for path in LOST {
        let heard = AtomicUsize::new(0);
        let survivors = AtomicUsize::new(0);
        let result = spmd_with(Setting::new(path).builder(), 3, |world| {
            let x = world.alloc_zeroed::<u64>(16)?;
            let victim = world.n_pes() - 1;
            if world.my_pe() == victim {
                poll(|| Ok(heard.load(Ordering::Relaxed) >= 2 * 5))?;
                return Err(Error::Argument {
                    call: "test",
                    what: "the end".into(),
                });
            }
            let contexts = (0..5).map(|_| world.create_context(NONE));
            let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
            let shared = world.create_context(NONE)?.share();
            on_threads(contexts, |thread, context| {
                heard.fetch_add(1, Ordering::Relaxed);
                let word = x.at(thread)?;
                let lost = match thread {
                    0 => context.wait_until(word, Cmp::Eq, 99),
                    1 => shared.wait_until_some(word, None, Cmp::Eq, 99).map(drop),
                    2 => shared.signal_wait_until(word, Cmp::Eq, 99).map(drop),
                    3 => {
                        until_it_fails(|| context.p(word, 0, victim).and_then(|()| context.quiet()))
                    }
                    _ => until_it_fails(|| shared.lock().fetch_add(word, 1, victim).map(drop)),
                };
                is_lost(lost, victim);
                // A context that has heard of it does not reach the PE any more, and the others go on.
                is_lost(context.p(word, 1, victim), victim);
                is_lost(context.inc(word, victim), victim);
                assert!(context.ptr(word, victim).is_none());
                context.p(x.at(8 + thread)?, 1, 1 - context.my_pe())?;
                match context.quiet() {
                    // Told once of what was outstanding.
                    Ok(()) | Err(Error::PeerLost { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            })?;
            assert_eq!(world.acknowledge_lost(), [victim]);
            world.quiet()?;
            let again = world.create_context(NONE)?;
            is_lost(again.p(x, 1, victim), victim);
            again.set(x.at(15)?, 1, 1 - world.my_pe())?;
            again.destroy()?;
            shared.destroy()?;
            world.wait_until(x.at(15)?, Cmp::Eq, 1)?;
            survivors.fetch_add(1, Ordering::Relaxed);
            poll(|| Ok(survivors.load(Ordering::Relaxed) == 2))
        });
        assert!(
            result.is_err_and(|e| e.to_string().contains("the end")),
            "{path:?}"
        );
        assert_eq!(survivors.load(Ordering::Relaxed), 2, "{path:?}");
    }
}

fn until_it_fails(mut f: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        f()?;
        std::thread::yield_now();
    }
}

fn is_lost(result: Result<()>, victim: usize) {
    match result {
        Err(Error::PeerLost { pe, .. }) => assert_eq!(pe, victim),
        other => panic!("{other:?} though PE {victim} is lost"),
    }
}

/// Each of many contexts of one PE completes what is its own, in whatever order they end.
#[test]
fn hundreds_of_contexts_live_at_once() {
    for path in [Path::Mapped, Path::Checked, Path::Tiny] {
        let done = spmd_with(Setting::new(path).builder(), 2, |world| {
            let x = world.alloc_zeroed::<u64>(300)?;
            let there = 1 - world.my_pe();
            for round in 1..=2 {
                let contexts = (0..300).map(|_| world.create_context(NONE));
                let contexts: Vec<_> = contexts.collect::<Result<_>>()?;
                for (i, context) in contexts.iter().enumerate() {
                    context.p(x.at(i)?, round * 1000 + i as u64, there)?;
                }
                contexts.into_iter().rev().try_for_each(Context::destroy)?;
                world.barrier_all()?;
                let mut seen = vec![0; 300];
                world.read(&mut seen, x)?;
                let expected: Vec<u64> = (0..300).map(|i| round * 1000 + i).collect();
                assert_eq!(seen, expected);
                world.barrier_all()?;
            }
            Ok(())
        });
        done.unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
}

/// A world that moves to another thread is as before.
#[test]
fn a_world_moves_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let world = World::builder().heap_limit(1 << 20).join().unwrap();
    is_send(&world);
    let context = world.create_context(NONE).unwrap();
    is_send(&context);
    drop(context);
    std::thread::spawn(move || {
        let x = world.alloc_zeroed::<u64>(1)?;
        world.inc(x, 0)?;
        assert_eq!(world.g(x, 0)?, 1);
        world.free(x)?;
        world.finalize()
    })
    .join()
    .unwrap()
    .unwrap();
}
