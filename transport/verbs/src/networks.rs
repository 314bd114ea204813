//! The networks of a port: groups of ports that reach each other.
//!
//! On InfiniBand they are the subnets of the port's GIDs. The default prefix fe80::/64 counts as one fabric: nearly all
//! clusters have one fabric, to which nobody gave a prefix, and as an uncertain network it would come after a slow one that
//! is certain. Two fabrics need prefixes of their own.
//!
//! On RoCE they are the IP subnets of all GIDs that may be this side's. A link-local subnet counts if the port has no
//! other, for its prefix is the same on all links. The length of a subnet's prefix is that of the network interface with
//! the GID's address; if this process sees no such interface, 24 bits of IPv4 and 64 of IPv6.
//!
//! RoCE packets pass routers. So a port whose interface has a route by a gateway is in one more network: that of all
//! such ports. Without one, `OXSHMEM_VERBS_ROUTED` decides; `auto` leaves it uncertain.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use oxshmem_transport::Network;

use crate::ibv::Gid;
use crate::interfaces::Interfaces;
use crate::settings::Choice;

/// The partition of ports whose subnet manager defines no other, without the bit of its full members.
const DEFAULT_PARTITION: u16 = 0x7fff;

/// The networks of an InfiniBand port in this partition.
pub(crate) fn infiniband(gids: &[Gid], partition: u16) -> Vec<Network> {
    let partition = match partition & DEFAULT_PARTITION {
        DEFAULT_PARTITION => String::new(),
        other => format!(", P_Key {other:#06x}"),
    };
    let mut networks = Vec::new();
    for gid in gids {
        let prefix = masked(IpAddr::V6(Ipv6Addr::from(gid.0)), 64);
        add(
            &mut networks,
            format!("InfiniBand {prefix}{partition}"),
            false,
        );
    }
    networks
}

/// The networks of a RoCE port.
pub(crate) fn roce(gids: &[Gid], interfaces: &Interfaces, routed: Choice) -> Vec<Network> {
    let mut networks = Vec::new();
    let addresses: Vec<IpAddr> = gids.iter().map(|gid| address(*gid)).collect();
    let is_local =
        |address: &&IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let global = addresses.iter().filter(|address| !is_local(address));
    for address in global.clone() {
        let interface = interfaces.with(*address);
        let prefix = interface.map_or_else(|| default_prefix(*address), |i| i.prefix);
        add(
            &mut networks,
            format!("RoCE {}", masked(*address, prefix)),
            false,
        );
    }
    for address in global {
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let has_gateway = interfaces.with(*address).is_some_and(|i| i.has_gateway);
        match routed {
            Choice::Off => {}
            Choice::Auto if !has_gateway => {}
            Choice::Auto | Choice::On => {
                add(&mut networks, format!("routed RoCE over {family}"), false);
            }
        }
        if routed != Choice::Off {
            add(
                &mut networks,
                format!("RoCE over {family} if it is routed"),
                true,
            );
        }
    }
    if networks.is_empty() && addresses.iter().any(|address| is_local(&address)) {
        add(&mut networks, "RoCE fe80::/64".into(), true);
    }
    networks
}

fn add(networks: &mut Vec<Network>, name: String, uncertain: bool) {
    if networks.iter().all(|known| known.name != name) {
        networks.push(Network { name, uncertain });
    }
}

/// The address that an identifier of RoCE v2 stands for.
fn address(gid: Gid) -> IpAddr {
    let v6 = Ipv6Addr::from(gid.0);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

fn default_prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// The subnet of an address, such as `10.1.0.0/16`.
fn masked(address: IpAddr, prefix: u8) -> String {
    let keep = |bits: u8| {
        u128::MAX
            .checked_shl(u32::from(bits - prefix.min(bits)))
            .unwrap_or(0)
    };
    let subnet = match address {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from(v4.to_bits() & keep(32) as u32)),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from(v6.to_bits() & keep(128))),
    };
    format!("{subnet}/{prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::Interface;

    fn v4(last: [u8; 4]) -> Gid {
        Gid(Ipv4Addr::from(last).to_ipv6_mapped().octets())
    }

    fn v6(text: &str) -> Gid {
        Gid(text.parse::<Ipv6Addr>().unwrap().octets())
    }

    fn interface(address: &str, prefix: u8, has_gateway: bool) -> Interface {
        Interface {
            address: address.parse().unwrap(),
            prefix,
            has_gateway,
        }
    }

    fn names(networks: &[Network]) -> Vec<(&str, bool)> {
        networks.iter().map(|n| (&*n.name, n.uncertain)).collect()
    }

    #[test]
    fn an_infiniband_port_is_in_the_subnets_of_its_gids_and_in_its_partition() {
        let gids = [v6("fe80::2c9:1"), v6("fe80::2c9:2"), v6("fec0:0:0:7::1")];
        let subnets = [
            ("InfiniBand fe80::/64", false),
            ("InfiniBand fec0:0:0:7::/64", false),
        ];
        assert_eq!(names(&infiniband(&gids, 0xffff)), subnets);
        assert_eq!(names(&infiniband(&gids, 0x7fff)), subnets);
        assert_eq!(
            names(&infiniband(&gids[..1], 0x8012)),
            [("InfiniBand fe80::/64, P_Key 0x0012", false)]
        );
        assert_eq!(infiniband(&[], 0xffff), []);
    }

    #[test]
    fn a_roce_port_is_in_the_subnets_of_its_interfaces() {
        let gids = [v4([10, 1, 2, 3]), v4([192, 168, 7, 9]), v6("fe80::1")];
        let known = Interfaces(vec![
            interface("10.1.2.3", 12, false),
            interface("192.168.7.8", 16, true),
        ]);
        // The second address is no interface's: its prefix is a guess.
        assert_eq!(
            names(&roce(&gids, &known, Choice::Auto)),
            [
                ("RoCE 10.0.0.0/12", false),
                ("RoCE 192.168.7.0/24", false),
                ("RoCE over IPv4 if it is routed", true),
            ]
        );
        assert_eq!(
            names(&roce(&gids[..1], &known, Choice::Off)),
            [("RoCE 10.0.0.0/12", false)]
        );
        assert_eq!(
            names(&roce(&gids[2..], &known, Choice::Auto)),
            [("RoCE fe80::/64", true)]
        );
    }

    #[test]
    fn ports_behind_gateways_are_in_a_network_of_their_own() {
        let known = Interfaces(vec![
            interface("10.0.0.2", 31, true),
            interface("2001:db8::5", 56, false),
        ]);
        let routed = [
            ("RoCE 10.0.0.2/31", false),
            ("routed RoCE over IPv4", false),
            ("RoCE over IPv4 if it is routed", true),
        ];
        let gids = [v4([10, 0, 0, 2])];
        assert_eq!(names(&roce(&gids, &known, Choice::Auto)), routed);
        assert_eq!(
            names(&roce(&gids, &Interfaces::default(), Choice::On))[1..],
            routed[1..]
        );
        assert_eq!(names(&roce(&gids, &known, Choice::Off)), routed[..1]);
        assert_eq!(
            names(&roce(&[v6("2001:db8:0:7::5")], &known, Choice::Auto)),
            [
                ("RoCE 2001:db8:0:7::/64", false),
                ("RoCE over IPv6 if it is routed", true),
            ]
        );
        assert_eq!(masked("10.9.8.7".parse().unwrap(), 0), "0.0.0.0/0");
        assert_eq!(masked("::1".parse().unwrap(), 0), "::/0");
        assert_eq!(masked("10.9.8.7".parse().unwrap(), 40), "10.9.8.7/40");
    }
}
