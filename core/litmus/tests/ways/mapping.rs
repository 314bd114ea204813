//! A simulated mapping and nothing else: what it does not map, it does not reach.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use oxshmem_transport::{
    Capabilities, Device, Domain, Guarantees, Job, Lane, Memory, MemoryKind, Peer, Reach, Region,
    RegionId, RemoteRegion, Result, Schedule, Transport,
};
use oxshmem_weak::Simulator;

/// A simulator whose lanes nobody takes.
#[derive(Clone, Debug)]
pub struct Mapping(pub Simulator);

#[derive(Debug)]
struct Mapped(Arc<dyn Domain>);

// SAFETY: all objects but the domain are the simulator's own, which promises this.
unsafe impl Transport for Mapping {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn probe(&self) -> Result<Vec<Device>> {
        self.0.probe()
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(Mapped(self.0.open(device, job)?)))
    }
}

impl Domain for Mapped {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn guarantees(&self, kind: MemoryKind) -> Option<Guarantees> {
        self.0.guarantees(kind)
    }

    fn address(&self) -> Vec<u8> {
        self.0.address()
    }

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.0.reach(peer, kind) {
            Reach::Wire => Reach::None("it is on another simulated host".into()),
            reach => reach,
        }
    }

    fn register(&self, id: RegionId, memory: &Memory) -> Result<Box<dyn Region>> {
        self.0.register(id, memory)
    }

    fn import(
        &self,
        peer: &Peer,
        region: RegionId,
        key: &[u8],
        descriptor: Option<OwnedFd>,
    ) -> Result<Arc<dyn RemoteRegion>> {
        self.0.import(peer, region, key, descriptor)
    }

    fn lane(&self) -> Result<Box<dyn Lane>> {
        self.0.lane()
    }

    fn schedule(&self) -> Option<Arc<dyn Schedule>> {
        self.0.schedule()
    }

    fn peer_lost(&self, pe: oxshmem_transport::Pe) {
        self.0.peer_lost(pe);
    }

    fn shutdown(&self) {
        self.0.shutdown();
    }
}
