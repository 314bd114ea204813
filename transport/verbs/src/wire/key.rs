//! Keys of regions.

use super::format::{Read, Reader, Tag, Writer};
use crate::limits::MOST_RAILS;

/// The keys of a region at one NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RailKeys {
    /// The key of the registration in which writes may pass each other, if there are two.
    pub(crate) relaxed: u32,
    /// The key of the registration in which they may not.
    pub(crate) strict: u32,
}

/// A region's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) pe: u32,
    pub(crate) region: u32,
    pub(crate) base: u64,
    pub(crate) len: u64,
    /// By NIC; none where it is not registered. The first NIC has it.
    pub(crate) rails: Vec<Option<RailKeys>>,
    /// Whether it is a GPU's memory.
    pub(crate) gpu: bool,
}

impl RailKeys {
    fn write(self, into: &mut Writer) {
        into.put(&self.relaxed.to_le_bytes());
        into.put(&self.strict.to_le_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Read<RailKeys> {
        Ok(RailKeys {
            relaxed: from.u32()?,
            strict: from.u32()?,
        })
    }
}

impl Key {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Tag::Key);
        writer.put(&self.pe.to_le_bytes());
        writer.put(&self.region.to_le_bytes());
        writer.put(&self.base.to_le_bytes());
        writer.put(&self.len.to_le_bytes());
        writer.list(&self.rails, |writer, keys| {
            writer.option(keys.as_ref(), |writer, keys| keys.write(writer));
        });
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
            rails: reader.list("NICs", MOST_RAILS, |reader| reader.option(RailKeys::read))?,
            gpu: reader.flag()?,
        };
        if key.rails.first().is_none_or(Option::is_none) {
            return Err("its first NIC has no keys".into());
        }
        if key.base.checked_add(key.len).is_none() {
            return Err("its range leaves the address space".into());
        }
        reader.end(key)
    }
}
