//! One PE among many that are not there: a bootstrap that answers for all of them.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oxshmem::World;
use oxshmem_bootstrap::{Bootstrap, ExitHandler, MessageHandler, Result};
use oxshmem_topo::Topology;
use oxshmem_transport::Transport;

use crate::stand_in::{Kind, StandIn};

/// A bootstrap that gives this PE's contributions as those of the others, on their own hosts.
#[derive(Debug)]
pub struct Crowd {
    pub size: u32,
    /// PEs a host.
    pub width: u32,
    rounds: AtomicU32,
}

/// As long as a kernel's boot id.
pub fn host(number: u32) -> String {
    format!("host{number:032}")
}

impl Crowd {
    /// So many, 8 a host.
    pub fn of(size: u32) -> Arc<Self> {
        Arc::new(Crowd {
            size,
            width: 8,
            rounds: AtomicU32::new(0),
        })
    }
}

impl Bootstrap for Crowd {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn describe(&self) -> String {
        format!("a crowd of {}", self.size)
    }

    fn allgather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let first = self.rounds.fetch_add(1, Ordering::Relaxed) == 0;
        let of = |pe: u32| match first {
            // The card names the host.
            true => String::from_utf8_lossy(mine)
                .replace(&host(0), &host(pe / self.width))
                .into_bytes(),
            false => mine.to_vec(),
        };
        Ok((0..self.size).map(of).collect())
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn send(&self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn on_message(&self, _: MessageHandler) -> Result<()> {
        Ok(())
    }

    fn on_exit(&self, _: ExitHandler) -> Result<()> {
        Ok(())
    }

    fn share_descriptors(
        &self,
        among: &[u32],
        _: &[BorrowedFd<'_>],
        _: Duration,
    ) -> Result<Vec<Vec<OwnedFd>>> {
        Ok(among.iter().map(|_| Vec::new()).collect())
    }

    fn abort(&self, _: i32, _: &str) {}

    fn leave(&self) {}

    fn rest(&self, _: bool) {}
}

/// nvlink, loopback and verbs, on the devices of this host.
pub fn transports(host: &Topology) -> Vec<Arc<dyn Transport>> {
    let gpus = host.gpus.iter().map(|gpu| gpu.name.clone()).collect();
    let ports = host.nics.iter().map(|nic| format!("{}:1", nic.name));
    let stand_in = |kind, devices| Arc::new(StandIn { kind, devices }) as Arc<dyn Transport>;
    vec![
        stand_in(Kind::Nvlink, gpus),
        stand_in(Kind::Loopback, vec!["memory".into()]),
        stand_in(Kind::Verbs, ports.collect()),
    ]
}

/// The world of PE 0 among a crowd. The others are not there: it can only be looked at.
pub fn join(
    crowd: Arc<dyn Bootstrap>,
    transports: &[Arc<dyn Transport>],
) -> oxshmem::Result<World> {
    World::builder()
        .host_id(host(0))
        .heap_limit(4 << 20)
        .bootstrap(crowd)
        .transports(transports.to_vec())
        .join()
}
