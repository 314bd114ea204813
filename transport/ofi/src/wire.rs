//! The bytes that domains exchange before any message: addresses, and the keys of regions.

use crate::bytes::{Reader, checked, checksum, push_string};

/// The address of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub pe: u32,
    /// A random number that each message to this domain has: messages of others are ignored.
    pub nonce: u64,
    pub provider: String,
    /// The provider's protocol: equal ones understand each other.
    pub protocol: u32,
    pub format: u32,
    /// Whether it is reached from its own host only.
    pub is_local: bool,
    /// Its provider's atomics on words here: a bit for each operation, in the order of `AtomicOp::ALL`.
    pub atomics: u8,
    /// Its support of GPU memory: 0 for none, 1, or 2 if a flush is needed there.
    pub gpu: u8,
    /// The endpoint's address, as the provider gives it.
    pub name: Vec<u8>,
}

/// The key of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub pe: u32,
    pub region: u32,
    pub len: u64,
    /// The address of its first byte, as operations of the provider name it: 0 where they name offsets.
    pub base: u64,
    pub key: u64,
    /// The first byte's address modulo 8.
    pub phase: u8,
}

const ADDRESS: &[u8] = b"ofi address 3";
const KEY: &[u8] = b"ofi key 1";

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

impl Address {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = ADDRESS.to_vec();
        bytes.extend(self.pe.to_le_bytes());
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend(self.protocol.to_le_bytes());
        bytes.extend(self.format.to_le_bytes());
        bytes.push(self.is_local.into());
        bytes.push(self.atomics);
        bytes.push(self.gpu);
        push_string(&mut bytes, self.provider.as_bytes());
        push_string(&mut bytes, &self.name);
        sealed(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Address, &'static str> {
        let wrong = "it is not one of this version of oxshmem";
        let content = checked(bytes).ok_or("it is garbled")?;
        let mut reader = Reader(content.strip_prefix(ADDRESS).ok_or(wrong)?);
        let mut read = || -> Option<Address> {
            Some(Address {
                pe: reader.u32()?,
                nonce: reader.u64()?,
                protocol: reader.u32()?,
                format: reader.u32()?,
                is_local: reader.u8()? != 0,
                atomics: reader.u8()?,
                gpu: reader.u8()?,
                provider: String::from_utf8_lossy(reader.string()?).into_owned(),
                name: reader.string()?.to_vec(),
            })
        };
        let address = read().ok_or(wrong)?;
        reader.0.is_empty().then_some(address).ok_or(wrong)
    }
}

impl Key {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = KEY.to_vec();
        bytes.extend(self.pe.to_le_bytes());
        bytes.extend(self.region.to_le_bytes());
        for number in [self.len, self.base, self.key] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(self.phase);
        sealed(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Key, &'static str> {
        let wrong = "it is no key of this version of oxshmem";
        let content = checked(bytes).ok_or("it is garbled")?;
        let mut reader = Reader(content.strip_prefix(KEY).ok_or(wrong)?);
        let mut read = || -> Option<Key> {
            Some(Key {
                pe: reader.u32()?,
                region: reader.u32()?,
                len: reader.u64()?,
                base: reader.u64()?,
                key: reader.u64()?,
                phase: reader.u8()?,
            })
        };
        let key = read().ok_or(wrong)?;
        reader.0.is_empty().then_some(key).ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> Address {
        Address {
            pe: 3,
            nonce: u64::MAX - 1,
            provider: "tcp;ofi_rxm".into(),
            protocol: 7,
            format: 2,
            is_local: true,
            atomics: 0b1010_0101,
            gpu: 2,
            name: vec![2, 0, 31, 144, 127, 0, 0, 1],
        }
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        assert_eq!(Address::from_bytes(&address().to_bytes()), Ok(address()));
        let key = Key {
            pe: 1,
            region: 2,
            len: 3,
            base: 4,
            key: u64::MAX,
            phase: 5,
        };
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
        assert!(Key::from_bytes(&address().to_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let read = Address::from_bytes(&bytes);
            prop_assert!(read.is_err() || read.is_ok_and(|a| a.to_bytes() == bytes));
            let read = Key::from_bytes(&bytes);
            prop_assert!(read.is_err() || read.is_ok_and(|k| k.to_bytes() == bytes));
        }
    }
}
