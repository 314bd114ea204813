//! Names of the environment variables that oxshmem's launcher and its PEs share, and how they are read.

use std::time::Duration;

/// Time limit for joining and for each collective call, unless set otherwise.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);

/// The variable that holds the command by which other hosts are reached.
pub const RSH: &str = "OXSHMEM_RSH";
/// The variable that holds the address at which other hosts reach the launcher, or rank 0's rendezvous.
pub const HUB_ADDRESS: &str = "OXSHMEM_HUB_ADDRESS";

pub(crate) const RANK: &str = "OXSHMEM_RANK";
pub(crate) const SIZE: &str = "OXSHMEM_SIZE";
pub(crate) const LOCAL_RANK: &str = "OXSHMEM_LOCAL_RANK";
pub(crate) const RENDEZVOUS: &str = "OXSHMEM_RENDEZVOUS";
pub(crate) const JOB_KEY: &str = "OXSHMEM_JOB_KEY";
/// The variable by which a host's agent tells its PEs the host's address in the network that joins the hosts.
pub(crate) const HOST_ADDRESS: &str = "OXSHMEM_HOST_ADDRESS";

/// libfabric's variable for the number of processes, and the number that it expects by itself. It is read before any
/// connection is made, so that a launcher has to set it.
pub(crate) const FABRIC_SIZE: (&str, u32) = ("FI_UNIVERSE_SIZE", 256);

/// A function that gives a variable's value, if it is set.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The [`Lookup`] of this process's own variables.
pub(crate) fn read_process_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}
