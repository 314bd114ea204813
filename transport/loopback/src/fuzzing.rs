//! Access to the parsers of bytes from outside, for `ci/fuzz`. Tests build it too, so that it stays current.

use crate::wire::{Address, Key};

/// Parses an address or a key. A valid one survives a round trip.
pub fn wire(bytes: &[u8]) {
    if let Ok(address) = Address::from_bytes(bytes) {
        assert_eq!(Address::from_bytes(&address.to_bytes()), Ok(address));
    }
    if let Ok(key) = Key::from_bytes(bytes) {
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
    }
}
