//! This host's address, as another host may see it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

/// The address that packets to a host bear, if its name means something here. Nothing is sent.
pub(super) fn towards(host: &str) -> Option<IpAddr> {
    // Any port does: a datagram socket's connection is only a choice of route.
    let target = (host, 9).to_socket_addrs().ok()?.next()?;
    let any: IpAddr = match target.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(target).ok()?;
    let own = socket.local_addr().ok()?.ip();
    // A name of this very host: others know it by another address.
    (!own.is_loopback()).then_some(own)
}
