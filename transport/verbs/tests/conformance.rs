//! The conformance suite over real verbs. Every PE lives in this process. In ci/softroce:
//!
//! ```text
//! cargo test -p oxshmem-verbs --no-run
//! ci/softroce --nodes 2 -- target/debug/deps/conformance-… --ignored --test-threads 1
//! ```
//!
//! Tests of two ports take the first two that are in one network. Without such they fail, or use one port with
//! `OXSHMEM_TEST_PORTS=any` (`ci/hardware`).

#![cfg(feature = "rdma")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "device/ports.rs"]
mod ports;

use std::sync::Arc;
use std::time::Duration;

use oxshmem_transport::conformance::{self, Harness};
use oxshmem_transport::{Device, Domain, Error, Job, Lane, Op, Pe, Posted, Transport, forward};
use oxshmem_verbs::{Choice, Rails, Settings, Verbs};

#[derive(Debug)]
struct Devices {
    verbs: Verbs,
    /// The names of those that the PEs are dealt out to.
    used: Vec<String>,
}

impl Harness for Devices {
    fn transport(&self) -> &dyn Transport {
        &self.verbs
    }

    fn device<'d>(&self, pe: Pe, devices: &'d [Device]) -> &'d Device {
        let name = &self.used[pe.index() % self.used.len()];
        let found = devices.iter().find(|device| device.name == *name);
        found.unwrap_or_else(|| panic!("{name} is not there any more"))
    }

    /// An emulated machine is slow, and a lost packet costs a quarter of a second.
    fn deadline(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// The names of so many ports, or of one if that is permitted where there are no two of a network.
fn ports_for(there: &[Device], wanted: usize) -> Vec<String> {
    let mut found = ports::for_pes(there);
    found.truncate(wanted);
    assert!(!found.is_empty(), "there is no port");
    if found.len() < wanted {
        let any = std::env::var("OXSHMEM_TEST_PORTS").is_ok_and(|value| value == "any");
        assert!(
            any,
            "{wanted} ports of one network are needed, there are {there:?}"
        );
        println!("no two ports of this host are in one network: one port for all PEs");
    }
    found.iter().map(|device| device.name.clone()).collect()
}

fn conforms(settings: Settings, wanted: usize) {
    let verbs = Verbs::with(settings);
    let there = verbs.probe().unwrap_or_else(|error| panic!("{error}"));
    let used = ports_for(&there, wanted);
    println!("on {}", used.join(" and "));
    let harness = Devices { verbs, used };
    let only = std::env::var("ONLY").unwrap_or_default();
    let report = conformance::run_where(&harness, |name| name.contains(&only));
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[test]
#[ignore = "needs an RDMA device; run in ci/softroce"]
fn one_port_conforms() {
    conforms(Settings::default(), 1);
}

#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn two_ports_conform() {
    conforms(Settings::default(), 2);
}

/// Signals, atomics and flushes by a registration of their own.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn relaxed_ordering_conforms() {
    let settings = Settings {
        relaxed_ordering: Choice::On,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// Whatever the device does, nothing relies on the order in which it places writes.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn without_belief_in_the_order_of_writes_it_conforms() {
    let settings = Settings {
        in_order: Choice::Off,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// No request carries its data, the queues are as short as they may be.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn without_inline_data_and_with_short_queues_it_conforms() {
    let settings = Settings {
        inline: 0,
        depth: 16,
        bounce: 256 << 10,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// Long transfers, which nearly all are here, go in parts over queue pairs of their own.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn over_several_queue_pairs_it_conforms() {
    let settings = Settings {
        queue_pairs: 4,
        stripe: 64,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// The same with the default length, with short queues and without data that goes with its request.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn over_several_short_queue_pairs_it_conforms() {
    let settings = Settings {
        queue_pairs: 3,
        inline: 0,
        depth: 16,
        bounce: 256 << 10,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// Long transfers go in parts over two NICs of each PE.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn over_two_nics_it_conforms() {
    let settings = Settings {
        rails: Rails::Count(2),
        stripe: 64,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// The same over several queue pairs at each NIC, with short queues and without data that goes with its request.
#[test]
#[ignore = "needs two RDMA devices; run in ci/softroce"]
fn over_several_short_queue_pairs_of_two_nics_it_conforms() {
    let settings = Settings {
        rails: Rails::Count(2),
        queue_pairs: 2,
        inline: 0,
        depth: 16,
        bounce: 256 << 10,
        ..Settings::default()
    };
    conforms(settings, 2);
}

/// Verbs that keeps relaxed keys behind a fence, where its promise is that puts take the strict ones.
#[derive(Debug)]
struct RelaxedForEver(Verbs);

// SAFETY: its parts are those of verbs, unchanged. A fence that is left out touches no memory.
unsafe impl Transport for RelaxedForEver {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn probe(&self) -> Result<Vec<Device>, Error> {
        self.0.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>, Error> {
        let inner = self.0.open(device, job)?;
        Ok(Arc::new(RelaxedDomain { inner }))
    }
}

#[derive(Debug)]
struct RelaxedDomain {
    inner: Arc<dyn Domain>,
}

impl Domain for RelaxedDomain {
    forward!(accept, address, atomics_towards, capabilities, explain, guarantees, guarantees_towards => inner);
    forward!(import, inbox, make_visible, peer_lost, put_signal_towards, reach, register, register_local => inner);
    forward!(schedule, shutdown, wants_descriptor => inner);

    fn lane(&self) -> Result<Box<dyn Lane>, Error> {
        let inner = self.inner.lane()?;
        Ok(Box::new(RelaxedLane { inner }))
    }
}

#[derive(Debug)]
struct RelaxedLane {
    inner: Box<dyn Lane>,
}

impl Lane for RelaxedLane {
    forward!(connect, counters, endpoint, progress => inner);

    unsafe fn post(&mut self, pe: Pe, ops: &[Op]) -> Posted {
        // SAFETY: the caller's promise.
        unsafe { self.inner.post(pe, ops) }
    }

    fn fence(&mut self, _pe: Pe) {}

    fn request_completion(&mut self, pe: Pe) {
        self.inner.request_completion(pe);
    }
}

impl Harness for RelaxedForEver {
    fn transport(&self) -> &dyn Transport {
        self
    }

    fn device<'d>(&self, pe: Pe, devices: &'d [Device]) -> &'d Device {
        &devices[pe.index() % 2]
    }
}

/// Rounds of the check, of which one finds it.
const ROUNDS: u32 = 20;

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_relaxed_keys_behind_a_fence_are_found_out() {
    let settings = Settings {
        relaxed_ordering: Choice::On,
        ..Settings::default()
    };
    let check = "put_then_fence_then_put_in_order";
    let harness = RelaxedForEver(Verbs::with(settings));
    let found = (0..ROUNDS).find_map(|_| {
        let report = conformance::run_where(&harness, |name| name == check);
        (!report.passed()).then(|| report.to_string())
    });
    let found = found.expect("no round finds it");
    assert!(found.contains(check), "{found}");
    println!("{found}");
}
