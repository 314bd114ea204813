//! The `verbs` transport: PEs reach each other's memory by RDMA, over InfiniBand, RoCE or soft-RoCE.
//!
//! # Lifecycle
//!
//! A domain is one opened port. A lane has, towards each PE that it was connected with, one reliable
//! queue pair of its own; the peer's domain makes the queue pair that responds to it, in
//! [`accept`](oxshmem_transport::Domain::accept). That *responder* needs no call from its PE: the
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
//! supports that kind of memory too; if not, [`reach`](oxshmem_transport::Domain::reach) says why, at both
//! ends. The CPU never touches such memory: local buffers there are read and written in place, by their
//! key, whatever their length, so such a source may be reused only when the operation has completed.
//! Inbound data, of others' puts or of this PE's own gets, is made visible to the GPU, where it needs that, by
//! [`make_visible`](oxshmem_transport::Domain::make_visible): by the driver's flush or by a read of the NIC (M27).
//!
//! # Order
//!
//! A reliable connection performs atomics and messages after the writes sent before them. Whether it also places writes
//! in the order sent depends on the target's device, which says so in its address (`OXSHMEM_VERBS_IN_ORDER`).
//! Where it does, a [flush](oxshmem_transport::Op::Flush) reads one byte: earlier writes are in memory when that read
//! completes. Where it does not, a flush is an atomic on a word of the target's domain, and a signal that is set waits
//! at the NIC for such an atomic.
//!
//! Where writes may pass each other on the PCIe bus (`OXSHMEM_VERBS_RELAXED_ORDERING`), only puts do: signals,
//! atomics and flushes go through a second registration of the same memory that forbids it. So do puts after a
//! [fence](oxshmem_transport::Lane::fence), until a flush has completed: such a fence costs no round trip.
//!
//! # Several queue pairs
//!
//! One queue pair has one path through the network, and may be slower than its port. With `OXSHMEM_VERBS_QPS` a lane has,
//! towards each PE, so many *bulk* queue pairs beside the *primary* one. Puts, gets and puts-with-signal of
//! `OXSHMEM_VERBS_STRIPE` bytes and more go in parts over them. Parts pass each other, so such operations keep no order with
//! any other ([`Limits::ordered`](oxshmem_transport::Limits::ordered)): a flush flushes every bulk queue pair that was
//! written by, all in one round trip, and a signal is posted when its data is placed. All else takes the primary queue
//! pair, with the order that it has alone.
//!
//! # Several NICs
//!
//! A domain may have further NICs beside the one that it is opened on (`OXSHMEM_VERBS_RAILS`), its *rails*. Each has bulk
//! queue pairs to every PE that it reaches, and the region's keys have one pair for each. All but the parts of long transfers
//! goes by the first NIC at both ends. The responder's domain chooses its NIC for each of a lane's: one that has a network in
//! common with it, of the same number if it can be; a NIC that reaches none is left out towards that PE. Data that arrived by
//! any of them is made visible to a GPU together.
//!
//! # Words
//!
//! The device reads and writes an aligned word of 8 bytes whole. NICs do so. Linux'
//! soft-RoCE (`rxe`) copies by the kernel's `memcpy`, which on CPUs with ERMS is `rep movsb`, and may
//! there, by what the architecture says, tear words: it is for tests, and `ci/softroce` runs it on a
//! CPU without. A reply to an active message is one write of 16 aligned bytes, the value and then the number, which a NIC
//! places whole. `memcpy` does so in order on x86; soft-RoCE on another architecture is not relied on. Atomics of NICs are atomic among themselves; among the CPU's only where the device
//! says so (`IBV_ATOMIC_GLOB`) and is soft-RoCE or performs them by atomics of the PCIe bus.
//!
//! # Failure
//!
//! A PE that does not respond within the retries that the [settings](VARIABLES) allow is lost, if it ever
//! responded: [`PeerLost`](oxshmem_transport::Error::PeerLost). But where nothing is outstanding except gets, its connection
//! is [`Interrupted`](oxshmem_transport::Error::Interrupted): a new queue pair carries these out when the lane is connected
//! again, twice in a row at most. So it is where this side's device gives up the queue pair. A put or atomic may have been performed or not, so
//! none is sent again. Any other failure of a connection is
//! [`Connection`](oxshmem_transport::Error::Connection). Either way its queue pairs are destroyed, after which they
//! access no memory, and the lane's other connections go on. A failure of the device itself ends them all, with the
//! event's name. A *bulk* queue pair whose peer is silent ends no connection, while the primary one works: the others carry
//! out the parts that it had outstanding. So does one of a further NIC that fails, by an event of its device or
//! without: its parts are repeated when no packet of it can be on its way any more.

#![cfg(feature = "rdma")]

mod address_range;
mod addressing;
mod arena;
mod completion_error;
mod cpu_model;
mod domain;
mod domain_state;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
mod gpu;
mod ibv;
mod inbox;
mod interfaces;
mod lane;
mod limits;
mod local_keys;
mod networks;
mod pair_watch;
mod placement;
mod port;
mod port_state;
mod rails;
mod region;
mod registration;
mod remote_region;
mod responder;
mod settings;
mod statistics;
mod traffic_class;
mod wire;

use std::sync::Arc;

use oxshmem_gpudirect::Gpu;
use oxshmem_transport::{Device, Domain, Error, Further, Job, Result, Transport};

pub use self::address_range::AddressRange;
use self::limits::NAME;
pub use self::limits::{MESSAGE, UNREGISTERED};
pub use self::settings::{
    Choice, FlowLabel, GpuDirect, Partition, Rails, Settings, SettingsError, VARIABLES,
};
pub use self::statistics::Statistics;

/// The verbs transport.
#[derive(Debug)]
pub struct Verbs {
    settings: Result<Settings, SettingsError>,
    totals: Arc<statistics::Totals>,
    gpu: Option<Arc<dyn Gpu>>,
}

impl Default for Verbs {
    fn default() -> Self {
        Verbs::new()
    }
}

impl Verbs {
    /// The transport with the settings of the process's environment. An error in those is given when it is
    /// probed or opened, and by [`settings`](Self::settings).
    #[must_use]
    pub fn new() -> Verbs {
        Verbs {
            settings: Settings::from_environment(),
            totals: Arc::default(),
            gpu: None,
        }
    }

    /// The transport with given settings.
    #[must_use]
    pub fn with(settings: Settings) -> Verbs {
        Verbs {
            settings: Ok(settings),
            totals: Arc::default(),
            gpu: None,
        }
    }

    /// Adds the memory of a context's GPU, for devices that reach it.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn with_gpu(mut self, context: oxshmem_cuda::Context) -> Verbs {
        self.gpu = Some(Arc::new(oxshmem_gpudirect::Cuda(context)));
        self
    }

    /// The settings, or the variable that cannot be understood.
    pub fn settings(&self) -> Result<&Settings, SettingsError> {
        self.settings.as_ref().map_err(Clone::clone)
    }

    /// The statistics of its lanes until now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.totals.sum()
    }

    fn domain(
        &self,
        device: &Device,
        candidates: Option<&[rails::Candidate]>,
        job: &Job,
    ) -> Result<domain::VerbsDomain> {
        let settings = self.sound()?;
        let port = port::Port::open(&device.name, settings)?;
        let totals = Arc::clone(&self.totals);
        let (settings, gpu) = (settings.clone(), self.gpu.as_ref());
        domain::VerbsDomain::new(port, settings, gpu, (job.clone(), totals), candidates)
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
// failed connections, like those of dropped lanes, have their queue pair destroyed first.
unsafe impl Transport for Verbs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        port::probe(self.sound()?)
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        Ok(Arc::new(self.domain(device, None, job)?))
    }

    fn open_with(
        &self,
        device: &Device,
        further: &[Further<'_>],
        job: &Job,
    ) -> Result<Arc<dyn Domain>> {
        let candidates: Vec<rails::Candidate> = further
            .iter()
            .map(|further| rails::Candidate {
                name: further.device.name.clone(),
                is_spare: further.is_spare,
            })
            .collect();
        Ok(Arc::new(self.domain(device, Some(&candidates), job)?))
    }

    fn network_setting(&self) -> Option<&'static str> {
        Some(settings::ROUTED)
    }
}
