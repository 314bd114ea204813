//! Asynchronous events of a device that end connections, or have them made again.

use oxshmem_transport::{Error, Op};

use super::pair::PE1;
use super::{control, error_of, impatient, put, sides};

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn a_shared_receive_queue_that_failed_ends_its_domain_with_its_name() {
    let [mut one, mut other] = sides(impatient());
    put(&mut one, &other, 1).unwrap();
    control("event mlx5_1 SRQ_ERR");
    // Nothing else tells it: the device fails no queue pair by itself.
    let error = error_of(&mut other);
    let told = error.to_string();
    assert!(matches!(error, Error::Connection { .. }), "{told}");
    assert!(told.contains("IBV_EVENT_SRQ_ERR on mlx5_1:1"), "{told}");
    // SAFETY: a flush has no local memory.
    let refused = unsafe { other.post(PE1, &[Op::Flush]) }.unwrap_err();
    assert!(
        refused.to_string().contains("IBV_EVENT_SRQ_ERR"),
        "{refused}"
    );
    assert!(other.domain.lane().unwrap().endpoint(PE1).is_err());
    // The other device has nothing to do with it.
    put(&mut one, &other, 2).unwrap();
}
