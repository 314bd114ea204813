//! Requests, doorbells and completions of operations: what may cost time is counted, not timed.

use oxshmem_transport::{AtomicOp, Op, Width};
use oxshmem_verbs::{Settings, Statistics, Verbs};

use super::pair::{PE1, Side, pair_of, remote};

/// The lane's calls to the device during `work`.
fn counted(work: impl FnOnce(&mut Side)) -> Statistics {
    let verbs = Verbs::with(Settings::default());
    let [mut local, target] = pair_of(&verbs, 1 << 20);
    work(&mut local);
    // Before the lane disconnects.
    let told = verbs.statistics();
    drop((local, target));
    told
}

fn put(side: &Side, at: u64) -> Op {
    Op::Put {
        from: side.local(0, 8),
        to: remote(at),
    }
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_batch_is_one_doorbell_and_no_completion_of_its_own() {
    let told = counted(|local| {
        let batch: Vec<Op> = (0..16).map(|k| put(local, 8 * k)).collect();
        for _ in 0..3 {
            // SAFETY: the side's memory, which is left alone.
            unsafe { local.post(PE1, &batch) }.unwrap();
        }
        // SAFETY: a flush has no local buffer.
        unsafe { local.post(PE1, &[Op::Flush]) }.unwrap();
        local.complete(PE1).unwrap();
    });
    assert_eq!((told.requests, told.doorbells), (49, 4));
    assert_eq!(told.completions, 1, "{told:?}");
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_get_and_a_fetch_are_one_request_doorbell_and_completion_each() {
    let told = counted(|local| {
        let (into, from) = (local.local(64, 8), remote(0));
        let add = Op::Atomic {
            op: AtomicOp::Add,
            width: Width::W64,
            on: remote(0),
            operand: 1,
            compare: 0,
            fetch: Some(into),
        };
        for op in [Op::Get { into, from }, add] {
            // SAFETY: the side's memory, which is left alone.
            unsafe { local.post(PE1, &[op]) }.unwrap();
            local.complete(PE1).unwrap();
        }
    });
    assert_eq!((told.requests, told.doorbells, told.completions), (2, 2, 2));
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn puts_that_nothing_follows_complete_all_the_same() {
    let told = counted(|local| {
        let op = put(local, 0);
        for _ in 0..10 {
            // SAFETY: the side's memory, which is left alone.
            unsafe { local.post(PE1, &[op]) }.unwrap();
        }
        local.complete(PE1).unwrap();
    });
    // Ten puts, and one empty write that completes them.
    assert_eq!((told.requests, told.completions), (11, 1));
}

/// Long puts from memory in place, and the wait for them.
fn long_puts(local: &mut Side, count: usize) {
    let op = Op::Put {
        from: local.local(0, 64 << 10),
        to: remote(0),
    };
    for _ in 0..count {
        // SAFETY: the side's memory, which is left alone.
        unsafe { local.post(PE1, &[op]) }.unwrap();
    }
    local.lane.request_completion(PE1);
    local.complete(PE1).unwrap();
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_long_put_that_is_waited_for_is_one_request_and_completion() {
    let told = counted(|local| long_puts(local, 1));
    assert_eq!((told.requests, told.doorbells, told.completions), (1, 1, 1));
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_stream_of_long_puts_is_told_of_now_and_then() {
    let told = counted(|local| long_puts(local, 60));
    // One is signaled, and while it may be in flight others are not; an empty write completes the last.
    assert!((60..=61).contains(&told.requests), "{told:?}");
    assert!((2..=20).contains(&told.completions), "{told:?}");
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn a_long_put_inside_a_word_sends_what_precedes_the_next_word_by_itself() {
    const LEN: usize = 10_000;
    let verbs = Verbs::with(Settings::default());
    let [mut local, target] = pair_of(&verbs, 1 << 20);
    for at in (0..16_384).step_by(8) {
        local.store(at, at as u64);
        target.store(at, u64::MAX);
    }
    for (from, to) in [(3, 3), (8, 16)] {
        let op = Op::Put {
            from: local.local(from, LEN),
            to: remote(to),
        };
        // SAFETY: the side's memory, which is left alone.
        unsafe { local.perform(PE1, &[op]) }.unwrap();
        if to == 3 {
            let first = target.load(0).to_le_bytes();
            assert_eq!(first, [255, 255, 255, 0, 0, 0, 0, 0]);
            assert!((8..LEN).step_by(8).all(|at| target.load(at) == at as u64));
            let last = target.load(LEN).to_le_bytes();
            assert_eq!(last[..3], (LEN as u64).to_le_bytes()[..3]);
            assert_eq!(last[3..], [255; 5]);
        }
    }
    // Head, rest and flush; then put and flush.
    assert_eq!(verbs.statistics().requests, 5);
    drop((local, target));
}
