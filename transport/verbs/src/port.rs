//! The choice of a port, of its identifiers and of the path to a peer, all made on tables, so that they can be
//! tested without a device.

use std::sync::Arc;

use oxshmem_transport::{Device, Error, Network, Result};

use crate::address_range::AddressRange;
use crate::addressing::Addressing;
use crate::cpu_model::{CpuModel, Relaxed};
use crate::ibv::{Context, DeviceLimits, Gid, PortAttributes, device_names};
use crate::interfaces::Interfaces;
use crate::limits::NAME;
use crate::networks;
use crate::placement::{self, Kind};
use crate::settings::{Partition, Settings};
use crate::traffic_class;
use crate::wire::{MOST_GIDS, PortAddress};

/// An opened port, with the settings chosen for it.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) context: Arc<Context>,
    pub(crate) number: u8,
    pub(crate) limits: DeviceLimits,
    pub(crate) attributes: PortAttributes,
    /// Whether the device is a program: soft-RoCE, soft-iWARP.
    pub(crate) software: bool,
    /// The kinds of memory in which this side's puts may pass each other.
    pub(crate) relaxed: Relaxed,
    /// The partition key's index, and the key.
    pub(crate) partition: u16,
    pub(crate) partition_key: u16,
    pub(crate) traffic_class: u8,
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    /// Identifiers that may be this side's, best first, with their indices.
    pub(crate) gids: Vec<(u8, Gid)>,
    pub(crate) mtu: u8,
}

fn unavailable(why: String) -> Error {
    Error::Unavailable {
        transport: NAME,
        why,
    }
}

/// Every active port, fastest first. `Err` tells why there is none.
pub(crate) fn probe(settings: &Settings) -> Result<Vec<Device>> {
    let mut found = Vec::new();
    let mut reasons = Vec::new();
    let interfaces = Interfaces::read();
    for name in device_names()? {
        let ports = Context::open(&name).and_then(|context| {
            let limits = context.limits()?;
            Ok((Arc::new(context), limits))
        });
        let (context, limits) = match ports {
            Ok(opened) => opened,
            Err(error) => {
                reasons.push(error.to_string());
                continue;
            }
        };
        for number in 1..=limits.ports {
            match Port::choose(&context, number, limits, settings) {
                Ok(port) => {
                    let networks = port.networks(&interfaces, settings);
                    found.push((port.rate(), port.describe(networks)));
                }
                Err(error) => reasons.push(error.to_string()),
            }
        }
    }
    if found.is_empty() {
        return Err(unavailable(reasons.join("; ")));
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    Ok(found.into_iter().map(|(_, device)| device).collect())
}

impl Port {
    /// Opens a port by its name, such as `mlx5_0:1`.
    pub(crate) fn open(name: &str, settings: &Settings) -> Result<Port> {
        let parsed = name
            .rsplit_once(':')
            .and_then(|(device, port)| Some((device, port.parse().ok()?)));
        let Some((device, number)) = parsed else {
            return Err(unavailable(format!(
                "{name:?} is not a port's name, such as mlx5_0:1"
            )));
        };
        let context = Arc::new(Context::open(device)?);
        let limits = context.limits()?;
        Port::choose(&context, number, limits, settings)
    }

    fn choose(
        context: &Arc<Context>,
        number: u8,
        limits: DeviceLimits,
        settings: &Settings,
    ) -> Result<Port> {
        let name = format!("{}:{number}", context.name());
        usable(context.infiniband())
            .map_err(|why| unavailable(format!("device {}: {why}", context.name())))?;
        let attributes = context.port(number)?;
        if !attributes.active {
            return Err(unavailable(format!(
                "port {name} is down; `rdma link` shows its state, `ip link set … up` or the cable \
                 mends it"
            )));
        }
        let software = is_software(context.name(), limits.vendor);
        let (default_timeout, default_retries) = default_patience(software);
        let mut gids = candidates(&attributes, settings.gid_index, settings.address)
            .map_err(|why| unavailable(format!("port {name}: {why}")))?;
        if gids.len() > MOST_GIDS {
            let (port, count) = (&name, gids.len());
            tracing::info!(%port, count, "peers are told the first {MOST_GIDS} of the port's addresses; \
                 OXSHMEM_VERBS_ADDRESS selects others");
            gids.truncate(MOST_GIDS);
        }
        let keys = |index| context.partition_key(number, index).ok();
        let (partition, partition_key) = partition(settings.partition, attributes.pkeys, keys)
            .map_err(|why| unavailable(format!("port {name}: {why}")))?;
        Ok(Port {
            relaxed: Relaxed::decide(settings.relaxed_ordering, software, CpuModel::here()),
            traffic_class: settings.traffic_class.unwrap_or_else(|| {
                let (device, ethernet) = (context.name(), attributes.ethernet);
                let kind = placement::kind(device, limits.vendor, limits.part);
                let is_mlx5 = !software && kind == Kind::Answers;
                traffic_class::of_port(device, number, ethernet, is_mlx5)
            }),
            timeout: settings.timeout.unwrap_or(default_timeout),
            retries: settings.retry_count.unwrap_or(default_retries),
            mtu: match settings.mtu {
                Some(mtu) => mtu.min(attributes.mtu),
                None => attributes.mtu,
            },
            context: Arc::clone(context),
            number,
            limits,
            attributes,
            software,
            partition,
            partition_key,
            gids,
        })
    }

    /// The attributes that may change while it is open, as they were when it was opened.
    pub(crate) fn addressing(&self) -> Addressing {
        Addressing {
            ethernet: self.attributes.ethernet,
            mtu: self.mtu,
            lid: self.attributes.lid,
            partition: self.partition,
            partition_key: self.partition_key,
            gids: self.gids.clone(),
            rate: self.rate(),
        }
    }

    /// The same attributes now. The partition stays the same, if the table still has it and no index was asked for.
    pub(crate) fn addressing_now(
        &self,
        settings: &Settings,
        partition_key: u16,
    ) -> Result<Addressing> {
        let choose = |settings| Port::choose(&self.context, self.number, self.limits, settings);
        let kept = Settings {
            partition: match settings.partition {
                Partition::Index(_) => settings.partition,
                _ => Partition::Key(partition_key),
            },
            ..settings.clone()
        };
        let port = choose(&kept).or_else(|_| choose(settings))?;
        Ok(port.addressing())
    }

    /// The index that one of this side's identifiers has now: that which it is `known` by, if it still does.
    pub(crate) fn index_of(&self, wanted: Gid, known: &[(u8, Gid)]) -> Result<Option<u8>> {
        let table = self.context.gids(self.number)?;
        Ok(index_among(&table, self.attributes.ethernet, wanted, known))
    }

    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.context.name(), self.number)
    }

    /// In Gb/s.
    pub(crate) fn rate(&self) -> f64 {
        let lanes = match self.attributes.width {
            1 => 1.0,
            2 => 4.0,
            4 => 8.0,
            8 => 12.0,
            16 => 2.0,
            _ => 1.0,
        };
        lanes * lane_rate(self.attributes.speed)
    }

    fn networks(&self, interfaces: &Interfaces, settings: &Settings) -> Vec<Network> {
        let gids: Vec<Gid> = self.gids.iter().map(|(_, gid)| *gid).collect();
        if self.attributes.ethernet {
            networks::roce(&gids, interfaces, settings.routed)
        } else {
            networks::infiniband(&gids, self.partition_key)
        }
    }

    /// The networks that it is in for certain, by name.
    pub(crate) fn certain_networks(&self, settings: &Settings) -> Vec<String> {
        let networks = self.networks(&Interfaces::read(), settings);
        let certain = networks.into_iter().filter(|network| !network.uncertain);
        certain.map(|network| network.name).collect()
    }

    fn describe(&self, networks: Vec<Network>) -> Device {
        let layer = match (self.attributes.ethernet, self.software) {
            (true, true) => "soft-RoCE",
            (true, false) => "RoCE",
            (false, _) => "InfiniBand",
        };
        let gid = identifiers(&self.gids, self.attributes.ethernet, self.attributes.lid);
        let bytes = 128u32 << self.mtu;
        let rate = self.rate();
        Device {
            name: self.name(),
            description: format!("{layer}, {rate} Gb/s, {gid}, MTU {bytes}"),
            megabits: (rate * 1000.0) as u32,
            networks,
        }
    }
}

/// The identifiers of a port in words: the first one, and those that a peer in their subnet makes it take.
fn identifiers(gids: &[(u8, Gid)], ethernet: bool, lid: u16) -> String {
    let Some(((index, first), others)) = gids.split_first() else {
        return format!("LID {lid}");
    };
    let kind = if ethernet { "RoCE v2" } else { "InfiniBand" };
    let mut told = format!("GID {index} ({first}, {kind})");
    if !others.is_empty() {
        let others: Vec<String> = others
            .iter()
            .map(|(at, gid)| format!("{at} ({gid})"))
            .collect();
        told.push_str(" unless the peer's subnet is that of ");
        told.push_str(&others.join(", "));
    }
    told
}

/// In Gb/s, by the number that verbs give a lane's speed.
fn lane_rate(speed: u32) -> f64 {
    match speed {
        1 => 2.5,
        2 => 5.0,
        4 | 8 => 10.0,
        16 => 14.0,
        32 => 25.0,
        64 => 50.0,
        128 => 100.0,
        256 => 200.0,
        _ => 0.0,
    }
}

/// Whether a device has what this transport stands on.
fn usable(infiniband: bool) -> Result<(), String> {
    if !infiniband {
        return Err(
            "it speaks neither InfiniBand nor RoCE (iWARP, EFA and usNIC have no reliable \
             connections of that kind), which this transport needs"
                .into(),
        );
    }
    Ok(())
}

/// The time-out of an answer, as InfiniBand numbers it, and the count of retries: on a NIC half a minute in all, since
/// a link takes up to 15 seconds to come back. A software device at 7 retries never gives up.
fn default_patience(software: bool) -> (u8, u8) {
    if software { (16, 6) } else { (20, 7) }
}

/// Vendor numbers of Linux's rdma_rxe and siw.
const SOFTWARE_VENDORS: [u32; 2] = [0x00ff_ffff, 0x0062_6d74];

fn is_software(device: &str, vendor: u32) -> bool {
    device.starts_with("rxe") || device.starts_with("siw") || SOFTWARE_VENDORS.contains(&vendor)
}

/// How good an identifier is on RoCE; smaller is better.
fn rank(gid: Gid) -> u8 {
    match gid.0 {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..] => 0,
        [0xfe, second, ..] if second & 0xc0 == 0x80 => 2,
        _ => 1,
    }
}

/// The identifiers that may be this side's, best first: of RoCE v2, those of IPv4 before those of
/// IPv6 before link-local ones; of InfiniBand, in the table's order. Those outside the `wanted` range are left out. A forced
/// index is the only one.
fn candidates(
    port: &PortAttributes,
    forced: Option<u8>,
    wanted: Option<AddressRange>,
) -> Result<Vec<(u8, Gid)>, String> {
    let table = || {
        port.gids
            .iter()
            .filter(|(_, v2, _)| *v2 || !port.ethernet)
            .filter_map(|(index, _, gid)| Some((u8::try_from(*index).ok()?, *gid)))
    };
    let listed = || {
        let listed: Vec<String> = table().map(|(at, gid)| format!("{at} ({gid})")).collect();
        listed.join(", ")
    };
    if let Some(forced) = forced {
        let found: Vec<_> = table().filter(|(index, _)| *index == forced).collect();
        return if found.is_empty() {
            Err(format!(
                "OXSHMEM_VERBS_GID_INDEX={forced} is no usable entry of its GID table; usable: {}",
                listed()
            ))
        } else {
            Ok(found)
        };
    }
    let is_wanted = |gid| wanted.is_none_or(|range| range.has(gid));
    let mut found: Vec<_> = table().filter(|(_, gid)| is_wanted(*gid)).collect();
    if let Some(wanted) = wanted
        && found.is_empty()
    {
        return Err(format!(
            "it has no address in OXSHMEM_VERBS_ADDRESS={wanted}; usable: {}",
            listed()
        ));
    }
    if port.ethernet {
        found.sort_by_key(|(_, gid)| rank(*gid));
        if found.is_empty() {
            return Err(
                "its GID table has no RoCE v2 entry; give its network interface an IP address"
                    .into(),
            );
        }
    }
    Ok(found)
}

/// The index of an identifier in a table: that which it is `known` by, if it still is there; on RoCE of version 2 alone.
fn index_among(
    table: &[(u32, bool, Gid)],
    ethernet: bool,
    wanted: Gid,
    known: &[(u8, Gid)],
) -> Option<u8> {
    let usable = table.iter().filter(|(_, v2, gid)| {
        let usable = *v2 || !ethernet;
        usable && *gid == wanted
    });
    let indices: Vec<u8> = usable
        .filter_map(|(index, ..)| u8::try_from(*index).ok())
        .collect();
    let same = |index: &&u8| known.contains(&(**index, wanted));
    indices.iter().find(same).or(indices.first()).copied()
}

/// The bit of a partition key that says that its holder is a full member. Of two members at least
/// one must be full.
const FULL: u16 = 0x8000;

/// The partition asked for: its index, and its key.
fn partition(
    wanted: Partition,
    entries: u16,
    key_at: impl Fn(u16) -> Option<u16>,
) -> Result<(u16, u16), String> {
    let table = || (0..entries).filter_map(|index| Some((index, key_at(index)?)));
    let valid = |key: u16| key & !FULL != 0;
    match wanted {
        Partition::Auto => match table().find(|(_, key)| valid(*key)) {
            Some((_, first)) => partition(Partition::Key(first), entries, key_at),
            None => {
                Err("its table of partition keys is empty; is a subnet manager running?".into())
            }
        },
        Partition::Index(wanted) => table()
            .find(|&(index, key)| index == wanted && valid(key))
            .ok_or_else(|| {
                format!(
                    "OXSHMEM_VERBS_PKEY={wanted} is no valid entry of its table of {entries} \
                     partition keys"
                )
            }),
        Partition::Key(wanted) => table()
            .filter(|(_, key)| valid(*key) && key & !FULL == wanted & !FULL)
            // The first of those that are most.
            .min_by_key(|(_, key)| key & FULL == 0)
            .ok_or_else(|| {
                format!(
                    "OXSHMEM_VERBS_PKEY={wanted:#06x} is not in its table; see the subnet manager"
                )
            }),
    }
}

/// How packets go from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) mtu: u8,
    /// Identifiers of here and there, where packets carry them.
    pub(crate) route: Option<(Gid, Gid)>,
}

fn common_bits(one: Gid, other: Gid) -> u32 {
    (u128::from_be_bytes(one.0) ^ u128::from_be_bytes(other.0)).leading_zeros()
}

/// The best path, or why there is none.
pub(crate) fn path(
    here: &PortAddress,
    there: &PortAddress,
    route_needed: bool,
) -> std::result::Result<Path, String> {
    if here.ethernet != there.ethernet {
        let layer = |port: &PortAddress| if port.ethernet { "RoCE" } else { "InfiniBand" };
        return Err(format!(
            "its port is {}, this PE's is {}",
            layer(there),
            layer(here)
        ));
    }
    let (ours, theirs) = (here.partition, there.partition);
    if ours & !FULL != theirs & !FULL {
        return Err(format!(
            "its partition key is {theirs:#06x}, this PE's {ours:#06x}: set OXSHMEM_VERBS_PKEY to \
             one that both ports have"
        ));
    }
    if (ours | theirs) & FULL == 0 {
        return Err(format!(
            "both ports are limited members of partition {ours:#06x}, which do not hear each other: \
             have the subnet manager make one a full member"
        ));
    }
    let mtu = here.mtu.min(there.mtu);
    let pairs = || {
        here.gids
            .iter()
            .flat_map(|ours| there.gids.iter().map(move |theirs| (*ours, *theirs)))
    };
    if here.ethernet {
        // The same family; of several, those that have most of their address in common: one subnet.
        let alike = pairs().filter(|(ours, theirs)| rank(*ours) == rank(*theirs));
        let best = alike
            .min_by_key(|(ours, theirs)| (rank(*ours), u32::MAX - common_bits(*ours, *theirs)));
        return match best {
            Some(route) => Ok(Path {
                mtu,
                route: Some(route),
            }),
            None => Err(format!(
                "no GID of its port {:?} is of the kind of one of this PE's {:?}; give both \
                 interfaces an IPv4 address",
                there.gids, here.gids
            )),
        };
    }
    let subnet = |gid: &Gid| gid.0.first_chunk::<8>().copied();
    if here.gids.is_empty() || there.gids.is_empty() {
        return Err("one of the ports has no GID".into());
    }
    let in_subnet = pairs().find(|(ours, theirs)| subnet(ours) == subnet(theirs));
    let Some(pair) = in_subnet else {
        return Err("its port is in another InfiniBand subnet; routers are not supported".into());
    };
    for (lid, whose) in [(there.lid, "its"), (here.lid, "this PE's")] {
        if lid == 0 {
            return Err(format!(
                "{whose} port has no LID; is a subnet manager running?"
            ));
        }
    }
    let route = route_needed.then_some(pair);
    Ok(Path { mtu, route })
}

#[cfg(test)]
mod tests;
