//! Devices that keep less order: each order that a profile does not keep is seen broken, and each that it keeps is not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod nic;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use nic::*;

fn here() -> &'static Nic {
    nic("2*cx6-ar:skew=2000:bus=0,relaxed-only:bus=2000,strict:lazy=2000,cx6:bus=2000:lazy=0,erdma")
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

/// An atomic that adds one at a place of the other end.
fn add_one(other: &End, at: usize) -> Post {
    Post {
        word: 1,
        operands: [1, 0],
        ..request(ADD, other, at, 8)
    }
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
        let add = add_one(&other, 100);
        one.post(&[data, add]);
        while other.load(100) != round {
            std::thread::yield_now();
        }
        assert_eq!(other.load(0), round);
        one.succeed(1);
    }
}

/// Rounds in which a write was visible before the one that was sent before it, on a bus that is late.
fn overtaken_on_the_bus(relaxed: bool) -> u64 {
    let [mut one, other] = pair(here(), ["mlx5_3", "mlx5_3"], SHAPE);
    let rkey = if relaxed {
        other.relaxed_rkey()
    } else {
        other.rkey()
    };
    let mut broken = 0;
    for round in 1..=ROUNDS {
        one.store(0, round);
        let write = |word| Post {
            rkey,
            ..request(WRITE, &other, word, 8)
        };
        one.post(&[write(0), write(100)]);
        while other.load(100) != round {
            std::thread::yield_now();
        }
        broken += u64::from(other.load(0) != round);
        one.succeed(1);
        one.succeed(1);
    }
    broken
}

#[test]
fn a_write_by_a_relaxed_key_overtakes_another_on_the_bus_and_not_by_a_strict_one() {
    // A machine with much to do may not look in the short time between.
    assert!((0..20).any(|_| overtaken_on_the_bus(true) > 0));
    assert_eq!(overtaken_on_the_bus(false), 0);
}

/// Rounds in which a request of the second kind came before one of the first, by the values of one word.
fn overtaken(first: u32, second: u32, fence: bool) -> u64 {
    let [mut one, mut other] = pair(here(), ["rxe0", "rxe0"], SHAPE);
    let mut broken = 0;
    for round in 1..=ROUNDS {
        other.store(5, 0);
        one.store(0, 100);
        let before = Post {
            word: 8,
            operands: [1, 0],
            ..request(first, &other, 5, 8)
        };
        let after = Post {
            id: 2,
            word: if second == ADD { 9 } else { 0 },
            operands: [10, 0],
            flags: SIGNALED | u32::from(fence),
            ..request(second, &other, 5, 8)
        };
        one.post(&[before, after]);
        one.succeed(1);
        one.succeed(2);
        broken += u64::from(one.load(8) != 0);
        let last = if second == ADD { 10 } else { 100 };
        let value = other.load(5);
        let added = u64::from(first == ADD && one.load(8) != 0);
        assert_eq!(value, last + added, "round {round}");
    }
    broken
}

#[test]
fn a_write_overtakes_an_atomic_or_a_read_and_not_with_a_fence() {
    for first in [ADD, READ] {
        assert!(overtaken(first, WRITE, false) > 0, "{first}");
        assert_eq!(overtaken(first, WRITE, true), 0, "{first}");
    }
}

#[test]
fn an_atomic_overtakes_a_read_and_not_with_a_fence() {
    assert!(overtaken(READ, ADD, false) > 0);
    assert_eq!(overtaken(READ, ADD, true), 0);
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

/// A connected pair of one device, by relaxed keys alone.
fn relaxed_pair(device: &str) -> [End; 2] {
    let ends = [0, 1].map(|_| End::new(here(), device, SHAPE));
    let [one, other] = ends.map(|end| End {
        region: end.relaxed,
        ..end
    });
    one.connect(&other, 10, 3, 3);
    other.connect(&one, 10, 3, 3);
    [one, other]
}

#[test]
fn a_device_refuses_keys_without_relaxed_ordering() {
    assert!(End::new(here(), "mlx5_2", SHAPE).region.is_null());
}

/// Rounds in which an atomic by a relaxed key was visible before the write that was sent before it, on a bus that is late.
fn overtaken_by_an_atomic_on_the_bus(device: &str) -> u64 {
    let [mut one, other] = relaxed_pair(device);
    let mut broken = 0;
    for round in 1..=ROUNDS {
        let value = 2 * round;
        one.store(0, value);
        let data = Post {
            flags: 0,
            ..request(WRITE, &other, 0, 8)
        };
        let add = add_one(&other, 100);
        one.post(&[data, add]);
        one.succeed(1);
        broken += u64::from(other.load(0) != value);
        // It does not miss a write of its own word.
        let same = add_one(&other, 0);
        one.post(&[data, same]);
        one.succeed(1);
        assert_eq!((one.load(1), other.load(0)), (value, value + 1));
    }
    broken
}

#[test]
fn an_atomic_overtakes_a_write_on_the_bus_where_its_key_and_its_device_let_it() {
    assert!(overtaken_by_an_atomic_on_the_bus("mlx5_2") > 0);
    assert_eq!(overtaken_by_an_atomic_on_the_bus("mlx5_3"), 0);
}

#[test]
fn a_completion_comes_before_the_data_by_a_relaxed_key() {
    let [mut one, other] = relaxed_pair("mlx5_2");
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

/// Whether an add of a CPU gets lost, to a word to which a NIC adds meanwhile. The CPU's are in the upper half.
fn a_cpus_add_gets_lost(device: &str, rounds: u64) -> bool {
    let [one, other] = pair(here(), [device, device], SHAPE);
    let word = other.memory.as_ptr().wrapping_add(5).cast_mut();
    // SAFETY: an aligned word of memory that is never freed, which all access atomically.
    let word = unsafe { AtomicU64::from_ptr(word) };
    let done = AtomicBool::new(false);
    let (started, lost) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for added in 0_u64.. {
                if done.load(Ordering::SeqCst) || added == u64::from(u32::MAX) {
                    break;
                }
                let old = word.fetch_add(1 << 32, Ordering::SeqCst);
                started.store(true, Ordering::SeqCst);
                if old >> 32 != added {
                    return lost.store(true, Ordering::SeqCst);
                }
                std::thread::yield_now();
            }
        });
        let since = Instant::now();
        while !started.load(Ordering::SeqCst) && since.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        for _ in 0..rounds {
            let add = Post {
                word: 8,
                operands: [1, 0],
                ..request(ADD, &other, 5, 8)
            };
            one.post(&[add]);
            one.succeed(1);
            if lost.load(Ordering::SeqCst) {
                break;
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    assert!(started.load(Ordering::SeqCst));
    lost.into_inner()
}

/// Whatever the device says of its atomics.
#[test]
fn a_cpus_atomic_gets_lost_between_those_of_an_hca_and_not_between_global_ones() {
    const MANY: u64 = 100_000;
    assert!(a_cpus_add_gets_lost("mlx5_3", MANY));
    assert!(a_cpus_add_gets_lost("erdma_0", MANY));
    assert!(!a_cpus_add_gets_lost("rxe0", ROUNDS));
}
