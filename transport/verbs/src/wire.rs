//! The byte format of what peers exchange: addresses, keys, endpoints and the replies to them.
//!
//! Each is a tag, the version of this format, the fields in little-endian order, and a checksum over all of
//! these. So bytes that were cut, lengthened, mixed up or damaged are told apart from those of another
//! version of oxshmem. The checksum is against accidents, not against an enemy.

use crate::ibv::{Ece, Gid};
use crate::placement::Placement;

/// Raised whenever a field changes.
pub(crate) const VERSION: u16 = 7;

/// The longest text, in bytes.
const MAX_TEXT: usize = 1000;

/// The longest list of identifiers.
pub(crate) const MOST_GIDS: usize = 8;

/// The most queue pairs of one connection.
pub(crate) const MOST_QUEUES: usize = 65;

const HEAD: usize = 6;
const SUM: usize = 8;

/// The kind of some bytes, as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Address,
    Key,
    Endpoint,
    EndpointReply,
}

impl Tag {
    fn bytes(self) -> [u8; 4] {
        match self {
            Tag::Address => *b"OXva",
            Tag::Key => *b"OXvk",
            Tag::Endpoint => *b"OXve",
            Tag::EndpointReply => *b"OXvc",
        }
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// These bytes as the body of each kind, with head and checksum.
#[cfg(any(fuzzing, test))]
pub(crate) fn sealed(body: &[u8]) -> [Vec<u8>; 4] {
    [Tag::Address, Tag::Key, Tag::Endpoint, Tag::EndpointReply].map(|tag| {
        let mut writer = Writer::new(tag);
        writer.put(body);
        writer.finish()
    })
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(tag: Tag) -> Writer {
        let mut writer = Writer(tag.bytes().to_vec());
        writer.put(&VERSION.to_le_bytes());
        writer
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn gids(&mut self, gids: &[Gid]) {
        let gids = &gids[..gids.len().min(MOST_GIDS)];
        self.0.push(gids.len() as u8);
        for gid in gids {
            self.put(&gid.0);
        }
    }

    /// All zero if there are none.
    fn ece(&mut self, ece: Option<Ece>) {
        let ece = ece.unwrap_or_default();
        for word in [ece.vendor, ece.options, ece.comp_mask] {
            self.put(&word.to_le_bytes());
        }
    }

    /// Cuts a text that is too long.
    fn text(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        self.put(&(text.len() as u16).to_le_bytes());
        self.put(text.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0);
        self.put(&sum.to_le_bytes());
        self.0
    }
}

/// Why bytes are not what they should be, in text.
type Read<T> = Result<T, String>;

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn open(tag: Tag, bytes: &'a [u8]) -> Read<Reader<'a>> {
        let not_one = || "it is not one of the verbs transport's".to_owned();
        let rest = bytes.strip_prefix(&tag.bytes()).ok_or_else(not_one)?;
        let mut reader = Reader(rest);
        let version = u16::from_le_bytes(reader.take()?);
        if version != VERSION {
            return Err(format!(
                "it was made by another version of oxshmem's verbs transport ({version} there, \
                 {VERSION} here); install the same oxshmem on both hosts"
            ));
        }
        let body = bytes.len().checked_sub(SUM).filter(|body| *body >= HEAD);
        let (body, sum) = bytes.split_at(body.ok_or("it is cut short")?);
        if checksum(body).to_le_bytes() != sum {
            return Err("it was damaged on its way (its checksum is wrong)".into());
        }
        Ok(Reader(&body[HEAD..]))
    }

    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk().ok_or("it is cut short")?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Read<u8> {
        self.take().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Read<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Read<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Read<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn gids(&mut self) -> Read<Vec<Gid>> {
        let count = usize::from(self.u8()?);
        if count > MOST_GIDS {
            return Err(format!(
                "it lists {count} identifiers, more than {MOST_GIDS}"
            ));
        }
        (0..count).map(|_| self.take().map(Gid)).collect()
    }

    fn flag(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is neither yes nor no")),
        }
    }

    fn ece(&mut self) -> Read<Option<Ece>> {
        let ece = Ece {
            vendor: self.u32()?,
            options: self.u32()?,
            comp_mask: self.u32()?,
        };
        if ece.vendor == 0 && ece != Ece::default() {
            return Err("its options for connections are no vendor's".into());
        }
        Ok((ece.vendor != 0).then_some(ece))
    }

    fn text(&mut self) -> Read<String> {
        let len = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(len).ok_or("it is cut short")?;
        self.0 = rest;
        let text = str::from_utf8(text).map_err(|_| "its words are not UTF-8")?;
        Ok(text.to_owned())
    }

    /// A list of one entry at least.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = usize::from(self.u8()?);
        if !(1..=MOST_QUEUES).contains(&count) {
            return Err(format!(
                "it is of {count} queue pairs, not of 1 to {MOST_QUEUES}"
            ));
        }
        (0..count).map(|_| read(self)).collect()
    }

    fn end<T>(self, whole: T) -> Read<T> {
        match self.0.len() {
            0 => Ok(whole),
            left => Err(format!("{left} bytes follow its end")),
        }
    }
}

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
    fn write(&self, into: &mut Writer) {
        into.put(&[u8::from(self.ethernet), self.mtu]);
        into.put(&self.lid.to_le_bytes());
        into.put(&self.partition.to_le_bytes());
        into.gids(&self.gids);
    }

    fn read(from: &mut Reader<'_>) -> Read<PortAddress> {
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
    pub(crate) port: PortAddress,
    pub(crate) target: TargetProperties,
    pub(crate) gpu: GpuSupport,
}

impl Address {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Address);
        writer.put(&self.pe.to_le_bytes());
        self.port.write(&mut writer);
        self.target.write(&mut writer);
        self.gpu.write(&mut writer);
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Address> {
        let mut reader = Reader::open(Tag::Address, bytes)?;
        let address = Address {
            pe: reader.u32()?,
            port: PortAddress::read(&mut reader)?,
            target: TargetProperties::read(&mut reader)?,
            gpu: GpuSupport::read(&mut reader)?,
        };
        reader.end(address)
    }
}

/// A region's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) pe: u32,
    pub(crate) region: u32,
    pub(crate) base: u64,
    pub(crate) len: u64,
    /// The key of the registration in which writes may pass each other, if there are two.
    pub(crate) relaxed: u32,
    /// The key of the registration in which they may not.
    pub(crate) strict: u32,
    /// Whether it is a GPU's memory.
    pub(crate) gpu: bool,
}

impl Key {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Key);
        writer.put(&self.pe.to_le_bytes());
        writer.put(&self.region.to_le_bytes());
        writer.put(&self.base.to_le_bytes());
        writer.put(&self.len.to_le_bytes());
        writer.put(&self.relaxed.to_le_bytes());
        writer.put(&self.strict.to_le_bytes());
        writer.put(&[u8::from(self.gpu)]);
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Key> {
        let mut reader = Reader::open(Tag::Key, bytes)?;
        let key = Key {
            pe: reader.u32()?,
            region: reader.u32()?,
            base: reader.u64()?,
            len: reader.u64()?,
            relaxed: reader.u32()?,
            strict: reader.u32()?,
            gpu: reader.flag()?,
        };
        if key.base.checked_add(key.len).is_none() {
            return Err("its range leaves the address space".into());
        }
        reader.end(key)
    }
}

/// The part of a nonce that numbers the queue pairs which one connection has, one after the other.
const SUCCESSION: u64 = 0xf;

/// The nonce of a connection's first queue pair.
pub(crate) fn first_nonce(number: u64) -> u64 {
    number & !SUCCESSION
}

/// The nonce of the queue pair after this one.
pub(crate) fn next_nonce(nonce: u64) -> u64 {
    nonce & !SUCCESSION | nonce.wrapping_add(1) & SUCCESSION
}

/// The nonce of the queue pair before this one, if it is not a connection's first.
pub(crate) fn previous_nonce(nonce: u64) -> u64 {
    nonce & !SUCCESSION | nonce.wrapping_sub(1) & SUCCESSION
}

/// A lane's endpoint towards a PE: those of its queue pairs, the first of which is for all but long transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints(pub(crate) Vec<Endpoint>);

impl Endpoints {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Endpoint);
        writer.put(&[self.0.len() as u8]);
        self.0.iter().for_each(|one| one.write(&mut writer));
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Endpoints> {
        let mut reader = Reader::open(Tag::Endpoint, bytes)?;
        let all = reader.list(Endpoint::read)?;
        reader.end(Endpoints(all))
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
    pub(crate) port: PortAddress,
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
        self.port.write(writer);
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
            port: PortAddress::read(reader)?,
        };
        if endpoint.queue_pair >> 24 != 0 || endpoint.sequence >> 24 != 0 {
            return Err("a queue pair's number or sequence has more than 24 bits".into());
        }
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
        let has_word = self.flush_word.is_some();
        let flags = [
            self.in_order,
            self.has_strict_keys,
            self.has_atomics,
            has_word,
        ];
        into.put(&flags.map(u8::from));
        if let Some(word) = self.flush_word {
            into.put(&word.addr.to_le_bytes());
            into.put(&word.rkey.to_le_bytes());
        }
    }

    fn read(from: &mut Reader<'_>) -> Read<TargetOrder> {
        let (in_order, has_strict_keys) = (from.flag()?, from.flag()?);
        let has_atomics = from.flag()?;
        let has_word = from.flag()?;
        let flush_word = has_word.then(|| {
            Ok::<_, String>(FlushWord {
                addr: from.u64()?,
                rkey: from.u32()?,
            })
        });
        let flush_word = flush_word.transpose()?;
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

/// The reply of the peer's domain to a lane's endpoint: one for each queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointReplies(pub(crate) Vec<EndpointReply>);

impl EndpointReplies {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::EndpointReply);
        writer.put(&[self.0.len() as u8]);
        self.0.iter().for_each(|one| one.write(&mut writer));
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<EndpointReplies> {
        let mut reader = Reader::open(Tag::EndpointReply, bytes)?;
        let all = reader.list(EndpointReply::read)?;
        reader.end(EndpointReplies(all))
    }
}

/// The reply to the endpoint of one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndpointReply {
    /// The nonce of the endpoint.
    pub(crate) nonce: u64,
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
        if reply.queue_pair >> 24 != 0 || reply.sequence >> 24 != 0 {
            return Err("a queue pair's number or sequence has more than 24 bits".into());
        }
        if !(1..=5).contains(&reply.mtu) || reply.reads == 0 {
            return Err("its MTU or its number of reads does not exist".into());
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests;
