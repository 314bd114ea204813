//! The byte format of what PEs exchange: addresses and keys.

use oxshmem_cuda::{Names, Uuid};

use crate::process::Process;

/// The first bytes of each, version included.
const ADDRESS: &[u8; 8] = b"oxnvlnk2";
const KEY: &[u8; 8] = b"oxnvkey2";

/// A PE's GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub uuid: Uuid,
    /// Whether its memory is exported as descriptors.
    pub descriptors: bool,
}

impl Address {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [&ADDRESS[..], &self.uuid.0, &[u8::from(self.descriptors)]].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Address> {
        let (uuid, rest) = bytes.strip_prefix(ADDRESS)?.split_first_chunk()?;
        let descriptors = match rest {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Address {
            uuid: Uuid(*uuid),
            descriptors,
        })
    }
}

/// The key of an extent of a PE's GPU heap, by which peers map it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub uuid: Uuid,
    /// The base address, at its owner, of the heap that it is an extent of.
    pub heap: u64,
    /// The heap's limit, bytes.
    pub limit: u64,
    /// Bytes from the heap's start.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The process that has it.
    pub process: Process,
    /// The number of its registration there.
    pub number: u64,
    /// The names by which it can be mapped without a descriptor.
    pub names: Names,
}

impl Key {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [&KEY[..], &self.uuid.0, &self.process.0].concat();
        for number in [self.heap, self.limit, self.offset, self.len, self.number] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.names.to_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Key> {
        let (uuid, rest) = bytes.strip_prefix(KEY)?.split_first_chunk()?;
        let (process, mut rest) = rest.split_first_chunk()?;
        let mut numbers = [0; 5];
        for number in &mut numbers {
            let (bytes, others) = rest.split_first_chunk()?;
            (*number, rest) = (u64::from_le_bytes(*bytes), others);
        }
        let [heap, limit, offset, len, number] = numbers;
        let key = Key {
            uuid: Uuid(*uuid),
            heap,
            limit,
            offset,
            len,
            process: Process(*process),
            number,
            names: Names::from_bytes(rest)?,
        };
        let end = offset.checked_add(len);
        (len > 0 && end.is_some_and(|end| end <= limit)).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_understood_and_nothing_else() {
        let uuid = Uuid(std::array::from_fn(|n| n as u8));
        let address = Address {
            uuid,
            descriptors: true,
        };
        let key = Key {
            uuid,
            heap: 0x7000_0000,
            limit: 1 << 40,
            offset: 4 << 20,
            len: 8 << 20,
            process: Process([7; 16]),
            number: 3,
            names: Names {
                fabric: None,
                ipc: Some([9; 64]),
                refused: None,
            },
        };
        let (told, shown) = (address.to_bytes(), key.to_bytes());
        assert_eq!(Address::from_bytes(&told), Some(address));
        assert_eq!(Key::from_bytes(&shown), Some(key.clone()));
        assert_eq!(Address::from_bytes(&shown), None);
        assert_eq!(Key::from_bytes(&told), None);
        for cut in 0..shown.len() {
            assert_eq!(Key::from_bytes(&shown[..cut]), None);
        }
        for cut in 0..told.len() {
            assert_eq!(Address::from_bytes(&told[..cut]), None);
        }
        for wrong in [
            Key {
                len: 0,
                ..key.clone()
            },
            Key {
                limit: 11 << 20,
                ..key.clone()
            },
            Key {
                offset: u64::MAX,
                ..key
            },
        ] {
            assert_eq!(Key::from_bytes(&wrong.to_bytes()), None);
        }
        assert_eq!(Key::from_bytes(&[&shown[..], &[0]].concat()), None);
    }
}
