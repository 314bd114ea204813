//! Safe objects over the verbs library: each holds its parents, so that they end in the right
//! order, and ends itself when dropped.
//!
//! Verbs objects may be used from any thread: the library locks where its providers need it.

mod completion;
mod context;
mod events;
mod memory;
mod queue_pair;
mod receive;
pub(crate) mod result;

pub(crate) use completion::{Channel, Completion, CompletionQueue};
pub(crate) use context::{Context, DeviceLimits, PortState, ProtectionDomain, device_names};
pub(crate) use events::Event;
pub(crate) use memory::{Access, MemoryRegion};
pub(crate) use queue_pair::{Connect, QueuePair, QueueSizes};
pub(crate) use receive::SharedReceiveQueue;

/// A global identifier: what a packet's address is on RoCE, and between InfiniBand subnets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Gid(pub(crate) [u8; 16]);

impl std::fmt::Display for Gid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = std::net::Ipv6Addr::from(self.0);
        match address.to_ipv4_mapped() {
            Some(v4) => v4.fmt(f),
            None => address.fmt(f),
        }
    }
}

impl std::fmt::Debug for Gid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gid({self})")
    }
}
