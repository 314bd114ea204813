//! Asynchronous events of a device that end connections, or have them made again.

use oxshmem_transport::{Error, Op, Status};
use oxshmem_verbs::Settings;

use super::links::{fetched, filled, gets, is_interruption, post, reconnect};
use super::nic::counter;
use super::pair::{PE0, PE1, Side, remote};
use super::{control, error_of, impatient, put, sides};

/// Gives a side a new lane towards the other one. Gives the number of the queue pair of its operations.
fn new_lane(one: &mut Side, other: &Side) -> u64 {
    one.lane = one.domain.lane().unwrap();
    let endpoint = one.lane.endpoint(PE1).unwrap();
    let number = counter("newest_queue_pair");
    let answer = other.domain.accept(PE0, &endpoint).unwrap();
    one.lane.connect(PE1, &answer).unwrap();
    number
}

fn fail(number: u64) {
    control(&format!("event mlx5_0 QP_FATAL {number}"));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_that_fails_while_it_is_idle_is_made_anew_before_the_next_operation() {
    let [mut one, other] = sides(impatient());
    for is_used in [true, false, true] {
        let number = new_lane(&mut one, &other);
        if is_used {
            put(&mut one, &other, 1).unwrap();
        }
        fail(number);
        let error = error_of(&mut one);
        assert!(is_interruption(&error), "{error}");
        let counters = one.lane.counters(PE1);
        assert_eq!(counters.posted, counters.completed);
        reconnect(&mut one, &other);
        put(&mut one, &other, 2).unwrap();
        one.lane.progress().unwrap();
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_that_fails_again_and_again_is_given_up_only_if_its_peer_never_answers() {
    let [mut one, other] = sides(impatient());
    let mut number = new_lane(&mut one, &other);
    for round in 0..5 {
        put(&mut one, &other, round).unwrap();
        fail(number);
        assert!(is_interruption(&error_of(&mut one)));
        let endpoint = one.lane.endpoint(PE1).unwrap();
        number = counter("newest_queue_pair");
        let answer = other.domain.accept(PE0, &endpoint).unwrap();
        one.lane.connect(PE1, &answer).unwrap();
    }
    // Twice without an operation between them, and once more.
    fail(number);
    assert!(is_interruption(&error_of(&mut one)));
    let endpoint = one.lane.endpoint(PE1).unwrap();
    number = counter("newest_queue_pair");
    let answer = other.domain.accept(PE0, &endpoint).unwrap();
    one.lane.connect(PE1, &answer).unwrap();
    fail(number);
    // SAFETY: a flush has no local memory.
    let posted = unsafe { one.lane.post(PE1, &[Op::Flush]) };
    assert!(matches!(posted.status, Status::All), "{posted:?}");
    let error = error_of(&mut one);
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn gets_that_are_flushed_are_carried_out_by_a_new_queue_pair() {
    let [mut one, other] = filled(impatient());
    for round in 0..3 {
        let number = new_lane(&mut one, &other);
        put(&mut one, &other, 1).unwrap();
        (0..40).for_each(|at| one.store(at * 8, 0));
        // The device's event is not read yet.
        fail(number);
        let list = gets(&one);
        post(&mut one, &list);
        let error = error_of(&mut one);
        assert!(is_interruption(&error), "{error}");
        reconnect(&mut one, &other);
        one.complete(PE1).unwrap();
        assert!(fetched(&one), "round {round}");
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_put_that_is_flushed_is_in_doubt() {
    let [mut one, other] = sides(impatient());
    let number = new_lane(&mut one, &other);
    put(&mut one, &other, 1).unwrap();
    // It was posted before anything was known of the failure, so that it may have been performed.
    let op = Op::Put {
        from: one.local(0, 8),
        to: remote(0),
    };
    control("down mlx5_1 1");
    post(&mut one, &[op]);
    fail(number);
    let error = error_of(&mut one);
    control("up mlx5_1 1");
    let told = error.to_string();
    assert!(matches!(error, Error::Connection { pe: PE1, .. }), "{told}");
    assert!(told.contains("IBV_WC_WR_FLUSH_ERR"), "{told}");
    // A program that makes a new context has a connection again.
    new_lane(&mut one, &other);
    put(&mut one, &other, 2).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_of_long_transfers_that_fails_is_done_without() {
    let settings = Settings {
        queue_pairs: 2,
        stripe: 64,
        ..impatient()
    };
    let [mut one, other] = sides(settings);
    // The last one made is one of long transfers.
    let number = new_lane(&mut one, &other);
    let long = |side: &Side| Op::Put {
        from: side.local(4096, 200_000),
        to: remote(4096),
    };
    for round in 0..4 {
        (0..25_000).for_each(|word| one.store(4096 + word * 8, round * 100_000 + word as u64));
        let op = long(&one);
        // SAFETY: the side's memory, which is left alone.
        unsafe { one.post(PE1, &[op]) }.unwrap();
        if round == 1 {
            fail(number);
        }
        // SAFETY: a flush has no local memory.
        unsafe { one.perform(PE1, &[Op::Flush]) }.unwrap();
        let mut words = 0..25_000;
        let value = |word: usize| other.load(4096 + word * 8) == round * 100_000 + word as u64;
        assert!(words.all(value), "round {round}");
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_shared_receive_queue_that_failed_ends_its_domain_with_its_name() {
    let [mut one, mut other] = sides(impatient());
    put(&mut one, &other, 1).unwrap();
    control("event mlx5_1 SRQ_ERR");
    // Nothing else tells it: the device fails no queue pair by itself.
    let error = error_of(&mut other);
    let told = error.to_string();
    assert!(matches!(error, Error::Connection { .. }), "{told}");
    assert!(told.contains("IBV_EVENT_SRQ_ERR on mlx5_1:1"), "{told}");
    // SAFETY: a flush has no local memory.
    let refused = unsafe { other.post(PE1, &[Op::Flush]) }.unwrap_err();
    assert!(
        refused.to_string().contains("IBV_EVENT_SRQ_ERR"),
        "{refused}"
    );
    assert!(other.domain.lane().unwrap().endpoint(PE1).is_err());
    // The other device has nothing to do with it.
    put(&mut one, &other, 2).unwrap();
}
