use super::*;

const DGX_LIKE: &str = include_str!("../../fixtures/dgx-like.xml");

#[test]
fn the_dgx_like_host_is_read_whole() {
    let topology = Topology::from_xml(DGX_LIKE).unwrap();
    assert_eq!(topology.gpus.len(), 3);
}
