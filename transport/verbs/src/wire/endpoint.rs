//! Endpoints of lanes, and the replies to them.

use super::address::{PortAddress, read_networks, write_networks};
use super::format::{MOST_QUEUES, Read, Reader, Tag, Writer};
use crate::ibv::{Ece, Gid};

/// The part of a nonce that numbers the queue pairs which one connection has, one after the other.
const SUCCESSION: u64 = 0xf;

/// The nonce of a connection's first queue pair.
pub(crate) fn first_nonce(number: u64) -> u64 {
    number & !SUCCESSION
}

/// Whether a nonce is that of a connection's first queue pair, or of one that is as good: each sixteenth.
pub(crate) fn is_first_nonce(nonce: u64) -> bool {
    nonce & SUCCESSION == 0
}

/// The nonce of the queue pair after this one.
pub(crate) fn next_nonce(nonce: u64) -> u64 {
    nonce & !SUCCESSION | nonce.wrapping_add(1) & SUCCESSION
}

/// The nonce of the queue pair before this one, if it is not a connection's first.
pub(crate) fn previous_nonce(nonce: u64) -> u64 {
    nonce & !SUCCESSION | nonce.wrapping_sub(1) & SUCCESSION
}

/// Checks the number of a queue pair, and its first sequence number.
fn check_numbers(queue_pair: u32, sequence: u32) -> Read<()> {
    if queue_pair >> 24 != 0 || sequence >> 24 != 0 {
        return Err("a queue pair's number or sequence has more than 24 bits".into());
    }
    Ok(())
}

/// A lane's endpoint towards a PE: those of its queue pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// So many of them, the first ones, are for all but long transfers: the peer connects one of these.
    pub(crate) primaries: u8,
    pub(crate) queues: Vec<Endpoint>,
}

impl Endpoints {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Endpoint);
        writer.list(&self.queues, |writer, one| one.write(writer));
        writer.put(&[self.primaries]);
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Endpoints> {
        let mut reader = Reader::open(Tag::Endpoint, bytes)?;
        let queues = reader.list("queue pairs", MOST_QUEUES, Endpoint::read)?;
        let primaries = reader.u8()?;
        if !(1..=queues.len()).contains(&usize::from(primaries)) {
            return Err(format!(
                "{primaries} of its queue pairs are for all operations"
            ));
        }
        reader.end(Endpoints { primaries, queues })
    }
}

/// The endpoint of one queue pair of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Distinguishes endpoints whose queue pair has the same number, one after the other. Its lowest bits number the
    /// queue pairs of one connection, which was interrupted between each two.
    pub(crate) nonce: u64,
    pub(crate) queue_pair: u32,
    pub(crate) sequence: u32,
    /// Reads and atomics that it would have in flight.
    pub(crate) reads: u8,
    /// The options that it offers.
    pub(crate) ece: Option<Ece>,
    /// The number of its NIC among those of its PE.
    pub(crate) rail: u8,
    pub(crate) port: PortAddress,
    /// The networks that the NIC is in for certain.
    pub(crate) networks: Vec<String>,
}

impl Endpoint {
    fn write(&self, writer: &mut Writer) {
        writer.put(&self.from.to_le_bytes());
        writer.put(&self.to.to_le_bytes());
        writer.put(&self.nonce.to_le_bytes());
        writer.put(&self.queue_pair.to_le_bytes());
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&[self.reads]);
        writer.ece(self.ece);
        writer.put(&[self.rail]);
        self.port.write(writer);
        write_networks(&self.networks, writer);
    }

    fn read(reader: &mut Reader<'_>) -> Read<Endpoint> {
        let endpoint = Endpoint {
            from: reader.u32()?,
            to: reader.u32()?,
            nonce: reader.u64()?,
            queue_pair: reader.u32()?,
            sequence: reader.u32()?,
            reads: reader.u8()?,
            ece: reader.ece()?,
            rail: reader.rail()?,
            port: PortAddress::read(reader)?,
            networks: read_networks(reader)?,
        };
        check_numbers(endpoint.queue_pair, endpoint.sequence)?;
        Ok(endpoint)
    }
}

/// A word of the responder's domain for atomics that change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlushWord {
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
}

/// The order of writes at the target of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetOrder {
    /// Whether writes are placed in the order sent.
    pub(crate) in_order: bool,
    /// Whether writes by a strict key keep their order on the bus.
    pub(crate) has_strict_keys: bool,
    /// Whether the device performs atomics that change a word.
    pub(crate) has_atomics: bool,
    /// For atomics that come after all writes before them; none where writes are in order, or without atomics.
    pub(crate) flush_word: Option<FlushWord>,
}

impl TargetOrder {
    /// The order of a device that keeps it.
    pub(crate) const KEPT: TargetOrder = TargetOrder {
        in_order: true,
        has_strict_keys: true,
        has_atomics: true,
        flush_word: None,
    };

    fn write(self, into: &mut Writer) {
        let flags = [self.in_order, self.has_strict_keys, self.has_atomics];
        into.put(&flags.map(u8::from));
        into.option(self.flush_word.as_ref(), |into, word| {
            into.put(&word.addr.to_le_bytes());
            into.put(&word.rkey.to_le_bytes());
        });
    }

    fn read(from: &mut Reader<'_>) -> Read<TargetOrder> {
        let (in_order, has_strict_keys) = (from.flag()?, from.flag()?);
        let has_atomics = from.flag()?;
        let flush_word = from.option(|from| {
            Ok(FlushWord {
                addr: from.u64()?,
                rkey: from.u32()?,
            })
        })?;
        if flush_word.is_some_and(|word| !word.addr.is_multiple_of(8)) {
            return Err("its word for flushes is misaligned".into());
        }
        if flush_word.is_some() && !has_atomics {
            return Err("it has a word for atomics, and no atomics".into());
        }
        Ok(TargetOrder {
            in_order,
            has_strict_keys,
            has_atomics,
            flush_word,
        })
    }
}

/// The reply of the peer's domain to a lane's endpoint: one for each queue pair; none to those whose NICs reach none of the
/// peer's, and to all but one of those for all operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointReplies(pub(crate) Vec<Option<EndpointReply>>);

impl EndpointReplies {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::EndpointReply);
        writer.list(&self.0, |writer, one| {
            writer.option(one.as_ref(), |writer, one| one.write(writer));
        });
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<EndpointReplies> {
        let mut reader = Reader::open(Tag::EndpointReply, bytes)?;
        let read = |reader: &mut Reader<'_>| reader.option(EndpointReply::read);
        let all = reader.list("queue pairs", MOST_QUEUES, read)?;
        if all.iter().all(Option::is_none) {
            return Err("it connects no queue pair".into());
        }
        reader.end(EndpointReplies(all))
    }
}

/// The reply to the endpoint of one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointReply {
    /// The nonce of the endpoint.
    pub(crate) nonce: u64,
    /// The number of the responder's NIC among those of its PE.
    pub(crate) rail: u8,
    pub(crate) queue_pair: u32,
    pub(crate) sequence: u32,
    /// Reads and atomics that may be outstanding.
    pub(crate) reads: u8,
    /// As `ibv_mtu` numbers it.
    pub(crate) mtu: u8,
    pub(crate) lid: u16,
    /// The identifiers of the endpoint and of the responder, which packets carry; none without a global
    /// route.
    pub(crate) route: Option<(Gid, Gid)>,
    pub(crate) order: TargetOrder,
    /// The options that the responder has taken.
    pub(crate) ece: Option<Ece>,
}

impl EndpointReply {
    fn write(self, writer: &mut Writer) {
        writer.put(&self.nonce.to_le_bytes());
        writer.put(&[self.rail]);
        writer.put(&self.queue_pair.to_le_bytes());
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&[self.reads, self.mtu]);
        writer.put(&self.lid.to_le_bytes());
        match self.route {
            None => writer.gids(&[]),
            Some((theirs, ours)) => writer.gids(&[theirs, ours]),
        }
        self.order.write(writer);
        writer.ece(self.ece);
    }

    fn read(reader: &mut Reader<'_>) -> Read<EndpointReply> {
        let reply = EndpointReply {
            nonce: reader.u64()?,
            rail: reader.rail()?,
            queue_pair: reader.u32()?,
            sequence: reader.u32()?,
            reads: reader.u8()?,
            mtu: reader.u8()?,
            lid: reader.u16()?,
            route: match reader.gids()?[..] {
                [] => None,
                [theirs, ours] => Some((theirs, ours)),
                _ => return Err("a route has two identifiers".into()),
            },
            order: TargetOrder::read(reader)?,
            ece: reader.ece()?,
        };
        check_numbers(reply.queue_pair, reply.sequence)?;
        if !(1..=5).contains(&reply.mtu) || reply.reads == 0 {
            return Err("its MTU or its number of reads does not exist".into());
        }
        Ok(reply)
    }
}
