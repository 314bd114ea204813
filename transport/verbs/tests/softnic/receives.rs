//! Receive buffers of messages.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use oxshmem_transport::{Inbox, Lane, Local, Op, Reply, Status};
use oxshmem_verbs::Settings;

use crate::nic::{control, counter};
use crate::pair::{PATIENCE, PE0, PE1, Side, pair, remote};

/// A lane more, towards the target.
fn lane(local: &Side, target: &Side) -> Box<dyn Lane> {
    let mut lane = local.domain.lane().unwrap();
    let endpoint = lane.endpoint(PE1).unwrap();
    let reply = target.domain.accept(PE0, &endpoint).unwrap();
    lane.connect(PE1, &reply).unwrap();
    lane
}

/// Offers a message of two words; whether the lane took it.
fn send(lane: &mut dyn Lane, words: [u64; 2]) -> bool {
    let from = Local {
        addr: words.as_ptr().cast_mut().cast(),
        len: size_of_val(&words),
        key: None,
    };
    // SAFETY: sixteen bytes without a key, which are copied by the call.
    let posted = unsafe { lane.post(PE1, &[Op::Message { from }]) };
    lane.progress().unwrap();
    match posted.status {
        Status::Refused(error) => panic!("{error}"),
        _ => posted.accepted == 1,
    }
}

/// Until all that the lane has taken is complete: messages are in their buffers.
fn complete(lane: &mut dyn Lane) {
    let since = Instant::now();
    loop {
        let now = lane.counters(PE1);
        if now.completed == now.posted {
            return;
        }
        lane.request_completion(PE1);
        lane.progress().unwrap();
        assert!(since.elapsed() < PATIENCE, "{now:?}");
        std::thread::yield_now();
    }
}

/// Handles the messages that have arrived; gives their words.
fn drain(inbox: &mut dyn Inbox) -> Vec<[u64; 2]> {
    let mut taken = Vec::new();
    let mut handler = |_, bytes: &[u8]| {
        let word = |at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        taken.push([word(0), word(8)]);
        None
    };
    inbox.drain(&mut handler).unwrap();
    inbox.wait(Duration::from_micros(100)).unwrap();
    taken
}

/// On `no-srq`. More lanes than rings of a block, and more messages than buffers of a ring; then lanes that use them again.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn each_of_many_lanes_has_receives_of_its_own_and_leaves_them_to_later_ones() {
    const LANES: u64 = 33;
    const MESSAGES: u64 = 66;
    let [local, target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    for _ in 0..2 {
        let mut lanes: Vec<_> = (0..LANES).map(|_| lane(&local, &target)).collect();
        let (mut sent, mut taken) = (vec![0; lanes.len()], vec![0; lanes.len()]);
        let since = Instant::now();
        while taken.iter().any(|count| *count < MESSAGES) {
            for (at, lane) in lanes.iter_mut().enumerate() {
                while sent[at] < MESSAGES && send(&mut **lane, [at as u64, sent[at]]) {
                    sent[at] += 1;
                }
                lane.progress().unwrap();
            }
            for [at, number] in drain(&mut *inbox) {
                assert_eq!(number, taken[at as usize], "of lane {at}");
                taken[at as usize] += 1;
            }
            assert!(since.elapsed() < PATIENCE, "{sent:?} {taken:?}");
        }
    }
}

/// Until a thread sleeps: its state in `/proc` is so at each of some looks.
fn until_it_sleeps(thread: &Path) {
    let since = Instant::now();
    let mut looks = 0;
    while looks < 20 {
        let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
        let (_, state) = stat.rsplit_once(") ").unwrap();
        looks = if state.starts_with('S') { looks + 1 } else { 0 };
        assert!(since.elapsed() < PATIENCE, "it does not sleep: {stat}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// On `no-srq`. Each of these lanes has a ring of its own; that of one of them is the first of a new block, whose completions
/// the inbox did not know of when it fell asleep.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_inbox_that_sleeps_is_woken_by_a_message_of_a_lane_made_meanwhile() {
    const LANES: u64 = 40;
    let [local, target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    let (name, named) = mpsc::channel();
    let (take, taken) = mpsc::channel();
    // It sleeps for longer than this test has patience, unless it is woken.
    let sleeper = std::thread::spawn(move || {
        let thread = std::fs::read_link("/proc/thread-self").unwrap();
        name.send(Path::new("/proc").join(thread)).unwrap();
        let mut count = 0;
        while count < LANES {
            let mut handler = |_, bytes: &[u8]| {
                take.send(bytes[0]).unwrap();
                count += 1;
                None
            };
            inbox.drain(&mut handler).unwrap();
            if count < LANES {
                inbox.wait(4 * PATIENCE).unwrap();
            }
        }
    });
    let thread = named.recv().unwrap();
    let mut lanes = Vec::new();
    for number in 0..LANES {
        until_it_sleeps(&thread);
        lanes.push(lane(&local, &target));
        let newest = lanes.last_mut().unwrap();
        while !send(&mut **newest, [number, 0]) {}
        complete(&mut **newest);
        let came = taken.recv_timeout(PATIENCE);
        assert_eq!(came.map(u64::from), Ok(number), "the inbox sleeps on");
    }
    sleeper.join().unwrap();
}

/// On `cx6`, and on `no-srq`.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn buffers_of_all_messages_that_a_call_handles_are_given_back_by_one_doorbell() {
    let [local, target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    let mut lane = lane(&local, &target);
    let counts = || ["receives", "receive_doorbells"].map(counter);
    let (before, since) = (counts(), Instant::now());
    let mut calls = 0;
    for _ in 0..10 {
        (0..20).for_each(|number| while !send(&mut *lane, [0, number]) {});
        complete(&mut *lane);
        let mut taken = 0;
        while taken < 20 {
            let count = drain(&mut *inbox).len();
            taken += count;
            calls += u64::from(count > 0);
            assert!(since.elapsed() < PATIENCE, "{taken}");
        }
    }
    let [given, doorbells] = [0, 1].map(|at| counts()[at] - before[at]);
    assert_eq!((given, doorbells), (200, calls), "messages and calls");
    assert!(calls < 200, "no call handled several messages");
}

/// On `cx6:max_srq_wr=64`, and on `no-srq`. A sender that finds no buffer holds up all that it sends, so no PE sends more
/// messages without a reply than its window.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn messages_of_every_window_find_a_buffer_though_nobody_takes_them() {
    let [mut local, mut target] = pair(Settings::default(), 4096);
    let peer = target.peer();
    let before = counter("rnr_naks");
    for side in [&mut local, &mut target] {
        let window = side.domain.message_window(&peer).unwrap();
        for number in 0..window {
            while !send(&mut *side.lane, [0, number.into()]) {}
        }
        complete(&mut *side.lane);
    }
    assert_eq!(counter("rnr_naks"), before);
    // The device counts those that find none.
    let since = Instant::now();
    while counter("rnr_naks") == before {
        send(&mut *local.lane, [0, 0]);
        assert!(since.elapsed() < PATIENCE, "there is always a buffer");
    }
    let mut inbox = target.domain.inbox().unwrap();
    while {
        let now = local.lane.counters(PE1);
        now.completed < now.posted
    } {
        drain(&mut *inbox);
        local.lane.request_completion(PE1);
        local.lane.progress().unwrap();
        assert!(since.elapsed() < PATIENCE, "messages do not end");
    }
}

/// On `cx6:max_srq_wr=64`: fewer buffers than queue pairs that fail, each with a buffer that it had begun to fill.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn no_buffer_is_lost_with_queue_pairs_that_fail() {
    let [local, mut target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    // Every put towards it fails, and with it the queue pair that serves it.
    target.region = None;
    let put = Op::Put {
        from: local.local(0, 8),
        to: remote(0),
    };
    let given = counter("receives");
    control("flush 5");
    for _ in 0..100 {
        let mut lane = lane(&local, &target);
        // SAFETY: the side's memory, which is left alone.
        let posted = unsafe { lane.post(PE1, &[put, Op::Flush]) };
        assert_eq!(posted.accepted, 2);
        let since = Instant::now();
        while lane.progress().is_ok() {
            assert!(since.elapsed() < PATIENCE, "the put did not fail");
            std::thread::yield_now();
        }
        assert!(drain(&mut *inbox).is_empty());
    }
    control("flush 0");
    let mut lane = lane(&local, &target);
    let (mut sent, mut taken, since) = (0, 0, Instant::now());
    while taken < 200 {
        if sent < 200 && send(&mut *lane, [0, sent]) {
            sent += 1;
        }
        taken += drain(&mut *inbox).len();
        assert!(since.elapsed() < PATIENCE, "{sent} {taken}");
    }
    // Each was given back: those of the failed ones, and those of the messages.
    while counter("receives") - given < 300 {
        assert!(drain(&mut *inbox).is_empty());
        assert!(since.elapsed() < PATIENCE, "buffers are lost");
    }
}

/// On `no-srq`. A queue pair that neither fails nor ends goes on receiving: its ring must not be another's.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_queue_pair_that_cannot_be_destroyed_keeps_its_receives() {
    let [mut local, target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    control("stuck 1");
    target.domain.peer_lost(PE0);
    // Of the target with itself; it would get the ring of the lost PE's queue pair.
    let mut own = target.domain.lane().unwrap();
    let endpoint = own.endpoint(PE1).unwrap();
    let reply = target.domain.accept(PE1, &endpoint).unwrap();
    own.connect(PE1, &reply).unwrap();
    assert!(send(&mut *own, [5, 6]));
    complete(&mut *own);
    // The stuck queue pair takes it, and puts it into the first of its receives.
    assert!(send(&mut *local.lane, [7, 8]));
    complete(&mut *local.lane);
    let since = Instant::now();
    let mut taken = Vec::new();
    while taken.is_empty() {
        taken = drain(&mut *inbox);
        assert!(since.elapsed() < PATIENCE, "no message");
    }
    assert_eq!(taken, [[5, 6]]);
    assert!(drain(&mut *inbox).is_empty());
}

/// On `no-srq:max_cqe=150`: fewer entries of a completion queue than replies that all lanes may have outstanding.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn replies_to_many_lanes_overrun_no_completion_queue() {
    const LANES: u64 = 6;
    const MESSAGES: u64 = 32;
    const ENTRIES: u64 = 150;
    let [local, target] = pair(Settings::default(), 4096);
    let mut inbox = target.domain.inbox().unwrap();
    let mut lanes: Vec<_> = (0..LANES).map(|_| lane(&local, &target)).collect();
    for (at, lane) in (0..).zip(&mut lanes) {
        for number in 0..MESSAGES {
            while !send(&mut **lane, [at, number]) {}
        }
        complete(&mut **lane);
    }
    let mut handler = |_, bytes: &[u8]| {
        let word = |at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let place = word(0) * MESSAGES + word(8);
        Some(Reply {
            to: remote(place * Reply::BYTES),
            value: place,
            number: place + 1,
        })
    };
    let arrived = || {
        let places = 0..LANES * MESSAGES;
        let number = |place: &u64| local.load((place * Reply::BYTES) as usize + 8);
        places.filter(|place| number(place) == place + 1).count() as u64
    };
    // No reply leaves, until all that may be outstanding are.
    control("down irdma0 1");
    let since = Instant::now();
    let mut handled = 0;
    while handled < LANES * MESSAGES {
        handled += inbox.drain(&mut handler).unwrap() as u64;
        assert!(since.elapsed() < PATIENCE, "{handled} messages");
    }
    assert_eq!(arrived(), 0);
    control("up irdma0 1");
    // The completions of all of them wait in the queue, and no more come, however often one looks.
    let mut looks = 0;
    while looks < 2000 {
        let count = arrived();
        looks = if count < ENTRIES { 0 } else { looks + 1 };
        assert!(count <= ENTRIES, "{count} replies");
        assert!(since.elapsed() < PATIENCE, "{count} replies");
        std::thread::yield_now();
    }
    while arrived() < LANES * MESSAGES {
        inbox.drain(&mut handler).unwrap();
        assert!(since.elapsed() < PATIENCE, "{} replies", arrived());
        std::thread::yield_now();
    }
}
