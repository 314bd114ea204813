//! The byte format of what PEs exchange: addresses and keys.

use std::num::NonZeroU64;

/// The random name of a loopback, which distinguishes it from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) [u8; 16]);

/// First bytes of an address, version included.
const ADDRESS: [u8; 8] = *b"oxloadr2";
/// First bytes of a key, version included.
const KEY: [u8; 8] = *b"oxlokey1";

/// A domain's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The loopback of the domain.
    pub(crate) nonce: Nonce,
    /// Its process's network namespace, within which descriptors pass.
    pub(crate) network: Option<NonZeroU64>,
}

impl Address {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let network = self.network.map_or(0, NonZeroU64::get);
        [&ADDRESS[..], &self.nonce.0, &network.to_le_bytes()].concat()
    }

    /// Reads an address; the error says in words why it is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Address, String> {
        let (nonce, rest) = read_head(bytes, ADDRESS)?;
        let network = rest.try_into().map_err(|_| wrong_length(bytes))?;
        Ok(Address {
            nonce,
            network: NonZeroU64::new(u64::from_le_bytes(network)),
        })
    }
}

/// A region's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The loopback it was registered with.
    pub(crate) nonce: Nonce,
    /// Its registration's number there.
    pub(crate) number: u64,
    /// The PE that registered it.
    pub(crate) pe: u32,
    /// The region's number at that PE.
    pub(crate) region: u32,
    /// Bytes.
    pub(crate) len: u64,
}

impl Key {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [
            &KEY[..],
            &self.nonce.0,
            &self.number.to_le_bytes(),
            &self.pe.to_le_bytes(),
            &self.region.to_le_bytes(),
            &self.len.to_le_bytes(),
        ]
        .concat()
    }

    /// Reads a key; the error says in words why it is none.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Key, String> {
        let (nonce, rest) = read_head(bytes, KEY)?;
        let fields = || {
            let (number, rest) = rest.split_first_chunk()?;
            let (pe, rest) = rest.split_first_chunk()?;
            let (region, rest) = rest.split_first_chunk()?;
            let (len, rest) = rest.split_first_chunk()?;
            rest.is_empty().then_some(Key {
                nonce,
                number: u64::from_le_bytes(*number),
                pe: u32::from_le_bytes(*pe),
                region: u32::from_le_bytes(*region),
                len: u64::from_le_bytes(*len),
            })
        };
        fields().ok_or_else(|| wrong_length(bytes))
    }
}

fn read_head(bytes: &[u8], magic: [u8; 8]) -> Result<(Nonce, &[u8]), String> {
    let (head, rest) = bytes
        .split_first_chunk()
        .ok_or_else(|| wrong_length(bytes))?;
    if *head != magic {
        return Err(
            "it was made by something else, or by another version of oxshmem; run the \
                    same one on all PEs"
                .into(),
        );
    }
    let (nonce, rest) = rest
        .split_first_chunk()
        .ok_or_else(|| wrong_length(bytes))?;
    Ok((Nonce(*nonce), rest))
}

fn wrong_length(bytes: &[u8]) -> String {
    format!("{} bytes are too many or too few", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_addresses_survive_a_round_trip() {
        let key = Key {
            nonce: Nonce(*b"0123456789abcdef"),
            number: u64::MAX - 1,
            pe: 7,
            region: u32::MAX,
            len: 1 << 40,
        };
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
        for network in [None, NonZeroU64::new(4_026_531_840)] {
            let nonce = key.nonce;
            let address = Address { nonce, network };
            assert_eq!(Address::from_bytes(&address.to_bytes()), Ok(address));
        }
    }

    #[test]
    fn a_key_is_no_address_and_the_other_way_round() {
        let nonce = Nonce([3; 16]);
        let key = Key {
            nonce,
            number: 0,
            pe: 0,
            region: 0,
            len: 0,
        }
        .to_bytes();
        assert!(Address::from_bytes(&key[..32]).is_err());
        let address = Address {
            nonce,
            network: None,
        };
        assert!(Key::from_bytes(&[&address.to_bytes()[..], &[0; 16]].concat()).is_err());
    }
}
