//! The CPUs that this process may use.

use std::io;

use crate::cpu_set::CpuSet;
use crate::error::{Error, Result};
use crate::machine::nearest;
use crate::tree::Tree;
use crate::{cgroup, sysfs};

/// The CPUs of the machine that this process may use.
#[derive(Clone, Debug, PartialEq)]
pub struct UsableCpus {
    /// The CPUs that the calling thread may run on: its affinity, which the kernel keeps within
    /// the cgroup's cpuset. Threads that it starts inherit them.
    pub allowed: CpuSet,
    /// The cgroup's CPU time per wall-clock time, in CPUs (1.5 is one and a half); the smallest
    /// one up the hierarchy. None where time is not limited.
    pub quota: Option<f64>,
}

impl UsableCpus {
    /// How many threads can be busy all the time: the allowed CPUs, or the whole CPUs of the quota
    /// where that is less; at least 1. Where more PEs than this share the host, waiting by
    /// spinning takes time from those that are waited for.
    pub fn count(&self) -> usize {
        // A float-to-integer cast saturates, so an absurd quota is no limit.
        let quota = self.quota.map_or(usize::MAX, |quota| quota as usize);
        self.allowed.len().min(quota).max(1)
    }
}

/// The CPUs that the calling thread may use, now. Two or three system calls and a few small files;
/// hwloc is not started. A quota that cannot be read is taken as none.
///
/// # Errors
/// [`Error::Affinity`] where the kernel does not tell the allowed CPUs; not seen on Linux.
pub fn usable_cpus() -> Result<UsableCpus> {
    Ok(UsableCpus {
        allowed: allowed()?,
        quota: cgroup::cpu_quota(Tree::live()),
    })
}

/// The number of the NUMA node nearest to the CPUs that the calling thread may run on, as
/// [`crate::Machine::nearest_node`] defines it; none where no node is nearer than all others or the
/// kernel knows no nodes. Reads a few small files; hwloc is not started.
///
/// # Errors
/// Those of [`usable_cpus`], and of reading the nodes' lists of CPUs.
pub fn nearest_node() -> Result<Option<usize>> {
    let nodes = sysfs::numa_cpus(Tree::live(), &sysfs::online(Tree::live())?)?;
    Ok(nearest(&nodes, |(_, cpus)| cpus, &allowed()?).map(|&(index, _)| index))
}

/// The calling thread's affinity.
fn allowed() -> Result<CpuSet> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => Ok((0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect()),
        // A kernel for more CPUs than the call's fixed set has room for.
        Err(rustix::io::Errno::INVAL) => {
            let status = Tree::live().text("proc/thread-self/status")?;
            allowed_in(&status.unwrap_or_default()).ok_or_else(|| Error::Affinity {
                source: io::Error::other("more than 1024 CPUs, and no /proc/thread-self/status"),
            })
        }
        Err(errno) => Err(Error::Affinity {
            source: errno.into(),
        }),
    }
}

/// The set that a thread's `status` file names.
fn allowed_in(status: &str) -> Option<CpuSet> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse(list).ok().filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_the_threads_own() {
        let all = allowed().unwrap();
        let one = all.first().unwrap();
        let narrowed = std::thread::spawn(move || {
            let mut set = rustix::thread::CpuSet::new();
            set.set(one);
            rustix::thread::sched_setaffinity(None, &set).unwrap();
            (usable_cpus().unwrap(), nearest_node().unwrap())
        });
        let (usable, node) = narrowed.join().unwrap();
        assert_eq!(usable.allowed.to_vec(), [one]);
        assert_eq!(usable.count(), 1);
        let nodes = sysfs::numa_cpus(Tree::live(), &sysfs::online(Tree::live()).unwrap()).unwrap();
        let home = nodes
            .iter()
            .find(|(_, cpus)| cpus.contains(one))
            .map(|&(index, _)| index);
        assert_eq!(node, home);
        assert_eq!(allowed().unwrap(), all);
    }

    #[test]
    fn the_status_file_tells_what_the_system_call_tells() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(allowed_in(&status), Some(allowed().unwrap()));
        assert_eq!(
            allowed_in("Cpus_allowed_list:\t0-1023,2047\n")
                .unwrap()
                .len(),
            1025
        );
        assert_eq!(allowed_in("Name:\tx\n"), None);
        assert_eq!(allowed_in("Cpus_allowed_list:\tall of them\n"), None);
    }

    #[test]
    fn a_quota_lowers_the_count_to_whole_cpus_but_not_below_one() {
        let count = |quota| {
            UsableCpus {
                allowed: (0..8).collect(),
                quota,
            }
            .count()
        };
        assert_eq!(count(None), 8);
        assert_eq!(count(Some(2.5)), 2);
        assert_eq!(count(Some(0.25)), 1);
        assert_eq!(count(Some(1e30)), 8);
    }
}
