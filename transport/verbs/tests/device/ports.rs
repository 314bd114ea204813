//! The ports of the PEs of a test.

use oxshmem_transport::Device;

/// Whether two ports reach each other for certain.
fn share_a_network(one: &Device, other: &Device) -> bool {
    let mut certain = one.networks.iter().filter(|network| !network.uncertain);
    certain.any(|network| other.networks.contains(network))
}

/// The first two ports that are in one network. Without such the first one, for all PEs.
pub fn for_pes(there: &[Device]) -> Vec<&Device> {
    let two = there.iter().enumerate().find_map(|(at, one)| {
        let mut later = there[at + 1..].iter();
        let other = later.find(|other| share_a_network(one, other))?;
        Some(vec![one, other])
    });
    two.unwrap_or_else(|| there.iter().take(1).collect())
}
