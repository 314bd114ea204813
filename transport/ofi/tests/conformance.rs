//! The conformance suite over providers that need no hardware: those of Debian 12's libfabric.

use oxshmem_ofi::{Atomics, Interface, Ofi, Puts, Settings};
use oxshmem_transport::conformance::Verdict;
use oxshmem_transport::{Transport, conformance};

struct Harness(Ofi);

impl Harness {
    fn over(provider: &str, puts: Puts, atomics: Atomics) -> Harness {
        Harness(Ofi::with(Settings {
            providers: Some(vec![provider.into()]),
            interfaces: Some(vec![
                Interface::Name("lo".into()),
                Interface::Name("shm".into()),
            ]),
            puts,
            atomics,
            hidden_by: None,
            ..Settings::default()
        }))
    }
}

impl conformance::Harness for Harness {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }
}

/// Runs the suite, or the checks whose names contain `OFI_CHECKS`.
fn passes(provider: &str, puts: Puts, atomics: Atomics) -> conformance::Report {
    let wanted = std::env::var("OFI_CHECKS").unwrap_or_default();
    let report = conformance::run_where(&Harness::over(provider, puts, atomics), |name| {
        name.contains(&wanted)
    });
    assert!(report.passed(), "{provider}: {report}");
    report
}

#[test]
fn tcp_passes_the_conformance_suite() {
    let _report = passes("tcp", Puts::Auto, Atomics::Auto);
}

#[test]
fn net_passes_the_conformance_suite() {
    let _report = passes("net", Puts::Auto, Atomics::Auto);
}

/// `OFI_PROVIDER` names it.
#[test]
#[ignore = "any provider of this machine that reaches lo"]
fn another_provider_passes_the_conformance_suite() {
    let provider = std::env::var("OFI_PROVIDER").unwrap();
    for puts in [Puts::Messages, Puts::SplitRma] {
        let _report = passes(&provider, puts, Atomics::Auto);
    }
}

#[test]
fn tcp_passes_the_conformance_suite_with_writes_of_the_provider() {
    let _report = passes("tcp", Puts::SplitRma, Atomics::Auto);
}

#[test]
fn m28_tcp_passes_the_conformance_suite_with_atomics_of_the_provider() {
    let report = passes("tcp", Puts::Auto, Atomics::Provider);
    let tried = report.verdict("atomics_are_exclusive");
    let has_none = matches!(tried, Some(Verdict::NotApplicable(_)));
    assert!(!has_none, "{report}");
}

/// `OFI_PROVIDER` names it.
#[test]
#[ignore = "any provider of this machine that reaches lo, and has atomics"]
fn another_provider_passes_the_conformance_suite_with_its_atomics() {
    let provider = std::env::var("OFI_PROVIDER").unwrap();
    for puts in [Puts::Messages, Puts::SplitRma] {
        let _report = passes(&provider, puts, Atomics::Provider);
    }
}
