//! The addresses of this host's network interfaces, with the lengths of their prefixes, and the interfaces with a route by
//! a gateway in any routing table. Asked of the kernel by netlink (rtnetlink(7)).
//!
//! Whatever the kernel sends, reading it neither fails nor panics: a message that is cut short ends the list.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Addresses of network interfaces.
#[derive(Debug, Default)]
pub(crate) struct Interfaces(pub(crate) Vec<Interface>);

/// One address of a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) address: IpAddr,
    /// The length of its subnet's prefix, in bits.
    pub(crate) prefix: u8,
    /// Whether a route of its family goes by a gateway on the interface.
    pub(crate) has_gateway: bool,
}

impl Interfaces {
    /// Those that this process sees; none if the kernel does not say.
    pub(crate) fn read() -> Self {
        let dumps = dump(libc::RTM_GETADDR).and_then(|all| Ok((all, dump(libc::RTM_GETROUTE)?)));
        match dumps {
            Ok((addresses, routes)) => Interfaces(listed(&addresses, &gateways(&routes))),
            Err(error) => {
                tracing::warn!(%error, "the kernel does not list network interfaces; subnets of RoCE ports are a guess");
                Interfaces::default()
            }
        }
    }

    pub(crate) fn with(&self, address: IpAddr) -> Option<&Interface> {
        self.0.iter().find(|known| known.address == address)
    }
}

/// Bytes of a netlink message's head, and of an attribute's.
const MESSAGE_HEAD: usize = 16;
const ATTRIBUTE_HEAD: usize = 4;
/// Bytes of `ifaddrmsg`, `rtmsg` and `rtnexthop`.
const ADDRESS_HEAD: usize = 8;
const ROUTE_HEAD: usize = 12;
const HOP_HEAD: usize = 8;

/// All messages that the kernel answers a request for a whole table with.
fn dump(kind: u16) -> io::Result<Vec<u8>> {
    // SAFETY: no memory is passed.
    let socket = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        )
    };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and this is its only owner.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let patience = libc::timeval {
        tv_sec: 2,
        tv_usec: 0,
    };
    // SAFETY: the option's value is a `timeval`, which lives during the call.
    let limited = unsafe {
        let (at, len) = ((&raw const patience).cast(), size_of_val(&patience));
        let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            at,
            len as libc::socklen_t,
        )
    };
    if limited < 0 {
        return Err(io::Error::last_os_error());
    }
    // The head, and a zeroed `rtmsg`: any family.
    let mut request = [0_u8; MESSAGE_HEAD + ROUTE_HEAD];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[..4].copy_from_slice(&((MESSAGE_HEAD + ROUTE_HEAD) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the pointer and the length are those of `request`.
    let sent = unsafe {
        let (at, len) = (request.as_ptr().cast(), request.len());
        libc::send(socket.as_raw_fd(), at, len, 0)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut all = Vec::new();
    // As much as the kernel puts in one datagram of a dump.
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        // SAFETY: the pointer and the length are those of `buffer`.
        let got = unsafe {
            let (at, len) = (buffer.as_mut_ptr().cast(), buffer.len());
            libc::recv(socket.as_raw_fd(), at, len, 0)
        };
        let Ok(got) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        };
        let datagram = buffer.get(..got).unwrap_or_default();
        let is_last = |kind| [libc::NLMSG_DONE as u16, libc::NLMSG_ERROR as u16].contains(&kind);
        let last = got == 0 || messages(datagram).any(|(kind, _)| is_last(kind));
        all.extend_from_slice(datagram);
        if last {
            return Ok(all);
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*field))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*field))
}

/// Takes an item of `len` bytes off the front, and the bytes that align the next one.
fn split<'a>(rest: &mut &'a [u8], len: usize, head: usize) -> Option<&'a [u8]> {
    let item = rest.get(head..len)?;
    *rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some(item)
}

/// The kind and the content of each message.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::try_from(u32_at(rest, 0)?).ok()?;
        let kind = u16_at(rest, 4)?;
        Some((kind, split(&mut rest, len, MESSAGE_HEAD)?))
    })
}

/// The kind and the content of each attribute.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        Some((kind, split(&mut rest, len, ATTRIBUTE_HEAD)?))
    })
}

fn is_v4(family: u8) -> bool {
    i32::from(family) == libc::AF_INET
}

/// The interfaces, by number and whether of IPv4, with a route by a gateway.
fn gateways(routes: &[u8]) -> BTreeSet<(u32, bool)> {
    let mut found = BTreeSet::new();
    let all = messages(routes).filter(|(kind, _)| *kind == libc::RTM_NEWROUTE);
    for (_, route) in all {
        let (Some(family), Some(rest)) = (route.first(), route.get(ROUTE_HEAD..)) else {
            continue;
        };
        let mut interface = None;
        let mut has_gateway = false;
        for (kind, content) in attributes(rest) {
            match kind {
                libc::RTA_OIF => interface = u32_at(content, 0),
                libc::RTA_GATEWAY | libc::RTA_VIA => has_gateway = true,
                libc::RTA_MULTIPATH => {
                    found.extend(hops(content).map(|index| (index, is_v4(*family))));
                }
                _ => {}
            }
        }
        if let Some(interface) = interface.filter(|_| has_gateway) {
            found.insert((interface, is_v4(*family)));
        }
    }
    found
}

/// The interfaces of those hops of a route with several that go by a gateway.
fn hops(mut rest: &[u8]) -> impl Iterator<Item = u32> {
    let hops = std::iter::from_fn(move || {
        let len = usize::from(u16_at(rest, 0)?);
        let interface = u32_at(rest, 4)?;
        Some((interface, split(&mut rest, len, HOP_HEAD)?))
    });
    hops.filter_map(|(interface, content)| {
        let is_gateway = |kind| [libc::RTA_GATEWAY, libc::RTA_VIA].contains(&kind);
        let has_gateway = attributes(content).any(|(kind, _)| is_gateway(kind));
        has_gateway.then_some(interface)
    })
}

/// The addresses of a dump.
fn listed(addresses: &[u8], gateways: &BTreeSet<(u32, bool)>) -> Vec<Interface> {
    let all = messages(addresses).filter(|(kind, _)| *kind == libc::RTM_NEWADDR);
    all.filter_map(|(_, message)| {
        let [family, prefix, ..] = *message else {
            return None;
        };
        let interface = u32_at(message, 4)?;
        let rest = message.get(ADDRESS_HEAD..)?;
        let of_kind = |wanted| {
            let mut all = attributes(rest);
            all.find_map(|(kind, content)| (kind == wanted).then(|| ip(family, content))?)
        };
        // On a link between two, IFA_ADDRESS is the other end's.
        let address = of_kind(libc::IFA_LOCAL).or_else(|| of_kind(libc::IFA_ADDRESS))?;
        Some(Interface {
            address,
            prefix,
            has_gateway: gateways.contains(&(interface, is_v4(family))),
        })
    })
    .collect()
}

fn ip(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    if is_v4(family) {
        Some(IpAddr::from(*bytes.first_chunk::<4>()?))
    } else {
        Some(IpAddr::from(*bytes.first_chunk::<16>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let len = (ATTRIBUTE_HEAD + content.len()) as u16;
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let mut bytes = ((MESSAGE_HEAD + content.len()) as u32)
            .to_ne_bytes()
            .to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.resize(MESSAGE_HEAD, 0);
        bytes.extend_from_slice(&content);
        bytes
    }

    fn address(family: i32, prefix: u8, interface: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let head = [family as u8, prefix, 0, 0, interface, 0, 0, 0];
        let mut parts = vec![&head[..]];
        parts.extend(attributes.iter().map(Vec::as_slice));
        message(libc::RTM_NEWADDR, &parts)
    }

    fn route(family: i32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut head = [0; ROUTE_HEAD];
        head[0] = family as u8;
        let mut parts = vec![&head[..]];
        parts.extend(attributes.iter().map(Vec::as_slice));
        message(libc::RTM_NEWROUTE, &parts)
    }

    #[test]
    fn addresses_and_gateways_are_read_from_the_kernels_messages() {
        let addresses = [
            address(
                libc::AF_INET,
                31,
                2,
                &[
                    attribute(libc::IFA_ADDRESS, &[10, 0, 0, 3]),
                    attribute(libc::IFA_LOCAL, &[10, 0, 0, 2]),
                ],
            ),
            address(
                libc::AF_INET,
                24,
                3,
                &[attribute(libc::IFA_ADDRESS, &[10, 9, 0, 1])],
            ),
            address(
                libc::AF_INET6,
                64,
                4,
                &[attribute(libc::IFA_ADDRESS, &[0xfd; 16])],
            ),
        ]
        .concat();
        let hop = |interface: u8, attributes: &[u8]| {
            let len = (HOP_HEAD + attributes.len()) as u16;
            let head = [len.to_ne_bytes(), [0, 0], [interface, 0], [0, 0]].concat();
            [&head, attributes].concat()
        };
        let several = [
            hop(4, &attribute(libc::RTA_GATEWAY, &[0xfd; 16])),
            hop(5, &[]),
        ]
        .concat();
        let routes = [
            route(libc::AF_INET, &[attribute(libc::RTA_OIF, &[3, 0, 0, 0])]),
            route(
                libc::AF_INET,
                &[
                    attribute(libc::RTA_GATEWAY, &[10, 0, 0, 3]),
                    attribute(libc::RTA_OIF, &[2, 0, 0, 0]),
                ],
            ),
            route(libc::AF_INET6, &[attribute(libc::RTA_MULTIPATH, &several)]),
        ]
        .concat();
        let gateways = gateways(&routes);
        assert_eq!(gateways, BTreeSet::from([(2, true), (4, false)]));
        let told: Vec<_> = listed(&addresses, &gateways)
            .iter()
            .map(|i| (i.address.to_string(), i.prefix, i.has_gateway))
            .collect();
        let wanted = [
            ("10.0.0.2", 31, true),
            ("10.9.0.1", 24, false),
            ("fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd", 64, true),
        ];
        assert_eq!(
            told,
            wanted.map(|(a, prefix, gateway)| (a.to_owned(), prefix, gateway))
        );
    }

    #[test]
    fn the_kernel_lists_the_loopback_address() {
        let all = Interfaces::read();
        let local = all.with(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!((local.prefix, local.has_gateway), (8, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end(bytes in proptest::collection::vec(0_u8..32, 0..200)) {
            listed(&bytes, &gateways(&bytes));
            prop_assert!(messages(&bytes).count() <= bytes.len());
        }
    }
}
