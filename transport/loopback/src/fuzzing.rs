//! Doors to the parsers of foreign bytes, for `ci/fuzz` alone.

use crate::wire::{Key, address, read_address};

/// An address or a key. What is understood is the same after it was sent on.
pub fn wire(bytes: &[u8]) {
    if let Ok(nonce) = read_address(bytes) {
        assert_eq!(read_address(&address(nonce)), Ok(nonce));
    }
    if let Ok(key) = Key::from_bytes(bytes) {
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
    }
}
