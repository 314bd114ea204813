//! Imported regions of peers, and the addresses that operations name in them.

use std::sync::Arc;

use oxshmem_transport::{Error, Pe, RegionId, Remote, Result};

use crate::limits::NAME;
use crate::wire::{Key, RailKeys};

/// Region numbers end here, so that a table finds them by index.
pub(crate) const MOST_REGIONS: u32 = 4096;

/// A peer's region, as requests to one of its NICs name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Imported {
    base: u64,
    len: u64,
    relaxed_rkey: u32,
    strict_rkey: u32,
    on_gpu: bool,
}

/// An address in a peer's memory, within a registered region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteAddress {
    pub(crate) addr: u64,
    /// The rkey of the registration in which writes may pass each other, if there are two.
    pub(crate) relaxed_rkey: u32,
    /// The rkey of the registration in which they may not.
    pub(crate) strict_rkey: u32,
    /// Whether it is a GPU's memory.
    pub(crate) on_gpu: bool,
}

impl Imported {
    /// `relaxed`: whether this side lets its writes pass each other. A target that allows it does not
    /// force it: with the strict rkey for all writes, none passes another.
    pub(crate) fn new(key: &Key, keys: RailKeys, relaxed: bool) -> Imported {
        Imported {
            base: key.base,
            len: key.len,
            relaxed_rkey: if relaxed { keys.relaxed } else { keys.strict },
            strict_rkey: keys.strict,
            on_gpu: key.gpu,
        }
    }

    /// The region for each NIC of its PE; none for those where it is not registered.
    pub(crate) fn by_rail(key: &Key, relaxed: bool) -> Vec<Option<Imported>> {
        let all = key.rails.iter();
        all.map(|keys| keys.map(|keys| Imported::new(key, keys, relaxed)))
            .collect()
    }

    /// The rkey that stands for another's of the same region, at another NIC.
    pub(crate) fn rkey_like(&self, other: &Imported, rkey: u32) -> u32 {
        match rkey == other.strict_rkey {
            true => self.strict_rkey,
            false => self.relaxed_rkey,
        }
    }

    /// Whether an rkey is of this region.
    pub(crate) fn has_rkey(&self, rkey: u32) -> bool {
        rkey == self.strict_rkey || rkey == self.relaxed_rkey
    }

    /// Whether it is GPU memory.
    pub(crate) fn is_on_gpu(&self) -> bool {
        self.on_gpu
    }

    /// The address of its first byte, if it has one.
    pub(crate) fn first(&self) -> Option<RemoteAddress> {
        (self.len > 0).then_some(RemoteAddress {
            addr: self.base,
            relaxed_rkey: self.relaxed_rkey,
            strict_rkey: self.strict_rkey,
            on_gpu: self.on_gpu,
        })
    }
}

/// The imported regions of one PE, by number.
pub(crate) type Regions = Arc<[Option<Imported>]>;

/// An error on the path of operations. It is boxed, so that a successful result is small.
pub(crate) type BoxedError = Box<Error>;

/// The address of `len` bytes in a region of `pe`.
#[inline]
pub(crate) fn find(
    regions: &[Option<Imported>],
    pe: Pe,
    at: Remote,
    len: u64,
) -> Result<RemoteAddress, BoxedError> {
    let Some(Some(region)) = regions.get(at.region.0 as usize) else {
        return Err(unknown(pe, at.region));
    };
    at.check(NAME, "a transfer", (len, 1), region.len)
        .map_err(boxed)?;
    Ok(RemoteAddress {
        addr: region.base + at.offset,
        relaxed_rkey: region.relaxed_rkey,
        strict_rkey: region.strict_rkey,
        on_gpu: region.on_gpu,
    })
}

/// The address of an aligned word of 8 bytes in a region of `pe`.
#[inline]
pub(crate) fn find_word(
    regions: &[Option<Imported>],
    pe: Pe,
    at: Remote,
    what: &'static str,
) -> Result<RemoteAddress, BoxedError> {
    find_aligned(regions, pe, at, 8, what)
}

/// The address of a few bytes in a region of `pe`, at a multiple of their number.
#[inline]
pub(crate) fn find_aligned(
    regions: &[Option<Imported>],
    pe: Pe,
    at: Remote,
    bytes: u64,
    what: &'static str,
) -> Result<RemoteAddress, BoxedError> {
    if !at.offset.is_multiple_of(bytes) {
        return Err(misaligned(what, at.offset, bytes));
    }
    let found = find(regions, pe, at, bytes)?;
    if found.addr.is_multiple_of(bytes) {
        Ok(found)
    } else {
        Err(misaligned(what, at.offset, bytes))
    }
}

#[cold]
pub(crate) fn boxed(error: Error) -> BoxedError {
    Box::new(error)
}

#[cold]
fn unknown(pe: Pe, region: RegionId) -> BoxedError {
    Box::new(Error::UnknownRegion {
        transport: NAME,
        region: region.0,
        pe,
    })
}

#[cold]
fn misaligned(what: &'static str, offset: u64, align: u64) -> BoxedError {
    Box::new(Error::Misaligned {
        transport: NAME,
        what,
        offset,
        align,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: RailKeys = RailKeys {
        relaxed: 5,
        strict: 6,
    };

    fn key(base: u64, len: u64) -> Key {
        Key {
            pe: 1,
            region: 3,
            base,
            len,
            rails: vec![Some(KEYS)],
            gpu: false,
        }
    }

    fn region(base: u64, len: u64) -> Imported {
        Imported::new(&key(base, len), KEYS, true)
    }

    fn at(region: u32, offset: u64) -> Remote {
        Remote {
            region: RegionId(region),
            offset,
        }
    }

    #[test]
    fn a_range_is_found_to_its_last_byte_and_not_beyond() {
        let regions = &[None, None, None, Some(region(0x1000, 64))];
        assert_eq!(find(regions, Pe(1), at(3, 56), 8).unwrap().addr, 0x1038);
        assert!(find(regions, Pe(1), at(3, 64), 0).is_ok());
        for (offset, len) in [(57, 8), (65, 0), (u64::MAX, 8)] {
            let error = find(regions, Pe(1), at(3, offset), len).unwrap_err();
            assert!(
                matches!(*error, Error::OutOfRange { region: 64, .. }),
                "{error}"
            );
        }
        for unknown in [2, 4, u32::MAX] {
            let error = find(regions, Pe(1), at(unknown, 0), 8).unwrap_err();
            assert!(matches!(*error, Error::UnknownRegion { .. }), "{error}");
        }
    }

    #[test]
    fn a_side_that_promises_order_uses_the_strict_key_of_a_target_that_relaxes_it() {
        let keys = |relaxed| {
            let first = Imported::new(&key(0x1000, 64), KEYS, relaxed)
                .first()
                .unwrap();
            (first.relaxed_rkey, first.strict_rkey)
        };
        assert_eq!(keys(false), (6, 6));
        assert_eq!(keys(true), (5, 6));
    }

    #[test]
    fn words_are_aligned_in_their_region_and_in_memory() {
        let even = [Some(region(0x1000, 64))];
        assert!(find_word(&even, Pe(1), at(0, 8), "a word").is_ok());
        let error = find_word(&even, Pe(1), at(0, 4), "a word").unwrap_err();
        assert!(
            matches!(*error, Error::Misaligned { offset: 4, .. }),
            "{error}"
        );
        let odd = [Some(region(0x1004, 64))];
        assert!(find_word(&odd, Pe(1), at(0, 8), "a word").is_err());
        // An answer's two words must not lie in two lines.
        assert!(find_aligned(&even, Pe(1), at(0, 16), 16, "an answer").is_ok());
        let error = find_aligned(&even, Pe(1), at(0, 8), 16, "an answer").unwrap_err();
        assert!(
            matches!(*error, Error::Misaligned { align: 16, .. }),
            "{error}"
        );
    }
}
