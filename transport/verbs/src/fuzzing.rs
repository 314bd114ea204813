//! Doors to the parsers of foreign bytes, for `ci/fuzz`. Tests build them, too, so that they keep up.

use crate::wire::{Address, EndpointReplies, Endpoints, Key, sealed};

/// An address, a key, an endpoint or an reply: as it is, and as it would be if its head and checksum were
/// right. What is understood is the same after it was sent on.
pub fn wire(bytes: &[u8]) {
    for bytes in [bytes.to_vec()].into_iter().chain(sealed(bytes)) {
        if let Ok(address) = Address::from_bytes(&bytes) {
            assert_eq!(Address::from_bytes(&address.to_bytes()), Ok(address));
        }
        if let Ok(key) = Key::from_bytes(&bytes) {
            assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
        }
        if let Ok(endpoint) = Endpoints::from_bytes(&bytes) {
            assert_eq!(Endpoints::from_bytes(&endpoint.to_bytes()), Ok(endpoint));
        }
        if let Ok(reply) = EndpointReplies::from_bytes(&bytes) {
            assert_eq!(EndpointReplies::from_bytes(&reply.to_bytes()), Ok(reply));
        }
    }
}
