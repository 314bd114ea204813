//! The frame of the byte formats: tag, version and checksum, and the fields that all have.

use crate::ibv::{Ece, Gid};
use crate::limits::MOST_RAILS;

/// Raised whenever a field changes.
pub(super) const VERSION: u16 = 9;

/// The longest text, in bytes.
pub(super) const MAX_TEXT: usize = 1000;

/// The longest list of identifiers.
pub(crate) const MOST_GIDS: usize = 8;

/// The most queue pairs of one connection, with those of which only one is connected.
pub(crate) const MOST_QUEUES: usize = 64 + MOST_RAILS;

pub(super) const HEAD: usize = 6;
pub(super) const SUM: usize = 8;

/// The kind of some bytes, as they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Address,
    Key,
    Endpoint,
    EndpointReply,
}

impl Tag {
    pub(super) fn bytes(self) -> [u8; 4] {
        match self {
            Tag::Address => *b"OXva",
            Tag::Key => *b"OXvk",
            Tag::Endpoint => *b"OXve",
            Tag::EndpointReply => *b"OXvc",
        }
    }
}

/// FNV-1a.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
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

pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(tag: Tag) -> Writer {
        let mut writer = Writer(tag.bytes().to_vec());
        writer.put(&VERSION.to_le_bytes());
        writer
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A list, behind the number of its entries.
    pub(super) fn list<T>(&mut self, list: &[T], write: impl Fn(&mut Self, &T)) {
        self.put(&[list.len() as u8]);
        list.iter().for_each(|one| write(self, one));
    }

    /// One thing, or none.
    pub(super) fn option<T>(&mut self, one: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.put(&[u8::from(one.is_some())]);
        if let Some(one) = one {
            write(self, one);
        }
    }

    pub(super) fn gids(&mut self, gids: &[Gid]) {
        let gids = &gids[..gids.len().min(MOST_GIDS)];
        self.list(gids, |writer, gid| writer.put(&gid.0));
    }

    /// All zero if there are none.
    pub(super) fn ece(&mut self, ece: Option<Ece>) {
        let ece = ece.unwrap_or_default();
        for word in [ece.vendor, ece.options, ece.comp_mask] {
            self.put(&word.to_le_bytes());
        }
    }

    /// Cuts a text that is too long.
    pub(super) fn text(&mut self, text: &str) {
        let ends = (0..=MAX_TEXT.min(text.len())).rev();
        let text = ends.filter_map(|end| text.get(..end)).next().unwrap_or("");
        self.put(&(text.len() as u16).to_le_bytes());
        self.put(text.as_bytes());
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let sum = checksum(&self.0);
        self.put(&sum.to_le_bytes());
        self.0
    }
}

/// Why bytes are not what they should be, in text.
pub(super) type Read<T> = Result<T, String>;

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn open(tag: Tag, bytes: &'a [u8]) -> Read<Reader<'a>> {
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

    pub(super) fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk().ok_or("it is cut short")?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Read<u8> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Read<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Read<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Read<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn gids(&mut self) -> Read<Vec<Gid>> {
        let count = usize::from(self.u8()?);
        if count > MOST_GIDS {
            return Err(format!(
                "it lists {count} identifiers, more than {MOST_GIDS}"
            ));
        }
        (0..count).map(|_| self.take().map(Gid)).collect()
    }

    pub(super) fn flag(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is neither yes nor no")),
        }
    }

    pub(super) fn ece(&mut self) -> Read<Option<Ece>> {
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

    pub(super) fn text(&mut self) -> Read<String> {
        let len = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(len).ok_or("it is cut short")?;
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| "its words are not UTF-8")?;
        Ok(text.to_owned())
    }

    /// A list of some `entries`, one at least.
    pub(super) fn list<T>(
        &mut self,
        entries: &str,
        most: usize,
        read: impl Fn(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let count = usize::from(self.u8()?);
        if !(1..=most).contains(&count) {
            return Err(format!("it is of {count} {entries}, not of 1 to {most}"));
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// One thing, or none.
    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        match self.flag()? {
            true => read(self).map(Some),
            false => Ok(None),
        }
    }

    /// The number of one of a PE's NICs.
    pub(super) fn rail(&mut self) -> Read<u8> {
        match self.u8()? {
            rail if usize::from(rail) < MOST_RAILS => Ok(rail),
            rail => Err(format!("there is no NIC {rail}")),
        }
    }

    pub(super) fn end<T>(self, whole: T) -> Read<T> {
        match self.0.len() {
            0 => Ok(whole),
            left => Err(format!("{left} bytes follow its end")),
        }
    }
}
