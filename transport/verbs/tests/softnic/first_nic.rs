//! The first NIC of one side is lost, at which the connection for all operations is: another one takes its place. Operations
//! that were outstanding are carried out or named as in doubt, as after any outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use oxshmem_transport::{
    AtomicOp, Domain, Error, Local, Op, Pe, Remote, Reply, SignalOp, Status, Width,
};
use oxshmem_verbs::{Rails, Settings, Verbs};

use super::pair::{self, PATIENCE, PE0, PE1, Side, remote};
use super::{connect_anew, control, error_of, impatient};

const LEN: usize = 1 << 20;
/// Places in the memory of a side.
const INTO: usize = 4096;
const DATA: usize = 8192;
const WORD: usize = 12_288;
const SIGNAL: usize = 12_352;
const ANSWER: usize = 12_416;
const WORDS: usize = 40;
/// A size above that of unregistered transfers.
const LONG: usize = 20_000;

/// PE 0 with `mlx5_0` and `mlx5_2`, PE 1 with `mlx5_1` and `mlx5_3`. All transfers go by the first NIC.
fn sides() -> [Side; 2] {
    sides_of(64 << 10)
}

/// The same, where transfers from this size on go by both NICs.
fn sides_of(stripe: u64) -> [Side; 2] {
    sides_with(&Settings {
        stripe,
        // The software NIC keeps a packet for less than a millisecond.
        packet_lifetime: Duration::from_millis(100),
        ..impatient()
    })
}

fn sides_with(settings: &Settings) -> [Side; 2] {
    let side = |pe, names: [&str; 2]| {
        let settings = Settings {
            rails: Rails::Named(names.map(Into::into).into()),
            ..settings.clone()
        };
        Side::new(&Verbs::with(settings), pe, LEN)
    };
    let mut sides = pair::connected([
        side(PE0, ["mlx5_0:1", "mlx5_2:1"]),
        side(PE1, ["mlx5_1:1", "mlx5_3:1"]),
    ]);
    // Both have an answer of each other.
    let [one, other] = &mut sides;
    all_operations(one, other, 1);
    all_operations(other, one, 2);
    sides
}

/// Connects a lane again, as the engine does.
fn reconnect(one: &mut Side, pe: Pe, target: &Arc<dyn Domain>) {
    let endpoint = one.lane.endpoint(pe).unwrap();
    let answer = target.accept(one.pe, &endpoint).unwrap();
    assert_eq!(target.accept(one.pe, &endpoint).unwrap(), answer);
    one.lane.connect(pe, &answer).unwrap();
}

/// Carries out operations and a flush, and connects again where that is asked for. Gives how often it was towards that PE.
fn carry_out_at(
    one: &mut Side,
    (pe, target): (Pe, &Arc<dyn Domain>),
    ops: &[Op],
) -> Result<u32, Error> {
    let own = (one.pe, Arc::clone(&one.domain));
    let (since, mut again) = (Instant::now(), 0);
    let all = [ops, &[Op::Flush]].concat();
    let mut rest = &all[..];
    loop {
        // SAFETY: the side's memory, or words that outlive the call.
        let posted = unsafe { one.lane.post(pe, rest) };
        rest = &rest[posted.accepted..];
        if let Status::Refused(error) = posted.status {
            return Err(error);
        }
        let counters = one.lane.counters(pe);
        if rest.is_empty() && counters.completed == counters.posted {
            return Ok(again);
        }
        match one.lane.progress() {
            Ok(()) => {}
            Err(Error::Interrupted { pe: found, .. }) if found == pe => {
                reconnect(one, pe, target);
                again += 1;
            }
            Err(Error::Interrupted { pe: found, .. }) if found == own.0 => {
                reconnect(one, found, &own.1);
            }
            Err(error) => return Err(error),
        }
        assert!(since.elapsed() < PATIENCE, "{counters:?}");
        std::thread::yield_now();
    }
}

pub fn carry_out(one: &mut Side, other: &Side, ops: &[Op]) -> Result<u32, Error> {
    carry_out_at(one, (other.pe, &other.domain), ops)
}

fn put_op(side: &Side) -> Op {
    Op::Put {
        from: side.local(DATA, 8),
        to: remote(DATA as u64),
    }
}

fn signal_op(side: &Side, len: usize, op: SignalOp, value: u64) -> Op {
    Op::PutSignal {
        from: side.local(DATA, len),
        to: remote(DATA as u64),
        signal: remote(SIGNAL as u64),
        op,
        value,
    }
}

fn add_op(fetch: Option<Local>) -> Op {
    Op::Atomic {
        op: AtomicOp::Add,
        width: Width::W64,
        on: remote(WORD as u64),
        operand: 1,
        compare: 0,
        fetch,
    }
}

fn get_op(side: &Side, at: usize) -> Op {
    let mut into = side.local(INTO + at * 8, 8);
    // Some with registered local memory.
    into.key = into.key.filter(|_| at.is_multiple_of(2));
    Op::Get {
        into,
        from: remote(DATA as u64 + at as u64 * 8),
    }
}

/// Gets, and whether they brought what they should.
fn gets(side: &Side) -> Vec<Op> {
    (0..WORDS).map(|at| get_op(side, at)).collect()
}

fn prepare(one: &Side, other: &Side, round: u64) {
    (0..WORDS).for_each(|at| {
        one.store(INTO + at * 8, 0);
        other.store(DATA + at * 8, round * 100 + at as u64);
    });
}

fn is_fetched(one: &Side, round: u64) -> bool {
    (0..WORDS).all(|at| one.load(INTO + at * 8) == round * 100 + at as u64)
}

/// Each kind of operation, with registered and unregistered memory, short and long: they do what they should, once.
fn all_operations(one: &mut Side, other: &Side, round: u64) {
    let (before, signals) = (other.load(WORD), other.load(SIGNAL));
    let old = AtomicU64::new(0);
    let into = |key| Local {
        addr: old.as_ptr().cast(),
        len: 8,
        key,
    };
    (0..LONG / 8).for_each(|at| one.store(200_000 + at * 8, round * 1_000_000 + at as u64));
    one.store(DATA, round);
    let unregistered = [round; 100];
    let long = |from, to| Op::Put {
        from: one.local(from, LONG),
        to: remote(to),
    };
    let ops = [
        put_op(one),
        long(200_000, 400_000),
        Op::Put {
            from: Local {
                addr: unregistered.as_ptr().cast::<u8>().cast_mut(),
                len: 800,
                key: None,
            },
            to: remote(100_000),
        },
        add_op(None),
        add_op(Some(into(None))),
        add_op(Some(one.local(INTO, 8))),
        signal_op(one, 8, SignalOp::Add, 1),
        signal_op(one, 512, SignalOp::Add, 1),
        Op::Get {
            into: one.local(600_000, LONG),
            from: remote(400_000),
        },
    ];
    carry_out(one, other, &ops).unwrap();
    assert_eq!(other.load(DATA), round);
    assert_eq!(other.load(WORD), before + 3);
    assert_eq!(old.load(Ordering::Relaxed), before + 1);
    assert_eq!(one.load(INTO), before + 2);
    assert_eq!(other.load(SIGNAL), signals + 2);
    assert!((0..100).all(|at| other.load(100_000 + at * 8) == round));
    // A get may pass puts, so it comes again behind them.
    let get = Op::Get {
        into: one.local(600_000, LONG),
        from: remote(400_000),
    };
    carry_out(one, other, &[get]).unwrap();
    let word = |at: usize| round * 1_000_000 + at as u64;
    assert!((0..LONG / 8).all(|at| other.load(400_000 + at * 8) == word(at)));
    assert!((0..LONG / 8).all(|at| one.load(600_000 + at * 8) == word(at)));
}

/// Has a lane hear of its devices' events.
fn hear(side: &mut Side) {
    for _ in 0..5000 {
        side.lane.progress().unwrap();
    }
}

/// Messages from one side to the other are served, and answered.
fn messages_arrive(one: &mut Side, other: &Side) {
    let mut inbox = other.domain.inbox().unwrap();
    one.store(ANSWER, 0);
    one.store(ANSWER + 8, 0);
    for round in 1..=3 {
        let message = [round as u8; 24];
        let from = Local {
            addr: message.as_ptr().cast_mut(),
            len: message.len(),
            key: None,
        };
        // SAFETY: a message is copied by the call.
        let posted = unsafe { one.lane.post(other.pe, &[Op::Message { from }]) };
        assert_eq!(posted.accepted, 1, "{posted:?}");
        let (since, mut served) = (Instant::now(), 0);
        while one.load(ANSWER + 8) != round {
            one.lane.progress().unwrap();
            let mut serve = |from: Pe, bytes: &[u8]| {
                assert_eq!((from, bytes), (PE0, &message[..]));
                let to = Remote {
                    offset: ANSWER as u64,
                    ..remote(0)
                };
                let (value, number) = (round * 7, round);
                Some(Reply { to, value, number })
            };
            // It sleeps until a message comes, at the NIC that took the place of the first, too.
            inbox.wait(Duration::from_millis(50)).unwrap();
            served += inbox.drain(&mut serve).unwrap();
            assert!(
                since.elapsed() < PATIENCE,
                "message {round} was not answered"
            );
        }
        assert_eq!((served, one.load(ANSWER)), (1, round * 7));
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_idle_connection_leaves_a_first_nic_that_is_down() {
    let [mut one, mut other] = sides();
    control("down mlx5_0 1");
    hear(&mut one);
    one.store(DATA, 77);
    let op = put_op(&one);
    assert_eq!(carry_out(&mut one, &other, &[op]).unwrap(), 1);
    assert_eq!(other.load(DATA), 77);
    all_operations(&mut one, &other, 3);
    messages_arrive(&mut one, &other);
    // The other side's lane finds out by a get, and this side answers at the other NIC.
    prepare(&other, &one, 4);
    let ops = gets(&other);
    assert_eq!(carry_out(&mut other, &one, &ops).unwrap(), 1);
    assert!(is_fetched(&other, 4));
    all_operations(&mut other, &one, 5);
    // New lanes take it at once.
    connect_anew(&mut one, &other).unwrap();
    all_operations(&mut one, &other, 6);
    control("up mlx5_0 1");
    all_operations(&mut other, &one, 7);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn gets_that_are_outstanding_when_the_first_nic_is_lost_arrive_by_another() {
    for (lost, stripe) in [("mlx5_0", 64 << 10), ("mlx5_1", 64 << 10), ("mlx5_0", 64)] {
        let [mut one, other] = sides_of(stripe);
        prepare(&one, &other, 8);
        control(&format!("down {lost} 1"));
        let ops = gets(&one);
        assert_eq!(carry_out(&mut one, &other, &ops).unwrap(), 1, "{lost}");
        assert!(is_fetched(&one, 8), "{lost}");
        all_operations(&mut one, &other, 9);
        messages_arrive(&mut one, &other);
        control(&format!("up {lost} 1"));
        all_operations(&mut one, &other, 10);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_updates_that_are_outstanding_when_the_first_nic_is_lost_are_named_as_an_error() {
    for (lost, kinds) in [("mlx5_0", 2..3), ("mlx5_1", 0..3)] {
        for kind in kinds {
            let [mut one, other] = sides();
            let (signals, word) = (other.load(SIGNAL), other.load(WORD));
            control(&format!("down {lost} 1"));
            let op = match kind {
                0 => put_op(&one),
                1 => add_op(None),
                _ => signal_op(&one, 512, SignalOp::Set, 9),
            };
            let ops = [get_op(&one, 0), op];
            // SAFETY: the side's memory, which is left alone.
            let posted = unsafe { one.lane.post(PE1, &ops) };
            assert_eq!(posted.accepted, 2, "{posted:?}");
            let error = error_of(&mut one);
            control(&format!("up {lost} 1"));
            let is_named = matches!(
                error,
                Error::PeerLost { pe: PE1, .. } | Error::Connection { pe: PE1, .. }
            );
            assert!(is_named, "{error}");
            // SAFETY: as above.
            let again = unsafe { one.lane.post(PE1, &ops) };
            assert!(matches!(again.status, Status::Refused(_)), "{again:?}");
            // It was not performed twice, and nothing of it comes later.
            assert!(other.load(WORD) <= word + 1);
            assert!([signals, 9].contains(&other.load(SIGNAL)));
        }
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_connection_that_may_wait_for_replies_stays_at_its_nic_while_retries_last() {
    let [mut one, other] = sides_with(&Settings::default());
    messages_arrive(&mut one, &other);
    control("down mlx5_0 1");
    hear(&mut one);
    one.store(DATA, 78);
    let op = put_op(&one);
    // SAFETY: the side's memory, which is left alone.
    let posted = unsafe { one.lane.post(PE1, &[op]) };
    control("up mlx5_0 1");
    assert_eq!(posted.accepted, 1, "{posted:?}");
    assert_eq!(carry_out(&mut one, &other, &[]).unwrap(), 0);
    assert_eq!(other.load(DATA), 78);
}

/// Atomics of two NICs on one word do not exclude each other.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m29_all_connections_towards_a_pe_leave_its_lost_nic_together() {
    let [mut one, mut other] = sides();
    let itself = (PE1, &Arc::clone(&other.domain));
    carry_out_at(&mut other, itself, &[add_op(None)]).unwrap();
    control("down mlx5_1 1");
    prepare(&one, &other, 11);
    let ops = gets(&one);
    assert_eq!(carry_out(&mut one, &other, &ops).unwrap(), 1);
    control("up mlx5_1 1");
    // Its connection with itself was at the lost NIC, which works again, and was ended there.
    let before = other.load(WORD);
    let get = get_op(&other, 0);
    assert_eq!(carry_out_at(&mut other, itself, &[get]).unwrap(), 1);
    let adds = [add_op(None); 30];
    assert_eq!(carry_out_at(&mut other, itself, &adds).unwrap(), 0);
    assert_eq!(carry_out(&mut one, &other, &adds).unwrap(), 0);
    assert_eq!(other.load(WORD), before + 60);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_first_nic_whose_device_fails_is_left_and_the_last_one_ends_the_connection() {
    let [mut one, other] = sides();
    control("event mlx5_0 DEVICE_FATAL");
    prepare(&one, &other, 12);
    let mut left = Vec::new();
    for _ in 0..5000 {
        match one.lane.progress() {
            Ok(()) => {}
            Err(Error::Interrupted { pe, .. }) => left.push(pe),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(left, [PE0, PE1]);
    reconnect(&mut one, PE1, &other.domain);
    let ops = gets(&one);
    assert_eq!(carry_out(&mut one, &other, &ops).unwrap(), 0);
    assert!(is_fetched(&one, 12));
    all_operations(&mut one, &other, 13);
    control("event mlx5_2 DEVICE_FATAL");
    let since = Instant::now();
    let told = loop {
        match one.lane.progress() {
            Err(error @ Error::Connection { pe: PE1, .. }) => break error.to_string(),
            Err(Error::Connection { .. }) | Ok(()) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(since.elapsed() < PATIENCE, "the event was not heard of");
    };
    assert!(
        told.contains("DEVICE_FATAL") && told.contains("mlx5_2"),
        "{told}"
    );
    assert!(
        one.domain
            .accept(PE1, &one.lane.endpoint(PE1).unwrap_or_default())
            .is_err()
    );
}

/// A put by the first NIC may still be on its way, and must not come after data that the other NIC brings.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_another_nic_takes_nothing_while_packets_of_the_first_may_come_and_no_call_waits_for_them() {
    let [mut one, other] = sides_with(&Settings {
        packet_lifetime: Duration::from_secs(24 * 3600),
        ..impatient()
    });
    control("event mlx5_0 DEVICE_FATAL");
    while !matches!(error_of(&mut one), Error::Interrupted { pe: PE1, .. }) {}
    reconnect(&mut one, PE1, &other.domain);
    let before = other.load(DATA);
    one.store(DATA, 79);
    for _ in 0..5000 {
        // SAFETY: the side's memory, which is left alone.
        let posted = unsafe { one.lane.post(PE1, &[put_op(&one)]) };
        let waits = matches!(posted.status, Status::Full);
        assert!(posted.accepted == 0 && waits, "{posted:?}");
        one.lane.progress().unwrap();
    }
    assert_eq!(other.load(DATA), before);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_pe_all_of_whose_nics_are_lost_is_lost() {
    for lost in [["mlx5_1", "mlx5_3"], ["mlx5_0", "mlx5_2"]] {
        let [mut one, other] = sides();
        lost.iter()
            .for_each(|nic| control(&format!("down {nic} 1")));
        let ops = gets(&one);
        let error = carry_out(&mut one, &other, &ops).unwrap_err();
        lost.iter().for_each(|nic| control(&format!("up {nic} 1")));
        let is_named = matches!(
            error,
            Error::PeerLost { pe: PE1, .. } | Error::Connection { pe: PE1, .. }
        );
        assert!(is_named, "{error}");
    }
}

/// Second NICs that keep less order than the first ones.
mod weaker {
    use super::*;

    #[test]
    #[ignore = "needs the software NIC; run by ci/test-softnic"]
    fn m17_a_nic_that_promises_less_does_not_take_the_place_of_the_first() {
        let [mut one, other] = sides();
        control("down mlx5_0 1");
        hear(&mut one);
        let ops = gets(&one);
        let error = carry_out(&mut one, &other, &ops).unwrap_err();
        control("up mlx5_0 1");
        assert!(
            matches!(error, Error::Connection { pe: PE1, .. }),
            "{error}"
        );
    }
}

/// First NICs of one network and second ones of another.
mod isolated {
    use super::*;

    #[test]
    #[ignore = "needs the software NIC; run by ci/test-softnic"]
    fn a_first_nic_of_the_target_is_replaced_by_one_of_another_network() {
        let [mut one, other] = sides();
        prepare(&one, &other, 14);
        control("down mlx5_1 1");
        let ops = gets(&one);
        assert_eq!(carry_out(&mut one, &other, &ops).unwrap(), 1);
        assert!(is_fetched(&one, 14));
        all_operations(&mut one, &other, 15);
        messages_arrive(&mut one, &other);
        control("up mlx5_1 1");
    }

    /// The target's first NIC works, and performs atomics for others.
    #[test]
    #[ignore = "needs the software NIC; run by ci/test-softnic"]
    fn m29_no_nic_of_the_target_is_used_beside_its_first_for_atomics() {
        let [mut one, other] = sides();
        control("down mlx5_0 1");
        hear(&mut one);
        let ops = gets(&one);
        let error = carry_out(&mut one, &other, &ops).unwrap_err();
        control("up mlx5_0 1");
        assert!(
            matches!(error, Error::Connection { pe: PE1, .. }),
            "{error}"
        );
    }
}
