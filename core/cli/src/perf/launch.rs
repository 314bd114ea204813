//! The start of a measurement's PEs.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use oxshmem_bootstrap::Launch;
use oxshmem_topo::Policy;

use crate::run::exit_code;

/// Runs this same command as a job.
pub fn launch(pes: u32, bind: Policy) -> anyhow::Result<ExitCode> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Directly after `perf`: later arguments may be operands.
    args.insert(
        args.len().min(1),
        format!("--launcher={}", std::process::id()).into(),
    );
    let program = std::env::current_exe().context("cannot find this program itself")?;
    let mut launch = Launch::new(program, pes);
    launch.args = args;
    launch.cpu_sets = oxshmem_topo::binding(pes as usize, bind)?;
    Ok(exit_code(launch.run()?.status))
}
