//! Several queue pairs to a peer, of which some are lost: the others carry out what was outstanding.

use oxshmem_transport::{Error, Op, SignalOp, Status};
use oxshmem_verbs::Settings;

use super::pair::{PE0, PE1, Side, remote};
use super::{control, drive_until, error_of, impatient, put, sides};

const BYTES: usize = 200_000;
const SIGNAL: usize = 400_000;

/// Queue pairs for long transfers, and the length of those.
fn settings(queue_pairs: u32) -> Settings {
    Settings {
        queue_pairs,
        stripe: 64,
        ..impatient()
    }
}

fn fill(side: &Side, at: usize, round: u64) {
    (0..BYTES / 8).for_each(|word| side.store(at + word * 8, round * 1_000_000 + word as u64));
}

fn is_filled(side: &Side, at: usize, round: u64) -> bool {
    (0..BYTES / 8).all(|word| side.load(at + word * 8) == round * 1_000_000 + word as u64)
}

/// A long put, whose first byte is no word's first, with a signal or not.
fn long_put(side: &Side, signal: Option<u64>) -> Op {
    let (from, to) = (side.local(3, BYTES - 3), remote(3));
    match signal {
        None => Op::Put { from, to },
        Some(value) => Op::PutSignal {
            from,
            to,
            signal: remote(SIGNAL as u64),
            op: SignalOp::Add,
            value,
        },
    }
}

fn perform(side: &mut Side, op: Op) {
    // SAFETY: the side's memory, which is left alone.
    unsafe { side.perform(PE1, &[op]) }.unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn long_transfers_go_on_by_the_other_queue_pairs_until_the_last_is_lost() {
    let [mut one, other] = sides(settings(4));
    put(&mut one, &other, 1).unwrap();
    // The first request of each transfer is that of a bulk queue pair, while there is one; then nothing is lost.
    for round in 0..5 {
        fill(&one, 0, round);
        if round < 4 {
            control("status RETRY_EXC_ERR");
        }
        let op = long_put(&one, None);
        perform(&mut one, op);
        assert!(
            (1..BYTES / 8).all(|word| other.load(word * 8) == one.load(word * 8)),
            "round {round}"
        );
        let counters = one.lane.counters(PE1);
        assert_eq!(counters.completed, counters.posted);
        put(&mut one, &other, 10 + round).unwrap();
    }
}

/// Calls of `progress` before which a lane has unsignaled requests completed for nobody.
const SOON: u32 = 2000;

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_long_get_does_not_wait_until_short_puts_before_it_are_looked_for() {
    let [mut one, other] = sides(settings(2));
    put(&mut one, &other, 1).unwrap();
    fill(&other, 0, 5);
    let short = Op::Put {
        from: one.local(0, 8),
        to: remote(SIGNAL as u64),
    };
    let get = Op::Get {
        into: one.local(400_000, BYTES),
        from: remote(0),
    };
    // SAFETY: the side's memory, which is left alone.
    let posted = unsafe { one.lane.post(PE1, &[short, get]) };
    assert_eq!(posted.accepted, 2, "{posted:?}");
    let mut rounds = 0;
    while one.lane.counters(PE1).completed < one.lane.counters(PE1).posted {
        one.lane.progress().unwrap();
        rounds += 1;
        assert!(rounds < SOON, "the get waits for the put's completion");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(is_filled(&one, 400_000, 5));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn gets_of_a_lost_queue_pair_arrive() {
    let [mut one, other] = sides(settings(3));
    put(&mut one, &other, 1).unwrap();
    for round in 0..4 {
        fill(&other, 0, round);
        let into = 400_000;
        fill(&one, into, 77);
        if round < 3 {
            control("status RETRY_EXC_ERR");
        }
        let op = Op::Get {
            into: one.local(into, BYTES),
            from: remote(0),
        };
        perform(&mut one, op);
        assert!(is_filled(&one, into, round), "round {round}");
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m22_a_signal_comes_once_and_after_data_that_went_another_way() {
    let [mut one, other] = sides(settings(2));
    put(&mut one, &other, 1).unwrap();
    other.store(SIGNAL, 0);
    for round in 0..3 {
        fill(&one, 0, round);
        if round < 2 {
            control("status RETRY_EXC_ERR");
        }
        let op = long_put(&one, Some(1));
        // SAFETY: the side's memory, which is left alone until the signal was seen.
        let posted = unsafe { one.lane.post(PE1, &[op]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        drive_until(&mut one, "no signal came", || other.load(SIGNAL) != round);
        assert!(
            (1..BYTES / 8).all(|word| other.load(word * 8) == one.load(word * 8)),
            "round {round}: the signal came before its data"
        );
        one.complete(PE1).unwrap();
        assert_eq!(other.load(SIGNAL), round + 1);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_peer_that_answers_on_no_queue_pair_is_lost() {
    let [mut one, other] = sides(settings(4));
    put(&mut one, &other, 1).unwrap();
    control("down mlx5_1 1");
    let op = long_put(&one, None);
    // SAFETY: the side's memory, which is left alone.
    let posted = unsafe { one.lane.post(PE1, &[op]) };
    assert_eq!(posted.accepted, 1, "{posted:?}");
    let error = error_of(&mut one);
    control("up mlx5_1 1");
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
    // SAFETY: as above.
    let posted = unsafe { one.lane.post(PE1, &[op]) };
    assert!(matches!(posted.status, Status::Refused(_)), "{posted:?}");
    // Others go on.
    // SAFETY: as above.
    unsafe { one.perform(PE0, &[op]) }.unwrap();
}
