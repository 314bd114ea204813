//! The state that a domain shares with its lanes and its inbox: the imported regions, the lost PEs,
//! whether it is closed or its device has failed.

use std::sync::Arc;

use oxshmem_transport::{Error, Job, Pe, Published, RegionId, Result};

use crate::limits::NAME;
use crate::remote_region::{Imported, Regions};

/// The part of a domain's state that changes: closed, failed, lost PEs, imported regions.
#[derive(Clone, Debug)]
pub(crate) struct DomainState {
    pub(crate) closed: bool,
    /// The reason why the device failed, if it did.
    pub(crate) failed: Option<Arc<str>>,
    /// By PE.
    pub(crate) lost: Vec<bool>,
    /// By PE.
    pub(crate) imported: Vec<Regions>,
}

impl DomainState {
    fn new(size: u32) -> DomainState {
        DomainState {
            closed: false,
            failed: None,
            lost: vec![false; size as usize],
            imported: vec![Regions::from(Vec::new()); size as usize],
        }
    }

    /// Checks that `pe` can be reached: nothing is closed or failed, and it is not lost.
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

/// The domain's state, of which its lanes and its inbox work on copies.
#[derive(Debug)]
pub(crate) struct PublishedState {
    pub(crate) job: Job,
    state: Published<DomainState>,
}

impl PublishedState {
    pub(crate) fn new(job: Job) -> PublishedState {
        PublishedState {
            state: Published::new(DomainState::new(job.size)),
            job,
        }
    }

    /// The number of changes so far.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.state.generation()
    }

    /// A copy of the state, and its generation.
    pub(crate) fn copy(&self) -> (u64, DomainState) {
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

    /// Marks a PE as lost.
    pub(crate) fn lose(&self, pe: Pe) {
        self.state.change(|state| {
            if let Some(lost) = state.lost.get_mut(pe.index()) {
                *lost = true;
            }
        });
    }

    /// Marks the device as failed. The first reason counts.
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
    use oxshmem_transport::{HostId, Remote};

    use super::*;
    use crate::remote_region::find;
    use crate::wire::Key;

    fn published() -> PublishedState {
        PublishedState::new(Job {
            me: Pe(0),
            size: 2,
            host: HostId("here".into()),
        })
    }

    fn region(base: u64, len: u64) -> Imported {
        let (relaxed, strict) = (5, 6);
        let key = Key {
            pe: 1,
            region: 3,
            base,
            len,
            relaxed,
            strict,
            gpu: false,
        };
        Imported::new(key, true)
    }

    #[test]
    fn a_region_imported_again_has_the_newer_key() {
        let published = published();
        let before = published.generation();
        published.import(Pe(1), RegionId(3), region(0x1000, 64));
        assert_ne!(published.generation(), before);
        let before = published.generation();
        published.import(Pe(1), RegionId(3), region(0x8000, 128));
        assert_ne!(published.generation(), before, "lanes must look again");
        let (_, state) = published.copy();
        let at = Remote {
            region: RegionId(3),
            offset: 120,
        };
        let found = find(&state.imported[1], Pe(1), at, 8).unwrap();
        assert_eq!(found.addr, 0x8078);
    }

    #[test]
    fn a_device_that_failed_is_told_towards_all_that_are_not_lost() {
        let published = published();
        published.lose(Pe(0));
        let before = published.generation();
        published.fail("IBV_EVENT_DEVICE_FATAL on mlx5_0:1");
        published.fail("IBV_EVENT_CQ_ERR on mlx5_0:1");
        assert_ne!(published.generation(), before, "lanes must look again");
        assert!(matches!(
            published.check(Pe(0)),
            Err(Error::PeerLost { .. })
        ));
        let error = published.check(Pe(1)).unwrap_err();
        assert!(matches!(error, Error::Connection { pe: Pe(1), .. }));
        assert!(error.to_string().contains("DEVICE_FATAL on mlx5_0:1"));
    }

    #[test]
    fn closed_comes_before_unreachable_and_lost() {
        let published = published();
        assert!(matches!(
            published.check(Pe(2)),
            Err(Error::Unreachable { .. })
        ));
        published.lose(Pe(1));
        published.lose(Pe(u32::MAX));
        assert!(matches!(
            published.check(Pe(1)),
            Err(Error::PeerLost { pe: Pe(1), .. })
        ));
        assert!(published.check(Pe(0)).is_ok());
        published.close();
        assert!(matches!(published.check(Pe(1)), Err(Error::Closed { .. })));
    }
}
