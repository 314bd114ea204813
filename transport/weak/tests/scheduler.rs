//! The scheduler with real threads: one at a time, by decisions that replay and shrink; and what
//! becomes of runs that nobody can end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "each test program uses a part of it")]
mod pair;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use oxshmem_transport::{Op, Pe};
use oxshmem_weak::{Choices, Mode, Plan, Scheduler, Settings, Trace, shrink};
use pair::{Pair, add, at, complete, post, refused};

const DATA: u64 = 0;
const FLAG: u64 = 8;
const ONE: u64 = 64;
const WORST: Settings = Settings::worst(0);

/// Both PEs put, add and fetch at each other; what they end with, and how.
fn traffic(plan: Plan) -> (Vec<u64>, Trace) {
    let scheduler = Scheduler::new(2);
    let pair = Pair::scheduled(WORST, &scheduler);
    scheduler.plan(plan);
    let play = |me: u32| {
        let (own, other) = (me as usize, Pe(1 - me));
        let mut lanes = [(); 2].map(|()| pair.domains[own].lane().unwrap());
        for word in 0..8 {
            pair.store(own, ONE + 8 * word, u64::from(me) * 100 + word);
        }
        let schedule = scheduler.schedule(Pe(me));
        let _turn = scheduler.enter(own);
        for round in 0..3 {
            let put = Op::Put {
                from: pair.local(own, ONE + 8 * round, 40),
                to: at(256 + 8 * round),
            };
            let fetched = pair.local(own, 512 + 8 * round, 8);
            let ops = [
                put,
                add(DATA, round + 1, None),
                add(DATA, 10, Some(fetched)),
            ];
            for (op, lane) in ops.into_iter().zip([0, 1, 1]) {
                post(&mut *lanes[lane], other, op, &*schedule);
            }
        }
        // No lane ends with something under way, at a moment that nobody decides.
        for lane in &mut lanes {
            post(&mut **lane, other, Op::Flush, &*schedule);
        }
        complete(&mut lanes, other, &*schedule);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(1));
        play(0);
    });
    let words = [0, 256, 264, 272, 280, 512, 520, 528];
    let both = (0..2).flat_map(|pe| words.map(|offset| pair.load(pe, offset)));
    (both.collect(), scheduler.trace())
}

#[test]
fn a_run_is_made_again_exactly_by_its_decisions() {
    let mut different = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let (words, trace) = traffic(Plan::Random(seed));
        assert!(trace.broken.is_none() && !trace.deadlock, "{trace:#?}");
        let (again, retrace) = traffic(Plan::Replay(trace.replay()));
        assert_eq!(again, words, "seed {seed}: {trace:#?}");
        assert_eq!(retrace.decisions, trace.decisions, "seed {seed}");
        assert_eq!(retrace.steps, trace.steps, "seed {seed}");
        let (same, _) = traffic(Plan::Random(seed));
        assert_eq!(same, words, "seed {seed}: the same seed, another run");
        different.insert(words);
    }
    assert!(different.len() > 10, "{different:?}");
}

/// PE 0 puts data, then a flag, with nothing between; PE 1 waits for the flag. Whether it missed the
/// data.
fn misses(plan: Plan) -> (bool, Trace) {
    let scheduler = Scheduler::new(2);
    let pair = Pair::scheduled(WORST, &scheduler);
    pair.store(0, ONE, 1);
    scheduler.plan(plan);
    let missed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut lanes = [pair.domains[0].lane().unwrap()];
            let schedule = scheduler.schedule(Pe(0));
            let _turn = scheduler.enter(0);
            for offset in [DATA, FLAG] {
                let from = pair.local(0, ONE, 8);
                let put = Op::Put {
                    from,
                    to: at(offset),
                };
                post(&mut *lanes[0], Pe(1), put, &*schedule);
            }
            post(&mut *lanes[0], Pe(1), Op::Flush, &*schedule);
            complete(&mut lanes, Pe(1), &*schedule);
        });
        let schedule = scheduler.schedule(Pe(1));
        let _turn = scheduler.enter(1);
        loop {
            schedule.yield_point();
            if pair.load(1, FLAG) == 1 {
                return pair.load(1, DATA) == 0;
            }
            assert!(schedule.idle(), "the flag never comes");
        }
    });
    (missed, scheduler.trace())
}

/// Whether an update of two was lost: each PE loads, then stores one more.
fn loses(plan: Plan) -> (bool, Trace) {
    let scheduler = Scheduler::new(2);
    scheduler.plan(plan);
    let count = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for pe in 0..2 {
            let (scheduler, count) = (&scheduler, &count);
            scope.spawn(move || {
                let schedule = scheduler.schedule(Pe(pe));
                let _turn = scheduler.enter(pe as usize);
                for _ in 0..5 {
                    schedule.yield_point();
                }
                let seen = count.load(Ordering::Relaxed);
                schedule.yield_point();
                count.store(seen + 1, Ordering::Relaxed);
            });
        }
    });
    (count.into_inner() == 1, scheduler.trace())
}

#[test]
fn every_failing_run_shrinks_to_the_known_least_one() {
    // PE 0 goes first, through its five points and past its load; then PE 1 goes, to its end.
    let known = [0, 0, 0, 0, 0, 0, 1];
    let fails = |decisions: &[u32]| loses(Plan::Replay(decisions.to_vec())).0;
    let mut failed = 0;
    for seed in 0..200 {
        let (lost, trace) = loses(Plan::Random(seed));
        if lost {
            failed += 1;
            assert_eq!(shrink(trace.replay(), fails), known, "seed {seed}");
        }
    }
    assert!(failed > 10, "{failed}");
}

#[test]
fn a_failing_run_shrinks_to_one_that_tells_what_went_wrong() {
    let fails = |decisions: &[u32]| misses(Plan::Replay(decisions.to_vec())).0;
    let seed = (0..500).find(|seed| misses(Plan::Random(*seed)).0).unwrap();
    let decisions = misses(Plan::Random(seed)).1.replay();
    let least = shrink(decisions.clone(), fails);
    assert!(fails(&least), "{least:?}");
    assert_eq!(shrink(decisions, fails), least, "not the same twice");
    assert!(!fails(&[]), "the tame run fails");
    // Nothing of it can be left out, nor be lower.
    for at in 0..least.len() {
        let without = [&least[..at], &least[at + 1..]].concat();
        assert!(!fails(&without), "{without:?} fails too");
        for lower in [0, least[at] / 2, least[at].saturating_sub(1)] {
            let mut lowered = least.clone();
            lowered[at] = lower;
            assert!(
                lowered == least || !fails(&lowered),
                "{lowered:?} fails too"
            );
        }
    }
    // It tells what went wrong, in the order in which it did.
    let (_, trace) = misses(Plan::Replay(least));
    let at = |offset| {
        let words = format!("at {offset} of PE 1");
        trace.steps.iter().position(|step| step.contains(&words))
    };
    assert!(at(FLAG) < at(DATA).or(Some(usize::MAX)), "{trace:#?}");
}

/// PEs that all wait for ever.
#[test]
fn a_deadlock_is_told_to_everybody_and_in_the_trace() {
    for seed in 0..50 {
        let scheduler = Scheduler::new(3);
        scheduler.plan(Plan::Random(seed));
        let told = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for pe in 0..3 {
                let (scheduler, told) = (&scheduler, &told);
                scope.spawn(move || {
                    let schedule = scheduler.schedule(Pe(pe));
                    let _turn = scheduler.enter(pe as usize);
                    schedule.yield_point();
                    for _ in 0..10_000 {
                        if !schedule.idle() {
                            told.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        schedule.yield_point();
                    }
                });
            }
        });
        assert_eq!(told.into_inner(), 3, "seed {seed}");
        assert!(scheduler.trace().deadlock, "seed {seed}");
    }
}

#[test]
fn waiting_for_a_pe_that_goes_on_is_no_deadlock() {
    for seed in 0..50 {
        let scheduler = Scheduler::new(2);
        scheduler.plan(Plan::Random(seed));
        let ready = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let schedule = scheduler.schedule(Pe(0));
                let _turn = scheduler.enter(0);
                for _ in 0..200 {
                    schedule.yield_point();
                }
                ready.store(true, Ordering::Relaxed);
            });
            let schedule = scheduler.schedule(Pe(1));
            let _turn = scheduler.enter(1);
            while !ready.load(Ordering::Relaxed) {
                assert!(schedule.idle(), "seed {seed}");
            }
        });
        let trace = scheduler.trace();
        assert!(!trace.deadlock && trace.broken.is_none(), "{trace:#?}");
    }
}

#[test]
fn one_that_goes_in_circles_for_ever_is_given_up() {
    let scheduler = Scheduler::new(2);
    scheduler.plan(Plan::Random(1));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let schedule = scheduler.schedule(Pe(0));
            let _turn = scheduler.enter(0);
            while !stop.load(Ordering::Relaxed) {
                schedule.yield_point();
            }
        });
        let schedule = scheduler.schedule(Pe(1));
        let _turn = scheduler.enter(1);
        while scheduler.trace().broken.is_none() {
            schedule.yield_point();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let why = scheduler.trace().broken.unwrap();
    assert!(why.contains("decisions"), "{why}");
}

#[test]
fn one_that_looks_without_waiting_sees_it_in_the_end_by_every_plan() {
    // PE 1 goes first and alone, others are picked by chance, and the tame one is that nothing moves.
    let first = [0, 1].map(|pe| Plan::Replay(vec![pe]));
    for plan in first.into_iter().chain((0..60).map(Plan::Random)) {
        let scheduler = Scheduler::new(2);
        let pair = Pair::scheduled(WORST, &scheduler);
        pair.store(0, ONE, 1);
        scheduler.plan(plan.clone());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut lane = pair.domains[0].lane().unwrap();
                let schedule = scheduler.schedule(Pe(0));
                let _turn = scheduler.enter(0);
                let put = Op::Put {
                    from: pair.local(0, ONE, 8),
                    to: at(FLAG),
                };
                post(&mut *lane, Pe(1), put, &*schedule);
                while pair.load(1, FLAG) == 0 && scheduler.trace().broken.is_none() {
                    schedule.yield_point();
                }
            });
            let schedule = scheduler.schedule(Pe(1));
            let _turn = scheduler.enter(1);
            while pair.load(1, FLAG) == 0 && scheduler.trace().broken.is_none() {
                schedule.yield_point();
            }
        });
        let trace = scheduler.trace();
        assert_eq!(trace.broken, None, "{plan:?}");
        assert!(!trace.deadlock, "{plan:?}");
    }
}

#[test]
fn a_pe_that_does_not_enter_is_not_waited_for_for_ever() {
    let scheduler = Scheduler::with_patience(2, Duration::from_millis(50));
    drop(scheduler.enter(0));
    let why = scheduler.trace().broken.unwrap();
    assert!(why.contains("PE 1 does not enter"), "{why}");
    let (_, trace) = (scheduler.plan(Plan::Random(1)), round(&scheduler));
    assert!(trace.broken.is_none(), "{trace:?}");
}

#[test]
fn a_thread_that_blocks_outside_is_given_up_and_named() {
    let scheduler = Scheduler::with_patience(2, Duration::from_millis(50));
    // PE 0 goes first.
    scheduler.plan(Plan::Replay(Vec::new()));
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let scheduler = &scheduler;
        scope.spawn(move || {
            let schedule = scheduler.schedule(Pe(0));
            let _turn = scheduler.enter(0);
            schedule.yield_point();
            // Nothing that the scheduler knows of; PE 1 sends, if it ever runs.
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(7));
            schedule.yield_point();
            assert!(schedule.idle(), "given up is not a deadlock");
        });
        let schedule = scheduler.schedule(Pe(1));
        let _turn = scheduler.enter(1);
        schedule.yield_point();
        sender.send(7).unwrap();
    });
    let why = scheduler.trace().broken.unwrap();
    assert!(why.contains("PE 0"), "{why}");
    // The next run is one again.
    let (_, trace) = (scheduler.plan(Plan::Random(1)), round(&scheduler));
    assert!(trace.broken.is_none(), "{trace:?}");
}

/// A run of two threads that do nothing.
fn round(scheduler: &Scheduler) -> Trace {
    std::thread::scope(|scope| {
        scope.spawn(|| drop(scheduler.enter(0)));
        drop(scheduler.enter(1));
    });
    scheduler.trace()
}

#[test]
fn one_thread_runs_at_a_time_in_run_after_run() {
    const PES: usize = 3;
    let scheduler = Scheduler::new(PES);
    scheduler.plan(Plan::Random(3));
    let inside = AtomicUsize::new(0);
    let alone = || {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "not alone");
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for pe in 0..PES {
            let (scheduler, alone) = (&scheduler, &alone);
            scope.spawn(move || {
                let schedule = scheduler.schedule(Pe(pe as u32));
                // The next run begins while others have not left the last.
                for _ in 0..100 {
                    let turn = scheduler.enter(pe);
                    for _ in 0..10 {
                        alone();
                        schedule.yield_point();
                    }
                    drop(turn);
                }
            });
        }
    });
    assert!(scheduler.trace().broken.is_none());
}

#[test]
fn outside_of_runs_nobody_is_held_and_everything_is_done_at_once() {
    let scheduler = Scheduler::new(2);
    scheduler.plan(Plan::Random(9));
    assert_eq!(scheduler.mode(Pe(0)), Mode::Tame);
    assert_eq!(scheduler.choose(5), 0);
    let pair = Pair::scheduled(WORST, &scheduler);
    pair.store(0, ONE, 1);
    let schedule = scheduler.schedule(Pe(0));
    schedule.yield_point();
    assert!(schedule.idle());
    let mut lane = pair.domains[0].lane().unwrap();
    for offset in [DATA, FLAG] {
        let from = pair.local(0, ONE, 8);
        let put = Op::Put {
            from,
            to: at(offset),
        };
        assert_eq!(post(&mut *lane, Pe(1), put, &*schedule), 0);
    }
    lane.progress().unwrap();
    assert_eq!([DATA, FLAG].map(|offset| pair.load(1, offset)), [1, 1]);
    assert!(scheduler.trace().decisions.is_empty());
}

#[test]
fn what_is_under_way_when_a_run_ends_is_done_then() {
    for seed in 0..50 {
        let scheduler = Scheduler::new(1);
        let pair = Pair::scheduled(WORST, &scheduler);
        pair.store(0, ONE, 1);
        scheduler.plan(Plan::Random(seed));
        let mut lane = pair.domains[0].lane().unwrap();
        let schedule = scheduler.schedule(Pe(0));
        let turn = scheduler.enter(0);
        let from = pair.local(0, ONE, 8);
        let put = Op::Put { from, to: at(DATA) };
        post(&mut *lane, Pe(1), put, &*schedule);
        drop(turn);
        assert_eq!(pair.load(1, DATA), 1, "seed {seed}");
    }
}

/// A PE leaves while its operations are under way: the others' turns perform them.
#[test]
fn what_a_pe_has_left_behind_moves_in_the_turns_of_others() {
    let mut late = 0;
    for seed in 0..100 {
        let scheduler = Scheduler::new(2);
        let pair = Pair::scheduled(WORST, &scheduler);
        pair.store(0, ONE, 1);
        scheduler.plan(Plan::Random(seed));
        let (looks, left) = (AtomicU64::new(0), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut lane = pair.domains[0].lane().unwrap();
                let schedule = scheduler.schedule(Pe(0));
                let turn = scheduler.enter(0);
                let from = pair.local(0, ONE, 8);
                let put = Op::Put { from, to: at(DATA) };
                post(&mut *lane, Pe(1), put, &*schedule);
                drop(turn);
                // The lane ends only after the run.
                left.wait();
            });
            let schedule = scheduler.schedule(Pe(1));
            let turn = scheduler.enter(1);
            while pair.load(1, DATA) == 0 {
                looks.fetch_add(1, Ordering::Relaxed);
                assert!(schedule.idle(), "seed {seed}: it never comes");
            }
            drop(turn);
            left.wait();
        });
        late += u64::from(looks.into_inner() > 1);
    }
    assert!(late > 0, "never late");
}

#[test]
fn a_peer_is_lost_at_the_same_place_in_every_replay() {
    let run = |plan| {
        let scheduler = Scheduler::new(1);
        let lose = Some((Pe(1), 2));
        let pair = Pair::scheduled(Settings { lose, ..WORST }, &scheduler);
        scheduler.plan(plan);
        let mut lane = pair.domains[0].lane().unwrap();
        let schedule = scheduler.schedule(Pe(0));
        let turn = scheduler.enter(0);
        for _ in 0..2 {
            post(&mut *lane, Pe(1), add(DATA, 1, None), &*schedule);
        }
        for _ in 0..3 {
            schedule.yield_point();
        }
        let error = refused(&mut *lane, Pe(1), add(DATA, 1, None)).to_string();
        drop(turn);
        (error, pair.load(1, DATA), scheduler.trace().decisions)
    };
    let mut arrived = [false; 3];
    for seed in 0..100 {
        let first = run(Plan::Random(seed));
        assert!(first.0.contains("PE 1"), "{}", first.0);
        arrived[first.1 as usize] = true;
        let replay = first.2.iter().map(|(chosen, _)| *chosen).collect();
        assert_eq!(run(Plan::Replay(replay)), first, "seed {seed}");
    }
    // Operations in flight are cancelled, wherever they were.
    assert_eq!(arrived, [true; 3]);
}
