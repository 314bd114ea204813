//! The `verbs` transport: PEs reach each other's memory by RDMA, over InfiniBand, RoCE or soft-RoCE.
//!
//! # Lifecycle
//!
//! A domain is one opened port. A lane has, towards each PE that it was connected with, one reliable
//! queue pair of its own; the domain at the other side makes the queue pair that answers it, in
//! [`accept`](oxshmem_transport::Domain::accept). That *passive* side needs no call from its PE: the
//! device serves puts, gets and atomics. Only messages wait for the
//! [inbox](oxshmem_transport::Domain::inbox).
//!
//! # Local memory
//!
//! Up to [`UNREGISTERED`] bytes need no key: puts carry them in the request or copy them to registered
//! memory of the lane, gets are copied out of it. So the sources of such puts may be reused at once,
//! wherever they lie. Longer ones are read and written in place, by their key.
//!
//! # GPU memory
//!
//! A domain that was given a GPU (`Verbs::with_gpu`) tries, when it is opened, whether its device reaches
//! that GPU's memory: as a dma-buf, else by the kernel module nvidia-peermem. If it does, the domain
//! carries that kind of memory too; if not, [`reach`](oxshmem_transport::Domain::reach) says why, at both
//! ends. The CPU never touches such memory: near sides there are read and written in place, by their
//! key, whatever their length, so such a source may be reused only when the operation has completed.
//! What has arrived in it, by others' puts or by this PE's own gets, is made visible to the GPU, where it
//! needs that, by the driver's flush or by a read of the NIC's own (M27), by [`make_visible`](oxshmem_transport::Domain::make_visible).
//!
//! # Order
//!
//! A reliable connection performs writes, and what follows writes, in the order sent. Where writes
//! may pass each other on the PCIe bus (`OXSHMEM_VERBS_RELAXED_ORDERING`), only puts do: signals,
//! atomics and flushes go through a second registration of the same memory that forbids it. A
//! [flush](oxshmem_transport::Op::Flush) reads one byte there: what was sent before is in memory when
//! that comes back.
//!
//! # Words
//!
//! That an aligned word of 8 bytes is read and written whole is the device's doing. NICs do so. Linux'
//! soft-RoCE (`rxe`) copies by the kernel's `memcpy`, which on CPUs with ERMS is `rep movsb`, and may
//! there, by what the architecture says, tear words: it is for tests, and `ci/softroce` runs it on a
//! CPU without. Atomics of NICs are atomic among themselves; among the CPU's only where the device
//! says so (`IBV_ATOMIC_GLOB`, as soft-RoCE does).
//!
//! # Failure
//!
//! A connection whose PE does not answer within the retries that the [settings](VARIABLES) allow is
//! lost: [`PeerLost`](oxshmem_transport::Error::PeerLost), if it ever answered. What fails otherwise
//! is told by [`Connection`](oxshmem_transport::Error::Connection). Either way its queue pair is
//! destroyed, after which it touches no memory, and the lane's others go on. A failure of the device
//! itself ends them all, with the event's name.

#![cfg(feature = "rdma")]

mod domain;
mod fault;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod gpu;
mod ibv;
mod inbox;
mod lane;
mod passive;
mod port;
mod region;
mod settings;
mod shared;
mod statistics;
mod wire;

use std::sync::Arc;

use oxshmem_transport::{Device, Domain, Error, Job, Result, Transport};

pub use self::settings::{Choice, GpuDirect, Partition, Settings, SettingsError, VARIABLES};
pub use self::statistics::Statistics;

const NAME: &str = "verbs";

/// Up to this many bytes the near side of a put or get needs no registration.
pub const UNREGISTERED: usize = 16 << 10;

/// How many requests share a doorbell at most, where the caller has so many.
const BATCH: u32 = 16;

/// The longest message, in bytes.
pub const MESSAGE: usize = 64;

/// The transport.
#[derive(Debug)]
pub struct Verbs {
    settings: Result<Settings, SettingsError>,
    totals: Arc<statistics::Totals>,
    gpu: Option<Arc<dyn gpu::Gpu>>,
}

impl Default for Verbs {
    fn default() -> Self {
        Verbs::new()
    }
}

impl Verbs {
    /// As the process's environment sets it. What is wrong there is told when it is probed or
    /// opened, and by [`settings`](Self::settings).
    #[must_use]
    pub fn new() -> Verbs {
        Verbs {
            settings: Settings::from_environment(),
            totals: Arc::default(),
            gpu: None,
        }
    }

    /// With settings from elsewhere.
    #[must_use]
    pub fn with(settings: Settings) -> Verbs {
        Verbs {
            settings: Ok(settings),
            totals: Arc::default(),
            gpu: None,
        }
    }

    /// The memory of a context's GPU is to be reached too, where the device can.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn with_gpu(mut self, context: oxshmem_cuda::Context) -> Verbs {
        self.gpu = Some(Arc::new(gpu::Cuda(context)));
        self
    }

    /// What is set, or which variable cannot be understood.
    pub fn settings(&self) -> Result<&Settings, SettingsError> {
        self.settings.as_ref().map_err(Clone::clone)
    }

    /// What its lanes have asked of their devices until now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.totals.sum()
    }

    fn sound(&self) -> Result<&Settings> {
        self.settings().map_err(|error| Error::Unavailable {
            transport: NAME,
            why: error.to_string(),
        })
    }
}

// SAFETY: nothing here is mapped. A lane's requests name local memory within the range given; a
// request is counted as completed, and copied data as delivered, after its completion was taken, and
// connections that are given up, like those of dropped lanes, have their queue pair destroyed first.
unsafe impl Transport for Verbs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        port::probe(self.sound()?)
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let settings = self.sound()?;
        let port = port::Port::open(&device.name, settings)?;
        let (settings, totals) = (settings.clone(), Arc::clone(&self.totals));
        let gpu = self.gpu.as_ref();
        let domain = domain::VerbsDomain::new(port, settings, gpu, job.clone(), totals)?;
        Ok(Arc::new(domain))
    }
}
