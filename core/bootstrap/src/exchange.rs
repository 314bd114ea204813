//! A collective exchange of one value of each PE, as JSON over [`Bootstrap::allgather`].
//!
//! Every PE gets the same list, in the order of the ranks. A value that cannot be decoded is
//! [`Error::Unreadable`] and names its rank.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::bootstrap::Bootstrap;
use crate::error::{Error, Result};

/// Collective: gives every PE's value, in rank order.
pub fn exchange<T, R>(bootstrap: &dyn Bootstrap, mine: &T) -> Result<Vec<R>>
where
    T: Serialize + ?Sized,
    R: de::DeserializeOwned,
{
    let bytes = serde_json::to_vec(mine).map_err(|e| unreadable(bootstrap.rank(), &e))?;
    (0..)
        .zip(bootstrap.allgather(&bytes)?)
        .map(|(rank, theirs)| serde_json::from_slice(&theirs).map_err(|e| unreadable(rank, &e)))
        .collect()
}

fn unreadable(rank: u32, error: &serde_json::Error) -> Error {
    Error::Unreadable {
        rank,
        why: error.to_string(),
    }
}

/// Bytes, as hexadecimal digits: shorter in JSON than a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

impl Serialize for HexBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
        let digits = self.0.iter().flat_map(|b| [digit(b >> 4), digit(*b)]);
        to.serialize_str(&digits.collect::<String>())
    }
}

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Digits;
        impl de::Visitor<'_> for Digits {
            type Value = HexBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pairs of hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<HexBytes, E> {
                let nibble = |c: &u8| char::from(*c).to_digit(16).map(|d| d as u8);
                let (pairs, rest) = text.as_bytes().as_chunks::<2>();
                let bytes = pairs
                    .iter()
                    .map(|[a, b]| Some(nibble(a)? << 4 | nibble(b)?));
                match bytes.collect() {
                    Some(bytes) if rest.is_empty() => Ok(HexBytes(bytes)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        from.deserialize_str(Digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_back_as_they_went(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = serde_json::to_string(&HexBytes(bytes.clone())).unwrap();
            prop_assert_eq!(text.len(), 2 * bytes.len() + 2);
            prop_assert_eq!(serde_json::from_str::<HexBytes>(&text).unwrap(), HexBytes(bytes));
        }

        #[test]
        fn what_is_not_hexadecimal_is_refused(text in "[0-9a-fg ]{0,5}|\\PC{0,4}") {
            let digits = text.chars().all(|c| c.is_ascii_hexdigit());
            let read = serde_json::from_str::<HexBytes>(&serde_json::to_string(&text).unwrap());
            prop_assert_eq!(read.is_ok(), digits && text.len() % 2 == 0);
        }
    }
}
