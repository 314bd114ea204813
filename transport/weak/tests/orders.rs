//! The orders that weak declares hold under every seed; each undeclared one is seen broken soon.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "each test program uses a part of it")]
mod pair;

use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem_transport::{Completion, Error, Guarantees, Op, Pe, SignalOp, SignalSupport};
use oxshmem_weak::{Plan, Scheduler, Settings};
use pair::{Pair, Unscheduled, add, at, complete, post, refused};

const PE1: Pe = Pe(1);
const WORST: Settings = Settings::worst(0);
/// Seeds tried before something counts as never happening.
const SEEDS: u64 = 500;

/// Where operations lie, in both pages: the first's word and the second's.
const FIRST: u64 = 0;
const SECOND: u64 = 8;
/// Where the local buffers lie in PE 0's page.
const ONE: u64 = 64;
const GOT_FIRST: u64 = 72;
const GOT_SECOND: u64 = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    PutPut,
    PutFencePut,
    PutAtomic,
    AtomicPut,
    AtomicAtomic,
    PutGet,
    GetGet,
    FetchFetch,
}

impl Order {
    const ALL: [Order; 8] = [
        Order::PutPut,
        Order::PutFencePut,
        Order::PutAtomic,
        Order::AtomicPut,
        Order::AtomicAtomic,
        Order::PutGet,
        Order::GetGet,
        Order::FetchFetch,
    ];

    /// Whether these promise it.
    fn set(self, promised: &mut Guarantees, value: bool) {
        match self {
            Order::PutPut => promised.put_put = value,
            // Puts that are in order without a fence are so with one.
            Order::PutFencePut => {
                promised.put_fence_put = value;
                promised.put_put &= value;
            }
            Order::PutAtomic => promised.put_atomic = value,
            Order::AtomicPut => promised.atomic_put = value,
            Order::AtomicAtomic => promised.atomic_atomic = value,
            Order::PutGet => promised.put_get = value,
            Order::GetGet => promised.get_get = value,
            // Two fetching atomics are atomics too.
            Order::FetchFetch => (promised.get_get, promised.atomic_atomic) = (value, value),
        }
    }

    fn operations(self, pair: &Pair) -> [Op; 2] {
        let put = |offset| Op::Put {
            from: pair.local(0, ONE, 8),
            to: at(offset),
        };
        let get = |into, offset| Op::Get {
            into: pair.local(0, into, 8),
            from: at(offset),
        };
        let fetch = |into, offset| add(offset, 0, Some(pair.local(0, into, 8)));
        match self {
            Order::PutPut | Order::PutFencePut => [put(FIRST), put(SECOND)],
            Order::PutAtomic => [put(FIRST), add(SECOND, 1, None)],
            Order::AtomicPut => [add(FIRST, 1, None), put(SECOND)],
            Order::AtomicAtomic => [add(FIRST, 1, None), add(SECOND, 1, None)],
            Order::PutGet => [put(FIRST), get(GOT_SECOND, FIRST)],
            // PE 1 writes the second, then the first.
            Order::GetGet => [get(GOT_FIRST, FIRST), get(GOT_SECOND, SECOND)],
            Order::FetchFetch => [fetch(GOT_FIRST, FIRST), fetch(GOT_SECOND, SECOND)],
        }
    }

    fn reads(self) -> bool {
        matches!(self, Order::GetGet | Order::FetchFetch)
    }
}

/// PE 0 does one thing after another, PE 1 looks: whether it saw the second without the first.
fn is_broken(order: Order, two_lanes: bool, guarantees: Guarantees, seed: u64) -> bool {
    let scheduler = Scheduler::new(2);
    let pair = Pair::scheduled(
        Settings {
            guarantees,
            ..WORST
        },
        &scheduler,
    );
    pair.store(0, ONE, 1);
    scheduler.plan(Plan::Random(seed));
    let over = AtomicBool::new(false);
    let broken = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut lanes = [(); 2].map(|()| pair.domains[0].lane().unwrap());
            let schedule = scheduler.schedule(Pe(0));
            let _turn = scheduler.enter(0);
            let [first, second] = order.operations(&pair);
            post(&mut *lanes[0], PE1, first, &*schedule);
            if order == Order::PutFencePut {
                lanes[0].fence(PE1);
            }
            post(&mut *lanes[usize::from(two_lanes)], PE1, second, &*schedule);
            for lane in &mut lanes {
                post(&mut **lane, PE1, Op::Flush, &*schedule);
            }
            complete(&mut lanes, PE1, &*schedule);
            over.store(true, Ordering::Release);
        });
        let schedule = scheduler.schedule(PE1);
        let _turn = scheduler.enter(1);
        let mut broken = false;
        if order.reads() {
            for offset in [SECOND, FIRST] {
                schedule.yield_point();
                pair.store(1, offset, 1);
            }
        }
        while !over.load(Ordering::Acquire) {
            schedule.yield_point();
            // Nobody else runs between these two.
            let seen = [FIRST, SECOND].map(|offset| pair.load(1, offset));
            broken |= !order.reads() && order != Order::PutGet && seen == [0, 1];
            assert!(schedule.idle() || over.load(Ordering::Acquire));
        }
        broken
    });
    let trace = scheduler.trace();
    assert!(trace.broken.is_none() && !trace.deadlock, "{trace:#?}");
    let got = [GOT_FIRST, GOT_SECOND].map(|offset| pair.load(0, offset));
    match order {
        Order::PutGet => got[1] == 0,
        _ if order.reads() => got == [1, 0],
        _ => broken,
    }
}

fn everything(value: bool) -> Guarantees {
    let mut guarantees = WORST.guarantees;
    for order in Order::ALL {
        order.set(&mut guarantees, value);
    }
    guarantees
}

fn is_ever_broken(order: Order, two_lanes: bool, guarantees: Guarantees) -> Option<u64> {
    (0..SEEDS).find(|seed| is_broken(order, two_lanes, guarantees, *seed))
}

#[test]
fn an_order_that_alone_is_declared_is_never_seen_broken() {
    for order in Order::ALL {
        let mut guarantees = everything(false);
        order.set(&mut guarantees, true);
        let seed = is_ever_broken(order, false, guarantees);
        assert_eq!(seed, None, "{order:?} by this seed");
        // A fence is one lane's.
        if order == Order::PutFencePut {
            continue;
        }
        guarantees.across_lanes = true;
        let seed = is_ever_broken(order, true, guarantees);
        assert_eq!(seed, None, "{order:?} across lanes by this seed");
    }
}

#[test]
fn an_order_that_is_not_declared_is_seen_broken_though_all_others_are() {
    for order in Order::ALL {
        let mut guarantees = everything(true);
        guarantees.across_lanes = true;
        order.set(&mut guarantees, false);
        for two_lanes in [false, true] {
            let seed = is_ever_broken(order, two_lanes, guarantees);
            assert!(
                seed.is_some(),
                "{order:?}, {two_lanes}: {SEEDS} seeds keep it"
            );
        }
    }
}

#[test]
fn no_order_holds_between_lanes_where_that_is_not_declared() {
    for order in Order::ALL {
        let seed = is_ever_broken(order, true, everything(true));
        assert!(seed.is_some(), "{order:?}: {SEEDS} seeds keep it");
    }
}

/// PE 0 does `ops`; gives whether `look` ever was true for PE 1, or for PE 0 after it had completed
/// all, by some seed.
fn is_ever(
    settings: Settings,
    ops: impl Fn(&Pair) -> Vec<Op> + Sync,
    look: impl Fn(&Pair, bool) -> bool + Sync,
) -> bool {
    (0..SEEDS).any(|seed| {
        let scheduler = Scheduler::new(2);
        let pair = Pair::scheduled(settings, &scheduler);
        for word in 0..8 {
            pair.store(0, ONE + 8 * word, 1);
        }
        scheduler.plan(Plan::Random(seed));
        let [over, seen] = [(); 2].map(|()| AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut lanes = [pair.domains[0].lane().unwrap()];
                let schedule = scheduler.schedule(Pe(0));
                let _turn = scheduler.enter(0);
                for op in ops(&pair) {
                    post(&mut *lanes[0], PE1, op, &*schedule);
                }
                complete(&mut lanes, PE1, &*schedule);
                seen.fetch_or(look(&pair, true), Ordering::Relaxed);
                post(&mut *lanes[0], PE1, Op::Flush, &*schedule);
                complete(&mut lanes, PE1, &*schedule);
                over.store(true, Ordering::Release);
            });
            let schedule = scheduler.schedule(PE1);
            let _turn = scheduler.enter(1);
            while !over.load(Ordering::Acquire) {
                schedule.yield_point();
                seen.fetch_or(look(&pair, false), Ordering::Relaxed);
                assert!(schedule.idle() || over.load(Ordering::Acquire));
            }
        });
        seen.into_inner()
    })
}

#[test]
fn a_completion_means_placement_exactly_where_that_is_declared() {
    let put = |pair: &Pair| {
        let from = pair.local(0, ONE, 8);
        vec![Op::Put {
            from,
            to: at(FIRST),
        }]
    };
    let missing = |pair: &Pair, completed: bool| completed && pair.load(1, FIRST) == 0;
    let flushed = |pair: &Pair| [put(pair), vec![Op::Flush]].concat();
    for completion in [
        Completion::SourceReusable,
        Completion::Accepted,
        Completion::Placed,
    ] {
        let guarantees = Guarantees {
            completion,
            ..WORST.guarantees
        };
        let settings = Settings {
            guarantees,
            ..WORST
        };
        let early = is_ever(settings, put, missing);
        assert_eq!(early, completion != Completion::Placed, "{completion:?}");
        assert!(
            !is_ever(settings, flushed, missing),
            "{completion:?} and a flush"
        );
    }
}

#[test]
fn m22_a_signal_is_never_seen_before_any_word_of_its_data() {
    let words = |pair: &Pair| [0, 1, 2, 3].map(|word| pair.load(1, 16 + 8 * word));
    let several = Settings::several_queue_pairs(0, 8);
    let ops = |pair: &Pair| {
        vec![Op::PutSignal {
            from: pair.local(0, ONE, 32),
            to: at(16),
            signal: at(FIRST),
            op: SignalOp::Add,
            value: 1,
        }]
    };
    let early = |pair: &Pair, _| pair.load(1, FIRST) == 1 && words(pair) != [1; 4];
    assert!(!is_ever(WORST, ops, early));
    assert!(!is_ever(several, ops, early));
    // Its data comes in any order, in pieces.
    let torn = |pair: &Pair, _| words(pair) == [0, 1, 0, 0];
    assert!(is_ever(WORST, ops, torn));
}

/// Operations of more than 8 bytes go by several queue pairs.
#[test]
fn long_operations_keep_no_order() {
    let settings = Settings::several_queue_pairs(0, 8);
    let put = |pair: &Pair, offset, len| Op::Put {
        from: pair.local(0, ONE, len),
        to: at(offset),
    };
    // The lengths of two puts: whether the second may be seen without the first.
    for (lengths, may_be_late) in [([8, 8], false), ([16, 8], true), ([8, 16], true)] {
        let [first, second] = lengths;
        let ops = |pair: &Pair| vec![put(pair, 16, first), put(pair, 32, second)];
        let late = |pair: &Pair, _| pair.load(1, 32) == 1 && pair.load(1, 16) == 0;
        assert_eq!(is_ever(settings, ops, late), may_be_late, "{lengths:?}");
    }
    // A get of the word that a put before it wrote.
    for (length, may_be_old) in [(8, false), (16, true)] {
        let ops = |pair: &Pair| {
            let get = Op::Get {
                into: pair.local(0, GOT_FIRST + 64, 8),
                from: at(16),
            };
            vec![put(pair, 16, length), get]
        };
        let old = |pair: &Pair, completed: bool| completed && pair.load(0, GOT_FIRST + 64) == 0;
        assert_eq!(is_ever(settings, ops, old), may_be_old, "{length}");
    }
}

#[test]
fn a_put_beside_a_signal_may_come_after_it() {
    let ops = |pair: &Pair| {
        let from = pair.local(0, ONE, 8);
        vec![
            Op::Put { from, to: at(16) },
            Op::PutSignal {
                from,
                to: at(24),
                signal: at(FIRST),
                op: SignalOp::Set,
                value: 1,
            },
        ]
    };
    let late = |pair: &Pair, _| pair.load(1, FIRST) == 1 && pair.load(1, 16) == 0;
    assert!(is_ever(WORST, ops, late));
    let mut ordered = WORST;
    ordered.guarantees.put_put = true;
    assert!(!is_ever(ordered, ops, late));
}

#[test]
fn a_source_beyond_the_inline_limit_is_read_when_the_put_is_performed() {
    let ops = |pair: &Pair| {
        let from = pair.local(0, ONE, 8);
        vec![Op::Put {
            from,
            to: at(FIRST),
        }]
    };
    // PE 1 plays the user who reuses the source too early.
    let reuse = |pair: &Pair, completed: bool| {
        if !completed {
            pair.store(0, ONE, 7);
        }
        completed && pair.load(1, FIRST) == 7
    };
    let copies_none = Settings { inline: 0, ..WORST };
    assert!(is_ever(copies_none, ops, reuse));
}

fn puts(pair: &Pair, count: u64) -> impl Iterator<Item = Op> {
    (0..count).map(|word| Op::Put {
        from: pair.local(0, ONE, 8),
        to: at(1024 + 8 * word),
    })
}

#[test]
fn full_comes_and_goes_whoever_decides() {
    for depth in [1, 2, 8] {
        let settings = Settings {
            depth: Some(depth),
            ..WORST
        };
        let mut full = 0;
        for seed in 0..20 {
            let pair = Pair::free(Settings { seed, ..settings });
            let mut lanes = [pair.domains[0].lane().unwrap()];
            for op in puts(&pair, 100) {
                full += post(&mut *lanes[0], PE1, op, &Unscheduled);
            }
            post(&mut *lanes[0], PE1, Op::Flush, &Unscheduled);
            complete(&mut lanes, PE1, &Unscheduled);
        }
        assert!(full > 0, "depth {depth}: never full");

        let mut full = 0;
        for seed in 0..20 {
            let scheduler = Scheduler::new(1);
            let pair = Pair::scheduled(settings, &scheduler);
            let mut lanes = [pair.domains[0].lane().unwrap()];
            let schedule = scheduler.schedule(Pe(0));
            scheduler.plan(Plan::Random(seed));
            let turn = scheduler.enter(0);
            for op in puts(&pair, 100) {
                full += post(&mut *lanes[0], PE1, op, &*schedule);
            }
            post(&mut *lanes[0], PE1, Op::Flush, &*schedule);
            complete(&mut lanes, PE1, &*schedule);
            drop(turn);
            let trace = scheduler.trace();
            assert!(trace.broken.is_none() && !trace.deadlock, "{trace:#?}");
        }
        assert!(full > 0, "depth {depth}, by a schedule: never full");
    }
}

#[test]
fn what_a_pe_leaves_behind_is_performed_though_it_makes_no_call() {
    let pair = Pair::free(WORST);
    pair.store(0, ONE, 1);
    let mut lane = pair.domains[0].lane().unwrap();
    for op in puts(&pair, 8) {
        post(&mut *lane, PE1, op, &Unscheduled);
    }
    let since = std::time::Instant::now();
    while (0..8).any(|word| pair.load(1, 1024 + 8 * word) == 0) {
        assert!(since.elapsed().as_secs() < 60, "it stays behind");
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_is_lost_on_cue() {
    for after in [0, 3] {
        let lose = Some((PE1, after));
        let pair = Pair::free(Settings { lose, ..WORST });
        let mut lane = pair.domains[0].lane().unwrap();
        for op in puts(&pair, after) {
            post(&mut *lane, PE1, op, &Unscheduled);
        }
        let mut other = pair.domains[0].lane().unwrap();
        for lane in [&mut lane, &mut other] {
            for op in [Op::Flush, puts(&pair, 1).next().unwrap()] {
                let error = refused(&mut **lane, PE1, op);
                assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
            }
        }
        // Outstanding operations are cancelled: as after `peer_lost`, no counter grows.
        let before = lane.counters(PE1);
        for _ in 0..100 {
            let _told = lane.progress();
        }
        assert_eq!(lane.counters(PE1), before);
        // Others go on.
        let own = puts(&pair, 1).next().unwrap();
        let mut lanes = [lane];
        post(&mut *lanes[0], Pe(0), own, &Unscheduled);
        complete(&mut lanes, Pe(0), &Unscheduled);
        // Nor does another PE lose it.
        let mut theirs = pair.domains[1].lane().unwrap();
        post(&mut *theirs, Pe(0), Op::Flush, &Unscheduled);
    }
}

#[test]
fn a_transport_that_maps_is_reached_by_lanes_alone_and_says_what_is_promised() {
    let settings = Settings {
        put_signal: SignalSupport::None,
        depth: None,
        ..WORST
    };
    let pair = Pair::free(settings);
    let domain = &pair.domains[0];
    assert_eq!(domain.capabilities().put_signal, SignalSupport::None);
    assert_eq!(domain.capabilities().depth, None);
    let kind = oxshmem_transport::MemoryKind::Host;
    assert_eq!(domain.guarantees(kind), Some(WORST.guarantees));
    let mut lane = domain.lane().unwrap();
    // Without a depth it is never full.
    for op in puts(&pair, 300) {
        assert_eq!(post(&mut *lane, PE1, op, &Unscheduled), 0);
    }
}
