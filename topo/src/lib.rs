//! What the machine looks like: packages, cores, caches and NUMA nodes, and which of them this
//! process may use.
//!
//! [`Machine::discover`] gives the whole picture, through hwloc (feature `hwloc`) or, where that is
//! left out or fails, from sysfs. The cheap questions, [`usable_cpus`], [`boot_id`], [`hostname`]
//! and [`nearest_node`], read a few small files and never start hwloc, so a library may ask
//! them whenever a PE starts. Nothing is cached and nothing runs before it is asked for.
//!
//! Everything here is a snapshot in plain data: it takes part in no rule of the memory model, needs
//! no thread of its own and may be used from any thread. Files of the system are taken as
//! untrusted: what is missing has a stated fallback, what is malformed is an [`Error`] that names
//! the file.
//!
//! ```
//! use oxshmem_topo::{Policy, usable_cpus};
//!
//! let usable = usable_cpus()?;
//! println!("{} of CPUs {} may be busy at once", usable.count(), usable.allowed);
//! let sets = oxshmem_topo::binding(4, Policy::Core)?;
//! assert_eq!(sets.len(), 4); // one set of CPUs for each of four PEs
//! # Ok::<(), oxshmem_topo::Error>(())
//! ```

mod bandwidth;
mod binding;
mod cgroup;
mod cpu_set;
mod devices;
mod distance;
mod error;
#[cfg(test)]
mod fixture;
mod host;
#[cfg(feature = "hwloc")]
mod hwloc;
mod machine;
mod pci;
mod process;
mod sysfs;
mod sysfs_devices;
mod table;
mod topology;
mod tree;
mod xml;

pub use bandwidth::Bandwidth;
pub use binding::{ParsePolicyError, Policy, binding};
pub use cpu_set::CpuSet;
pub use devices::{Bridge, Gpu, LinkLayer, Nic, NvLink, PciFunction, Place, Port, PortState};
pub use distance::{Distance, End, Locality};
pub use error::{Error, Result};
pub use host::{boot_id, hostname};
pub use machine::{Cache, Core, HugePages, Machine, NumaNode, Source};
pub use pci::PciAddress;
pub use process::{UsableCpus, nearest_node, usable_cpus};
pub use topology::{Package, Topology};
