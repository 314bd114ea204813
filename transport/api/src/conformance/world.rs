//! The PEs of a check, with their domains and memory.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::area::{Area, host_memory};
use super::harness::Harness;
use super::report::Found;
use crate::capabilities::Capabilities;
use crate::error::Error;
use crate::guarantees::{Completion, Guarantees};
use crate::memory::{Memory, MemoryKind, RegionId};
use crate::op::Remote;
use crate::pe::Pe;
use crate::traits::{Domain, Job, Peer, Reach, Region, RemoteRegion};

/// One PE of a check.
pub(super) struct Member {
    pub(super) domain: Arc<dyn Domain>,
    pub(super) peer: Peer,
    /// Region 0, which operations of others name.
    pub(super) target: Area,
    /// Region 1, for the local side of operations.
    pub(super) local: Area,
    /// Memory that was not registered.
    pub(super) loose: Area,
    pub(super) regions: Vec<Box<dyn Region>>,
    /// Each PE's region 0 as imported here, by PE.
    pub(super) imported: Vec<Arc<dyn RemoteRegion>>,
}

/// The PEs of a check, each with its regions registered and region 0 of each imported by all.
///
/// Operations name the memory of its areas only, and its lanes borrow it: so lanes end first.
pub(super) struct World<'h> {
    pub(super) harness: &'h dyn Harness,
    pub(super) members: Vec<Member>,
    pub(super) capabilities: Capabilities,
    pub(super) guarantees: Guarantees,
}

/// Region 0, which every check's operations name.
pub(super) const TARGET: RegionId = RegionId(0);

/// An address in a peer's region 0.
pub(super) fn to(offset: u64) -> Remote {
    Remote {
        region: TARGET,
        offset,
    }
}

pub(super) const PE0: Pe = Pe(0);
pub(super) const PE1: Pe = Pe(1);

/// Opens PE `me` of `size`.
pub(super) fn open(harness: &dyn Harness, me: Pe, size: u32) -> Found<Arc<dyn Domain>> {
    let transport = harness.transport();
    let devices = transport.probe().map_err(|e| format!("probe: {e}"))?;
    if devices.is_empty() {
        return Err("probe gave no device and no error".into());
    }
    let device = harness.device(me, &devices);
    let job = Job {
        me,
        size,
        host_rank: 0,
        host: harness.host(me),
    };
    transport
        .open(device, &job)
        .map_err(|e| format!("open of PE {me} on {}: {e}", device.name))
}

/// A duplicate of the region's descriptor, for the peer.
pub(super) fn passed_descriptor(region: &dyn Region) -> Found<Option<OwnedFd>> {
    region
        .descriptor()
        .map(|fd| {
            fd.try_clone_to_owned()
                .map_err(|e| format!("duplicating a descriptor: {e}"))
        })
        .transpose()
}

impl<'h> World<'h> {
    /// `n` PEs with the memory that small operations need: 32 KiB.
    pub(super) fn small(harness: &'h dyn Harness, n: u32) -> Found<World<'h>> {
        World::new(harness, n, 32 << 10)
    }

    /// `n` PEs, each area of `bytes`.
    pub(super) fn new(harness: &'h dyn Harness, n: u32, bytes: u64) -> Found<World<'h>> {
        let mut members = Vec::new();
        for pe in (0..n).map(Pe) {
            members.push(Member::new(harness, pe, n, bytes as usize)?);
        }
        for importer in 0..members.len() {
            for owner in 0..members.len() {
                let region = import(harness.kind(), &members[importer], &members[owner])
                    .map_err(|e| format!("import of PE {owner}'s region by PE {importer}: {e}"))?;
                members[importer].imported.push(region);
            }
        }
        let domain = &members[0].domain;
        let mut capabilities = domain.capabilities().clone();
        let kind = harness.kind();
        let mut guarantees = domain
            .guarantees(kind)
            .ok_or("no guarantees about the kind of memory that the checks use")?;
        // Each check relies on one set for all pairs, of promises and of operations.
        for (from, to) in members
            .iter()
            .flat_map(|m| members.iter().map(move |n| (m, n)))
        {
            let towards = from.domain.guarantees_towards(&to.peer, kind);
            guarantees = guarantees.both(towards.ok_or("no guarantees towards a peer")?);
            let atomics = from.domain.atomics_towards(&to.peer);
            capabilities.atomics = capabilities.atomics.both(&atomics);
            let signals = from.domain.put_signal_towards(&to.peer);
            capabilities.put_signal = capabilities.put_signal.min(signals);
        }
        Ok(World {
            harness,
            members,
            capabilities,
            guarantees,
        })
    }

    pub(super) fn member(&self, pe: Pe) -> &Member {
        &self.members[pe.index()]
    }

    pub(super) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    pub(super) fn deadline(&self) -> Duration {
        self.harness.deadline()
    }

    /// Whether a put's completion alone says that its data is in the target's memory.
    pub(super) fn completion_places(&self) -> bool {
        self.guarantees.completion == Completion::Placed
    }
}

fn import(kind: MemoryKind, importer: &Member, owner: &Member) -> Found<Arc<dyn RemoteRegion>> {
    if let Reach::None(why) = importer.domain.reach(&owner.peer, kind) {
        return Err(format!("not reachable: {why}"));
    }
    let region = &*owner.regions[0];
    importer
        .domain
        .import(
            &owner.peer,
            region.id(),
            region.key(),
            passed_descriptor(region)?,
        )
        .map_err(|e: Error| e.to_string())
}

impl Member {
    fn new(harness: &dyn Harness, pe: Pe, size: u32, bytes: usize) -> Found<Member> {
        let domain = open(harness, pe, size)?;
        let mut regions = Vec::new();
        let mut areas = Vec::new();
        for number in 0..2 {
            let memory: Memory = harness.memory(pe, harness.kind(), bytes)?;
            let region = domain
                .register(RegionId(number), &memory)
                .map_err(|e| format!("register: {e}"))?;
            let contents = match memory.kind() {
                MemoryKind::Host => None,
                MemoryKind::Cuda => Some(harness.contents(pe, &memory)?),
            };
            areas.push(Area::new(memory, Some(region.local_key()), contents));
            regions.push(region);
        }
        let peer = Peer {
            pe,
            host: harness.host(pe),
            address: Some(domain.address()),
        };
        let loose = Area::new(host_memory(bytes)?, None, None);
        let (local, target) = match (areas.pop(), areas.pop()) {
            (Some(local), Some(target)) => (local, target),
            _ => return Err("the suite registered no memory".into()),
        };
        Ok(Member {
            domain,
            peer,
            target,
            local,
            loose,
            regions,
            imported: Vec::new(),
        })
    }
}
