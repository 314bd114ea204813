//! The addresses at which other hosts may reach this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Names of interfaces that lead to this host's own containers and machines, by their beginnings.
const INWARD: [&str; 9] = [
    "docker", "br-", "veth", "virbr", "cni", "flannel", "podman", "lxc", "cali",
];

/// This host's addresses, likeliest first: that of the way out, then the others, those of bridges
/// to containers late, and loopback, for PEs of this host, last. No link-local ones: they mean
/// nothing without the other host's interface.
pub(crate) fn of_this_host() -> Vec<IpAddr> {
    let outward = [
        outbound_address(
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        ),
        outbound_address(
            Ipv6Addr::UNSPECIFIED.into(),
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        ),
    ];
    order(outward.into_iter().flatten(), interfaces::addresses())
}

/// The address from which this host would speak to `target`. Nothing is sent.
fn outbound_address(any: IpAddr, target: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(target, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn order(
    outward: impl Iterator<Item = IpAddr>,
    mut interfaces: Vec<(String, IpAddr)>,
) -> Vec<IpAddr> {
    interfaces.sort_by_key(|(name, ip)| {
        let inward = INWARD.iter().any(|start| name.starts_with(start));
        (inward, ip.is_ipv6())
    });
    let mut ordered = Vec::new();
    let all = outward.chain(interfaces.into_iter().map(|(_, ip)| ip));
    for ip in all
        .filter(|ip| usable(*ip))
        .chain([Ipv4Addr::LOCALHOST.into()])
    {
        if !ordered.contains(&ip) {
            ordered.push(ip);
        }
    }
    ordered
}

fn usable(ip: IpAddr) -> bool {
    !ip.is_loopback()
        && !ip.is_unspecified()
        && match ip {
            IpAddr::V4(ip) => !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        }
}

/// The only unsafe part: the C library's list.
mod interfaces {
    use std::ffi::CStr;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// The interfaces that are up, by name, with their addresses. Empty where the system will not
    /// tell.
    pub(super) fn addresses() -> Vec<(String, IpAddr)> {
        let mut first = std::ptr::null_mut();
        // SAFETY: `first` is writable; on success it holds a list that freeifaddrs takes back.
        if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut next = first.cast_const();
        // SAFETY: `next` is null or an entry of the list, which lives until it is freed below.
        while let Some(entry) = unsafe { next.as_ref() } {
            next = entry.ifa_next;
            if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
                continue;
            }
            // SAFETY: an entry's address is null or a socket address of the family it names.
            if let Some(ip) = unsafe { ip(entry.ifa_addr) } {
                // SAFETY: an entry's name is a C string that lives as long as the entry.
                let name = unsafe { CStr::from_ptr(entry.ifa_name) };
                found.push((name.to_string_lossy().into_owned(), ip));
            }
        }
        // SAFETY: the list is getifaddrs' own and nothing borrowed from it is left.
        unsafe { libc::freeifaddrs(first) };
        found
    }

    /// # Safety
    /// `address` is null or points to a socket address of the family that it names.
    unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
        // SAFETY: null, or a socket address, of which every one begins with its family.
        match i32::from(unsafe { address.as_ref() }?.sa_family) {
            libc::AF_INET => {
                // SAFETY: of this family, so it is this structure; it need not be aligned for it.
                let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_comes_first_and_loopback_last() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let interfaces = [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("docker0", "172.17.0.1"),
            ("eth0", "fe80::1"),
            ("eth0", "fd00::2"),
            ("eth0", "10.0.0.2"),
            ("ib0", "10.1.0.2"),
        ]
        .map(|(name, text)| (name.to_owned(), ip(text)));
        let found = order([ip("10.1.0.2")].into_iter(), interfaces.to_vec());
        let expected = ["10.1.0.2", "10.0.0.2", "fd00::2", "172.17.0.1", "127.0.0.1"];
        assert_eq!(found, expected.map(ip));
    }

    #[test]
    fn the_systems_list_has_loopback() {
        let found = interfaces::addresses();
        assert!(
            found
                .iter()
                .any(|(name, ip)| name == "lo" && ip.is_loopback()),
            "{found:?}"
        );
    }
}
