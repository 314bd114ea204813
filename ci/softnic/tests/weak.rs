//! Devices that keep less order: each order that a profile does not keep is seen broken, and each that it keeps is not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use nic::*;

fn here() -> &'static Nic {
    nic("2*cx6-ar:skew=2000:bus=0,relaxed-only:bus=2000")
}

/// Rounds in which an order that is not kept is certain to be broken.
const ROUNDS: u64 = 300;

#[test]
fn a_write_overtakes_another_where_routing_is_adaptive() {
    let [mut one, other] = pair(here(), ["mlx5_0", "mlx5_1"], SHAPE);
    let mut broken = 0;
    for round in 1..=ROUNDS {
        one.store(0, round);
        let data = Post {
            flags: 0,
            ..request(WRITE, &other, 0, 8)
        };
        one.post(&[data, request(WRITE, &other, 100, 8)]);
        while other.load(100) != round {
            std::thread::yield_now();
        }
        broken += u64::from(other.load(0) != round);
        one.succeed(1);
    }
    assert!(broken > 0);
}

#[test]
fn an_atomic_overtakes_no_write() {
    let [mut one, other] = pair(here(), ["mlx5_0", "mlx5_1"], SHAPE);
    for round in 1..=ROUNDS {
        one.store(0, round);
        let data = Post {
            flags: 0,
            ..request(WRITE, &other, 0, 8)
        };
        let add = Post {
            word: 1,
            operands: [1, 0],
            ..request(ADD, &other, 100, 8)
        };
        one.post(&[data, add]);
        while other.load(100) != round {
            std::thread::yield_now();
        }
        assert_eq!(other.load(0), round);
        one.succeed(1);
    }
}

#[test]
fn a_message_overtakes_no_write() {
    let [mut one, other] = pair(here(), ["mlx5_0", "mlx5_1"], SHAPE);
    for round in 1..=ROUNDS {
        assert_eq!(other.receive(round, 200, 8), 0);
        one.store(0, round);
        let data = Post {
            flags: 0,
            ..request(WRITE, &other, 0, 8)
        };
        one.post(&[data, request(SEND, &other, 0, 8)]);
        other.succeed(round);
        assert_eq!(other.load(0), round);
        one.succeed(1);
    }
}

#[test]
fn a_read_overtakes_a_write_and_not_one_that_has_completed() {
    let [mut one, other] = pair(here(), ["mlx5_0", "mlx5_1"], SHAPE);
    let mut broken = 0;
    for round in 1..=ROUNDS {
        one.store(0, round);
        let write = request(WRITE, &other, 0, 8);
        let back = Post {
            word: 2,
            ..request(READ, &other, 0, 8)
        };
        one.post(&[write, back]);
        one.succeed(1);
        one.succeed(1);
        broken += u64::from(one.load(2) != round);
        one.post(&[back]);
        one.succeed(1);
        assert_eq!(one.load(2), round);
    }
    assert!(broken > 0);
}

#[test]
fn a_completion_comes_before_the_data_by_a_relaxed_key() {
    let nic = here();
    let ends = [0, 1].map(|_| End::new(nic, "mlx5_2", SHAPE));
    // Keys without relaxed ordering are refused there.
    assert!(ends.iter().all(|end| end.region.is_null()));
    let [mut one, other] = ends.map(|end| End {
        region: end.relaxed,
        ..end
    });
    one.connect(&other, 10, 3, 3);
    other.connect(&one, 10, 3, 3);
    let mut late = 0;
    for round in 1..=ROUNDS {
        one.store(0, round);
        one.post(&[request(WRITE, &other, 0, 8)]);
        one.succeed(1);
        late += u64::from(other.load(0) != round);
    }
    assert!(late > 0);
}

#[test]
fn a_window_of_late_answers_moves_on() {
    let [one, other] = pair(here(), ["mlx5_0", "mlx5_1"], SHAPE);
    let plain = Post {
        flags: 0,
        ..request(WRITE, &other, 0, 8)
    };
    for _ in 0..20 {
        one.post(&[plain; 63]);
        one.post(&[request(WRITE, &other, 0, 8)]);
        one.succeed(1);
    }
}
