//! The `ofi` transport: PEs reach each other's memory through libfabric, over TCP and over the networks that it has a
//! provider for.
//!
//! # Lifecycle
//!
//! A domain is one endpoint without connections (`FI_EP_RDM`) of one provider on one interface. Its address travels to
//! every PE with the start of the job, and goes into their address vectors: there is no step that connects lanes. All
//! lanes share the endpoint, and each is a stream of operations of its own.
//!
//! # Puts
//!
//! A put has to leave each aligned word of 8 bytes whole, because a PE may wait for one. libfabric does not say whether a
//! provider does so, and those in software do not: TCP splits a message anywhere. So puts are messages there, which the
//! target's CPU copies as the heap copies everything; they are numbered and served in order, which is all the order that is
//! asked of a provider, and are completed when the target says that it has served them. Where a NIC places data, puts are
//! the provider's writes, completed when they are delivered (`FI_DELIVERY_COMPLETE`). Gets are its reads everywhere.
//!
//! A source of up to 16 KiB is copied; a longer one is sent in place, and may be reused
//! ([`Lane::reusable`](oxshmem_transport::Lane::reusable)) once the provider has sent it, before the target has served it.
//!
//! # Atomics
//!
//! The CPU of the word's PE performs them, as active messages. A provider's atomics are exclusive against each other alone, by
//! fi_atomic(3): the provider at the word's PE is one actor, and the CPUs there are another. So they are offered as a NIC's
//! ([`AtomicLevel::Nic`](oxshmem_transport::AtomicLevel)), for words that every PE reaches by the provider, its own and those
//! of its host, too (M29). They are so where a NIC performs them, or where `OXSHMEM_OFI_ATOMICS` says so.
//!
//! # GPU memory
//!
//! Where a NIC places data, and libfabric registers GPU memory (`FI_HMEM`), transfers go to it and come from it directly. Data in it
//! are visible to the GPU after a flush at the target, and no order is promised. Else transfers are staged. Nothing of this has run on
//! such a NIC yet.
//!
//! # Progress
//!
//! Whoever calls a lane's progress drives the provider for all lanes, and serves messages: waits do so. They sleep on the
//! descriptor of the completion queue. While nobody does either, a thread of the domain does. It looks again after 50 µs to
//! 1 ms of rest whether the PE still drives. Where a provider has no descriptor it naps for up to a millisecond.
//!
//! A message is acknowledged by the next one the other way, or by one of its own once nothing more arrives.
//!
//! # Security
//!
//! An interface of an ordinary network is opened only if it is named (`OXSHMEM_OFI_INTERFACE`), or joins the hosts of a
//! launcher that says so (`OXSHMEM_HOST_ADDRESS`). Messages carry a random number
//! that the job's PEs alone know, and keys of memory are random where the provider leaves them to its caller. Nothing
//! is encrypted.
//!
//! # Failure
//!
//! A connection that is reset on its way loses messages without an error of the provider. So a PE that serves nothing for 4
//! seconds is asked what it has received; the connection has failed if messages are missing for some seconds more, in
//! which answers come. One that does not answer may be stopped, and is waited for. A PE to which no connection can be made
//! fails after a time, and one that was connected before after a longer one.
//!
//! An operation that the provider ends with an error ends the connection with its PE. That PE is lost if it was heard
//! before and the error says that the connection broke; else the error has the provider's reason. A put to memory that its
//! PE has not registered ends the connection, too: it is never acknowledged. A lane waits for transfers in place that it has given up, for 3 seconds; then their PEs
//! are given up, and after 20 seconds the endpoint is closed, which ends them and every lane. So messages are only as long as
//! the provider ends them when a PE dies: over `ofi_rxm` 16 KiB, over one provider of TCP alone 260 KiB.

mod atomics;
mod bytes;
mod domain;
mod drive;
mod driver;
mod fabric;
mod facts;
mod gpu;
mod inbox;
mod lane;
mod lane_state;
mod limits;
mod local;
mod mailbox;
mod message;
mod names;
mod own;
mod peer;
mod plan;
mod probe;
mod random;
mod reasons;
mod receive;
mod region;
mod rma;
mod send;
mod settings;
mod shared;
mod state;
mod stream;
mod watch;
mod wire;

use std::sync::Arc;

use oxshmem_gpudirect::Gpu;
use oxshmem_transport::{Device, Domain, Error, Job, Result, Transport};

use self::limits::NAME;
pub use self::limits::{MESSAGE, UNREGISTERED};
pub use self::settings::{Atomics, Hmem, Interface, Puts, Settings, SettingsError, VARIABLES};

/// The ofi transport.
#[derive(Debug)]
pub struct Ofi {
    settings: Result<Settings, SettingsError>,
    gpu: Option<Arc<dyn Gpu>>,
}

impl Default for Ofi {
    fn default() -> Self {
        Ofi::new()
    }
}

impl Ofi {
    /// The transport with the settings of the process's environment. An error in those is given when it is
    /// probed or opened, and by [`settings`](Self::settings).
    #[must_use]
    pub fn new() -> Ofi {
        Ofi {
            settings: Settings::from_environment(),
            gpu: None,
        }
    }

    /// The transport with given settings.
    #[must_use]
    pub fn with(settings: Settings) -> Ofi {
        Ofi {
            settings: Ok(settings),
            gpu: None,
        }
    }

    /// Adds the memory of a context's GPU, for providers that register it.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn with_gpu(mut self, context: oxshmem_cuda::Context) -> Ofi {
        self.gpu = Some(Arc::new(oxshmem_gpudirect::Cuda(context)));
        self
    }

    /// The settings, or the variable that cannot be understood.
    pub fn settings(&self) -> Result<&Settings, SettingsError> {
        self.settings.as_ref().map_err(Clone::clone)
    }

    fn sound(&self) -> Result<&Settings> {
        self.settings().map_err(|error| Error::Unavailable {
            transport: NAME,
            why: error.to_string(),
        })
    }
}

// SAFETY: nothing here is mapped. An operation in place is counted as completed after the provider has ended it, and a
// cancelled one is waited for, or its endpoint closed, before a call of its lane, or its drop, returns. Data of other
// operations goes through buffers of the domain, and is copied within the call that posts, or for an entry that lives.
unsafe impl Transport for Ofi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<Vec<Device>> {
        let found = probe::candidates(self.sound()?, self.gpu.is_some())?;
        Ok(found
            .into_iter()
            .map(|candidate| candidate.device)
            .collect())
    }

    fn open(&self, device: &Device, job: &Job) -> Result<Arc<dyn Domain>> {
        let settings = self.sound()?;
        let found = probe::candidates(settings, self.gpu.is_some())?;
        let wanted = found
            .into_iter()
            .find(|known| known.device.name == device.name);
        let wanted = wanted.ok_or_else(|| Error::Unavailable {
            transport: NAME,
            why: format!("{} is not there any more", device.name),
        })?;
        let gpu = self.gpu.as_ref();
        let domain =
            domain::OfiDomain::open(&wanted.info, wanted.plan, settings, gpu, job.clone())?;
        Ok(Arc::new(domain))
    }
}
