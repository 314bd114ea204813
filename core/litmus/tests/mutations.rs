//! The mutation check: each order that the library inserts is left out in turn, and some program
//! notices. Those that need several paths to one PE are left out in `paths`.

mod two_at_once;

use oxshmem::FenceSite;
use oxshmem_litmus::directed::{Machine, Search, search};
use oxshmem_litmus::{MemoryModel, Outcome, Program, library, machines, model};
use oxshmem_transport::SignalSupport;
use oxshmem_weak::{Fenced, Settings};
use two_at_once::two_at_once;

/// The machine whose programs notice that an order is missing; `None` if `paths` shows it.
fn where_noticed(inserted: FenceSite) -> Option<fn(usize, MemoryModel) -> Machine> {
    let worst: fn(usize, MemoryModel) -> Machine =
        |pes, model| machines::lanes("weak(loopback)", pes, model, Settings::worst(0));
    let composed: fn(usize, MemoryModel) -> Machine = |pes, model| {
        let settings = Settings {
            put_signal: SignalSupport::None,
            ..Settings::worst(0)
        };
        machines::lanes(
            "weak(loopback) without put-with-signal",
            pes,
            model,
            settings,
        )
    };
    Some(match inserted {
        FenceSite::FenceStores
        | FenceSite::FenceLoads
        | FenceSite::QuietStores
        | FenceSite::Signal
        | FenceSite::Read
        | FenceSite::Fetch
        | FenceSite::Wait
        | FenceSite::Arrive
        | FenceSite::Arrived => machines::mapped,
        FenceSite::FenceLane | FenceSite::QuietLane | FenceSite::ReadLane => worst,
        FenceSite::FenceLong => machines::several_queue_pairs,
        FenceSite::SignalLane => composed,
        FenceSite::FenceOtherPath
        | FenceSite::Doorbell
        | FenceSite::QuietGpu
        | FenceSite::WaitGpu => {
            return None;
        }
        _ => unreachable!("an order that this check does not know"),
    })
}

/// The first of these programs with a forbidden outcome on such machines, and the outcome.
#[expect(clippy::expect_used, reason = "a test's own helper")]
fn notices(
    inserted: Option<FenceSite>,
    make: fn(usize, MemoryModel) -> Machine,
    wanted: impl Fn(&str) -> bool,
) -> Option<(String, Outcome)> {
    let programs = library::library().iter();
    for (name, text) in programs.filter(|(name, _)| wanted(name)) {
        let program = Program::parse(text).expect("a library program parses");
        for &model in program.models() {
            let outcomes = model::outcomes(&program, model).expect("it is small");
            let mut machine = make(program.pes(), model);
            if let Some(inserted) = inserted {
                machine.builder = machine.builder.disable_fence(inserted);
            }
            let how = Search {
                seed: 1,
                least: 150,
                most: 150,
            };
            let report = search(&[machine], &program, &outcomes, how).expect("it runs");
            if let Some((outcome, _)) = report.forbidden.into_iter().next() {
                return Some((format!("{name} ({model})"), outcome));
            }
        }
    }
    None
}

#[test]
fn each_order_that_is_left_out_is_noticed() {
    let known = FenceSite::ALL.into_iter();
    let here: Vec<_> = known
        .filter_map(|inserted| Some((inserted, where_noticed(inserted)?)))
        .collect();
    assert_eq!(FenceSite::ALL.len() - here.len(), 4);
    two_at_once(here, |(inserted, make)| {
        let noticed = notices(Some(inserted), make, |_| true);
        println!("{inserted:?}: {noticed:?}");
        assert!(
            noticed.is_some(),
            "nothing notices that {inserted:?} is missing"
        );
    });
}

/// The flushes of a lane whose target places writes out of order: that writes are ordered before atomics hides none of
/// them.
#[test]
fn each_flush_of_a_nic_that_places_writes_out_of_order_is_noticed_when_missing() {
    let flushes = [
        FenceSite::FenceLane,
        FenceSite::QuietLane,
        FenceSite::ReadLane,
    ];
    two_at_once(flushes.to_vec(), |inserted| {
        let noticed = notices(Some(inserted), machines::reordering, |_| true);
        println!("{inserted:?}: {noticed:?}");
        assert!(
            noticed.is_some(),
            "nothing notices that {inserted:?} is missing"
        );
    });
}

/// Lanes whose long operations keep no order need three flushes for them alone.
#[test]
fn each_flush_of_long_operations_is_noticed_when_missing() {
    let flushes = [
        (FenceSite::FenceLong, "mp+fence+words"),
        (FenceSite::FenceOtherPath, "fence+words"),
        (FenceSite::ReadLane, "words+own-get"),
    ];
    two_at_once(flushes.to_vec(), |(inserted, program)| {
        let make = machines::several_queue_pairs;
        let noticed = notices(Some(inserted), make, |name| name == program);
        println!("{inserted:?}: {noticed:?}");
        assert!(
            noticed.is_some(),
            "{program} does not notice that {inserted:?} is missing"
        );
    });
}

/// The signal of long data, by the queue pair of short operations.
#[test]
fn a_signal_that_does_not_wait_for_long_data_is_noticed() {
    let make: fn(usize, MemoryModel) -> Machine = |pes, model| {
        let settings = Settings {
            signals_wait: false,
            ..Settings::several_queue_pairs(0, 8)
        };
        machines::lanes("weak(loopback), early signals", pes, model, settings)
    };
    let noticed = notices(None, make, |name| name == "mp+signal+words");
    println!("{noticed:?}");
    assert!(noticed.is_some(), "nothing notices an early signal");
}

/// A fence that tells the lane is as good as one that flushes it.
#[test]
fn the_fence_of_a_lane_is_noticed_when_missing_and_only_then() {
    two_at_once(vec![None, Some(FenceSite::FenceLane)], |omitted| {
        let noticed = notices(omitted, machines::fencing, |_| true);
        println!("{omitted:?}: {noticed:?}");
        assert_eq!(noticed.is_some(), omitted.is_some(), "{noticed:?}");
    });
}

/// A lane is told of each fence, and keeps relaxed keys where the core believes that puts take strict ones: all of them, or
/// from the second put on.
#[test]
fn a_lane_that_keeps_relaxed_keys_behind_a_fence_is_noticed() {
    let ignores: fn(usize, MemoryModel) -> Machine =
        |pes, model| machines::fencing_only(pes, model, Fenced::None);
    let keeps_one: fn(usize, MemoryModel) -> Machine =
        |pes, model| machines::fencing_only(pes, model, Fenced::First);
    let cases = [
        (ignores, "mp+fence", true),
        (ignores, "mp+fence+puts", true),
        (keeps_one, "mp+fence", false),
        (keeps_one, "mp+fence+puts", true),
        (machines::fencing, "mp+fence+puts", false),
    ];
    two_at_once(cases.to_vec(), |(make, program, is_noticed)| {
        let noticed = notices(None, make, |name| name == program);
        println!("{program}: {noticed:?}");
        assert_eq!(noticed.is_some(), is_noticed, "{program}: {noticed:?}");
    });
}

/// Each call by itself, whatever other programs notice.
#[test]
fn calls_that_synchronise_notice_that_their_own_order_is_missing() {
    for (name, inserted) in [
        ("team-sync", FenceSite::Arrived),
        ("reduce", FenceSite::Arrive),
        ("fcollect", FenceSite::Arrived),
        ("alltoall", FenceSite::Arrive),
        ("collect", FenceSite::Arrived),
        ("alltoalls", FenceSite::Arrive),
        ("reduce-scatter", FenceSite::Arrived),
        ("inscan", FenceSite::Arrive),
        ("exscan", FenceSite::Arrived),
        ("lock", FenceSite::QuietLane),
        ("put-counted", FenceSite::Signal),
    ] {
        let make = where_noticed(inserted);
        let noticed = make.and_then(|make| notices(Some(inserted), make, |other| other == name));
        println!("{name} without {inserted:?}: {noticed:?}");
        assert!(
            noticed.is_some(),
            "{name} does not notice that {inserted:?} is missing"
        );
    }
}

#[test]
fn with_all_orders_in_place_nothing_is_noticed() {
    for inserted in FenceSite::ALL {
        // Only the machines that `weak.rs` does not run on.
        if inserted == FenceSite::SignalLane
            && let Some(make) = where_noticed(inserted)
        {
            assert_eq!(notices(None, make, |_| true), None);
        }
    }
}
