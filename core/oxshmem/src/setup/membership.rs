//! A PE's membership of its job: the bootstrap that connects it with the other PEs, and its rank, size and host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxshmem_bootstrap::Bootstrap;
use oxshmem_engine::peer::loss_reasons;
use oxshmem_heap::HugePages;
use oxshmem_transport::{HostId, Job, Pe};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::options::ProgramMemory;
use crate::{config, log};
use oxshmem_engine::report;

/// A PE's membership of its job.
pub(crate) struct Membership {
    pub bootstrap: Arc<dyn Bootstrap>,
    /// Whether a world that is dropped without `finalize` keeps its connection for a moment.
    pub linger: bool,
}

impl Membership {
    /// Joins the job by `bootstrap`, or by the environment. PE 0 prints the `warnings`.
    pub(super) fn join(
        config: &mut Config,
        bootstrap: Option<Arc<dyn Bootstrap>>,
        warnings: &[String],
    ) -> Result<Self> {
        let is_log_ours = config.log.take().map(log::begin);
        let (bootstrap, linger) = match bootstrap {
            Some(bootstrap) => (bootstrap, false),
            None => (join_environment(config)?, true),
        };
        if linger || bootstrap.rank() == 0 {
            loss_reasons::clear();
        }
        if linger {
            log::joined(bootstrap.rank());
        }
        if bootstrap.rank() == 0 {
            warnings.iter().for_each(|warning| report::warn(warning));
            if is_log_ours == Some(false) {
                report::warn(
                    "OXSHMEM_LOG has no effect: the program has a `tracing` subscriber of its own, which \
                     gets what would be logged",
                );
            }
        }
        Ok(Membership { bootstrap, linger })
    }

    pub(crate) fn me(&self) -> usize {
        self.bootstrap.rank() as usize
    }

    /// The job as transports see it.
    pub(super) fn job(&self, config: &Config) -> Job {
        let host = host_id_or(config.host_id.clone());
        Job {
            me: Pe(self.bootstrap.rank()),
            size: self.bootstrap.size(),
            host_rank: host_rank(config::environment).unwrap_or(self.bootstrap.rank()),
            host: HostId(host),
        }
    }

    /// The program's memory that is to begin the heap. It has ordinary pages, so with huge pages from a pool it stays
    /// private, and PE 0 warns.
    pub(super) fn symmetric_program_memory(
        &self,
        config: &Config,
        program: Option<Arc<ProgramMemory>>,
    ) -> Option<Arc<ProgramMemory>> {
        let from_a_pool = matches!(
            config.huge_pages,
            HugePages::Explicit2M | HugePages::Explicit1G
        );
        let program = program?;
        if !from_a_pool {
            return Some(program);
        }
        if self.bootstrap.rank() == 0 {
            report::warn(
                "the program's own memory has ordinary pages and is not symmetric; set \
                 OXSHMEM_HUGE_PAGES to transparent if it is to be",
            );
        }
        None
    }
}

/// A host's name: the given one, or the kernel's.
pub(crate) fn host_id_or(given: Option<String>) -> String {
    given.unwrap_or_else(|| oxshmem_topo::boot_id().unwrap_or_else(|_| oxshmem_topo::hostname()))
}

/// This PE's number on its host, as the launcher tells it.
fn host_rank(environment: impl Fn(&'static str) -> Option<String>) -> Option<u32> {
    const TOLD_BY: [&str; 2] = ["OXSHMEM_LOCAL_RANK", "LOCAL_RANK"];
    let told = TOLD_BY.into_iter().filter_map(environment);
    told.filter_map(|rank| rank.parse().ok()).next()
}

/// Joins the job that the environment describes. It describes one PE, so a process can be that PE once.
fn join_environment(config: &Config) -> Result<Arc<dyn Bootstrap>> {
    static JOINED: AtomicBool = AtomicBool::new(false);
    let is_job = oxshmem_bootstrap::describes_job(&config::environment);
    if is_job && JOINED.swap(true, Ordering::Relaxed) {
        return Err(Error::AlreadyJoined);
    }
    oxshmem_bootstrap::join(&config::environment, config.bootstrap_timeout)
        .inspect_err(|_| JOINED.store(false, Ordering::Relaxed))
        .map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::host_rank;

    #[test]
    fn the_launchers_number_on_the_host_is_taken_and_that_of_torchrun_else() {
        let told = |all: &[(&str, &str)]| {
            host_rank(|name| {
                let found = all.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("LOCAL_RANK", "3")]), Some(3));
        let both = [("LOCAL_RANK", "3"), ("OXSHMEM_LOCAL_RANK", "5")];
        assert_eq!(told(&both), Some(5));
        let unclear = [("OXSHMEM_LOCAL_RANK", "many"), ("LOCAL_RANK", "2")];
        assert_eq!(told(&unclear), Some(2));
    }
}
