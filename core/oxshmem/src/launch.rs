//! Launcher of a job's PEs on this host, as `oxshmem run` is one, for programs that start themselves.

pub use oxshmem_bootstrap::{ExitStatus, Host, Hosts, JobEnd, Launch, Outcome, serve_agent};

use crate::error::{Error, Result};

/// Makes a program start its own PEs: if this process is not a PE of a job yet, runs `pes` copies of
/// it with the same arguments and exits with their status; else returns at once.
///
/// Call it first in `main`, while there is one thread.
///
/// ```no_run
/// use oxshmem::{Result, World};
///
/// fn main() -> Result<()> {
///     oxshmem::launch::self_with(4)?; // started by hand, it becomes four PEs
///     let world = World::init()?;
///     println!("PE {} of {}", world.my_pe(), world.n_pes());
///     world.finalize()
/// }
/// ```
pub fn self_with(pes: usize) -> Result<()> {
    let count = u32::try_from(pes).map_err(|_| Error::Argument {
        call: "self_with",
        what: format!("{pes} PEs were asked for; a job has fewer than 2^32"),
    })?;
    Ok(oxshmem_bootstrap::self_with(count)?)
}
