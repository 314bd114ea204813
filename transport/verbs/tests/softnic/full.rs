//! Devices that have no room for requests, though by the lane's count they have.

use oxshmem_transport::{AtomicOp, Error, Op, RegionId, Remote, Width};
use oxshmem_verbs::Settings;

use super::pair::{PE0, PE1, Side, remote};
use super::{connect_anew, control, impatient, put, sides};

const WORDS: usize = 40;

/// A put that is long where 64 bytes are, and its place.
const LONG: usize = 4096;
const LONG_BYTES: usize = 20_000;

/// Puts of words, and additions of one to a word that counts them; and a longer put.
fn ops(side: &Side) -> Vec<Op> {
    let long = Op::Put {
        from: side.local(LONG, LONG_BYTES),
        to: remote(LONG as u64),
    };
    let short = (0..WORDS).flat_map(|at| {
        let put = Op::Put {
            from: side.local(64 + at * 8, 8),
            to: remote(64 + at as u64 * 8),
        };
        [put, ADD]
    });
    let mut all: Vec<Op> = short.collect();
    all.insert(3, long);
    all.push(long);
    all
}

const ADD: Op = Op::Atomic {
    op: AtomicOp::Add,
    width: Width::W64,
    on: Remote {
        region: RegionId(0),
        offset: 0,
    },
    operand: 1,
    compare: 0,
    fetch: None,
};

/// Requests that find no room, after so many that do.
fn survives(settings: &Settings, full: &str) {
    let [mut one, other] = sides(settings.clone());
    put(&mut one, &other, 0).unwrap();
    for round in 1..4_u64 {
        (0..WORDS).for_each(|at| one.store(64 + at * 8, round * 1000 + at as u64));
        (0..LONG_BYTES / 8).for_each(|at| one.store(LONG + at * 8, round << 32 | at as u64));
        control(full);
        let list = ops(&one);
        // SAFETY: the side's memory, which is left alone.
        unsafe { one.perform(PE1, &list) }.unwrap();
        let arrived = |at: usize| other.load(64 + at * 8) == round * 1000 + at as u64;
        assert!((0..WORDS).all(arrived), "{full}, round {round}");
        let long_arrived = |at: usize| other.load(LONG + at * 8) == round << 32 | at as u64;
        assert!(
            (0..LONG_BYTES / 8).all(long_arrived),
            "{full}, round {round}"
        );
        // Each request was performed once.
        assert_eq!(other.load(0), round * WORDS as u64, "{full}");
    }
    control("full 0");
    let counters = one.lane.counters(PE1);
    assert_eq!(counters.completed, counters.posted);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn requests_that_find_no_room_are_posted_again_and_once() {
    for full in [
        "full 1",
        "full 3",
        "full 2 5",
        "full 4 3",
        "full 50 7",
        "full 4 70",
    ] {
        survives(&impatient(), full);
        let several = Settings {
            queue_pairs: 2,
            stripe: 64,
            ..impatient()
        };
        survives(&several, full);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_device_without_room_for_good_ends_the_connection_and_says_so() {
    let [mut one, other] = sides(impatient());
    put(&mut one, &other, 0).unwrap();
    control("full 4000000000 5");
    let list = ops(&one);
    // SAFETY: the side's memory, which is left alone.
    let posted = unsafe { one.post(PE1, &list) };
    control("full 0");
    let error = posted.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, Error::Connection { pe: PE1, .. }), "{told}");
    for word in [
        "ibv_post_send on mlx5_0:1",
        "os error 12",
        "OXSHMEM_VERBS_DEPTH",
    ] {
        assert!(told.contains(word), "{told}");
    }
    // Those that were taken have not kept room in the queue of completions: others have all of it.
    let own = Op::Put {
        from: one.local(400_000, 8),
        to: remote(400_008),
    };
    for _ in 0..200 {
        // SAFETY: as above.
        unsafe { one.perform(PE0, &[own; 20]) }.unwrap();
    }
    connect_anew(&mut one, &other).unwrap();
    put(&mut one, &other, 1).unwrap();
}
