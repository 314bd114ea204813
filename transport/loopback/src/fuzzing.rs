//! Doors to the parsers of foreign bytes, for `ci/fuzz`. Tests build them, too, so that they keep up.

use crate::wire::{Address, Key};

/// An address or a key. What is understood is the same after it was sent on.
pub fn wire(bytes: &[u8]) {
    if let Ok(address) = Address::from_bytes(bytes) {
        assert_eq!(Address::from_bytes(&address.to_bytes()), Ok(address));
    }
    if let Ok(key) = Key::from_bytes(bytes) {
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
    }
}
