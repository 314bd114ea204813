//! A simulated mapping without lanes: it reaches only the memory that it maps.

use std::sync::Arc;

use oxshmem_transport::{Device, Domain, Job, MemoryKind, Peer, Reach, Result, Transport, forward};
use oxshmem_weak::Simulator;

/// A simulator whose lanes are never used.
#[derive(Clone, Debug)]
pub struct Mapping(pub Simulator);

#[derive(Debug)]
struct Mapped(Arc<dyn Domain>);

// SAFETY: all objects but the domain are the simulator's own, which keeps this contract.
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
    forward!(
        address, capabilities, guarantees, import, lane, peer_lost, register, schedule, shutdown => 0
    );

    fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
        match self.0.reach(peer, kind) {
            Reach::Remote => Reach::None("it is on another simulated host".into()),
            reach => reach,
        }
    }
}
