//! `oxshmem check`: the hosts of a job, the links between them, and what is wrong with them.

mod args;
mod compare;
mod finding;
mod host;
mod job;
mod judge;
mod link_findings;
mod links;
mod measured;
mod members;
mod report;
mod schedule;
mod statistics;
mod system;

use std::process::ExitCode;

use anyhow::ensure;

use crate::job::is_described;
use system::System;

pub use args::Args;

pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    let system = System::new(args.sysroot.as_deref());
    if is_described() {
        return job::main(args, &system);
    }
    ensure!(
        args.svg.is_none(),
        "--svg draws links, and there is no job; start one, such as: oxshmem run --hosts a,b oxshmem check --svg FILE"
    );
    report::host_only(args, host::see(&system))
}
