//! The machine under the scheduler: what a seed finds is found again by its decisions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use oxshmem_transport::{MemoryKind, Pe, Width};
use oxshmem_weak::{Environment, Machine, Plan, Scheduler, Trace};

const FLAG: u64 = 0;
const DATA: u64 = 8;

/// One thread stores data and flag, the other waits for the flag: what it then sees of the data.
fn message_passing(plan: Plan, ordered: bool) -> (u64, Trace) {
    let scheduler = Scheduler::new(2);
    let machine = Machine::new(2, scheduler.clone());
    let environment: Weak<Machine> = Arc::downgrade(&machine);
    scheduler.attach(environment as Weak<dyn Environment>);
    let memory = machine.storage(Pe(1), MemoryKind::Host, 64);
    scheduler.plan(plan);
    let (release, acquire) = if ordered {
        (Ordering::Release, Ordering::Acquire)
    } else {
        (Ordering::Relaxed, Ordering::Relaxed)
    };
    let point = |pe| {
        let schedule = scheduler.schedule(Pe(pe));
        schedule.yield_point();
        schedule
    };
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _turn = scheduler.enter(0);
            for (offset, order) in [(DATA, Ordering::Relaxed), (FLAG, release)] {
                point(0);
                machine.store_word(Pe(0), &memory, offset, Width::W64, 1, order);
            }
        });
        let _turn = scheduler.enter(1);
        let look = |offset, order| machine.load_word(Pe(1), &memory, offset, Width::W64, order);
        loop {
            let schedule = point(1);
            if look(FLAG, acquire) == 1 {
                break;
            }
            assert!(schedule.idle(), "the flag never comes");
        }
        point(1);
        look(DATA, Ordering::Relaxed)
    });
    (seen, scheduler.trace())
}

#[test]
fn a_missing_order_is_found_by_few_seeds_and_again_by_their_decisions() {
    let mut missed = 0;
    for seed in 0..200 {
        let (seen, trace) = message_passing(Plan::Random(seed), false);
        missed += 1 - seen;
        let (again, retrace) = message_passing(Plan::Replay(trace.replay()), false);
        assert_eq!(again, seen, "{trace:#?}");
        assert_eq!(retrace.decisions, trace.decisions);
        assert_eq!(retrace.steps, trace.steps);
    }
    assert!((1..200).contains(&missed), "{missed} of 200");
}

#[test]
fn an_order_that_is_asked_for_holds_under_every_seed() {
    for seed in 0..500 {
        let (seen, trace) = message_passing(Plan::Random(seed), true);
        assert_eq!(seen, 1, "{trace:#?}");
        assert!(trace.broken.is_none() && !trace.deadlock, "{trace:#?}");
    }
}

#[test]
fn the_tame_run_misses_nothing_whatever_the_program_left_out() {
    let (seen, trace) = message_passing(Plan::Replay(Vec::new()), false);
    assert_eq!(seen, 1, "{trace:#?}");
}
