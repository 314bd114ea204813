use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::area::{Area, host_memory};
use super::lanes::{Lanes, Watched};
use super::{Found, Harness};
use crate::{
    Capabilities, Completion, Domain, Error, Guarantees, Job, Lane, Memory, MemoryKind, Pe, Peer,
    Reach, Region, RegionId, Remote, RemoteRegion, WireUp,
};

/// One PE of a check.
pub(super) struct Member {
    pub(super) domain: Arc<dyn Domain>,
    pub(super) peer: Peer,
    /// Region 0, which operations of others name.
    pub(super) target: Area,
    /// Region 1, for the near side of operations.
    pub(super) near: Area,
    /// Memory that was not registered.
    pub(super) loose: Area,
    pub(super) regions: Vec<Box<dyn Region>>,
    /// Each PE's region 0 as imported here, by PE.
    pub(super) imported: Vec<Arc<dyn RemoteRegion>>,
}

/// The PEs of a check, each with its regions registered and region 0 of each imported by all.
///
/// Operations name the memory of its areas only, and [`Lanes`] borrow it: so lanes end first.
pub(super) struct World<'h> {
    pub(super) harness: &'h dyn Harness,
    pub(super) members: Vec<Member>,
    pub(super) capabilities: Capabilities,
    pub(super) guarantees: Guarantees,
}

/// Region 0, which every check's operations name.
pub(super) const TARGET: RegionId = RegionId(0);

/// A place in a peer's region 0.
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
        host: harness.host(me),
    };
    transport
        .open(device, &job)
        .map_err(|e| format!("open of PE {me} on {}: {e}", device.name))
}

/// What a duplicate of the region's descriptor would be at the peer.
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
        let capabilities = domain.capabilities().clone();
        let guarantees = domain
            .guarantees(harness.kind())
            .ok_or("no guarantees about the kind of memory that the checks use")?;
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

    /// One lane of each PE, wired with all PEs.
    pub(super) fn lanes(&self) -> Found<Lanes<'_>> {
        let mut lanes = Vec::new();
        for member in &self.members {
            let lane = member.domain.lane().map_err(|e| format!("lane: {e}"))?;
            lanes.push(Watched::new(lane, self.size()));
        }
        if self.capabilities.wire_up == WireUp::PerLane {
            self.wire(&mut lanes)?;
        }
        Ok(Lanes::new(self, lanes))
    }

    /// Connects each lane with every PE.
    fn wire(&self, lanes: &mut [Watched<'_>]) -> Found<()> {
        for (from, lane) in (0..).map(Pe).zip(lanes) {
            for pe in (0..self.size()).map(Pe) {
                connect(&mut *lane.lane, from, pe, &*self.member(pe).domain)?;
            }
        }
        Ok(())
    }
}

/// Connects a lane of PE `from` with PE `pe`, whose domain answers.
pub(super) fn connect(lane: &mut dyn Lane, from: Pe, pe: Pe, domain: &dyn Domain) -> Found<()> {
    let endpoint = lane.endpoint(pe);
    let endpoint = endpoint.map_err(|e| format!("endpoint of PE {from} towards {pe}: {e}"))?;
    let answer = domain.accept(from, &endpoint);
    let answer = answer.map_err(|e| format!("accept of PE {from}'s lane by PE {pe}: {e}"))?;
    let connected = lane.connect(pe, &answer);
    connected.map_err(|e| format!("connect of PE {from} with {pe}: {e}"))
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
        let (near, target) = match (areas.pop(), areas.pop()) {
            (Some(near), Some(target)) => (near, target),
            _ => return Err("the suite registered no memory".into()),
        };
        Ok(Member {
            domain,
            peer,
            target,
            near,
            loose,
            regions,
            imported: Vec::new(),
        })
    }
}
