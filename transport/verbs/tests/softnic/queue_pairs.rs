//! Several queue pairs to a peer, of which some are lost: the others carry out what was outstanding.

use std::time::Duration;

use oxshmem_transport::{Error, Op, SignalOp, Status};
use oxshmem_verbs::{Settings, UNREGISTERED};

use super::links::{is_interruption, post, reconnect};
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
    let mut error = error_of(&mut one);
    // A part may be written again, so the connection is made again, as often as one for gets.
    for _ in 0..2 {
        assert!(is_interruption(&error), "{error}");
        reconnect(&mut one, &other);
        error = error_of(&mut one);
    }
    control("up mlx5_1 1");
    assert!(matches!(error, Error::PeerLost { pe: PE1, .. }), "{error}");
    // SAFETY: as above.
    let posted = unsafe { one.lane.post(PE1, &[op]) };
    assert!(matches!(posted.status, Status::Refused(_)), "{posted:?}");
    // Others go on.
    // SAFETY: as above.
    unsafe { one.perform(PE0, &[op]) }.unwrap();
}

/// A short get, of the other side's last word into this side's.
fn short_get(side: &Side) -> Op {
    Op::Get {
        into: side.local(WORD, 8),
        from: remote(WORD as u64),
    }
}

const WORD: usize = 800_000;

/// The first queue pair is silent while parts of long operations are outstanding at the others, and none has arrived.
/// The connection is made again, and each is carried out once.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn long_operations_behind_a_silent_first_queue_pair_are_carried_out_once() {
    for with_signal in [false, true] {
        // The others' retries last longer than the first one's failure takes.
        let settings = Settings {
            timeout: None,
            ..settings(3)
        };
        let [mut one, mut other] = sides(settings);
        put(&mut one, &other, 1).unwrap();
        fill(&one, 0, 7);
        other.store(SIGNAL, 0);
        other.store(WORD, 9);
        control("down mlx5_1 1");
        let put_op = long_put(&one, with_signal.then_some(1));
        let get_op = Op::Get {
            into: one.local(600_000, BYTES - 8),
            from: remote(600_000),
        };
        // SAFETY: the side's memory, which is left alone.
        let posted = unsafe { one.lane.post(PE1, &[put_op, get_op]) };
        assert_eq!(posted.accepted, 2, "{posted:?}");
        control("status RETRY_EXC_ERR");
        // SAFETY: as above.
        let posted = unsafe { one.lane.post(PE1, &[short_get(&one)]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        let error = error_of(&mut one);
        control("up mlx5_1 1");
        assert!(is_interruption(&error), "{error}");
        reconnect(&mut one, &other);
        one.complete(PE1).unwrap();
        // SAFETY: a flush has no local memory.
        unsafe { one.perform(PE1, &[]) }.unwrap();
        assert!((1..BYTES / 8).all(|word| other.load(word * 8) == one.load(word * 8)));
        assert_eq!(other.load(SIGNAL), u64::from(with_signal));
        assert_eq!(one.load(WORD), 9);
        put(&mut other, &one, 3).unwrap();
    }
}

/// The connection has several queue pairs again, and what they had done is not done twice.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_connection_that_is_made_again_has_queue_pairs_for_long_transfers() {
    let [mut one, other] = sides(settings(3));
    put(&mut one, &other, 1).unwrap();
    other.store(SIGNAL, 0);
    for round in 0..3 {
        fill(&one, 0, round);
        let op = long_put(&one, Some(1));
        perform(&mut one, op);
        control("status RETRY_EXC_ERR");
        one.store(WORD, 0);
        other.store(WORD, 100 + round);
        // SAFETY: the side's memory, which is left alone.
        let posted = unsafe { one.lane.post(PE1, &[short_get(&one)]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        let error = error_of(&mut one);
        assert!(
            matches!(error, Error::Interrupted { pe: PE1, .. }),
            "{error}"
        );
        reconnect(&mut one, &other);
        one.complete(PE1).unwrap();
        assert_eq!(one.load(WORD), 100 + round);
        assert_eq!(other.load(SIGNAL), 2 * round + 1);
        // Lost is one for long transfers, and no first one, as that would end the connection.
        control("status RETRY_EXC_ERR");
        fill(&one, 0, 10 + round);
        let op = long_put(&one, Some(1));
        perform(&mut one, op);
        assert!((1..BYTES / 8).all(|word| other.load(word * 8) == one.load(word * 8)));
        assert_eq!(other.load(SIGNAL), 2 * round + 2);
    }
}

/// An operation of so many bytes, of this kind.
fn short_or_long(side: &Side, kind: Kind, len: usize) -> Op {
    let (local, to) = (side.local(0, len), remote(0));
    match kind {
        Kind::Put => Op::Put { from: local, to },
        Kind::Get => Op::Get {
            into: local,
            from: to,
        },
        Kind::PutSignal => Op::PutSignal {
            from: local,
            to,
            signal: remote(SIGNAL as u64),
            op: SignalOp::Add,
            value: 1,
        },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Get,
    PutSignal,
}

/// Below `OXSHMEM_VERBS_STRIPE` all operations go by the first queue pair, whatever other ones there are: it alone keeps their
/// order. So does a put-with-signal whose source is copied, as nobody may come back to post its signal. A failed request tells
/// which queue pair it was, as the loss of another is survived.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_short_operations_take_the_first_queue_pair_and_long_ones_take_others() {
    for (kind, len, is_long) in [
        (Kind::Put, 8, false),
        (Kind::Put, 63, false),
        (Kind::Put, 64, true),
        (Kind::Get, 63, false),
        (Kind::Get, 64, true),
        (Kind::PutSignal, 63, false),
        (Kind::PutSignal, UNREGISTERED, false),
        (Kind::PutSignal, UNREGISTERED + 1, true),
    ] {
        let [mut one, other] = sides(settings(4));
        put(&mut one, &other, 1).unwrap();
        fill(&one, 0, 3);
        let op = short_or_long(&one, kind, len);
        control("status RETRY_EXC_ERR");
        // SAFETY: the side's memory, which is left alone.
        let posted = unsafe { one.lane.post(PE1, &[op]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        if is_long {
            // SAFETY: a flush has no local memory.
            unsafe { one.perform(PE1, &[]) }.unwrap_or_else(|error| panic!("{op:?}: {error}"));
            let words = 0..if kind == Kind::Get { 0 } else { len / 8 };
            assert!(
                words
                    .into_iter()
                    .all(|word| other.load(word * 8) == one.load(word * 8))
            );
            assert_eq!(other.load(SIGNAL), u64::from(kind == Kind::PutSignal));
            continue;
        }
        match (kind, error_of(&mut one)) {
            (Kind::Get, Error::Interrupted { pe: PE1, .. }) => {}
            (Kind::Put | Kind::PutSignal, Error::PeerLost { pe: PE1, .. }) => {}
            (_, error) => panic!("{op:?}: {error}"),
        }
        assert_eq!(other.load(SIGNAL), 0);
    }
}

/// The environment variable that says what the test below does in a process of its own.
const CHILD: &str = "SOFTNIC_STUCK_CHILD";

/// It could write into memory that the program uses for something else.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_that_can_be_neither_stopped_nor_destroyed_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    if let Some(outstanding) = std::env::var_os(CHILD) {
        let [mut one, other] = sides(impatient());
        put(&mut one, &other, 1).unwrap();
        control("down mlx5_1 1");
        if outstanding != "nothing" {
            // Into its place, and not by way of a block.
            let op = Op::Get {
                into: one.local(0, BYTES),
                from: remote(0),
            };
            post(&mut one, &[op]);
        }
        // Those of both its connections.
        let fault = if outstanding == "removed" {
            "gone 2"
        } else {
            "stuck 2"
        };
        control(fault);
        drop(one.lane);
        println!("it goes on");
        std::process::exit(0);
    }
    let name =
        "queue_pairs::a_queue_pair_that_can_be_neither_stopped_nor_destroyed_ends_the_process";
    for (outstanding, aborts) in [("get", true), ("nothing", false), ("removed", false)] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name, "--ignored", "--nocapture"]);
        let output = child.env(CHILD, outstanding).output().unwrap();
        let went_on = String::from_utf8_lossy(&output.stdout).contains("it goes on");
        assert_eq!(went_on, !aborts, "{output:?}");
        assert_eq!(output.status.signal(), aborts.then_some(6), "{output:?}");
    }
}

/// One address that takes long to resolve holds up nobody else.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn lanes_are_accepted_at_the_same_time() {
    let [one, other] = sides(settings(1));
    let mut lanes = [(); 2].map(|()| one.domain.lane().unwrap());
    let endpoints = lanes.each_mut().map(|lane| lane.endpoint(PE1).unwrap());
    control("meet 2");
    std::thread::scope(|scope| {
        let accepted = endpoints.each_ref().map(|endpoint| {
            let domain = &other.domain;
            scope.spawn(move || domain.accept(PE0, endpoint))
        });
        for accepted in accepted {
            accepted.join().unwrap().unwrap();
        }
    });
}

/// The peer writes late what it was sent before it was silent.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn parts_are_written_again_when_no_packet_of_a_silent_queue_pair_can_come() {
    for lifetime in [Duration::from_secs(1 << 20), Duration::ZERO] {
        let [mut one, other] = sides(Settings {
            packet_lifetime: lifetime,
            ..settings(2)
        });
        put(&mut one, &other, 1).unwrap();
        fill(&one, 0, 5);
        control("status RETRY_EXC_ERR");
        let op = long_put(&one, None);
        post(&mut one, &[op]);
        if lifetime.is_zero() {
            one.complete(PE1).unwrap();
            continue;
        }
        for _ in 0..20_000 {
            one.lane.progress().unwrap();
        }
        let counters = one.lane.counters(PE1);
        assert_eq!(counters.posted, counters.completed + 1);
    }
}
