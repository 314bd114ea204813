//! The backend by which a PE finds the others, chosen from the sets of variables that describe jobs.

use crate::error::{Error, Result};
use crate::log;
use crate::pmi::version::Version;
use crate::variables::{Lookup, RANK, RENDEZVOUS, SIZE};

const BOOTSTRAP: &str = "OXSHMEM_BOOTSTRAP";

/// A way to find the other PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    Single,
    Launcher,
    Torchrun,
    Pmi(Version),
    Pmix,
}

/// The backend to use, and the variable that says so.
pub(super) fn choose(lookup: Lookup<'_>) -> Result<(Backend, &'static str)> {
    let chosen = lookup(BOOTSTRAP);
    let backend = match chosen.as_deref().map(str::trim) {
        None | Some("auto") => return detect(lookup),
        Some("single") => Backend::Single,
        Some("launcher") => Backend::Launcher,
        Some("torchrun") => Backend::Torchrun,
        Some("pmi1") => Backend::Pmi(Version::One),
        Some("pmi2") => Backend::Pmi(Version::Two),
        Some("pmix") => Backend::Pmix,
        Some(other) => {
            return Err(Error::Variable {
                name: BOOTSTRAP,
                value: other.to_owned(),
                problem: "is no way to find the other PEs; give auto, launcher, torchrun, pmi1, \
                          pmi2, pmix or single"
                    .to_owned(),
            });
        }
    };
    Ok((backend, BOOTSTRAP))
}

fn detect(lookup: Lookup<'_>) -> Result<(Backend, &'static str)> {
    let set = |names: &[&'static str]| names.iter().copied().find(|name| lookup(name).is_some());
    if let Some(present) = set(&[RANK, SIZE, RENDEZVOUS]) {
        return Ok((Backend::Launcher, present));
    }
    let torchrun = set(&["RANK", "WORLD_SIZE"]);
    // If a process manager has started torchrun, its variables are torchrun's own, not the PE's.
    if let (Some(present), Some(_)) = (torchrun, lookup("TORCHELASTIC_RUN_ID")) {
        return Ok((Backend::Torchrun, present));
    }
    let pmix = set(&["PMIX_NAMESPACE", "PMIX_RANK"]);
    match (set(&["PMI_FD"]), pmix) {
        (Some(name), Some(other)) => {
            return Err(Error::Variable {
                name,
                value: lookup(name).unwrap_or_default(),
                problem: format!(
                    "is set and so is {other}: one process manager was started under another; set \
                     OXSHMEM_BOOTSTRAP to what the one that started this program serves: pmi1 \
                     (mpiexec), pmi2 or pmix (mpirun)"
                ),
            });
        }
        (Some(present), None) => return Ok((Backend::Pmi(Version::One), present)),
        (None, Some(present)) => return Ok((Backend::Pmix, present)),
        (None, None) => {}
    }
    if let Some(present) = torchrun {
        return Ok((Backend::Torchrun, present));
    }
    if let Some(present) = set(&["PMI_RANK", "PMI_SIZE"]) {
        return Ok((Backend::Pmi(Version::One), present));
    }
    warn_of_slurm(lookup);
    Ok((Backend::Single, ""))
}

/// Several processes that Slurm has started without a way to each other are most likely meant as
/// one job.
fn warn_of_slurm(lookup: Lookup<'_>) {
    if let Some(tasks) = slurm_tasks(lookup) {
        log::warn(&format!(
            "this is one of {tasks} tasks of a Slurm step, and a world of its own: for one world \
             {BY_SLURM}, or set OXSHMEM_BOOTSTRAP=single"
        ));
    }
}

/// The user's way to one world under Slurm.
pub(crate) const BY_SLURM: &str = "start them by srun --mpi=pmi2 or srun --mpi=pmix (srun --mpi=list shows which this \
                                   Slurm has)";

/// The number of tasks of the Slurm step that started this process, if it has several.
pub(crate) fn slurm_tasks(lookup: Lookup<'_>) -> Option<u32> {
    lookup("SLURM_STEP_ID")?;
    let tasks = lookup("SLURM_STEP_NUM_TASKS")?.trim().parse().ok()?;
    (tasks > 1).then_some(tasks)
}

/// Whether this process is to be a world of one, whatever started it.
pub(crate) fn is_to_be_alone(lookup: Lookup<'_>) -> bool {
    lookup(BOOTSTRAP).is_some_and(|backend| backend.trim() == "single")
}

/// Whether `lookup`'s variables describe a job, well or badly: whether something launched this
/// process as a PE.
pub fn describes_job(lookup: &dyn Fn(&str) -> Option<String>) -> bool {
    let alone = || lookup("PMI_SIZE").is_some_and(|size| size.trim() == "1");
    match choose_quietly(lookup) {
        Ok((Backend::Single, _)) => false,
        Ok((Backend::Torchrun, _)) => lookup("RANK").is_some() && lookup("WORLD_SIZE").is_some(),
        Ok((Backend::Launcher, _)) => lookup(RANK).is_some(),
        Ok((Backend::Pmi(_), _)) => !alone(),
        Ok((Backend::Pmix, _)) | Err(_) => true,
    }
}

/// The rank that `lookup`'s variables give this process, whether or not the job can be joined.
pub fn described_rank(lookup: &dyn Fn(&str) -> Option<String>) -> Option<u32> {
    let name = match choose_quietly(lookup).ok()?.0 {
        Backend::Single => return None,
        Backend::Launcher => RANK,
        Backend::Torchrun => "RANK",
        Backend::Pmi(_) => "PMI_RANK",
        Backend::Pmix => "PMIX_RANK",
    };
    lookup(name)?.trim().parse().ok()
}

/// As [`choose`], without its warning: that is for a process that joins.
fn choose_quietly(lookup: Lookup<'_>) -> Result<(Backend, &'static str)> {
    choose(&|name| lookup(name).filter(|_| !name.starts_with("SLURM_")))
}
