//! Global identifiers.

use std::fmt;

/// A global identifier: the address of a packet on RoCE, and between InfiniBand subnets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Gid(pub(crate) [u8; 16]);

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = std::net::Ipv6Addr::from(self.0);
        match address.to_ipv4_mapped() {
            Some(v4) => v4.fmt(f),
            None => address.fmt(f),
        }
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}
