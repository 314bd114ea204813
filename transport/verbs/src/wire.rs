//! What travels to peers as bytes: addresses, keys, endpoints and their answers.
//!
//! Each is a tag, this format's version, its fields in little-endian order, and a checksum over all
//! of it: what was cut, lengthened, mixed up or damaged is told apart from what another version of
//! oxshmem made. The checksum is against accidents, not against an enemy.

use crate::ibv::Gid;

/// Raised whenever a field changes.
pub(crate) const VERSION: u16 = 3;

/// The most bytes of words that travel.
const MOST_WORDS: usize = 1000;

/// The longest list of identifiers that travels.
pub(crate) const MOST_GIDS: usize = 8;

const HEAD: usize = 6;
const SUM: usize = 8;

/// What some bytes say they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Address,
    Key,
    Endpoint,
    Answer,
}

impl Tag {
    fn bytes(self) -> [u8; 4] {
        match self {
            Tag::Address => *b"OXva",
            Tag::Key => *b"OXvk",
            Tag::Endpoint => *b"OXve",
            Tag::Answer => *b"OXvc",
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
    [Tag::Address, Tag::Key, Tag::Endpoint, Tag::Answer].map(|tag| {
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

    /// Cut where they are too many.
    fn words(&mut self, words: &str) {
        let words = &words[..words.floor_char_boundary(MOST_WORDS)];
        self.put(&(words.len() as u16).to_le_bytes());
        self.put(words.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0);
        self.put(&sum.to_le_bytes());
        self.0
    }
}

/// Why bytes are not what they should be, in words.
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

    fn words(&mut self) -> Read<String> {
        let len = usize::from(self.u16()?);
        let (words, rest) = self.0.split_at_checked(len).ok_or("it is cut short")?;
        self.0 = rest;
        let words = str::from_utf8(words).map_err(|_| "its words are not UTF-8")?;
        Ok(words.to_owned())
    }

    fn end<T>(self, whole: T) -> Read<T> {
        match self.0.len() {
            0 => Ok(whole),
            left => Err(format!("{left} bytes follow its end")),
        }
    }
}

/// Where a port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
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

impl Place {
    fn write(&self, into: &mut Writer) {
        into.put(&[u8::from(self.ethernet), self.mtu]);
        into.put(&self.lid.to_le_bytes());
        into.put(&self.partition.to_le_bytes());
        into.gids(&self.gids);
    }

    fn read(from: &mut Reader<'_>) -> Read<Place> {
        let ethernet = from.flag().map_err(|why| format!("link layer: {why}"))?;
        let mtu = from.u8()?;
        if !(1..=5).contains(&mtu) {
            return Err(format!("there is no MTU {mtu}"));
        }
        Ok(Place {
            ethernet,
            mtu,
            lid: from.u16()?,
            partition: from.u16()?,
            gids: from.gids()?,
        })
    }
}

/// What a PE's NIC does with its GPU's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GpuSide {
    /// It was given no GPU.
    None,
    /// It reaches it. `flush`: what it has written there needs a flush until that GPU sees it (M27).
    Carried { flush: bool },
    /// It does not reach it: why.
    Refused(String),
}

impl GpuSide {
    fn write(&self, into: &mut Writer) {
        match self {
            GpuSide::None => into.put(&[0]),
            GpuSide::Carried { flush } => into.put(&[1, u8::from(*flush)]),
            GpuSide::Refused(why) => {
                into.put(&[2]);
                into.words(why);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Read<GpuSide> {
        match from.u8()? {
            0 => Ok(GpuSide::None),
            1 => from.flag().map(|flush| GpuSide::Carried { flush }),
            2 => from.words().map(GpuSide::Refused),
            other => Err(format!("what it says of its GPU begins with {other}")),
        }
    }
}

/// A domain's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) pe: u32,
    pub(crate) place: Place,
    pub(crate) gpu: GpuSide,
}

impl Address {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Address);
        writer.put(&self.pe.to_le_bytes());
        self.place.write(&mut writer);
        self.gpu.write(&mut writer);
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Address> {
        let mut reader = Reader::open(Tag::Address, bytes)?;
        let pe = reader.u32()?;
        let place = Place::read(&mut reader)?;
        let gpu = GpuSide::read(&mut reader)?;
        reader.end(Address { pe, place, gpu })
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
    /// And of that in which they may not.
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

/// A lane's end towards a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Tells ends apart whose queue pair has the same number, one after the other.
    pub(crate) nonce: u64,
    pub(crate) queue_pair: u32,
    pub(crate) sequence: u32,
    /// Reads and atomics that it would start at once.
    pub(crate) reads: u8,
    pub(crate) place: Place,
}

impl Endpoint {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Endpoint);
        writer.put(&self.from.to_le_bytes());
        writer.put(&self.to.to_le_bytes());
        writer.put(&self.nonce.to_le_bytes());
        writer.put(&self.queue_pair.to_le_bytes());
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&[self.reads]);
        self.place.write(&mut writer);
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Endpoint> {
        let mut reader = Reader::open(Tag::Endpoint, bytes)?;
        let endpoint = Endpoint {
            from: reader.u32()?,
            to: reader.u32()?,
            nonce: reader.u64()?,
            queue_pair: reader.u32()?,
            sequence: reader.u32()?,
            reads: reader.u8()?,
            place: Place::read(&mut reader)?,
        };
        if endpoint.queue_pair >> 24 != 0 || endpoint.sequence >> 24 != 0 {
            return Err("a queue pair's number or sequence has more than 24 bits".into());
        }
        reader.end(endpoint)
    }
}

/// What the domain at the other side answers to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Of the endpoint answered.
    pub(crate) nonce: u64,
    pub(crate) queue_pair: u32,
    pub(crate) sequence: u32,
    /// Reads and atomics that may be outstanding.
    pub(crate) reads: u8,
    /// As `ibv_mtu` numbers it.
    pub(crate) mtu: u8,
    pub(crate) lid: u16,
    /// Identifier of the endpoint, and of the one who answers, that packets carry; none without a
    /// global route.
    pub(crate) route: Option<(Gid, Gid)>,
}

impl Answer {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Answer);
        writer.put(&self.nonce.to_le_bytes());
        writer.put(&self.queue_pair.to_le_bytes());
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&[self.reads, self.mtu]);
        writer.put(&self.lid.to_le_bytes());
        match self.route {
            None => writer.gids(&[]),
            Some((theirs, ours)) => writer.gids(&[theirs, ours]),
        }
        writer.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Read<Answer> {
        let mut reader = Reader::open(Tag::Answer, bytes)?;
        let answer = Answer {
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
        };
        if answer.queue_pair >> 24 != 0 || answer.sequence >> 24 != 0 {
            return Err("a queue pair's number or sequence has more than 24 bits".into());
        }
        if !(1..=5).contains(&answer.mtu) || answer.reads == 0 {
            return Err("its MTU or its number of reads does not exist".into());
        }
        reader.end(answer)
    }
}

#[cfg(test)]
mod tests;
