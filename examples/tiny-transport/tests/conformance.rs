//! What a transport's own tests need at least.

use oxshmem_example_tiny_transport::Tiny;
use oxshmem_transport::{Transport, conformance};

struct Harness(Tiny);

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }
}

#[test]
fn tiny_with_nics_passes_the_conformance_suite() {
    let report = conformance::run(&Harness(Tiny::nic()));
    assert!(report.passed(), "{report}");
}

#[test]
fn tiny_passes_the_conformance_suite() {
    let report = conformance::run(&Harness(Tiny::default()));
    assert!(report.passed(), "{report}");
}
