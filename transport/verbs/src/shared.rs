//! What a domain, its lanes and its inbox share: which regions were imported, who is lost, whether
//! all is closed.

use std::sync::Arc;

use oxshmem_transport::{Error, Job, Pe, Published, RegionId, Remote, Result};

use crate::NAME;

/// Region numbers end here, so that a table finds them by index.
pub(crate) const MOST_REGIONS: u32 = 4096;

/// A peer's region, as requests name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Imported {
    base: u64,
    len: u64,
    relaxed: u32,
    strict: u32,
    gpu: bool,
}

/// A place in a peer's memory, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Far {
    pub(crate) addr: u64,
    pub(crate) relaxed: u32,
    pub(crate) strict: u32,
    /// Whether it is a GPU's.
    pub(crate) gpu: bool,
}

impl Imported {
    /// `relaxed`: whether this side lets its writes pass each other. That the target allows it binds
    /// nobody: with its strict key for everything, no write passes another.
    pub(crate) fn new(key: crate::wire::Key, relaxed: bool) -> Imported {
        Imported {
            base: key.base,
            len: key.len,
            relaxed: if relaxed { key.relaxed } else { key.strict },
            strict: key.strict,
            gpu: key.gpu,
        }
    }

    /// Its first byte, if it has one.
    pub(crate) fn first(&self) -> Option<Far> {
        (self.len > 0).then_some(Far {
            addr: self.base,
            relaxed: self.relaxed,
            strict: self.strict,
            gpu: self.gpu,
        })
    }
}

/// One PE's regions as imported, by number.
pub(crate) type Regions = Arc<[Option<Imported>]>;

/// An error on the path of operations: boxed, so that what all goes well returns is small.
pub(crate) type Fault = Box<Error>;

/// `len` bytes of a region of `pe`.
#[inline]
pub(crate) fn find(
    regions: &[Option<Imported>],
    pe: Pe,
    at: Remote,
    len: u64,
) -> Result<Far, Fault> {
    let Some(Some(region)) = regions.get(at.region.0 as usize) else {
        return Err(unknown(pe, at.region));
    };
    at.check(NAME, "a transfer", (len, 1), region.len)
        .map_err(fault)?;
    Ok(Far {
        addr: region.base + at.offset,
        relaxed: region.relaxed,
        strict: region.strict,
        gpu: region.gpu,
    })
}

/// A word of 8 bytes of a region of `pe`.
#[inline]
pub(crate) fn find_word(
    regions: &[Option<Imported>],
    pe: Pe,
    at: Remote,
    what: &'static str,
) -> Result<Far, Fault> {
    if !at.offset.is_multiple_of(8) {
        return Err(misaligned(what, at.offset));
    }
    let far = find(regions, pe, at, 8)?;
    match far.addr % 8 {
        0 => Ok(far),
        _ => Err(misaligned(what, at.offset)),
    }
}

#[cold]
pub(crate) fn fault(error: Error) -> Fault {
    Box::new(error)
}

#[cold]
fn unknown(pe: Pe, region: RegionId) -> Fault {
    Box::new(Error::UnknownRegion {
        transport: NAME,
        region: region.0,
        pe,
    })
}

#[cold]
fn misaligned(what: &'static str, offset: u64) -> Fault {
    Box::new(Error::Misaligned {
        transport: NAME,
        what,
        offset,
        align: 8,
    })
}

/// What changes.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) closed: bool,
    /// Why the device does no more, if so.
    pub(crate) failed: Option<Arc<str>>,
    /// By PE.
    pub(crate) lost: Vec<bool>,
    /// By PE.
    pub(crate) imported: Vec<Regions>,
}

impl State {
    fn new(size: u32) -> State {
        State {
            closed: false,
            failed: None,
            lost: vec![false; size as usize],
            imported: vec![Regions::from(Vec::new()); size as usize],
        }
    }

    /// Whether `pe` can be talked to.
    pub(crate) fn check(&self, pe: Pe) -> Result<()> {
        if self.closed {
            return Err(Error::Closed { transport: NAME });
        }
        match self.lost.get(pe.index()) {
            Some(false) => match &self.failed {
                None => Ok(()),
                Some(why) => Err(Error::Connection {
                    transport: NAME,
                    pe,
                    why: why.to_string(),
                }),
            },
            Some(true) => Err(Error::PeerLost {
                transport: NAME,
                pe,
            }),
            None => Err(Error::Unreachable {
                transport: NAME,
                pe,
                why: format!("the job has {} PEs", self.lost.len()),
            }),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) job: Job,
    state: Published<State>,
}

impl Shared {
    pub(crate) fn new(job: Job) -> Shared {
        Shared {
            state: Published::new(State::new(job.size)),
            job,
        }
    }

    /// How often the state has changed.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.state.generation()
    }

    /// The state, and its number.
    pub(crate) fn copy(&self) -> (u64, State) {
        self.state.copy()
    }

    pub(crate) fn check(&self, pe: Pe) -> Result<()> {
        self.state.read(|state| state.check(pe))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.read(|state| state.closed)
    }

    /// Makes a region known to all lanes. Its number is below [`MOST_REGIONS`], its PE in the job.
    pub(crate) fn import(&self, pe: Pe, region: RegionId, imported: Imported) {
        self.state.change(|state| {
            if let Some(regions) = state.imported.get_mut(pe.index()) {
                let mut table = regions.to_vec();
                let at = region.0 as usize;
                table.resize(table.len().max(at + 1), None);
                if let Some(entry) = table.get_mut(at) {
                    *entry = Some(imported);
                }
                *regions = table.into();
            }
        });
    }

    pub(crate) fn lose(&self, pe: Pe) {
        self.state.change(|state| {
            if let Some(lost) = state.lost.get_mut(pe.index()) {
                *lost = true;
            }
        });
    }

    /// The device does no more. The first reason counts.
    pub(crate) fn fail(&self, why: &str) {
        self.state.change(|state| {
            state.failed.get_or_insert_with(|| why.into());
        });
    }

    pub(crate) fn close(&self) {
        self.state.change(|state| state.closed = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Key;
    use oxshmem_transport::HostId;

    fn shared() -> Shared {
        Shared::new(Job {
            me: Pe(0),
            size: 2,
            host: HostId("here".into()),
        })
    }

    fn key(base: u64, len: u64) -> Key {
        Key {
            pe: 1,
            region: 3,
            base,
            len,
            relaxed: 5,
            strict: 6,
            gpu: false,
        }
    }

    fn region(base: u64, len: u64) -> Imported {
        Imported::new(key(base, len), true)
    }

    fn at(region: u32, offset: u64) -> Remote {
        Remote {
            region: RegionId(region),
            offset,
        }
    }

    #[test]
    fn a_range_is_found_to_its_last_byte_and_not_beyond() {
        let shared = shared();
        let before = shared.generation();
        shared.import(Pe(1), RegionId(3), region(0x1000, 64));
        assert_ne!(shared.generation(), before);
        let (_, state) = shared.copy();
        let regions = &state.imported[1];
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
            let far = Imported::new(key(0x1000, 64), relaxed).first().unwrap();
            (far.relaxed, far.strict)
        };
        assert_eq!(keys(false), (6, 6));
        assert_eq!(keys(true), (5, 6));
    }

    #[test]
    fn a_region_imported_again_has_the_newer_key() {
        let shared = shared();
        shared.import(Pe(1), RegionId(3), region(0x1000, 64));
        let before = shared.generation();
        shared.import(Pe(1), RegionId(3), region(0x8000, 128));
        assert_ne!(shared.generation(), before, "lanes must look again");
        let (_, state) = shared.copy();
        let found = find(&state.imported[1], Pe(1), at(3, 120), 8).unwrap();
        assert_eq!(found.addr, 0x8078);
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
    }

    #[test]
    fn a_device_that_failed_is_told_towards_all_that_are_not_lost() {
        let shared = shared();
        shared.lose(Pe(0));
        let before = shared.generation();
        shared.fail("IBV_EVENT_DEVICE_FATAL on mlx5_0:1");
        shared.fail("IBV_EVENT_CQ_ERR on mlx5_0:1");
        assert_ne!(shared.generation(), before, "lanes must look again");
        assert!(matches!(shared.check(Pe(0)), Err(Error::PeerLost { .. })));
        let error = shared.check(Pe(1)).unwrap_err();
        assert!(matches!(error, Error::Connection { pe: Pe(1), .. }));
        assert!(error.to_string().contains("DEVICE_FATAL on mlx5_0:1"));
    }

    #[test]
    fn closed_comes_before_unreachable_and_lost() {
        let shared = shared();
        assert!(matches!(
            shared.check(Pe(2)),
            Err(Error::Unreachable { .. })
        ));
        shared.lose(Pe(1));
        shared.lose(Pe(u32::MAX));
        assert!(matches!(
            shared.check(Pe(1)),
            Err(Error::PeerLost { pe: Pe(1), .. })
        ));
        assert!(shared.check(Pe(0)).is_ok());
        shared.close();
        assert!(matches!(shared.check(Pe(1)), Err(Error::Closed { .. })));
    }
}
