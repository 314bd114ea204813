//! The machine's devices: names, ports, addresses, and the state of their links.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::events::Pipe;
use crate::profile::{Link, Profile};
use crate::settings::Settings;
use crate::wire::Route;

/// A full member of the default partition.
const DEFAULT_PARTITION: u16 = 0xffff;

/// An entry of a port's GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gid {
    pub(crate) raw: [u8; 16],
    /// As `ibv_gid_entry` has it: InfiniBand, RoCE v1, RoCE v2.
    pub(crate) kind: u32,
}

/// A port.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) lid: u16,
    /// By index; `None` where an entry was taken away.
    pub(crate) gids: Vec<Option<Gid>>,
    pub(crate) pkeys: Vec<u16>,
    pub(crate) subnet: u32,
    pub(crate) up: bool,
    /// The time at which the link comes back by itself.
    pub(crate) returns: Option<Instant>,
}

/// A device of the machine.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) guid: u64,
    pub(crate) ports: Vec<Port>,
}

impl Port {
    fn new(profile: &Profile, host: u32, device: u32, port: u32) -> Port {
        let guid = guid(host, device) + u64::from(port);
        let subnet = profile.subnet as u8;
        // Four hosts share a subnet of 256 addresses, of which each has 64.
        let last = ((host % 4) * 64 + device * 4 + port + 1) as u8;
        let gids = match profile.link {
            Link::InfiniBand => {
                let mut raw = [0; 16];
                raw[0] = 0xfe;
                raw[1] = 0x80;
                raw[7] = subnet;
                raw[8..].copy_from_slice(&guid.to_be_bytes());
                vec![Some(Gid { raw, kind: 0 })]
            }
            Link::Roce => {
                let mut local = [0; 16];
                (local[0], local[1]) = (0xfe, 0x80);
                local[8..].copy_from_slice(&guid.to_be_bytes());
                let mut v4 = [0; 16];
                v4[10..].copy_from_slice(&[
                    0xff,
                    0xff,
                    10,
                    64 + subnet % 64,
                    (host / 4) as u8,
                    last,
                ]);
                [(local, 1), (local, 2), (v4, 1), (v4, 2)]
                    .map(|(raw, kind)| Some(Gid { raw, kind }))
                    .to_vec()
            }
        };
        let mut pkeys = vec![0; profile.pkeys as usize];
        pkeys[0] = DEFAULT_PARTITION;
        Port {
            lid: match profile.link {
                Link::InfiniBand => (1 + host * 64 + device * 4 + port) as u16,
                Link::Roce => 0,
            },
            gids,
            pkeys,
            subnet: profile.subnet,
            up: true,
            returns: None,
        }
    }

    /// Whether a packet on a route arrives here.
    pub(crate) fn takes(&self, ethernet: bool, route: &Route) -> bool {
        let addressed = match route.lid {
            Some(lid) => lid == self.lid,
            None => {
                let version = route.version.into();
                let mut gids = self.gids.iter().flatten();
                gids.any(|gid| gid.raw == route.gid && gid.kind == version)
            }
        };
        self.up && ethernet == route.ethernet && self.subnet == route.subnet && addressed
    }
}

fn guid(host: u32, device: u32) -> u64 {
    0x0250_5c00_0000_0000 | u64::from(host) << 24 | u64::from(device) << 8
}

impl Device {
    /// All devices of the settings. Names are numbered by their first part.
    pub(crate) fn all(settings: &Settings) -> Vec<Device> {
        let mut devices: Vec<Device> = Vec::new();
        for (number, profile) in (0..).zip(&settings.devices) {
            let alike = devices
                .iter()
                .filter(|one| one.profile.device == profile.device)
                .count();
            let ports = 0..profile.ports;
            devices.push(Device {
                name: format!("{}{alike}", profile.device),
                profile: profile.clone(),
                guid: guid(settings.host, number),
                ports: ports
                    .map(|port| Port::new(profile, settings.host, number, port))
                    .collect(),
            });
        }
        devices
    }

    pub(crate) fn ethernet(&self) -> bool {
        self.profile.link == Link::Roce
    }

    /// A port by its number, which begins with 1.
    pub(crate) fn port(&self, number: u8) -> Option<&Port> {
        self.ports.get(usize::from(number).checked_sub(1)?)
    }

    pub(crate) fn port_mut(&mut self, number: u8) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(number).checked_sub(1)?)
    }
}

/// Whether members with these keys hear each other: of one partition, one of them a full member.
pub(crate) fn same_partition(one: u16, other: u16) -> bool {
    const FULL: u16 = 0x8000;
    one & !FULL == other & !FULL && (one | other) & FULL != 0
}

/// An opened device.
#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) device: usize,
    pub(crate) events: Arc<Pipe>,
}

/// The pauses that receivers ask for, by the number that packets carry, in microseconds.
const PAUSES: [u64; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1_280, 1_920, 2_560, 3_840,
    5_120, 7_680, 10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840,
    245_760, 327_680, 491_520,
];

/// The pause of a receiver that was not ready.
pub(crate) fn pause(number: u8, scale: f64) -> Duration {
    Duration::from_micros(PAUSES[usize::from(number & 31)]).mul_f64(scale)
}

/// The time after which an unanswered packet is sent again; 0 is never.
pub(crate) fn time_out(number: u8, scale: f64) -> Option<Duration> {
    let shift = u32::from(number & 31);
    (shift > 0).then(|| Duration::from_nanos(4096u64 << shift).mul_f64(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_devices_ports_and_hosts_differ() {
        let settings = |host| Settings {
            devices: [
                Profile::named("two-ports").unwrap(),
                Profile::named("roce-rails").unwrap(),
            ]
            .concat(),
            seed: 1,
            host,
            folder: None,
            time_scale: 1.0,
            counters: None,
            cues: Vec::new(),
            trace: false,
            cuda: None,
        };
        let mut seen = std::collections::HashSet::new();
        for host in [0, 1, 4] {
            for device in Device::all(&settings(host)) {
                for port in &device.ports {
                    let last = port.gids.last().unwrap().unwrap();
                    assert!(seen.insert((port.lid, last.raw)), "{port:?}");
                }
            }
        }
        assert_eq!(seen.len(), 12);
    }

    #[test]
    fn times_are_those_of_the_specification() {
        assert_eq!(time_out(14, 1.0), Some(Duration::from_nanos(67_108_864)));
        assert_eq!(time_out(0, 1.0), None);
        assert_eq!(pause(12, 1.0), Duration::from_micros(640));
    }
}
