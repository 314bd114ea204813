//! A device whose order of writes depends on the path: run with the property `order_by_path`.

use oxshmem_verbs::{Settings, Verbs};

use super::pair::{PE0, PE1, Side};

/// Its port says that it places writes in order, which peers were told.
#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn m17_a_connection_that_keeps_less_order_than_was_told_is_refused() {
    let verbs = Verbs::with(Settings::default());
    let [mut one, other] = [PE0, PE1].map(|pe| Side::new(&verbs, pe, 4096));
    let told = one.domain.explain(&other.peer()).unwrap();
    assert!(told.contains("places writes in order"), "{told}");
    let endpoint = one.lane.endpoint(PE1).unwrap();
    let error = other.domain.accept(PE0, &endpoint).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("OXSHMEM_VERBS_IN_ORDER=off"), "{error}");
}
