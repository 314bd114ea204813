//! The interface of transports: the traits, the capabilities and guarantees that a transport declares, and
//! the [`conformance`] suite that holds it to them.
//!
//! A transport moves bytes between the memory of two PEs and performs atomics on words of it. It
//! knows nothing of types, symmetric objects, fences or collectives: those are the `oxshmem`
//! crate's, which derives its fence, quiet and wait from the [`Guarantees`] declared here.
//!
//! # Lifecycle
//!
//! [`Transport::probe`] lists the devices of this machine, [`Transport::open`] makes a [`Domain`] for
//! one PE. The domain's [address](Domain::address) travels to every peer; [`Domain::reach`] judges
//! each. Memory is [registered](Domain::register), its key (and descriptor, where there is one)
//! travels too, and is [imported](Domain::import) by peers. Operations go down a [`Lane`].
//!
//! # Threads
//!
//! A `Domain` may be used from any thread. A `Lane` has one owner at a time.
//!
//! # Failure
//!
//! No call panics or blocks without bound. A transport refuses an operation that it does not support with
//! [`Error::Unsupported`]; a lane that has no room for one now gives [`Status::Full`].

mod atomic_request;
mod capabilities;
pub mod conformance;
mod error;
mod fold;
mod forward;
mod guarantees;
mod inbox;
mod memory;
mod numbers;
mod op;
mod pe;
mod published;
mod schedule;
mod traits;
mod variable;

pub use atomic_request::{AtomicRequest, Operands};
pub use capabilities::{AtomicLevel, AtomicTable, Capabilities, Limits, SignalSupport, WireUp};
pub use error::{Error, Result};
pub use fold::Fold;
pub use guarantees::{Completion, GpuFlush, Guarantees};
pub use inbox::{Inbox, Reply, ServeAtOnce};
pub use memory::{LocalKey, Memory, MemoryKind, RegionId};
pub use numbers::{RegionNumber, RegionNumbers};
pub use op::{AtomicOp, Local, Op, Remote, SignalOp, Width};
pub use pe::Pe;
pub use published::Published;
pub use schedule::{Accessor, Schedule};
pub use traits::{
    Counters, Device, Domain, Further, HostId, Job, Lane, LocalRegion, Network, Peer, Posted,
    Reach, Region, RemoteRegion, Sleep, Status, Transport,
};
pub use variable::Variable;
