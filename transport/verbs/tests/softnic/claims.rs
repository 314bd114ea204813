//! The belief in a device's claims, as `oxshmem info --explain` tells it.

use oxshmem_verbs::{Choice, Settings};

use super::pair::pair;

fn told() -> String {
    let settings = Settings {
        relaxed_ordering: Choice::On,
        ..Settings::default()
    };
    let [one, other] = pair(settings, 4096);
    one.domain.explain(&other.peer()).unwrap()
}

/// On `erdma`, `cx8`, and `cx6`.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn an_atomic_claim_that_is_not_believed_is_told() {
    let told = told();
    assert!(
        told.contains("(OXSHMEM_VERBS_RELAXED_ORDERING=on)"),
        "{told}"
    );
    let devices = std::env::var("OXSHMEM_SOFTNIC").unwrap();
    let word = match devices.as_str() {
        "2*erdma" => "not believed, since it reports no atomics of the PCIe bus",
        "2*cx8" => "count as the CPU's",
        other => {
            assert_eq!(other, "2*cx6");
            assert!(!told.contains("atomics"), "{told}");
            return;
        }
    };
    assert!(told.contains(word), "{told}");
}
