//! A job to start, as its user describes it.

use std::ffi::OsString;
use std::time::Duration;

use super::hosts::Hosts;

/// A job to start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Launch {
    /// The program, by path or by a name looked up in PATH.
    pub program: OsString,
    /// Its arguments, the same for all PEs.
    pub args: Vec<OsString>,
    /// The number of PEs.
    pub pes: u32,
    /// End the job, with status 124, if it runs longer.
    pub timeout: Option<Duration>,
    /// Begin each line of output with its PE's `[rank] `.
    pub tag_output: bool,
    /// PE `i` may run on the CPUs `cpu_sets[i % cpu_sets.len()]`; on all if there are none.
    pub cpu_sets: Vec<Vec<usize>>,
    /// Variables to set for the PEs, beside those that they inherit and the launcher's own.
    pub env: Vec<(OsString, OsString)>,
    /// The hosts to start the PEs on; all run on this one if there are none. Other hosts choose
    /// their CPUs themselves, by [`Hosts::bind`]: `cpu_sets` is for this host.
    pub hosts: Option<Hosts>,
}

impl Launch {
    /// A job of `pes` PEs that run `program`.
    pub fn new(program: impl Into<OsString>, pes: u32) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            pes,
            timeout: None,
            tag_output: false,
            cpu_sets: Vec::new(),
            env: Vec::new(),
            hosts: None,
        }
    }

    /// The name of the host that a PE is to run on, where that is not just this one.
    pub(super) fn host_of(&self, rank: u32) -> Option<&str> {
        let mut first = 0;
        let mut hosts = self.hosts.as_ref()?.list.iter();
        let host = hosts.find(|host| {
            let after = first + host.pes;
            rank < std::mem::replace(&mut first, after) + host.pes
        })?;
        Some(&host.name)
    }
}
