//! Weak over loopback and over the example transport, free-running, through the suite: whatever it
//! declares, little or much, it keeps. (Over a simulated machine: `machine_simulator`.)

use std::sync::Arc;

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_loopback::Loopback;
use oxshmem_transport::{
    AtomicLevel, AtomicOp, AtomicTable, Completion, Device, Domain, Guarantees, Job, Lane, Op, Pe,
    Posted, Result, SignalSupport, Transport, Width, conformance, forward,
};
use oxshmem_weak::{Fenced, Settings, Weak};

struct Harness(Weak);

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }

    /// Beyond a few pieces size changes nothing here.
    fn largest(&self) -> u64 {
        (64 << 10) + 13
    }
}

/// The suite passes, with each of these seeds.
fn passes(inner: &Arc<dyn Transport>, seeds: std::ops::Range<u64>, settings: Settings) {
    for seed in seeds {
        let weak = Weak::over(Arc::clone(inner), Settings { seed, ..settings });
        let report = conformance::run(&Harness(weak));
        assert!(report.passed(), "{settings:?}, seed {seed}: {report}");
    }
}

fn loopback() -> Arc<dyn Transport> {
    Arc::new(Loopback::new())
}

const WORST: Settings = Settings::worst(0);

/// Everything that can be promised.
const IN_ORDER: Settings = Settings {
    guarantees: Guarantees {
        put_put: true,
        put_fence_put: true,
        put_atomic: true,
        atomic_put: true,
        atomic_atomic: true,
        put_message: false,
        put_get: true,
        get_get: true,
        across_lanes: true,
        completion: Completion::Placed,
        ..WORST.guarantees
    },
    ..WORST
};

#[test]
fn what_promises_nothing_passes() {
    passes(&loopback(), 1..3, WORST);
}

#[test]
fn what_places_writes_out_of_order_passes() {
    passes(&loopback(), 5..7, Settings::out_of_order(0));
}

#[test]
fn what_promises_every_order_passes() {
    passes(&loopback(), 3..5, IN_ORDER);
}

#[test]
fn what_keeps_no_order_of_long_operations_passes() {
    for (seed, ordered) in [(16, 8), (17, 4096)] {
        let settings = Settings::several_queue_pairs(0, ordered);
        passes(&loopback(), seed..seed + 1, settings);
    }
}

#[test]
fn a_signal_that_does_not_wait_for_long_data_is_found_out() {
    let settings = Settings {
        signals_wait: false,
        ..Settings::several_queue_pairs(0, 64)
    };
    let fault = (1..10).find_map(|seed| {
        let weak = Weak::over(loopback(), Settings { seed, ..settings });
        let of_order = |name: &str| name == "m22_signal_is_not_seen_before_its_data";
        let report = conformance::run_where(&Harness(weak), of_order);
        (!report.passed()).then(|| report.to_string())
    });
    let fault = fault.expect("a seed that shows it");
    assert!(fault.contains("with 1000 bytes"), "{fault}");
}

/// Puts that keep relaxed keys where strict ones are believed: all of them, and all but the first behind a fence.
#[test]
fn puts_that_pass_those_before_a_fence_are_found_out() {
    for (fenced, seeds, is_found) in [
        (Fenced::None, 20, true),
        (Fenced::First, 20, true),
        (Fenced::All, 1, false),
    ] {
        let mut settings = Settings { fenced, ..WORST };
        settings.guarantees.put_fence_put = true;
        let fault = (1..=seeds).find_map(|seed| {
            let weak = Weak::over(loopback(), Settings { seed, ..settings });
            let of_order = |name: &str| name == "put_then_fence_then_put_in_order";
            let report = conformance::run_where(&Harness(weak), of_order);
            (!report.passed()).then(|| report.to_string())
        });
        assert_eq!(fault.is_some(), is_found, "{fenced:?}: {fault:?}");
    }
}

#[test]
fn each_order_alone_is_kept() {
    let orders: [fn(&mut Guarantees); 7] = [
        |g| g.put_fence_put = true,
        |g| g.put_put = true,
        |g| g.put_atomic = true,
        |g| g.atomic_put = true,
        |g| g.atomic_atomic = true,
        |g| g.put_get = true,
        |g| g.get_get = true,
    ];
    for (seed, order) in (1..).zip(orders) {
        for across_lanes in [false, true] {
            let mut settings = WORST;
            order(&mut settings.guarantees);
            settings.guarantees.across_lanes = across_lanes;
            let weak = Weak::over(loopback(), Settings { seed, ..settings });
            let of_order = |name: &str| name.contains("order") || name.contains("flush");
            let report = conformance::run_where(&Harness(weak), of_order);
            assert!(report.passed(), "{settings:?}, seed {seed}: {report}");
        }
    }
}

#[test]
fn every_meaning_of_a_completion_passes() {
    for completion in [Completion::Accepted, Completion::Placed] {
        let guarantees = Guarantees {
            completion,
            ..WORST.guarantees
        };
        passes(
            &loopback(),
            5..7,
            Settings {
                guarantees,
                ..WORST
            },
        );
    }
}

#[test]
fn a_short_queue_passes() {
    let depth = Some(4);
    passes(&loopback(), 7..8, Settings { depth, ..WORST });
    passes(&loopback(), 9..10, Settings { depth, ..IN_ORDER });
}

#[test]
fn what_can_do_little_passes() {
    let few = AtomicTable::uniform(AtomicLevel::None)
        .with(AtomicOp::CompareSwap, Width::W64, AtomicLevel::Cpu)
        .with(AtomicOp::Fetch, Width::W64, AtomicLevel::Cpu);
    let little = Settings {
        inline: 0,
        put_signal: SignalSupport::None,
        atomics: few,
        ..WORST
    };
    passes(&loopback(), 10..11, little);
    passes(
        &loopback(),
        12..13,
        Settings {
            inline: 64,
            ..WORST
        },
    );
}

#[test]
fn over_a_transport_that_performs_later_and_wires_its_lanes_it_passes() {
    let tiny: Arc<dyn Transport> = Arc::new(Tiny::default());
    passes(&tiny, 13..14, WORST);
    passes(&tiny, 14..15, IN_ORDER);
}

#[test]
fn over_one_that_promises_nothing_it_can_promise_everything() {
    let nothing: Arc<dyn Transport> = Arc::new(Weak::over(loopback(), WORST));
    passes(&nothing, 15..16, IN_ORDER);
}

/// A transport whose lanes take no notice of fences.
#[derive(Debug)]
struct Deaf(Weak);
#[derive(Debug)]
struct DeafDomain(Arc<dyn Domain>);
#[derive(Debug)]
struct DeafLane(Box<dyn Lane>);

// SAFETY: all is the wrapped transport's.
unsafe impl Transport for Deaf {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.0.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(DeafDomain(self.0.open(device, job)?)))
    }
}

impl Domain for DeafDomain {
    forward!(accept, address, capabilities, guarantees, import, peer_lost, reach, register => 0);
    forward!(register_local, shutdown => 0);

    fn lane(&self) -> Result<Box<dyn Lane>> {
        Ok(Box::new(DeafLane(self.0.lane()?)))
    }
}

impl Lane for DeafLane {
    forward!(connect, counters, endpoint, progress => 0);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        // SAFETY: the caller's promise.
        unsafe { self.0.post(pe, ops) }
    }

    fn request_completion(&mut self, pe: Pe) {
        self.0.request_completion(pe);
    }
}

struct DeafHarness(Deaf);

impl conformance::Harness for DeafHarness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }
}

#[test]
fn a_lane_that_takes_no_notice_of_fences_is_found_out() {
    let mut settings = WORST;
    settings.guarantees.put_fence_put = true;
    let name = "put_then_fence_then_put_in_order";
    let found_out = (1..10).any(|seed| {
        let weak = Weak::over(loopback(), Settings { seed, ..settings });
        let harness = DeafHarness(Deaf(weak));
        !conformance::run_where(&harness, |check| check == name).passed()
    });
    assert!(found_out, "no seed shows it");
}
