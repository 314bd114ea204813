//! Links that are down for a while: shorter than the retries last, and longer.

use std::time::Instant;

use oxshmem_transport::{Error, Local, Op, Posted, Status};
use oxshmem_verbs::Settings;

use super::pair::{PATIENCE, PE0, PE1, Side, remote};
use super::{control, error_of, impatient, put, sides};

const WORDS: usize = 40;

/// Gets of words of the other side's second page to this side's first one, some with registered local memory.
pub fn gets(side: &Side) -> Vec<Op> {
    (0..WORDS)
        .map(|at| {
            let mut into = side.local(at * 8, 8);
            into.key = into.key.filter(|_| at % 2 == 0);
            Op::Get {
                into,
                from: remote(4096 + at as u64 * 8),
            }
        })
        .collect()
}

/// Two sides with a connection that has carried data, and what the gets are to bring.
pub fn filled(settings: Settings) -> [Side; 2] {
    let [mut one, other] = sides(settings);
    put(&mut one, &other, 1).unwrap();
    (0..WORDS).for_each(|at| other.store(4096 + at * 8, 100 + at as u64));
    [one, other]
}

/// Posts operations, which the lane takes all.
pub fn post(side: &mut Side, ops: &[Op]) {
    // SAFETY: the local memory is the side's, which is left alone.
    let posted = unsafe { side.lane.post(PE1, ops) };
    assert_eq!(posted.accepted, ops.len(), "{posted:?}");
}

pub fn is_interruption(error: &Error) -> bool {
    matches!(error, Error::Interrupted { pe: PE1, .. })
}

/// Connects an interrupted lane again, as the engine does.
pub fn reconnect(one: &mut Side, other: &Side) {
    let endpoint = one.lane.endpoint(PE1).unwrap();
    assert_eq!(endpoint, one.lane.endpoint(PE1).unwrap());
    // SAFETY: a flush has no local memory.
    let posted: Posted = unsafe { one.lane.post(PE1, &[Op::Flush]) };
    assert!(matches!(posted.status, Status::Full), "{posted:?}");
    let answer = other.domain.accept(PE0, &endpoint).unwrap();
    one.lane.connect(PE1, &answer).unwrap();
}

pub fn fetched(side: &Side) -> bool {
    (0..WORDS).all(|at| side.load(at * 8) == 100 + at as u64)
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_link_that_is_down_for_ten_seconds_is_survived() {
    let [mut one, other] = filled(Settings::default());
    // By the time scale of these tests.
    control("down mlx5_1 1 10000");
    put(&mut one, &other, 2).unwrap();
    control("down mlx5_0 1 10000");
    put(&mut one, &other, 3).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn gets_that_were_interrupted_are_carried_out_by_a_new_connection() {
    let [mut one, other] = filled(impatient());
    for round in 0..3 {
        (0..WORDS).for_each(|at| one.store(at * 8, 0));
        control("status RETRY_EXC_ERR");
        let list = gets(&one);
        post(&mut one, &list);
        let error = error_of(&mut one);
        assert!(is_interruption(&error), "{error}");
        let before = one.lane.counters(PE1);
        assert!(before.completed < before.posted);
        reconnect(&mut one, &other);
        one.complete(PE1).unwrap();
        assert!(fetched(&one), "round {round}");
        // It is as good as the first one.
        put(&mut one, &other, 10 + round).unwrap();
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_link_that_is_down_for_longer_interrupts_gets_and_fails_puts() {
    let [mut one, other] = filled(impatient());
    control("down mlx5_1 1");
    let list = gets(&one);
    post(&mut one, &list);
    let error = error_of(&mut one);
    assert!(is_interruption(&error), "{error}");
    control("up mlx5_1 1");
    reconnect(&mut one, &other);
    one.complete(PE1).unwrap();
    assert!(fetched(&one));

    // Nothing tells whether it was performed.
    control("down mlx5_1 1");
    let put = Op::Put {
        from: one.local(0, 8),
        to: remote(0),
    };
    post(&mut one, &[list[0], put, list[1]]);
    let error = error_of(&mut one);
    control("up mlx5_1 1");
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
    // SAFETY: as in `post`.
    let posted = unsafe { one.lane.post(PE1, &list) };
    let lost = Status::Refused(Error::PeerLost {
        transport: "verbs",
        pe: PE1,
    });
    assert_eq!(format!("{:?}", posted.status), format!("{lost:?}"));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn puts_that_were_answered_are_not_in_doubt() {
    let [mut one, other] = filled(impatient());
    // Nothing asks for the completion of these puts, and nothing looks for it.
    let words = [11_u64, 12];
    let op = |at: usize| Op::Put {
        from: Local {
            addr: words[at..].as_ptr().cast::<u8>().cast_mut(),
            len: 8,
            key: None,
        },
        to: remote(64 * at as u64),
    };
    post(&mut one, &[op(0), op(1)]);
    let since = Instant::now();
    while (other.load(0), other.load(64)) != (11, 12) {
        assert!(since.elapsed() < PATIENCE, "no put came");
        std::thread::yield_now();
    }
    // Round trips of another connection: the acknowledgements have come meanwhile.
    let own = Op::Put {
        from: one.local(8192, 8),
        to: remote(8200),
    };
    for _ in 0..8 {
        // SAFETY: as in `post`.
        unsafe { one.perform(PE0, &[own]) }.unwrap();
    }
    control("down mlx5_1 1");
    let list = gets(&one);
    post(&mut one, &list);
    let error = error_of(&mut one);
    control("up mlx5_1 1");
    assert!(is_interruption(&error), "{error}");
    reconnect(&mut one, &other);
    one.complete(PE1).unwrap();
    assert!(fetched(&one));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_connection_with_a_flush_outstanding_is_made_again() {
    let [mut one, other] = filled(impatient());
    control("status RETRY_EXC_ERR");
    post(&mut one, &[Op::Flush]);
    let error = error_of(&mut one);
    assert!(is_interruption(&error), "{error}");
    reconnect(&mut one, &other);
    one.complete(PE1).unwrap();
    put(&mut one, &other, 4).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_empty_write_that_was_interrupted_is_repeated_with_an_address_and_a_key() {
    // The device checks both, as `empty_keys=on` of ci/test-softnic says.
    let [mut one, other] = filled(impatient());
    other.store(0, 0);
    let words = [21_u64];
    let op = Op::Put {
        from: Local {
            addr: words.as_ptr().cast::<u8>().cast_mut(),
            len: 8,
            key: None,
        },
        to: remote(0),
    };
    post(&mut one, &[op]);
    let since = Instant::now();
    while other.load(0) != 21 {
        assert!(since.elapsed() < PATIENCE, "no put came");
        std::thread::yield_now();
    }
    // The next request is the empty write that completes the put.
    control("status RETRY_EXC_ERR");
    one.lane.request_completion(PE1);
    let error = error_of(&mut one);
    assert!(is_interruption(&error), "{error}");
    let before = one.lane.counters(PE1);
    assert_eq!(before.completed, before.posted, "the put was answered");
    reconnect(&mut one, &other);
    put(&mut one, &other, 22).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_peer_that_answers_no_new_connection_is_lost() {
    let [mut one, other] = filled(impatient());
    control("down mlx5_1 1");
    let list = gets(&one);
    post(&mut one, &list);
    for attempt in 0..2 {
        let error = error_of(&mut one);
        assert!(is_interruption(&error), "attempt {attempt}: {error}");
        reconnect(&mut one, &other);
    }
    let error = error_of(&mut one);
    control("up mlx5_1 1");
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_interrupted_connection_ends_with_its_peer_and_with_its_lane() {
    let [mut one, other] = filled(impatient());
    let interrupt = |one: &mut Side| {
        control("status RETRY_EXC_ERR");
        let list = gets(one);
        post(one, &list);
        let error = error_of(one);
        assert!(is_interruption(&error), "{error}");
    };
    interrupt(&mut one);
    let endpoint = one.lane.endpoint(PE1).unwrap();
    one.domain.peer_lost(PE1);
    one.lane.progress().unwrap();
    let answer = other.domain.accept(PE0, &endpoint).unwrap();
    assert!(one.lane.connect(PE1, &answer).is_err());
    drop(one);
    let [mut one, _other] = filled(impatient());
    interrupt(&mut one);
    drop(one);
}
