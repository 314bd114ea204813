//! Sequences of collective calls, drawn at random: all kinds, teams, types, folds and sizes, back to back
//! and in place, with teams that come and go, calls that are refused, puts, contexts, counters and locks
//! between them. After each step all of every PE's memory is what a serial reference says.
//!
//! `CONTRACT_SEED` names another draw, `PROPTEST_CASES` the number of sequences (256 by default, of which
//! each setting here has a part).

pub mod plan;
mod play;
mod script;

use std::sync::Arc;

use oxshmem::{Atomics, Builder, MemoryKind, MemoryModel, Result, World};
use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::plan::plans;
use self::script::script;
use crate::by_host;
use crate::setting::{DEADLINE, Path, Pe, Setting, ends, numbers, runner, seed};

/// Bytes of each half of the memory that calls work on.
const HALF: usize = 24 << 10;
/// The same on a simulated machine, which goes byte by byte.
const SHORT: usize = 600;

/// PEs of which the reference is quickly made.
const FEW: usize = 9;

/// On the PEs of a world that is there already.
pub fn sequences_of_calls_equal_a_serial_reference(pe: &Pe<'_>) -> Result<()> {
    let n = pe.n_pes();
    // Each PE has all PEs' memory in its reference: as much, of how many there are.
    let share = |most: usize| (most * FEW / n.max(FEW)).max(1);
    let half = match pe.longest(HALF) < HALF {
        true => SHORT,
        false => share(HALF).next_multiple_of(64),
    };
    let cases = share(pe.rounds(100).min(12)) as u32;
    let locks = pe.has_locks()?;
    let hosts = match pe.kind() {
        MemoryKind::Host => by_host::hosts(pe.world)?,
        _ => vec![0; n],
    };
    let done = runner(cases).run(&plans(n..=n, 16), |plan| {
        play::play(pe, pe.kind(), &script(&plan, half, &hosts), locks)
            .map_err(|error| TestCaseError::fail(error.to_string()))
    });
    let seed = seed();
    assert!(
        done.is_ok(),
        "PE {}, CONTRACT_SEED={seed}: {}",
        pe.me(),
        told(done)
    );
    Ok(())
}

fn told<T: std::fmt::Debug>(
    done: std::result::Result<(), proptest::test_runner::TestError<T>>,
) -> String {
    use proptest::test_runner::TestError;
    match done {
        Ok(()) => "well".into(),
        Err(TestError::Abort(why)) => why.to_string(),
        Err(TestError::Fail(why, plan)) => format!("{why}\nthe plan: {plan:?}"),
    }
}

/// Small heaps have little scratch memory, so that more calls go from object to object.
const HEAPS: [usize; 3] = [1 << 20, 2 << 20, 32 << 20];

/// Worlds of 1 to 9 PEs, each with a sequence, on as many hosts. What fails is made smaller, and told with its
/// seed.
fn hold(
    part: u32,
    half: usize,
    builders: impl Fn(usize) -> Vec<Builder>,
    (hosts, locks): (&dyn Fn(usize) -> usize, bool),
) {
    let seed = seed();
    let usual = Config::default();
    let config = Config {
        cases: (usual.cases / part).max(1),
        failure_persistence: None,
        max_shrink_iters: 300,
        max_shrink_time: 100_000,
        ..usual
    };
    let any = (plans(1..=FEW, 30), 0..HEAPS.len());
    let done = TestRunner::new_with_rng(config, numbers(seed)).run(&any, |(plan, heap)| {
        let hosts: Vec<usize> = (0..plan.pes).map(hosts).collect();
        let script = script(&plan, half, &hosts);
        let builders = builders(plan.pes)
            .into_iter()
            .map(|builder| builder.heap_limit(HEAPS[heap]))
            .collect();
        let play = |world: &World| play::play(world, MemoryKind::Host, &script, locks);
        match ends(builders, play) {
            errors if errors.is_empty() => Ok(()),
            errors => Err(TestCaseError::fail(errors.join("\n"))),
        }
    });
    assert!(done.is_ok(), "CONTRACT_SEED={seed}: {}", told(done));
}

fn hold_in(setting: Setting, part: u32) {
    let half = if setting.path == Path::Simulator {
        SHORT
    } else {
        HALF
    };
    let locks = setting != Setting::new(Path::Tiny);
    hold(part, half, |pes| setting.builders(pes), (&|_| 0, locks));
}

#[test]
fn hold_by_load_and_store() {
    hold_in(Setting::new(Path::Mapped), 8);
}

#[test]
fn hold_in_the_relaxed_model() {
    hold_in(Setting::relaxed(Path::Mapped), 32);
}

#[test]
fn hold_in_checked_mode() {
    hold_in(Setting::new(Path::Checked), 32);
}

#[test]
fn hold_over_lanes_with_short_queues() {
    hold_in(Setting::new(Path::Tiny), 32);
}

#[test]
fn hold_over_weak_lanes() {
    hold_in(Setting::new(Path::Weak), 32);
    hold_in(Setting::relaxed(Path::Weak), 64);
}

#[test]
fn hold_over_nics() {
    hold_in(Setting::nics(MemoryModel::Ordered, Atomics::Auto, true), 32);
}

#[test]
fn hold_on_a_simulated_machine() {
    hold_in(Setting::new(Path::Simulator), 64);
}

#[test]
fn hold_on_several_hosts() {
    on_several_hosts(32);
}

/// The same, of as many as go with all other tests.
#[test]
fn a_few_hold_on_several_hosts() {
    on_several_hosts(256);
}

/// Some PEs share memory, others do not: calls go by hosts.
fn on_several_hosts(part: u32) {
    let hosts: [fn(usize) -> usize; 4] = [
        |pe| pe % 2,
        |pe| pe % 3,
        // One with many, and some with one each.
        |pe| pe.saturating_sub(4),
        |pe| [0, 0, 0, 1, 1, 0, 2, 1, 0][pe % FEW],
    ];
    for host in hosts {
        let builders = |pes: usize| {
            let builder = World::builder()
                .transports(vec![Arc::new(Loopback::new()), Arc::new(Tiny::nic())])
                .timeout(DEADLINE);
            let on_host = |pe| builder.clone().host_id(format!("host-{}", host(pe)));
            (0..pes).map(on_host).collect()
        };
        // Without them reductions are in the team's order.
        let folded: fn(usize) -> usize = if by_host::is_flat() { |_| 0 } else { host };
        hold(part, HALF, builders, (&folded, true));
    }
}

/// Whichever way of moving data is asked for.
#[test]
fn hold_by_each_way() {
    for (way, test) in [
        ("scratch", "hold_by_load_and_store"),
        ("direct", "hold_by_load_and_store"),
        ("direct", "hold_over_weak_lanes"),
        ("direct", "hold_on_several_hosts"),
        ("scratch", "hold_on_several_hosts"),
        (by_host::FLAT, "hold_on_several_hosts"),
    ] {
        by_host::holds_by(way, &format!("sequences::{test}"));
    }
}
