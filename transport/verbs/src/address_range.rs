//! Ranges of addresses, such as `10.1.0.0/16`, by which a user selects identifiers of ports.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ibv::Gid;

/// The addresses whose first bits are those of one. An IPv4 address counts as the IPv6 address that stands for it in
/// GIDs; on InfiniBand, the first 64 bits of a GID are its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: u128,
    bits: u32,
    is_v4: bool,
}

impl AddressRange {
    /// The range of an address alone or with a number of bits; none if it is no such text.
    pub(crate) fn parse(text: &str) -> Option<AddressRange> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().ok()?;
        let (first, of_family, is_v4) = match address {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 32, true),
            IpAddr::V6(v6) => (v6.to_bits(), 128, false),
        };
        let bits = bits.unwrap_or(of_family);
        let bits = (bits <= of_family).then_some(128 - of_family + bits)?;
        Some(AddressRange {
            first: first & mask(bits),
            bits,
            is_v4,
        })
    }

    /// Whether an identifier is in it.
    pub(crate) fn has(&self, gid: Gid) -> bool {
        u128::from_be_bytes(gid.0) & mask(self.bits) == self.first
    }
}

/// The first bits.
fn mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_v4 {
            true => write!(
                f,
                "{}/{}",
                Ipv4Addr::from_bits(self.first as u32),
                self.bits - 96
            ),
            false => write!(f, "{}/{}", Ipv6Addr::from_bits(self.first), self.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(text: &str) -> Gid {
        let address = match text.parse().unwrap() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Gid(address.octets())
    }

    #[test]
    fn a_range_has_the_addresses_that_begin_as_it_does() {
        for (range, inside, outside) in [
            (
                "10.1.0.0/16",
                ["10.1.0.0", "10.1.255.255"],
                ["10.2.0.1", "::a01:1"],
            ),
            (
                "10.1.2.3/16",
                ["10.1.2.3", "10.1.9.9"],
                ["11.1.2.3", "fe80::1"],
            ),
            (
                "10.1.2.3",
                ["10.1.2.3", "10.1.2.3"],
                ["10.1.2.2", "10.1.2.4"],
            ),
            ("0.0.0.0/0", ["10.1.2.3", "255.1.1.1"], ["fe80::1", "::1"]),
            (
                "fd00:1::/32",
                ["fd00:1::1", "fd00:1:2::"],
                ["fd00:2::", "10.0.0.1"],
            ),
            ("fe80::7", ["fe80::7", "fe80::7"], ["fe80::8", "fe80:1::7"]),
            ("::/0", ["fe80::7", "10.0.0.1"], ["", ""]),
        ] {
            let parsed = AddressRange::parse(range).unwrap();
            for address in inside {
                assert!(parsed.has(gid(address)), "{range} {address}");
            }
            for address in outside.into_iter().filter(|address| !address.is_empty()) {
                assert!(!parsed.has(gid(address)), "{range} {address}");
            }
        }
    }

    #[test]
    fn a_range_is_shown_by_its_first_address() {
        for (text, shown) in [
            ("10.1.2.3/16", "10.1.0.0/16"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("fd00:1:2::/32", "fd00:1::/32"),
        ] {
            assert_eq!(AddressRange::parse(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "10.1",
            "10.1.0.0/33",
            "fe80::/129",
            "10.1.0.0/",
            "a/8",
            "1.2.3.4/-1",
        ] {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }
}
