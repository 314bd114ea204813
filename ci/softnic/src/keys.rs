//! Registered memory: the keys, and the checks of every access by one.

use std::collections::HashMap;

use crate::abi::sys::{ibv_access_flags as flags, ibv_sge};
use crate::bytes;

/// A registration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) card: u32,
    pub(crate) domain: u32,
    /// The first address by which peers name it, and that at which it lies.
    pub(crate) iova: u64,
    pub(crate) addr: usize,
    pub(crate) len: u64,
    pub(crate) access: u32,
    pub(crate) relaxed: bool,
    pub(crate) gpu: bool,
}

/// Memory that may be accessed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) addr: usize,
    pub(crate) relaxed: bool,
    pub(crate) gpu: bool,
}

/// An access that a key does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied;

/// The owner of keys: a device context, and the protection domain of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) card: u32,
    pub(crate) domain: u32,
}

/// All registrations of the process, by their local keys.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    regions: HashMap<u32, Region>,
    last: u32,
}

/// The difference of a remote key from the local one: to take one for the other is an error.
const REMOTE: u32 = 0x5a;

impl Keys {
    /// Adds a registration; its local and its remote key.
    pub(crate) fn add(&mut self, region: Region) -> (u32, u32) {
        self.last = self.last.wrapping_add(1) & 0x00ff_ffff;
        // As on NICs: the low byte changes when a number comes back.
        let key = (self.last << 8) | 0x11;
        self.regions.insert(key, region);
        (key, key ^ REMOTE)
    }

    pub(crate) fn remove(&mut self, local: u32) -> Option<Region> {
        self.regions.remove(&local)
    }

    pub(crate) fn of_card(&self, card: u32) -> usize {
        self.regions
            .values()
            .filter(|region| region.card == card)
            .count()
    }

    pub(crate) fn in_domain(&self, owner: Owner) -> bool {
        self.regions
            .values()
            .any(|region| (region.card, region.domain) == (owner.card, owner.domain))
    }

    fn range(
        &self,
        owner: Owner,
        key: u32,
        addr: u64,
        len: u64,
        needed: u32,
    ) -> Result<Range, Denied> {
        let region = self.regions.get(&key).ok_or(Denied)?;
        let offset = addr.checked_sub(region.iova).ok_or(Denied)?;
        let inside = offset.checked_add(len).is_some_and(|end| end <= region.len);
        let owned = (region.card, region.domain) == (owner.card, owner.domain);
        if !owned || !inside || region.access & needed != needed {
            return Err(Denied);
        }
        Ok(Range {
            addr: region.addr + offset as usize,
            relaxed: region.relaxed,
            gpu: region.gpu,
        })
    }

    /// A local buffer.
    pub(crate) fn own(&self, owner: Owner, buffer: &ibv_sge, needed: u32) -> Result<Range, Denied> {
        self.range(
            owner,
            buffer.lkey,
            buffer.addr,
            buffer.length.into(),
            needed,
        )
    }

    /// Memory that a peer names.
    pub(crate) fn remote(
        &self,
        owner: Owner,
        key: u32,
        addr: u64,
        len: u64,
        needed: flags,
    ) -> Result<Range, Denied> {
        self.range(owner, key ^ REMOTE, addr, len, needed.0)
    }

    /// Appends part of a message to `into`, from its local buffers.
    pub(crate) fn gather(
        &self,
        owner: Owner,
        buffers: &[ibv_sge],
        part: std::ops::Range<u64>,
        into: &mut Vec<u8>,
    ) -> Result<(), Denied> {
        self.local(owner, buffers, part, 0, |range, _, len| {
            // SAFETY: inside a registration, whose memory stays as long as it is registered.
            unsafe { bytes::gather(std::ptr::with_exposed_provenance(range.addr), len, into) };
        })
    }

    /// Writes part of a message to its local buffers. Gives the pieces that are for GPU memory: they come late.
    pub(crate) fn scatter(
        &self,
        owner: Owner,
        buffers: &[ibv_sge],
        offset: u64,
        data: &[u8],
    ) -> Result<Vec<(Range, Vec<u8>)>, Denied> {
        let mut late = Vec::new();
        let part = offset..offset + data.len() as u64;
        self.local(
            owner,
            buffers,
            part,
            flags::IBV_ACCESS_LOCAL_WRITE.0,
            |range, at, len| {
                let piece = &data[at..at + len];
                if range.gpu {
                    return late.push((range, piece.to_vec()));
                }
                // SAFETY: as for `gather`.
                unsafe { bytes::place(std::ptr::with_exposed_provenance_mut(range.addr), piece) };
            },
        )?;
        Ok(late)
    }

    /// Calls `with` with memory, offset in the part and length, for each piece of a part of a message.
    fn local(
        &self,
        owner: Owner,
        buffers: &[ibv_sge],
        part: std::ops::Range<u64>,
        needed: u32,
        mut with: impl FnMut(Range, usize, usize),
    ) -> Result<(), Denied> {
        let mut start = 0;
        for buffer in buffers {
            let end = start + u64::from(buffer.length);
            let (from, to) = (part.start.max(start), part.end.min(end));
            if from < to {
                let addr = buffer.addr + (from - start);
                let range = self.range(owner, buffer.lkey, addr, to - from, needed)?;
                with(range, (from - part.start) as usize, (to - from) as usize);
            }
            start = end;
        }
        if start < part.end {
            Err(Denied)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { card: 1, domain: 2 };

    fn region(memory: &mut [u8], access: flags) -> Region {
        Region {
            card: 1,
            domain: 2,
            iova: 4096,
            addr: memory.as_mut_ptr().expose_provenance(),
            len: memory.len() as u64,
            access: access.0,
            relaxed: false,
            gpu: false,
        }
    }

    #[test]
    fn a_key_gives_its_own_bytes_its_own_accesses_and_its_own_domain_only() {
        let mut memory = [0; 64];
        let mut keys = Keys::default();
        let (local, remote) = keys.add(region(&mut memory, flags::IBV_ACCESS_REMOTE_WRITE));
        let write = flags::IBV_ACCESS_REMOTE_WRITE;
        assert!(keys.remote(OWNER, remote, 4096, 64, write).is_ok());
        for (key, addr, len, needed) in [
            (local, 4096, 8, write),
            (remote, 4095, 8, write),
            (remote, 4096, 65, write),
            (remote, u64::MAX, 8, write),
            (remote, 4096, 8, flags::IBV_ACCESS_REMOTE_READ),
        ] {
            assert!(keys.remote(OWNER, key, addr, len, needed).is_err());
        }
        let other = Owner { domain: 3, ..OWNER };
        assert!(keys.remote(other, remote, 4096, 8, write).is_err());
        keys.remove(local);
        assert!(keys.remote(OWNER, remote, 4096, 8, write).is_err());
    }

    #[test]
    fn a_message_of_several_buffers_is_one_sequence_of_bytes() {
        let mut memory: Vec<u8> = (0..64).collect();
        let mut keys = Keys::default();
        let (lkey, _) = keys.add(region(&mut memory, flags::IBV_ACCESS_LOCAL_WRITE));
        let part = |addr, length| ibv_sge { addr, length, lkey };
        let buffers = [part(4096, 3), part(4100, 0), part(4106, 5)];
        let mut got = Vec::new();
        keys.gather(OWNER, &buffers, 1..7, &mut got).unwrap();
        assert_eq!(got, [1, 2, 10, 11, 12, 13]);
        assert!(keys.gather(OWNER, &buffers, 1..9, &mut got).is_err());
        keys.scatter(OWNER, &buffers, 2, &[90, 91]).unwrap();
        assert_eq!((memory[2], memory[10], memory[11]), (90, 91, 11));
    }
}
