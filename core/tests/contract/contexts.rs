//! Contexts: each orders and completes what was issued on it. Threads that use them are in `threads`.

use std::sync::atomic::{AtomicUsize, Ordering};

use oxshmem::testing::spmd_with;
use oxshmem::{Cmp, Context, ContextOptions, Error, Result, Session, SignalOp, World};

use crate::job::is_lost;
use crate::order::poll;
use crate::setting::{Path, Pe, Setting, patterns};
use crate::threads::on_threads;

/// The options that contexts are made with.
const OPTIONS: [ContextOptions; 4] = [
    ContextOptions::NONE,
    ContextOptions::PRIVATE,
    ContextOptions::SERIALIZED,
    ContextOptions::NOSTORE,
];

const NONE: ContextOptions = ContextOptions::NONE;

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

/// Puts on a context are complete after its quiet, and after its end: no other call is made that would
/// complete them.
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
