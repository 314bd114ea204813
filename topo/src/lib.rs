//! The topology of a machine: packages, cores, caches and NUMA nodes, the NICs and GPUs in its
//! PCI tree, how far they are apart, and which CPUs this process may use.
//!
//! [`Machine::discover`] describes CPUs and memory, [`Topology::discover`] devices too, through hwloc
//! (feature `hwloc`) or, where that is left out or fails, from sysfs. [`Topology::from_xml`] and
//! [`Topology::from_xml_file`] read hwloc's XML, of any host and without hwloc.
//! [`Topology::distance`] compares; `Display` and [`svg`] show. The cheap questions, [`usable_cpus`], [`boot_id`], [`hostname`]
//! and [`nearest_node`], read a few small files and never start hwloc, so a library may ask
//! them whenever a PE starts. Nothing is cached and nothing runs before it is asked for.
//!
//! Everything here is a snapshot in plain data: it takes part in no rule of the memory model, needs
//! no thread of its own and may be used from any thread. Files of the system are taken as
//! untrusted: what is missing has a stated fallback, what is malformed is an [`Error`] that names
//! the file.
//!
//! ```
//! # fn main() -> oxshmem_topo::Result<()> {
//! # let xml = include_str!("../fixtures/dgx-like.xml");
//! use oxshmem_topo::Topology;
//!
//! let topology = Topology::from_xml(xml)?;
//! let nearest = topology.gpu("gpu1").and_then(|gpu| {
//!     topology.nics.iter().min_by_key(|&nic| topology.distance(gpu, nic))
//! });
//! assert_eq!(nearest.map(|nic| nic.name.as_str()), Some("mlx5_1"));
//! # Ok(())
//! # }
//! ```
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
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod hierarchy;
mod host;
#[cfg(feature = "hwloc")]
mod hwloc;
mod machine;
mod outline;
mod pci;
mod process;
mod svg;
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
pub use svg::{DrawnRoute, svg};
pub use sysfs_devices::rdma_devices;
pub use topology::{Package, Topology};
