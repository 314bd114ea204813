//! The state that a domain shares with its lanes and its inbox: the imported regions, the lost PEs,
//! whether it is closed or its device has failed.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

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
    /// By PE, as its first NIC knows them.
    pub(crate) imported: Vec<Regions>,
    /// By PE, as each of its further NICs knows them.
    pub(crate) further: Vec<Vec<Regions>>,
    /// The NICs of this PE that have failed, as a set of bits by their numbers.
    pub(crate) failed_rails: u8,
    /// Those whose ports are down.
    pub(crate) down_rails: u8,
}

impl DomainState {
    fn new(size: u32) -> DomainState {
        DomainState {
            closed: false,
            failed: None,
            lost: vec![false; size as usize],
            imported: vec![Regions::from(Vec::new()); size as usize],
            further: vec![Vec::new(); size as usize],
            failed_rails: 0,
            down_rails: 0,
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

/// The loss of one of a PE's NICs, as it is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RailLoss {
    /// It was noted before.
    Known,
    /// Others carry on.
    OthersLeft,
    /// No other can have primary connections.
    Last,
}

/// A set of one NIC.
pub(crate) fn bit(rail: u8) -> u8 {
    1u8.checked_shl(u32::from(rail)).unwrap_or(0)
}

/// Whether a set of NICs has one.
pub(crate) fn has_bit(set: u8, rail: u8) -> bool {
    set & bit(rail) != 0
}

/// The domain's state, of which its lanes and its inbox work on copies.
#[derive(Debug)]
pub(crate) struct PublishedState {
    pub(crate) job: Job,
    state: Published<DomainState>,
    /// The NICs of this PE that may have primary connections, as a set of bits: the first, and those that promise no less
    /// than it.
    stand_ins: AtomicU8,
}

impl PublishedState {
    pub(crate) fn new(job: Job) -> PublishedState {
        PublishedState {
            state: Published::new(DomainState::new(job.size)),
            stand_ins: AtomicU8::new(bit(0)),
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

    /// Makes a region known to all lanes, as each NIC of its PE knows it. Its number is below
    /// [`MOST_REGIONS`](crate::remote_region::MOST_REGIONS), its PE in the job.
    pub(crate) fn import(&self, pe: Pe, region: RegionId, by_rail: &[Option<Imported>]) {
        self.state.change(|state| {
            let first = state.imported.get_mut(pe.index());
            let (Some(first), Some(further)) = (first, state.further.get_mut(pe.index())) else {
                return;
            };
            let known = further.len().max(by_rail.len().saturating_sub(1));
            further.resize_with(known, || Regions::from(Vec::new()));
            let tables = std::iter::once(first).chain(further);
            let all = by_rail.iter().copied().chain(std::iter::repeat(None));
            for (table, imported) in tables.zip(all) {
                enter(table, region, imported);
            }
        });
    }

    /// The NICs of this PE that may have primary connections, as a set of bits.
    pub(crate) fn stand_ins(&self) -> u8 {
        // Relaxed: it is set before the domain is anybody's.
        self.stand_ins.load(Relaxed)
    }

    /// Sets them, when a domain is opened. Without this it is the first alone.
    pub(crate) fn set_stand_ins(&self, stand_ins: u8) {
        self.stand_ins.store(stand_ins, Relaxed);
    }

    /// Marks one of this PE's NICs as failed: transfers take the others. The device has failed for all if none is left that
    /// may have primary connections; the first reason counts.
    pub(crate) fn fail_rail(&self, rail: u8, why: &str) -> RailLoss {
        let mut loss = RailLoss::Known;
        self.state.change(|state| {
            if has_bit(state.failed_rails, rail) {
                return;
            }
            state.failed_rails |= bit(rail);
            loss = RailLoss::OthersLeft;
            if self.stand_ins() & !state.failed_rails == 0 {
                loss = RailLoss::Last;
                state.failed.get_or_insert_with(|| why.into());
            }
        });
        loss
    }

    /// Whether one of this PE's NICs has failed.
    pub(crate) fn has_rail_failed(&self, rail: u8) -> bool {
        self.state.read(|state| has_bit(state.failed_rails, rail))
    }

    /// Marks the port of one of this PE's NICs as down, or as up again.
    pub(crate) fn set_down(&self, rail: u8, is_down: bool) {
        self.state.change(|state| match is_down {
            true => state.down_rails |= bit(rail),
            false => state.down_rails &= !bit(rail),
        });
    }

    /// Changes nothing but the generation: there is something else for lanes to look at.
    pub(crate) fn have_lanes_look(&self) {
        self.state.change(|_| ());
    }

    /// Marks a PE as lost.
    pub(crate) fn lose(&self, pe: Pe) {
        self.state.change(|state| {
            if let Some(lost) = state.lost.get_mut(pe.index()) {
                *lost = true;
            }
        });
    }

    pub(crate) fn close(&self) {
        self.state.change(|state| state.closed = true);
    }
}

/// Enters a region in a table, or takes it out.
fn enter(regions: &mut Regions, region: RegionId, imported: Option<Imported>) {
    let mut table = regions.to_vec();
    let at = region.0 as usize;
    table.resize(table.len().max(at + 1), None);
    if let Some(entry) = table.get_mut(at) {
        *entry = imported;
    }
    *regions = table.into();
}

#[cfg(test)]
mod tests {
    use oxshmem_transport::{HostId, Remote};

    use super::*;
    use crate::remote_region::find;
    use crate::wire::{Key, RailKeys};

    fn published() -> PublishedState {
        PublishedState::new(Job {
            me: Pe(0),
            size: 2,
            host_rank: 0,
            host: HostId("here".into()),
        })
    }

    fn region(base: u64, len: u64) -> Vec<Option<Imported>> {
        let keys = RailKeys {
            relaxed: 5,
            strict: 6,
        };
        let key = Key {
            pe: 1,
            region: 3,
            base,
            len,
            rails: vec![Some(keys)],
            gpu: false,
        };
        Imported::by_rail(&key, true)
    }

    #[test]
    fn a_region_imported_again_has_the_newer_key() {
        let published = published();
        let before = published.generation();
        published.import(Pe(1), RegionId(3), &region(0x1000, 64));
        assert_ne!(published.generation(), before);
        let before = published.generation();
        published.import(Pe(1), RegionId(3), &region(0x8000, 128));
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
    fn each_nic_of_a_peer_knows_the_regions_that_are_registered_there() {
        let published = published();
        let [one] = region(0x1000, 64)[..] else {
            panic!("one NIC");
        };
        published.import(Pe(1), RegionId(0), &[one]);
        published.import(Pe(1), RegionId(1), &[one, None, one]);
        let (_, state) = published.copy();
        let at = |region| Remote {
            region: RegionId(region),
            offset: 0,
        };
        let known =
            |rail: usize, region| find(&state.further[1][rail - 1], Pe(1), at(region), 8).is_ok();
        assert!(find(&state.imported[1], Pe(1), at(1), 8).is_ok());
        assert_eq!(state.further[1].len(), 2);
        assert!(!known(1, 0) && !known(2, 0) && !known(1, 1) && known(2, 1));
        // A later region of the same number is registered at the first NIC alone.
        published.import(Pe(1), RegionId(1), &[one]);
        let (_, state) = published.copy();
        assert!(find(&state.further[1][1], Pe(1), at(1), 8).is_err());
    }

    #[test]
    fn a_further_nic_that_failed_is_told_to_lanes_and_concerns_no_pe() {
        let published = published();
        let before = published.generation();
        assert_eq!(published.fail_rail(2, "gone"), RailLoss::OthersLeft);
        assert_ne!(published.generation(), before, "lanes must look again");
        assert_eq!(published.fail_rail(2, "gone"), RailLoss::Known);
        let failed = |rail| published.has_rail_failed(rail);
        assert!(failed(2) && !failed(1) && !failed(0));
        assert!(published.check(Pe(1)).is_ok());
    }

    #[test]
    fn a_device_that_failed_is_told_towards_all_that_are_not_lost() {
        let published = published();
        published.lose(Pe(0));
        let before = published.generation();
        let first = published.fail_rail(0, "IBV_EVENT_DEVICE_FATAL on mlx5_0:1");
        assert_eq!(first, RailLoss::Last);
        published.fail_rail(0, "IBV_EVENT_CQ_ERR on mlx5_0:1");
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
    fn the_first_nic_may_fail_while_another_may_have_primary_connections() {
        let published = published();
        published.set_stand_ins(0b101);
        assert_eq!(published.fail_rail(0, "one"), RailLoss::OthersLeft);
        assert!(published.check(Pe(1)).is_ok());
        // Another NIC is left, which may not.
        assert_eq!(published.fail_rail(2, "two"), RailLoss::Last);
        let told = published.check(Pe(1)).unwrap_err().to_string();
        assert!(told.contains("two"), "{told}");
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
