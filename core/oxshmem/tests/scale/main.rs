//! One PE of 1,024 on 128 hosts of eight GPUs and eight NICs each.

mod crowd;
mod stand_in;

use oxshmem_topo::{Topology, fixtures};

#[test]
fn a_pe_among_a_thousand_reaches_all_by_the_way_that_fits() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../topo/fixtures/eight-gpus-eight-nics.xml"
    );
    // SAFETY: this program's only test, before any other thread of it reads the environment.
    unsafe { std::env::set_var("OXSHMEM_TOPOLOGY", file) };
    let host = Topology::from_xml(fixtures::EIGHT_GPUS_EIGHT_NICS).unwrap();
    let world = crowd::join(crowd::Crowd::of(1024), &crowd::transports(&host)).unwrap();
    let routes = world.routes();
    assert_eq!(routes.len(), 1024);
    let (near, far) = routes.split_at(8);
    assert!(
        near.iter()
            .all(|r| r.mapped && r.transport == Some("loopback"))
    );
    assert!(
        far.iter()
            .all(|r| !r.mapped && r.transport == Some("verbs"))
    );

    let explained = world.explain(1023).unwrap();
    let choice = explained.host.device_choice.unwrap();
    assert!(
        choice.contains("of 8 to gpu") && choice.contains("same switch"),
        "{choice}"
    );
    let told = explained.host.considered;
    let elsewhere = format!("it runs on host {}", crowd::host(127));
    assert!(told.iter().any(|c| c.answer == elsewhere), "{told:?}");
    // A NIC's atomics are no CPU's.
    assert_eq!(explained.host_atomics.transport, None);
    assert_eq!(explained.gpu, None);
    assert!(world.explain(1024).is_err());
}
