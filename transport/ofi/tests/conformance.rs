//! The conformance suite over providers that need no hardware: those of Debian 12's libfabric.

use oxshmem_ofi::{Interface, Ofi, Puts, Settings};
use oxshmem_transport::{Transport, conformance};

struct Harness(Ofi);

impl Harness {
    fn over(provider: &str, puts: Puts) -> Harness {
        Harness(Ofi::with(Settings {
            providers: Some(vec![provider.into()]),
            interfaces: Some(vec![
                Interface::Name("lo".into()),
                Interface::Name("shm".into()),
            ]),
            puts,
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
fn passes(provider: &str, puts: Puts) {
    let wanted = std::env::var("OFI_CHECKS").unwrap_or_default();
    let report = conformance::run_where(&Harness::over(provider, puts), |name| {
        name.contains(&wanted)
    });
    assert!(report.passed(), "{provider}: {report}");
}

#[test]
fn tcp_passes_the_conformance_suite() {
    passes("tcp", Puts::Auto);
}

/// `OFI_PROVIDER` names it.
#[test]
#[ignore = "any provider of this machine that reaches lo"]
fn another_provider_passes_the_conformance_suite() {
    let provider = std::env::var("OFI_PROVIDER").unwrap();
    for puts in [Puts::Messages, Puts::SplitRma] {
        passes(&provider, puts);
    }
}

#[test]
fn tcp_passes_the_conformance_suite_with_writes_of_the_provider() {
    passes("tcp", Puts::SplitRma);
}
