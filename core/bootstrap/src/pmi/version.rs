//! The two versions of PMI: the settings of a session, and the trait of either version's client.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::limits::MAX_PES;

/// The key of the process manager's own map from processes to hosts.
pub(super) const MAPPING: &str = "PMI_process_mapping";

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Version::One => "PMI-1",
            Version::Two => "PMI-2",
        }
    }
}

/// The values of `PMI_FD`, `PMI_RANK`, `PMI_SIZE` and `PMI_JOBID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub version: Version,
    pub descriptor: i32,
    pub rank: u32,
    pub size: u32,
    /// PMI-2's only, and not every process manager names it.
    pub job: Option<String>,
}

/// A client of one version, once its session is accepted.
pub(super) trait Protocol: std::fmt::Debug + Send {
    /// Bounds every wait from now on.
    fn wait_until(&mut self, end: Instant);

    /// The value that the process manager has under [`MAPPING`].
    fn mapping(&mut self) -> Result<String>;

    /// Collective: publishes, and gives rank 0's publication.
    fn exchange(&mut self, key: &str, published: Option<&str>) -> Result<String>;

    /// Ends the session; nothing is said any more.
    fn finalize(&mut self) -> Result<()>;
}

/// An answer that is not the one to the question.
pub(super) fn unexpected(interface: &'static str, step: &'static str, what: String) -> Error {
    Error::ProcessManager {
        interface,
        step,
        why: what,
        hint: "PMI_FD may lead to something that speaks another protocol: set OXSHMEM_BOOTSTRAP \
               to pmi1 or pmi2 as the process manager's documentation says",
    }
}

/// Refuses an answer with another number than the environment's, which would split the job.
pub(super) fn agree(
    interface: &'static str,
    name: &str,
    environment: u32,
    answer: u32,
) -> Result<()> {
    if environment == answer && answer <= MAX_PES {
        return Ok(());
    }
    let what = format!("the process manager says {name} {answer}, the environment {environment}");
    Err(unexpected(interface, "joining", what))
}
