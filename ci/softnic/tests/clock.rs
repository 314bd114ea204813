//! The clock of round trips: it counts those that followed each other, and nothing twice.
//!
//! The clock is the process's, so this program has one test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use nic::*;

/// The round trips of these requests, which are posted together.
fn trips(one: &End, requests: &[Post]) -> u64 {
    let before = one.nic.counter("round_trips");
    one.post(requests);
    requests.iter().for_each(|post| {
        one.succeed(post.id);
    });
    one.nic.counter("round_trips") - before
}

#[test]
fn requests_that_wait_for_each_other_take_a_round_trip_each_and_others_share_one() {
    let [one, other] = pair(nic("cx6"), ["mlx5_0", "mlx5_0"], SHAPE);
    let write = request(WRITE, &other, 0, 8);
    let read = Post {
        word: 8,
        ..request(READ, &other, 0, 8)
    };
    let fenced = |post: Post| Post {
        flags: SIGNALED | 1,
        ..post
    };
    assert_eq!(trips(&one, &[write; 10]), 1);
    assert_eq!((0..10).map(|_| trips(&one, &[write])).sum::<u64>(), 10);
    assert_eq!(trips(&one, &[read, write]), 1);
    // A fence waits for the read, by which the write is one round trip later.
    assert_eq!(trips(&one, &[read, fenced(write)]), 2);
    assert_eq!(trips(&one, &[write, fenced(write)]), 1);
    assert_eq!(
        trips(&one, &[read, fenced(read), fenced(read), fenced(write)]),
        4
    );
}
