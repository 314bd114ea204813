//! Several NICs of each PE, of which one is lost at one side or at both: the others carry out what was outstanding.

use std::time::{Duration, Instant};

use oxshmem_transport::{Op, SignalOp};
use oxshmem_verbs::{Rails, Settings, Verbs};

use super::first_nic::carry_out;
use super::nic::counter;
use super::pair::{self, PE0, PE1, Side, remote};
use super::{connect_anew, control, drive_until, impatient, put};

const BYTES: usize = 200_000;
/// Where gets go to, and the other side's data for them.
const INTO: usize = 400_000;
const SIGNAL: usize = 700_000;
const LEN: usize = 1 << 20;

/// The two sides' NICs: `mlx5_0` and `mlx5_2`, `mlx5_1` and `mlx5_3`, unless there are fewer of one side.
fn sides(here: usize, there: usize) -> [Side; 2] {
    sides_of(here, there, 1)
}

fn sides_of(here: usize, there: usize, queue_pairs: u32) -> [Side; 2] {
    sides_with(
        here,
        there,
        queue_pairs,
        Settings::default().packet_lifetime,
    )
}

fn sides_with(here: usize, there: usize, queue_pairs: u32, lifetime: Duration) -> [Side; 2] {
    let side = |pe, names: &[&str]| {
        let settings = Settings {
            rails: Rails::Named(names.iter().map(|name| (*name).into()).collect()),
            queue_pairs,
            stripe: 64,
            packet_lifetime: lifetime,
            ..impatient()
        };
        Side::new(&Verbs::with(settings), pe, LEN)
    };
    pair::connected([
        side(PE0, &["mlx5_0:1", "mlx5_2:1"][..here]),
        side(PE1, &["mlx5_1:1", "mlx5_3:1"][..there]),
    ])
}

fn fill(side: &Side, at: usize, round: u64) {
    (0..BYTES / 8).for_each(|word| side.store(at + word * 8, round * 1_000_000 + word as u64));
}

fn is_filled(side: &Side, at: usize, round: u64) -> bool {
    (0..BYTES / 8).all(|word| side.load(at + word * 8) == round * 1_000_000 + word as u64)
}

fn long_put(side: &Side) -> Op {
    Op::Put {
        from: side.local(0, BYTES),
        to: remote(0),
    }
}

fn long_get(side: &Side) -> Op {
    Op::Get {
        into: side.local(INTO, BYTES),
        from: remote(INTO as u64),
    }
}

/// Long puts and gets that are posted before a fault and completed after it; then others.
fn survives(one: &mut Side, other: &Side, fault: impl FnOnce()) {
    put(one, other, 1).unwrap();
    fill(one, 0, 1);
    fill(other, INTO, 2);
    // Until these are done, some of their parts are on each NIC.
    let ops = [long_put(one), long_get(one), long_put(one), long_get(one)];
    // SAFETY: the side's memory, which is left alone.
    unsafe { one.post(PE1, &ops) }.unwrap();
    fault();
    // SAFETY: a flush has no local memory.
    unsafe { one.post(PE1, &[Op::Flush]) }.unwrap();
    one.complete(PE1).unwrap();
    assert!(is_filled(other, 0, 1) && is_filled(one, INTO, 2));
    for round in 3..6 {
        fill(one, 0, round);
        fill(other, INTO, round);
        let ops = [long_put(one), long_get(one)];
        // SAFETY: as above.
        unsafe { one.perform(PE1, &ops) }.unwrap();
        assert!(is_filled(other, 0, round) && is_filled(one, INTO, round));
        put(one, other, 10 + round).unwrap();
    }
    let counters = one.lane.counters(PE1);
    assert_eq!(counters.completed, counters.posted);
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn parts_of_long_transfers_take_both_nics() {
    let [mut one, other] = sides(2, 2);
    put(&mut one, &other, 1).unwrap();
    // One transfer waits for the other's NIC, which is down for a while.
    control("down mlx5_3 1");
    let op = long_put(&one);
    // SAFETY: the side's memory, which is left alone.
    unsafe { one.post(PE1, &[op]) }.unwrap();
    let dropped = counter("dropped");
    drive_until(&mut one, "nothing went to the second NIC", || {
        counter("dropped") != dropped
    });
    control("up mlx5_3 1");
    one.complete(PE1).unwrap();
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_nic_of_this_side_that_goes_down_in_the_middle_is_survived() {
    for queue_pairs in [1, 3] {
        let [mut one, other] = sides_of(2, 2, queue_pairs);
        survives(&mut one, &other, || control("down mlx5_2 1"));
        control("up mlx5_2 1");
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_nic_that_only_the_other_side_loses_is_survived() {
    let [mut one, mut other] = sides(2, 2);
    survives(&mut one, &other, || control("down mlx5_3 1"));
    // The other side's own transfers, by its NIC that is down.
    fill(&one, INTO, 7);
    let ops = [long_put(&other), long_get(&other)];
    // SAFETY: the side's memory, which is left alone.
    unsafe { other.perform(PE0, &ops) }.unwrap();
    control("up mlx5_3 1");
    assert!(is_filled(&other, INTO, 7));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_device_that_fails_takes_its_queue_pairs_and_no_connection() {
    let [mut one, other] = sides(2, 2);
    let before = counter("writes");
    survives(&mut one, &other, || {
        control("event mlx5_2 DEVICE_FATAL");
        // Packets that are on their way arrive: after that of the short put there is one at least.
        let since = Instant::now();
        while counter("writes") < before + 2 {
            assert!(since.elapsed() < pair::PATIENCE, "no packet");
            std::thread::yield_now();
        }
    });
    // New lanes do without it.
    connect_anew(&mut one, &other).unwrap();
    fill(&one, 0, 9);
    let op = long_put(&one);
    // SAFETY: the side's memory, which is left alone.
    unsafe { one.perform(PE1, &[op]) }.unwrap();
    assert!(is_filled(&other, 0, 9));
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_that_its_own_device_gives_up_is_survived_at_a_further_nic() {
    // Of one part each: the first goes by the first NIC, the second by the other.
    let part = |side: &Side, at: usize| Op::Put {
        from: side.local(at, 10_000),
        to: remote(at as u64),
    };
    let arrived = |one: &Side, other: &Side| {
        let mut words = 10_000 / 8..20_000 / 8;
        words.all(|word| other.load(word * 8) == one.load(word * 8))
    };
    for status in ["FATAL_ERR", "GENERAL_ERR"] {
        // While packets may come it is not repeated, and then it is.
        for lifetime in [Duration::from_secs(1 << 20), Duration::ZERO] {
            let [mut one, other] = sides_with(2, 2, 1, lifetime);
            put(&mut one, &other, 1).unwrap();
            fill(&one, 0, 4);
            let first = part(&one, 0);
            // SAFETY: the side's memory, which is left alone.
            unsafe { one.post(PE1, &[first]) }.unwrap();
            one.complete(PE1).unwrap();
            let before = counter("completions");
            control(&format!("status {status}"));
            let second = part(&one, 10_000);
            // SAFETY: as above.
            unsafe { one.post(PE1, &[second]) }.unwrap();
            drive_until(&mut one, "it does not fail", || {
                counter("completions") != before
            });
            if lifetime.is_zero() {
                one.complete(PE1).unwrap();
                // SAFETY: as above.
                unsafe { one.perform(PE1, &[Op::Flush]) }.unwrap();
                assert!(arrived(&one, &other));
                put(&mut one, &other, 2).unwrap();
                continue;
            }
            for _ in 0..20_000 {
                one.lane.progress().unwrap();
            }
            let counters = one.lane.counters(PE1);
            assert_eq!(counters.posted, counters.completed + 1);
            assert!(!arrived(&one, &other));
        }
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m22_a_signal_comes_once_and_after_data_of_a_lost_nic() {
    let [mut one, other] = sides(2, 2);
    put(&mut one, &other, 1).unwrap();
    other.store(SIGNAL, 0);
    for round in 0..3 {
        fill(&one, 0, round + 1);
        if round == 1 {
            control("down mlx5_2 1");
        }
        let op = Op::PutSignal {
            from: one.local(0, BYTES),
            to: remote(0),
            signal: remote(SIGNAL as u64),
            op: SignalOp::Add,
            value: 1,
        };
        // SAFETY: the side's memory, which is left alone until the signal was seen.
        unsafe { one.post(PE1, &[op]) }.unwrap();
        drive_until(&mut one, "no signal came", || other.load(SIGNAL) != round);
        assert!(
            is_filled(&other, 0, round + 1),
            "round {round}: the signal came first"
        );
        one.complete(PE1).unwrap();
        assert_eq!(other.load(SIGNAL), round + 1);
    }
    control("up mlx5_2 1");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn local_memory_of_its_own_registration_goes_over_both_nics_and_on_by_one() {
    let [mut one, other] = sides(2, 2);
    put(&mut one, &other, 1).unwrap();
    let mut buffer = vec![0_u64; BYTES / 8];
    for round in 1..4 {
        (0..)
            .zip(&mut buffer)
            .for_each(|(at, word)| *word = round * 1_000_000 + at);
        let addr = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer outlives its registration.
        let region = unsafe { one.domain.register_local(addr, BYTES, true) }.unwrap();
        let local = oxshmem_transport::Local {
            addr,
            len: BYTES,
            key: Some(region.key()),
        };
        let op = Op::Put {
            from: local,
            to: remote(0),
        };
        if round == 2 {
            control("down mlx5_3 1");
        }
        // SAFETY: the buffer is left alone.
        unsafe { one.perform(PE1, &[op]) }.unwrap();
        assert!(is_filled(&other, 0, round), "round {round}");
    }
    control("up mlx5_3 1");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_side_with_fewer_nics_is_served_by_those() {
    for (here, there) in [(2, 1), (1, 2)] {
        let [mut one, other] = sides(here, there);
        let told = one.domain.explain(&other.peer()).unwrap();
        assert_eq!(told.contains("mlx5_2:1 not"), here == 2, "{told}");
        survives(&mut one, &other, || ());
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn long_transfers_that_the_loss_of_the_first_nic_interrupts_are_carried_out() {
    // Its port stays down, so that the other NIC has the connection; or it comes back.
    for (nics, down, rounds) in [(2, "down mlx5_1 1", 3), (1, "down mlx5_1 1 6000", 1)] {
        let [mut one, other] = sides_of(nics, nics, 2);
        put(&mut one, &other, 1).unwrap();
        other.store(SIGNAL, 0);
        for round in 1..=rounds {
            fill(&one, 0, round);
            fill(&other, INTO, 10 + round);
            let signal = Op::PutSignal {
                from: one.local(0, BYTES),
                to: remote(0),
                signal: remote(SIGNAL as u64),
                op: SignalOp::Add,
                value: 1,
            };
            control(down);
            let ops = [signal, long_get(&one), long_get(&one)];
            let again = carry_out(&mut one, &other, &ops).unwrap();
            assert!(again > 0 || nics == 1 || round > 1, "{again}");
            assert!(is_filled(&other, 0, round) && is_filled(&one, INTO, 10 + round));
            assert_eq!(other.load(SIGNAL), round);
        }
        control("up mlx5_1 1");
        let counters = one.lane.counters(PE1);
        assert_eq!(counters.completed, counters.posted);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_port_that_this_host_lacks_is_named_with_those_that_it_has() {
    let settings = Settings {
        rails: Rails::Named(vec!["mlx5_0:1".into(), "mlx5_77:1".into()]),
        ..Settings::default()
    };
    let verbs = Verbs::with(settings);
    let devices = oxshmem_transport::Transport::probe(&verbs).unwrap();
    let job = oxshmem_transport::Job {
        me: PE0,
        size: 1,
        host_rank: 0,
        host: oxshmem_transport::HostId("here".into()),
    };
    let opened = oxshmem_transport::Transport::open(&verbs, &devices[0], &job);
    let told = opened.unwrap_err().to_string();
    for word in ["OXSHMEM_VERBS_RAILS", "mlx5_77:1", "mlx5_2:1"] {
        assert!(told.contains(word), "{told}");
    }
}

/// NICs of two fabrics: run with the second NIC of each side in a subnet of its own.
mod fabrics {
    use super::*;

    #[test]
    #[ignore = "needs the software NIC; run by ci/test-softnic"]
    fn nics_of_two_fabrics_are_never_connected() {
        let [mut one, other] = sides(2, 2);
        let told = one.domain.explain(&other.peer()).unwrap();
        assert!(told.contains("mlx5_0:1 to mlx5_1:1"), "{told}");
        assert!(told.contains("mlx5_2:1 not"), "{told}");
        let before = counter("dropped");
        survives(&mut one, &other, || ());
        assert_eq!(counter("dropped"), before);
    }
}
