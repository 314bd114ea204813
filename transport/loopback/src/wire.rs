//! What travels between PEs, as bytes: addresses and keys.

/// Tells one loopback from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) [u8; 16]);

/// First bytes of an address, version included.
const ADDRESS: [u8; 8] = *b"oxloadr1";
/// First bytes of a key, version included.
const KEY: [u8; 8] = *b"oxlokey1";

/// A domain's address: which loopback it is of.
pub(crate) fn address(nonce: Nonce) -> Vec<u8> {
    [&ADDRESS[..], &nonce.0].concat()
}

/// Reads an address; the error says what is wrong with it.
pub(crate) fn read_address(bytes: &[u8]) -> Result<Nonce, String> {
    let (nonce, rest) = read_head(bytes, ADDRESS)?;
    match rest {
        [] => Ok(nonce),
        _ => Err(wrong_length(bytes)),
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

    /// Reads a key; the error says what is wrong with it.
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
    fn keys_survive_the_way() {
        let key = Key {
            nonce: Nonce(*b"0123456789abcdef"),
            number: u64::MAX - 1,
            pe: 7,
            region: u32::MAX,
            len: 1 << 40,
        };
        assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
        assert_eq!(read_address(&address(key.nonce)), Ok(key.nonce));
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
        assert!(read_address(&key[..24]).is_err());
        assert!(Key::from_bytes(&[&address(nonce)[..], &[0; 24]].concat()).is_err());
    }
}
