//! Addresses of domains and of their ports.

use std::num::NonZeroU32;

use super::format::{Read, Reader, Tag, Writer};
use crate::ibv::Gid;
use crate::limits::MOST_RAILS;
use crate::placement::Placement;

/// The address of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortAddress {
    pub(crate) ethernet: bool,
    /// As `ibv_mtu` numbers it.
    pub(crate) mtu: u8,
    /// On InfiniBand.
    pub(crate) lid: u16,
    /// The partition's key.
    pub(crate) partition: u16,
    /// Identifiers, best first; at most [`MOST_GIDS`].
    pub(crate) gids: Vec<Gid>,
}

impl PortAddress {
    pub(super) fn write(&self, into: &mut Writer) {
        into.put(&[u8::from(self.ethernet), self.mtu]);
        into.put(&self.lid.to_le_bytes());
        into.put(&self.partition.to_le_bytes());
        into.gids(&self.gids);
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Read<PortAddress> {
        let ethernet = from.flag().map_err(|why| format!("link layer: {why}"))?;
        let mtu = from.u8()?;
        if !(1..=5).contains(&mtu) {
            return Err(format!("there is no MTU {mtu}"));
        }
        Ok(PortAddress {
            ethernet,
            mtu,
            lid: from.u16()?,
            partition: from.u16()?,
            gids: from.gids()?,
        })
    }
}

/// The most networks of one NIC.
pub(crate) const MOST_NETWORKS: usize = 16;

/// Names of networks.
pub(super) fn write_networks(networks: &[String], into: &mut Writer) {
    let networks = &networks[..networks.len().min(MOST_NETWORKS)];
    into.list(networks, |into, name| into.text(name));
}

pub(super) fn read_networks(from: &mut Reader<'_>) -> Read<Vec<String>> {
    let count = usize::from(from.u8()?);
    if count > MOST_NETWORKS {
        return Err(format!(
            "it is in {count} networks, more than {MOST_NETWORKS}"
        ));
    }
    (0..count).map(|_| from.text()).collect()
}

/// One of the NICs of a PE: a *rail*.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RailAddress {
    /// The port's name, such as `mlx5_0:1`.
    pub(crate) name: String,
    pub(crate) port: PortAddress,
    /// The networks that it is in for certain.
    pub(crate) networks: Vec<String>,
}

impl RailAddress {
    fn write(&self, into: &mut Writer) {
        into.text(&self.name);
        self.port.write(into);
        write_networks(&self.networks, into);
    }

    fn read(from: &mut Reader<'_>) -> Read<RailAddress> {
        Ok(RailAddress {
            name: from.text()?,
            port: PortAddress::read(from)?,
            networks: read_networks(from)?,
        })
    }
}

/// The support of a PE's NIC for its GPU's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GpuSupport {
    /// It was given no GPU.
    None,
    /// It reaches it. `flush`: its writes there need a flush before that GPU sees them (M27).
    Direct { flush: bool },
    /// It does not reach it, for this reason.
    Refused(String),
}

impl GpuSupport {
    fn write(&self, into: &mut Writer) {
        match self {
            GpuSupport::None => into.put(&[0]),
            GpuSupport::Direct { flush } => into.put(&[1, u8::from(*flush)]),
            GpuSupport::Refused(why) => {
                into.put(&[2]);
                into.text(why);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Read<GpuSupport> {
        match from.u8()? {
            0 => Ok(GpuSupport::None),
            1 => from.flag().map(|flush| GpuSupport::Direct { flush }),
            2 => from.text().map(GpuSupport::Refused),
            other => Err(format!("what it says of its GPU begins with {other}")),
        }
    }
}

/// The properties of a device as the target of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetProperties {
    pub(crate) placement: Placement,
    /// Whether its writes keep their order on the bus, where a key asks for it.
    pub(crate) has_strict_keys: bool,
    /// Whether it performs atomics that change a word.
    pub(crate) has_atomics: bool,
}

impl TargetProperties {
    /// The properties that are believed of a target, and their price, in words.
    pub(crate) fn explain(self) -> String {
        let mut told = self.placement.explain();
        if !self.has_strict_keys {
            told.push_str(
                "; it has keys with relaxed ordering only: a fence after puts flushes, and a \
                 put-with-signal has its signal wait a round trip",
            );
        }
        if !self.has_atomics {
            told.push_str("; it has no atomics, so its PE's CPU performs them, by messages");
        }
        told
    }

    fn write(self, into: &mut Writer) {
        let flags = [self.has_strict_keys, self.has_atomics].map(u8::from);
        into.put(&[self.placement.to_byte()]);
        into.put(&flags);
    }

    fn read(from: &mut Reader<'_>) -> Read<TargetProperties> {
        let number = from.u8()?;
        let placement = Placement::from_byte(number)
            .ok_or_else(|| format!("there is no placement order {number}"))?;
        Ok(TargetProperties {
            placement,
            has_strict_keys: from.flag()?,
            has_atomics: from.flag()?,
        })
    }
}

/// A domain's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) pe: u32,
    /// The first is for all but long transfers; at most [`MOST_RAILS`].
    pub(crate) rails: Vec<RailAddress>,
    pub(crate) target: TargetProperties,
    pub(crate) gpu: GpuSupport,
    /// The messages of each PE that may be here without a reply.
    pub(crate) message_window: NonZeroU32,
}

impl Address {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Address);
        writer.put(&self.pe.to_le_bytes());
        writer.list(&self.rails, |writer, rail| rail.write(writer));
        self.target.write(&mut writer);
        self.gpu.write(&mut writer);
        writer.put(&self.message_window.get().to_le_bytes());
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Address> {
        let mut reader = Reader::open(Tag::Address, bytes)?;
        let address = Address {
            pe: reader.u32()?,
            rails: reader.list("NICs", MOST_RAILS, RailAddress::read)?,
            target: TargetProperties::read(&mut reader)?,
            gpu: GpuSupport::read(&mut reader)?,
            message_window: NonZeroU32::new(reader.u32()?)
                .ok_or_else(|| "it has room for no message".to_owned())?,
        };
        reader.end(address)
    }
}
